import { call, keep } from './api.js';
import { t, time } from './i18n.js';
import { make } from './messages.js';

// Sidebar lists the conversations; on a phone it is a drawer.
export class Sidebar {
  constructor(els, on) {
    const seen = keep.get('seen', null);
    Object.assign(this, els, { on, items: [], current: '', seen: seen || {}, stranger: !seen });
    this.fresh.addEventListener('click', () => { this.toggle(false); on.fresh(); });
    this.menu.addEventListener('click', () => this.toggle(true));
    this.close.addEventListener('click', () => this.toggle(false));
    this.shade.addEventListener('click', () => this.toggle(false));
    this.list.addEventListener('click', (ev) => {
      const a = ev.target.closest('a');
      if (a) this.toggle(false);
    });
  }

  get open() { return this.side.classList.contains('open'); }

  toggle(open) {
    if (open === this.open) return;
    this.side.classList.toggle('open', open);
    this.shade.hidden = !open;
    this.menu.setAttribute('aria-expanded', String(open));
    if (open) this.fresh.focus(); else this.menu.focus();
  }

  async load() {
    this.items = (await call('GET', '/conversations')).conversations;
    if (this.stranger) { // a browser that was never here: what is old is not news
      this.stranger = false;
      for (const c of this.items) this.seen[c.id] ??= Date.parse(c.updated_at);
      keep.set('seen', this.seen);
    }
    this.draw();
  }

  title(id) { return this.items.find((c) => c.id === id)?.title || ''; }

  // mark notes that what the conversation holds was seen.
  mark(id, when) {
    if ((this.seen[id] || 0) >= when) return;
    this.seen[id] = when;
    keep.set('seen', this.seen);
  }

  forget(id) {
    this.items = this.items.filter((c) => c.id !== id);
    delete this.seen[id];
    keep.set('seen', this.seen);
    this.draw();
  }

  select(id) {
    this.current = id;
    this.draw();
  }

  draw() {
    const known = this.items.some((c) => c.id === this.current);
    const items = known || !this.current ? this.items : [{ id: this.current, title: '', updated_at: null }, ...this.items];
    const rows = [];
    let group = '';
    for (const c of items) {
      const g = groupOf(c.updated_at);
      if (g !== group) rows.push(make('li', 'group', t(g)));
      group = g;
      rows.push(this.row(c));
    }
    this.list.replaceChildren(...rows);
  }

  row(c) {
    const li = make('li');
    const a = make('a', 'conversation');
    a.href = '#/' + c.id;
    a.append(make('bdi', 'conversation-title', c.title || t('untitled')));
    if (c.id === this.current) {
      a.setAttribute('aria-current', 'page');
    } else if (c.updated_at && c.messages && Date.parse(c.updated_at) > (this.seen[c.id] || 0)) {
      a.classList.add('unread');
      a.append(make('span', 'sr', t('unread')));
    }
    if (c.updated_at) a.title = time(c.updated_at);
    li.append(a);
    return li;
  }
}

function groupOf(iso) {
  if (!iso) return 'today';
  const midnight = new Date().setHours(0, 0, 0, 0);
  const when = Date.parse(iso);
  if (when >= midnight) return 'today';
  return when >= midnight - 6 * 86400000 ? 'week' : 'older';
}
