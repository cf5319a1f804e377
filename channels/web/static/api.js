// Calls of the server. A call that fails throws an Error with status (0: not reached) and code.
export async function call(method, path, body, options = {}) {
  const init = { method, headers: {}, credentials: 'same-origin', ...options };
  if (body instanceof FormData) init.body = body;
  else if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers['Content-Type'] = 'application/json';
  }
  let res;
  try {
    res = await fetch('/chat/api' + path, init);
  } catch (err) {
    throw Object.assign(new Error('not reached'), { status: 0, code: 'network', aborted: err.name === 'AbortError' });
  }
  if (res.status === 401) {
    location.assign('/login?next=' + encodeURIComponent('/' ));
    throw Object.assign(new Error('signed out'), { status: 401, code: 'unauthorized' });
  }
  const data = res.status === 204 ? {} : await res.json().catch(() => ({}));
  if (!res.ok) {
    const e = data.error || {};
    throw Object.assign(new Error(e.message || `HTTP ${res.status}`), { status: res.status, code: e.code || 'http' });
  }
  return data;
}

// passing says that the same call may succeed later.
export const passing = (err) => err.status === 0 || err.status === 429 || err.status >= 500;

export const chatPath = (id, rest = '') => `/conversations/${id}${rest}`;

// uuid makes a random UUID; crypto.randomUUID is missing on plain http.
export function uuid() {
  if (crypto.randomUUID) return crypto.randomUUID();
  const b = crypto.getRandomValues(new Uint8Array(16));
  b[6] = (b[6] & 0x0f) | 0x40;
  b[8] = (b[8] & 0x3f) | 0x80;
  const h = [...b].map((x) => x.toString(16).padStart(2, '0')).join('');
  return [h.slice(0, 8), h.slice(8, 12), h.slice(12, 16), h.slice(16, 20), h.slice(20)].join('-');
}

// keep is the browser's storage, which may be full or forbidden.
export const keep = {
  get(key, otherwise) {
    try { return JSON.parse(localStorage.getItem('deerbot.' + key)) ?? otherwise; } catch { return otherwise; }
  },
  set(key, value) {
    try {
      if (value === undefined || value === null || value === '') localStorage.removeItem('deerbot.' + key);
      else localStorage.setItem('deerbot.' + key, JSON.stringify(value));
    } catch { /* only comfort is lost */ }
  },
};
