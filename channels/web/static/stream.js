// Stream follows the events of one conversation and comes back by itself from the last revision it saw.
export class Stream {
  constructor(chat, rev, handlers) {
    Object.assign(this, { chat, rev, handlers, closed: false, wait: 500, timer: 0, since: 0 });
    this.open();
  }

  open() {
    clearTimeout(this.timer);
    this.source?.close();
    const es = new EventSource(`/chat/api/conversations/${this.chat}/events?after=${this.rev}`);
    this.source = es;
    es.onopen = () => {
      this.wait = 500;
      this.since = Date.now();
      this.handlers.connected(true);
    };
    es.onerror = () => {
      if (this.source !== es || this.closed) return;
      this.handlers.connected(false);
      es.close(); // the browser's own retry gives up after an HTTP error; ours does not
      this.timer = setTimeout(() => this.open(), this.wait + Math.random() * 250);
      this.wait = Math.min(this.wait * 2, 8000);
    };
    es.addEventListener('message', (ev) => {
      this.rev = Math.max(this.rev, Number(ev.lastEventId) || 0);
      this.handlers.message(JSON.parse(ev.data));
    });
    for (const name of ['typing', 'chat', 'notice', 'gone', 'reset']) {
      es.addEventListener(name, (ev) => this.handlers[name]?.(JSON.parse(ev.data)));
    }
  }

  // nudge reconnects at once: the machine woke up or is online again, and the old line may be dead without a sign.
  nudge() {
    if (!this.closed) this.open();
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    this.source?.close();
  }
}
