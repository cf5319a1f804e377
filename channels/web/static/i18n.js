// Texts of the page in English and Chinese. The voice: short, calm, concrete.
const texts = {
  en: {
    skip: 'Skip to the message field', new_chat: 'New conversation', conversations: 'Conversations', sign_out: 'Sign out',
    open_list: 'Show conversations', close_list: 'Hide conversations', rename: 'Rename conversation', delete: 'Delete conversation',
    earlier: 'Show earlier messages', messages: 'Messages', working: 'Working', latest: 'Latest',
    empty_title: 'What shall we work on?', empty_text: 'Write a message, drop a file, or type / for commands.',
    idea_1: 'Compare three ways to store time series', idea_2: 'Write a one-page report on heat pumps as a file',
    idea_3: 'Turn the file I add into a table, as CSV',
    placeholder: 'Message deerbot', attach: 'Add files', stop: 'Stop', send: 'Send', hint: 'Enter sends · Shift+Enter new line',
    drop: 'Drop files to add them', commands: 'Commands', cancel: 'Cancel',
    rename_title: 'Rename conversation', rename_yes: 'Rename',
    delete_title: 'Delete this conversation?', delete_text: 'Its messages and files are removed for good. Work under way in it is stopped.',
    delete_yes: 'Delete', untitled: 'New conversation', today: 'Today', week: 'Last 7 days', older: 'Older',
    sending: 'Sending', waiting: 'Not sent yet, trying again', failed: 'Not sent', retry: 'Retry', edit: 'Edit', discard: 'Discard',
    offline: 'Connection lost. Reconnecting; nothing you send is lost.', copy: 'Copy', copied: 'Copied', table: 'Table',
    you: 'You', bot: 'deerbot', remove: 'Remove {0}', download: 'Download {0}', unread: 'new',
    too_large: '{0} is larger than {1} and was not added.', too_many: 'A message holds at most {0} files.',
    too_long: 'The message is over 64 KB. Send longer text as a file.', empty_file: '{0} is empty or a folder and was not added.',
    gone: 'This conversation was deleted.',
    load_failed: 'The messages could not be loaded. Trying again.', action_failed: 'That did not reach deerbot. Try again.',
    answered: 'deerbot: {0}',
  },
  zh: {
    skip: '跳到输入框', new_chat: '新对话', conversations: '对话', sign_out: '退出登录',
    open_list: '显示对话列表', close_list: '隐藏对话列表', rename: '重命名对话', delete: '删除对话',
    earlier: '显示更早的消息', messages: '消息', working: '正在处理', latest: '最新',
    empty_title: '今天做点什么？', empty_text: '输入消息、拖入文件，或输入 / 查看命令。',
    idea_1: '比较三种存储时间序列的方案并给出建议', idea_2: '写一页关于热泵的报告并作为文件发来', idea_3: '把我添加的文件整理成表格，存为 CSV',
    placeholder: '给 deerbot 发消息', attach: '添加文件', stop: '停止', send: '发送', hint: 'Enter 发送 · Shift+Enter 换行',
    drop: '松开即可添加文件', commands: '命令', cancel: '取消',
    rename_title: '重命名对话', rename_yes: '重命名',
    delete_title: '删除这个对话？', delete_text: '其中的消息和文件会被永久删除，正在进行的任务会停止。',
    delete_yes: '删除', untitled: '新对话', today: '今天', week: '最近 7 天', older: '更早',
    sending: '发送中', waiting: '尚未发送，正在重试', failed: '未发送', retry: '重试', edit: '编辑', discard: '放弃',
    offline: '连接已断开，正在重连；发送的内容不会丢失。', copy: '复制', copied: '已复制', table: '表格',
    you: '你', bot: 'deerbot', remove: '移除 {0}', download: '下载 {0}', unread: '新消息',
    too_large: '{0} 超过 {1}，未添加。', too_many: '一条消息最多 {0} 个文件。',
    too_long: '消息超过 64 KB，请把长文本作为文件发送。', empty_file: '{0} 是空文件或文件夹，未添加。',
    gone: '这个对话已被删除。',
    load_failed: '消息加载失败，正在重试。', action_failed: '操作没有送达 deerbot，请再试一次。',
    answered: 'deerbot：{0}',
  },
};

const root = document.documentElement;
export const lang = root.dataset.lang || (/^zh\b/i.test(navigator.language || '') ? 'zh' : 'en');

// t is the text of key with {0}, {1} … filled in.
export function t(key, ...args) {
  const text = texts[lang][key] ?? texts.en[key] ?? key;
  return text.replace(/\{(\d)\}/g, (_, i) => args[i] ?? '');
}

// apply puts texts on the elements that ask for them.
export function apply(within = document) {
  root.lang = lang === 'zh' ? 'zh-CN' : 'en';
  for (const el of within.querySelectorAll('[data-i18n]')) el.textContent = t(el.dataset.i18n);
  for (const el of within.querySelectorAll('[data-i18n-label]')) {
    const text = t(el.dataset.i18nLabel);
    el.setAttribute('aria-label', text);
    if (el.tagName === 'BUTTON') el.title = text;
  }
  for (const el of within.querySelectorAll('[data-i18n-placeholder]')) el.placeholder = t(el.dataset.i18nPlaceholder);
}

export function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  const units = ['KB', 'MB', 'GB'];
  let n = bytes / 1024, i = 0;
  for (; n >= 1000 && i < 2; i++) n /= 1024;
  return `${n < 10 ? n.toFixed(1) : Math.round(n)} ${units[i]}`;
}

export function time(iso) {
  const d = new Date(iso);
  const sameDay = d.toDateString() === new Date().toDateString();
  const clock = { hour: '2-digit', minute: '2-digit' };
  return new Intl.DateTimeFormat(lang, sameDay ? clock : { month: 'short', day: 'numeric', ...clock }).format(d);
}
