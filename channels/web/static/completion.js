import { call } from './api.js';
import { lang } from './i18n.js';
import { make } from './messages.js';

// Completion offers commands while the text is a slash and a word.
export class Completion {
  constructor(box, input, chosen) {
    Object.assign(this, { box, input, chosen, commands: [], loaded: 0, shown: [], at: 0 });
    box.addEventListener('mousedown', (ev) => ev.preventDefault()); // the field keeps the focus
    box.addEventListener('click', (ev) => {
      const el = ev.target.closest('[role=option]');
      if (el) this.choose(Number(el.dataset.i));
    });
  }

  get open() { return !this.box.hidden; }

  async update() {
    const word = /^\/([^\s/]*)$/.exec(this.input.value)?.[1];
    if (word === undefined) return this.close();
    if (Date.now() - this.loaded > 60000) {
      this.loaded = Date.now();
      try {
        this.commands = (await call('GET', '/commands')).commands;
      } catch { this.loaded = 0; }
      return this.update();
    }
    const low = word.toLowerCase();
    this.shown = this.commands.filter((c) => c.name.toLowerCase().startsWith(low)).slice(0, 50);
    if (!this.shown.length || (this.shown.length === 1 && this.shown[0].name === low && !this.shown[0].args)) return this.close();
    this.at = 0;
    this.draw();
  }

  draw() {
    this.box.replaceChildren(...this.shown.map((c, i) => {
      const el = make('div', 'option');
      Object.assign(el, { id: 'option-' + i, role: 'option' });
      el.setAttribute('aria-selected', String(i === this.at));
      el.dataset.i = i;
      const name = make('span', 'option-name', '/' + c.name);
      if (c.args) name.append(' ', make('span', 'option-args', c.args));
      el.append(name, make('span', 'option-text', c.description?.[lang] || c.description?.en || ''));
      return el;
    }));
    this.box.hidden = false;
    this.input.setAttribute('aria-expanded', 'true');
    this.input.setAttribute('aria-activedescendant', 'option-' + this.at);
    this.box.children[this.at]?.scrollIntoView({ block: 'nearest' });
  }

  close() {
    this.box.hidden = true;
    this.input.setAttribute('aria-expanded', 'false');
    this.input.removeAttribute('aria-activedescendant');
  }

  choose(i) {
    const c = this.shown[i];
    this.close();
    if (c) this.chosen(`/${c.name}${c.args ? ' ' : ''}`);
  }

  // key handles a key press and reports whether it was one for the list.
  key(ev) {
    if (!this.open) return false;
    switch (ev.key) {
      case 'ArrowDown': this.at = (this.at + 1) % this.shown.length; break;
      case 'ArrowUp': this.at = (this.at + this.shown.length - 1) % this.shown.length; break;
      case 'Tab': case 'Enter':
        if (ev.key === 'Enter' && this.input.value === '/' + this.shown[this.at].name) { this.close(); return false; }
        this.choose(this.at);
        return true;
      case 'Escape': this.close(); return true;
      default: return false;
    }
    this.draw();
    return true;
  }
}
