import { call, chatPath, keep, passing } from './api.js';

// Outbox holds messages until the server has taken them: one at a time for each conversation, in order, under an id that
// makes sending again harmless. Texts survive a reload.
export class Outbox {
  // changed(item) is called when an item's state changes: sending, waiting, failed, sent (with item.message), dropped.
  constructor(changed) {
    this.changed = changed;
    this.items = [];
    this.busy = new Set();
    for (const saved of keep.get('outbox', [])) this.items.push({ ...saved, files: [], state: 'sending', tries: 0 });
  }

  resume() {
    for (const chat of new Set(this.items.map((i) => i.chat))) this.pump(chat);
  }

  of(chat) { return this.items.filter((i) => i.chat === chat); }

  add(item) {
    this.items.push(Object.assign(item, { state: 'sending', tries: 0 }));
    this.save();
    this.changed(item);
    this.pump(item.chat);
  }

  retry(id) {
    const item = this.items.find((i) => i.id === id);
    if (!item) return;
    clearTimeout(item.timer);
    Object.assign(item, { state: 'sending', tries: 0, timer: 0 });
    this.changed(item);
    this.pump(item.chat);
  }

  drop(id) {
    const item = this.items.find((i) => i.id === id);
    if (!item) return null;
    clearTimeout(item.timer);
    this.items = this.items.filter((i) => i !== item);
    this.save();
    item.state = 'dropped';
    this.changed(item);
    this.pump(item.chat);
    return item;
  }

  async pump(chat) {
    if (this.busy.has(chat)) return;
    const item = this.items.find((i) => i.chat === chat && i.state !== 'failed');
    if (!item || item.timer) return;
    this.busy.add(chat);
    try {
      const { message } = await call('POST', chatPath(chat, '/messages'), bodyOf(item));
      this.items = this.items.filter((i) => i !== item);
      this.save();
      if (item.state !== 'dropped') Object.assign(item, { state: 'sent', message });
      this.changed(item);
    } catch (err) {
      if (item.state !== 'dropped') this.failed(item, err);
    } finally {
      this.busy.delete(chat);
    }
    this.pump(chat);
  }

  failed(item, err) {
    item.error = err.message;
    item.tries++;
    if (passing(err) || err.status === 401) {
      item.state = 'waiting';
      const wait = Math.min(1000 * 2 ** (item.tries - 1), 15000);
      item.timer = setTimeout(() => { item.timer = 0; this.pump(item.chat); }, wait);
    } else {
      item.state = 'failed';
    }
    this.changed(item);
  }

  save() {
    keep.set('outbox', this.items.filter((i) => !i.files.length).map(({ chat, id, text, at }) => ({ chat, id, text, at })));
  }
}

function bodyOf(item) {
  if (!item.files.length) return { client_id: item.id, text: item.text };
  const form = new FormData();
  form.append('client_id', item.id);
  form.append('text', item.text);
  for (const f of item.files) form.append('file', f, f.name);
  return form;
}
