import { Completion } from './completion.js';
import { keep } from './api.js';
import { icon, make } from './messages.js';
import { size, t } from './i18n.js';

const limits = document.body.dataset;

// Composer is the field for text and files.
export class Composer {
  // on: send({text, files}), say(text)
  constructor(els, on) {
    Object.assign(this, els, { on, chat: '', picked: [] });
    this.completion = new Completion(els.completion, this.input, (text) => { this.set(text); });
    this.form.addEventListener('submit', (ev) => { ev.preventDefault(); this.submit(); });
    this.input.addEventListener('input', () => { this.changed(); this.completion.update(); });
    this.input.addEventListener('blur', () => this.completion.close());
    this.input.addEventListener('keydown', (ev) => this.key(ev));
    this.input.addEventListener('paste', (ev) => {
      if (ev.clipboardData.files.length) {
        ev.preventDefault();
        this.add(ev.clipboardData.files);
      }
    });
    this.attach.addEventListener('click', () => this.files.click());
    this.files.addEventListener('change', () => { this.add(this.files.files); this.files.value = ''; });
    this.chips.addEventListener('click', (ev) => {
      const b = ev.target.closest('button');
      if (b) { this.picked.splice(Number(b.dataset.i), 1); this.changed(); this.input.focus(); }
    });
    this.dropping();
  }

  // open switches to the draft of a conversation.
  open(chat) {
    const early = this.chat ? '' : this.input.value; // typed while the page was still loading
    this.chat = chat;
    this.picked = [];
    this.set(early || keep.get('draft.' + chat, ''), false);
  }

  set(text, focus = true) {
    this.input.value = text;
    this.changed();
    if (focus) {
      this.input.focus();
      this.input.setSelectionRange(text.length, text.length);
    }
  }

  changed() {
    keep.set('draft.' + this.chat, this.input.value);
    this.input.style.height = 'auto';
    this.input.style.height = Math.min(this.input.scrollHeight, innerHeight * 0.4) + 'px';
    this.send.disabled = !this.input.value.trim() && !this.picked.length;
    this.chips.hidden = !this.picked.length;
    this.chips.replaceChildren(...this.picked.map((f, i) => {
      const li = make('li', 'chip');
      const b = make('button', 'icon');
      b.type = 'button';
      b.dataset.i = i;
      b.setAttribute('aria-label', t('remove', f.name));
      b.append(icon('close'));
      li.append(make('bdi', '', f.name), make('small', '', size(f.size)), b);
      return li;
    }));
  }

  key(ev) {
    if (ev.isComposing || ev.keyCode === 229) return; // an input method is at work
    if (this.completion.key(ev)) {
      ev.preventDefault();
      ev.stopPropagation();
    } else if (ev.key === 'Enter' && !ev.shiftKey && !ev.altKey) {
      ev.preventDefault();
      this.submit();
    }
  }

  submit() {
    const text = this.input.value.trim();
    if (!text && !this.picked.length) return;
    if (new TextEncoder().encode(text).length > Number(limits.maxText)) {
      this.on.say(t('too_long'));
      return;
    }
    const files = this.picked;
    this.picked = [];
    this.completion.close();
    this.set('');
    this.on.send({ text, files });
  }

  add(list) {
    for (const f of list) {
      if (this.picked.length >= Number(limits.maxFiles)) this.on.say(t('too_many', limits.maxFiles));
      else if (f.size > Number(limits.maxUpload)) this.on.say(t('too_large', f.name, size(Number(limits.maxUpload))));
      else if (f.size === 0) this.on.say(t('empty_file', f.name));
      else { this.picked.push(f); continue; }
    }
    this.changed();
    this.input.focus();
  }

  dropping() {
    let depth = 0;
    const holdsFiles = (ev) => [...(ev.dataTransfer?.types || [])].includes('Files');
    addEventListener('dragenter', (ev) => { if (holdsFiles(ev)) { depth++; this.drop.hidden = false; } });
    addEventListener('dragleave', (ev) => { if (holdsFiles(ev) && --depth <= 0) { depth = 0; this.drop.hidden = true; } });
    addEventListener('dragover', (ev) => { if (holdsFiles(ev)) ev.preventDefault(); });
    addEventListener('drop', (ev) => {
      if (!holdsFiles(ev)) return;
      ev.preventDefault();
      depth = 0;
      this.drop.hidden = true;
      this.add(ev.dataTransfer.files);
    });
  }
}
