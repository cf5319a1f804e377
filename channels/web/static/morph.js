// morph makes the children of live equal to those of next while keeping the nodes that are alike, so that a message that
// is edited many times keeps selection, focus, scroll positions and opened details.
export function morph(live, next) {
  let a = live.firstChild;
  let b = next.firstChild;
  while (b) {
    const follow = b.nextSibling;
    if (!a) {
      live.append(b);
    } else if (!alike(a, b)) {
      a = a.nextSibling;
      live.replaceChild(b, a ? a.previousSibling : live.lastChild);
    } else {
      if (a.nodeType === Node.ELEMENT_NODE) {
        attributes(a, b);
        morph(a, b);
      } else if (a.data !== b.data) {
        a.data = b.data;
      }
      a = a.nextSibling;
    }
    b = follow;
  }
  while (a) {
    const follow = a.nextSibling;
    a.remove();
    a = follow;
  }
}

const alike = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName;

function attributes(a, b) {
  for (const { name } of [...a.attributes]) {
    if (!b.hasAttribute(name) && !kept(a, name)) a.removeAttribute(name);
  }
  for (const { name, value } of b.attributes) {
    if (a.getAttribute(name) !== value && !kept(a, name)) a.setAttribute(name, value);
  }
}

// kept is state of the reader, not of the message.
const kept = (el, name) => el.nodeName === 'DETAILS' && name === 'open' && el.dataset.touched === 'yes';
