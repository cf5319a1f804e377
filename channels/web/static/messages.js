import { morph } from './morph.js';
import { size, t, time } from './i18n.js';

const near = 90; // pixels from the end that still count as reading the end

export function make(tag, cls, text) {
  const el = document.createElement(tag);
  if (cls) el.className = cls;
  if (text !== undefined) el.textContent = text;
  return el;
}

export function icon(name) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('aria-hidden', 'true');
  const use = document.createElementNS('http://www.w3.org/2000/svg', 'use');
  use.setAttribute('href', '#i-' + name);
  svg.append(use);
  return svg;
}

// Messages shows the messages of one conversation and keeps the reader's place.
export class Messages {
  // on: action(messageID, action, button), retry(id), edit(id), discard(id), changed()
  constructor(els, on) {
    Object.assign(this, els, { on, nodes: new Map(), unread: false, pinned: true, announceTimers: new Map() });
    this.scroll.addEventListener('scroll', () => {
      this.pinned = this.atEnd();
      this.latest.hidden = this.pinned;
    }, { passive: true });
    new ResizeObserver(() => { if (this.pinned) this.toEnd(); }).observe(this.column);
    new ResizeObserver(() => { if (this.pinned) this.toEnd(); }).observe(this.scroll);
    this.latest.addEventListener('click', () => { this.toEnd(true); });
    this.messages.addEventListener('click', (ev) => this.clicked(ev));
    this.messages.addEventListener('toggle', (ev) => { ev.target.dataset.touched = 'yes'; }, true);
  }

  atEnd() { return this.scroll.scrollHeight - this.scroll.scrollTop - this.scroll.clientHeight < near; }

  toEnd(smooth = false) {
    const calm = matchMedia('(prefers-reduced-motion: reduce)').matches;
    this.scroll.scrollTo({ top: this.scroll.scrollHeight, behavior: smooth && !calm ? 'smooth' : 'instant' });
    this.pinned = true;
    this.latest.hidden = true;
  }

  clear() {
    for (const timer of this.announceTimers.values()) clearTimeout(timer);
    this.announceTimers.clear();
    this.nodes.clear();
    this.messages.replaceChildren();
    this.pinned = true;
    this.latest.hidden = true;
  }

  get empty() { return this.nodes.size === 0; }

  get firstSeq() {
    let first = Infinity;
    for (const n of this.nodes.values()) first = Math.min(first, n.seq);
    return first;
  }

  // put shows m or its newer state. live: it happened just now.
  put(m, live = false) {
    const old = this.nodes.get(m.id);
    if (old && old.rev >= m.rev) return;
    if (m.deleted) {
      if (old && !old.pending) this.remove(m.id);
      return;
    }
    const node = old || this.insert(m.id, m.seq, m.from);
    if (old && old.seq !== m.seq) this.place(node, m.seq);
    Object.assign(node, { rev: m.rev, seq: m.seq, pending: false, msg: m });
    this.fill(node, m);
    if (live) this.noticed(node);
    this.on.changed();
  }

  // putPending shows a message that the server does not have yet.
  putPending(item) {
    if (item.state === 'dropped') {
      if (this.nodes.get(item.id)?.pending) this.remove(item.id);
      return;
    }
    const node = this.nodes.get(item.id) || this.insert(item.id, Infinity, 'user');
    if (node.rev > 0) return;
    node.pending = true;
    const files = item.files.map((f) => ({ name: f.name, size: f.size }));
    this.fill(node, { from: 'user', text: item.text, files, created_at: item.at });
    this.state(node, item);
    this.on.changed();
  }

  insert(id, seq, from) {
    const el = make('article', 'msg ' + from);
    el.dataset.id = id;
    el.setAttribute('aria-label', t(from === 'user' ? 'you' : 'bot'));
    const node = { el, rev: 0, seq, pending: false };
    for (const part of ['body', 'files', 'buttons', 'meta']) {
      node[part] = make(part === 'meta' ? 'footer' : 'div', part);
      el.append(node[part]);
    }
    this.nodes.set(id, node);
    this.place(node, seq);
    return node;
  }

  place(node, seq) {
    node.seq = seq;
    let after = this.messages.lastElementChild;
    while (after && (after === node.el || this.nodes.get(after.dataset.id).seq > seq)) after = after.previousElementSibling;
    if (after) after.after(node.el); else this.messages.prepend(node.el);
  }

  remove(id) {
    this.nodes.get(id)?.el.remove();
    this.nodes.delete(id);
    this.on.changed();
  }

  fill(node, m) {
    if (m.html) {
      const tpl = document.createElement('template');
      tpl.innerHTML = m.html; // from the server's own renderer, which escapes; the page's policy forbids scripts besides
      decorate(tpl.content);
      node.body.className = 'body html';
      morph(node.body, tpl.content);
    } else {
      node.body.className = 'body text';
      if (node.body.textContent !== (m.text || '')) node.body.textContent = m.text || '';
    }
    node.body.hidden = !m.html && !m.text;
    const files = document.createDocumentFragment();
    for (const f of m.files || []) files.append(fileCard(f));
    morph(node.files, files);
    node.files.hidden = !node.files.firstChild;
    const buttons = document.createDocumentFragment();
    for (const row of m.buttons || []) buttons.append(buttonRow(row));
    node.buttons.classList.remove('pressed');
    morph(node.buttons, buttons);
    node.buttons.hidden = !node.buttons.firstChild;
    const when = make('time', '', time(m.created_at));
    when.dateTime = m.created_at;
    node.meta.replaceChildren(when);
    node.el.classList.remove('waiting', 'failed', 'sending');
  }

  // state shows how the sending goes.
  state(node, item) {
    node.el.classList.add(item.state);
    const text = { sending: t('sending'), waiting: t('waiting'), failed: `${t('failed')}: ${item.error || ''}` }[item.state];
    const parts = [make('span', 'state', text)];
    if (item.state !== 'sending') {
      for (const what of ['retry', 'edit', 'discard']) {
        const b = make('button', 'link', t(what));
        b.type = 'button';
        b.dataset.do = what;
        parts.push(b);
      }
    }
    node.meta.replaceChildren(...parts);
  }

  noticed(node) {
    if (!this.pinned && !this.atEnd()) this.latest.hidden = false;
    if (node.msg.from !== 'bot') return;
    // Screen readers hear an answer when it has come to rest, not every edit of it.
    const id = node.msg.id;
    clearTimeout(this.announceTimers.get(id));
    this.announceTimers.set(id, setTimeout(() => {
      this.announceTimers.delete(id);
      const text = node.body.innerText.trim().replace(/\s+/g, ' ');
      if (text) this.announce.textContent = t('answered', text.length > 600 ? text.slice(0, 600) + ' …' : text);
    }, 1500));
  }

  // stopButton is the newest button that stops work.
  stopButton() {
    const all = this.messages.querySelectorAll('.bot [data-action^="stop:"], .bot [data-action="stop"]');
    return all[all.length - 1] || null;
  }

  clicked(ev) {
    const button = ev.target.closest('button');
    if (!button) return;
    const id = button.closest('.msg')?.dataset.id;
    if (button.dataset.do) this.on[button.dataset.do](id);
    else if (button.dataset.action) this.on.action(id, button.dataset.action, button);
    else if (button.classList.contains('copy')) copy(button);
  }
}

function fileCard(f) {
  const a = make(f.url ? 'a' : 'span', f.image ? 'file image' : 'file');
  if (f.url) {
    a.href = f.image ? f.url : f.url + '?download=1';
    a.setAttribute('aria-label', f.image ? f.name : t('download', f.name));
    if (f.image) { a.target = '_blank'; a.rel = 'noopener noreferrer'; } else a.download = f.name;
  }
  if (f.image) {
    const img = make('img');
    Object.assign(img, { src: f.url, alt: f.name, loading: 'lazy', decoding: 'async' });
    a.append(img);
  } else {
    a.append(icon('file'));
  }
  const label = make('span', 'file-name');
  label.append(make('bdi', '', f.name), make('small', '', size(f.size)));
  a.append(label);
  return a;
}

function buttonRow(row) {
  const div = make('div', 'row');
  for (const b of row) {
    const el = make('button', 'btn ' + ({ primary: 'primary', danger: 'danger' }[b.style] || ''), b.label);
    el.type = 'button';
    el.dataset.action = b.action;
    div.append(el);
  }
  return div;
}

// decorate adds what only a page has: copy buttons, tables that scroll, links that open beside.
function decorate(content) {
  for (const br of content.querySelectorAll('p > br')) { // paragraphs keep their spaces, and need one line end only
    const after = br.nextSibling;
    if (after?.nodeType === Node.TEXT_NODE) after.data = after.data.replace(/^\n/, '');
  }
  for (const pre of content.querySelectorAll('pre')) {
    const box = make('div', 'code');
    const lang = /language-([\w+#.-]+)/.exec(pre.querySelector('code')?.className || pre.className)?.[1] || '';
    const bar = make('div', 'code-bar');
    const button = make('button', 'copy', t('copy'));
    button.type = 'button';
    bar.append(make('span', '', lang), button);
    pre.replaceWith(box);
    pre.tabIndex = 0;
    box.append(bar, pre);
  }
  for (const table of content.querySelectorAll('table')) {
    const box = make('div', 'table');
    box.tabIndex = 0;
    box.setAttribute('role', 'region');
    box.setAttribute('aria-label', t('table'));
    table.replaceWith(box);
    box.append(table);
  }
  for (const a of content.querySelectorAll('a[href]')) {
    if (a.getAttribute('href').startsWith('#')) continue;
    a.target = '_blank';
    a.rel = 'noopener noreferrer';
  }
}

async function copy(button) {
  const pre = button.closest('.code').querySelector('pre');
  const text = pre.textContent.replace(/\n$/, '');
  try {
    await navigator.clipboard.writeText(text);
  } catch { // plain http has no clipboard
    const sel = getSelection();
    sel.selectAllChildren(pre);
    document.execCommand('copy');
    sel.removeAllRanges();
  }
  button.textContent = t('copied');
  setTimeout(() => { button.textContent = t('copy'); }, 1600);
}
