import { call, chatPath, keep, uuid } from './api.js';
import { Composer } from './composer.js';
import { apply, t } from './i18n.js';
import { make, Messages } from './messages.js';
import { Outbox } from './outbox.js';
import { Sidebar } from './sidebar.js';
import { Stream } from './stream.js';

apply();
const $ = (id) => document.getElementById(id);
let chat = '';
let stream = null;
let typingTimer = 0;
let bannerTimer = 0;

const view = new Messages(
  { scroll: $('scroll'), column: $('column'), messages: $('messages'), latest: $('latest'), announce: $('announce') },
  {
    action: press,
    retry: (id) => outbox.retry(id),
    discard: (id) => outbox.drop(id),
    edit: (id) => {
      const item = outbox.drop(id);
      if (!item) return;
      composer.picked = item.files;
      composer.set(item.text);
    },
    changed: () => {
      $('empty').hidden = !view.empty;
      $('stop').hidden = !view.stopButton();
    },
  });

const sidebar = new Sidebar(
  { side: $('side'), list: $('list'), fresh: $('new'), menu: $('menu'), close: $('side-close'), shade: $('shade') },
  { fresh: () => { location.hash = '#/' + uuid(); composer.input.focus(); } });

const composer = new Composer(
  { form: $('composer'), input: $('input'), send: $('send'), attach: $('attach'), files: $('files'), chips: $('chips'),
    drop: $('drop'), completion: $('completion') },
  { say, send: ({ text, files }) => {
    outbox.add({ chat, id: uuid(), text, files, at: new Date().toISOString() });
    view.toEnd();
  } });

const outbox = new Outbox((item) => {
  if (item.state === 'sent') loadList();
  if (item.chat !== chat) return;
  if (item.state === 'sent') view.put(item.message);
  else view.putPending(item);
});

async function open(id) {
  stream?.close();
  chat = id;
  keep.set('last', id);
  view.clear();
  working(false);
  banner('');
  $('earlier').hidden = true;
  sidebar.select(id);
  titled();
  composer.open(id);
  view.on.changed();
  let page;
  for (let wait = 500; ; wait = Math.min(wait * 2, 8000)) {
    try {
      page = await call('GET', chatPath(id, '/messages'));
      break;
    } catch {
      if (chat !== id) return;
      banner(t('load_failed'));
      await new Promise((done) => { setTimeout(done, wait); });
    }
    if (chat !== id) return;
  }
  if (chat !== id) return;
  banner('');
  for (const m of page.messages) view.put(m);
  for (const item of outbox.of(id)) view.putPending(item);
  $('earlier').hidden = !page.more;
  seen(...page.messages);
  view.on.changed();
  view.toEnd();
  follow(id, page.rev);
}

function follow(id, rev) {
  stream = new Stream(id, rev, {
    connected: (ok) => {
      clearTimeout(bannerTimer);
      if (ok) banner(''); else bannerTimer = setTimeout(() => banner(t('offline')), 1500);
    },
    message: (m) => {
      if (m.from === 'bot') working(false);
      view.put(m, true);
      seen(m);
    },
    typing: () => working(true),
    chat: () => loadList(),
    notice: ({ text }) => { if (text) say(text); },
    gone: () => { say(t('gone')); sidebar.forget(id); fresh(); },
    reset: () => open(id),
  });
}

function seen(...messages) {
  if (document.visibilityState !== 'visible') return;
  sidebar.mark(chat, Math.max(0, ...messages.map((m) => Date.parse(m.updated_at))));
}

function working(on) {
  clearTimeout(typingTimer);
  const pinned = view.pinned;
  $('typing').hidden = !on;
  if (on && pinned) view.toEnd();
  if (on) typingTimer = setTimeout(() => working(false), 8000);
}

async function press(messageID, action, button) {
  const box = button.closest('.buttons, .body');
  box?.classList.add('pressed');
  setTimeout(() => box?.classList.remove('pressed'), 6000);
  try {
    await call('POST', chatPath(chat, '/actions'), { message_id: messageID, action, client_id: uuid() });
  } catch {
    box?.classList.remove('pressed');
    say(t('action_failed'));
  }
}

function titled() {
  const title = sidebar.title(chat);
  $('title').textContent = title || t('untitled');
  document.title = title ? `${title} · deerbot` : 'deerbot';
  const known = sidebar.items.some((c) => c.id === chat);
  $('rename').hidden = $('delete').hidden = !known;
}

let loading = null;
function loadList() {
  loading ??= sidebar.load().then(titled, () => {}).finally(() => { loading = null; });
  return loading;
}

function banner(text) {
  clearTimeout(bannerTimer);
  $('banner').textContent = text;
  $('banner').hidden = !text;
}

function say(text) {
  const el = make('div', 'toast-item', text);
  $('toast').append(el);
  setTimeout(() => el.remove(), 6000);
}

// ask shows a question; it resolves to the text, true, or null when it was closed.
function ask({ title, text = '', yes, value, danger = false }) {
  const dialog = $('ask');
  const input = $('ask-input');
  $('ask-title').textContent = title;
  $('ask-text').textContent = text;
  $('ask-text').hidden = !text;
  $('ask-yes').textContent = yes;
  $('ask-yes').classList.toggle('danger', danger);
  input.hidden = value === undefined;
  input.required = value !== undefined;
  input.value = value ?? '';
  dialog.returnValue = '';
  dialog.showModal();
  input.select();
  return new Promise((done) => {
    dialog.addEventListener('close', () => {
      done(dialog.returnValue !== 'yes' ? null : value === undefined ? true : input.value.trim() || null);
    }, { once: true });
  });
}

$('rename').addEventListener('click', async () => {
  const id = chat;
  const title = await ask({ title: t('rename_title'), yes: t('rename_yes'), value: sidebar.title(id) });
  if (!title) return;
  try { await call('PATCH', chatPath(id), { title }); } catch { say(t('action_failed')); }
  loadList();
});

$('delete').addEventListener('click', async () => {
  const id = chat;
  if (!await ask({ title: t('delete_title'), text: t('delete_text'), yes: t('delete_yes'), danger: true })) return;
  for (const item of outbox.of(id)) outbox.drop(item.id);
  try {
    if (chat === id) stream?.close();
    await call('DELETE', chatPath(id));
    keep.set('draft.' + id, null);
    sidebar.forget(id);
    if (chat === id) fresh();
  } catch {
    say(t('action_failed'));
    if (chat === id) open(id);
  }
});

$('stop').addEventListener('click', () => view.stopButton()?.click());

$('earlier').addEventListener('click', async () => {
  const before = view.scroll.scrollHeight - view.scroll.scrollTop;
  try {
    const page = await call('GET', chatPath(chat, `/messages?before=${view.firstSeq}`));
    for (const m of page.messages) view.put(m);
    $('earlier').hidden = !page.more;
    view.scroll.scrollTop = view.scroll.scrollHeight - before;
  } catch { say(t('load_failed')); }
});

addEventListener('keydown', (ev) => {
  if (ev.key === 'Escape' && sidebar.open) sidebar.toggle(false);
});
addEventListener('hashchange', route);
addEventListener('online', () => stream?.nudge());
let hiddenAt = 0;
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState !== 'visible') { hiddenAt = Date.now(); return; }
  if (Date.now() - hiddenAt > 60000) stream?.nudge();
  loadList();
});
setInterval(() => { if (document.visibilityState === 'visible') loadList(); }, 15000);

for (const key of ['idea_1', 'idea_2', 'idea_3']) {
  const b = make('button', 'idea', t(key));
  b.type = 'button';
  b.addEventListener('click', () => composer.set(t(key)));
  $('ideas').append(b);
}

function fresh() { location.hash = '#/' + (sidebar.items[0]?.id || uuid()); }

function route() {
  const id = /^#\/([0-9a-f-]{36})$/.exec(location.hash)?.[1];
  if (id) { if (id !== chat) open(id); return; }
  const last = keep.get('last', '');
  const known = sidebar.items.some((c) => c.id === last);
  history.replaceState(null, '', '#/' + (known ? last : sidebar.items[0]?.id || uuid()));
  route();
}

await loadList();
route();
outbox.resume();
