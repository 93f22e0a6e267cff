import { mostAttachments } from './api/api-schemas.js';

/** The scripts of the pages of `agent serve`. They use the HTTP API, and load nothing from elsewhere. */

/** Writes a message with files: `takeFiles(form)` for the buttons, pasting and dropping; `bodyOf` for what is sent. */
const writing = `
const api = async (path, body) => {
  try {
    const reply = await fetch(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    const value = await reply.json();
    return reply.ok ? { value } : { problem: [value.error.message, value.error.hint].join(' ').trim() };
  } catch {
    return { problem: 'Not connected. If agent serve was started again, open the address that it printed.' };
  }
};
const base64Of = (file) =>
  new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(',') + 1));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
const takeFiles = (form, say) => {
  const box = form.querySelector('.files');
  let files = [];
  const show = () => {
    box.replaceChildren(
      ...files.map((file) => {
        const button = document.createElement('button');
        button.type = 'button';
        button.textContent = file.name + ' ✕';
        button.setAttribute('aria-label', 'Remove ' + file.name);
        button.onclick = () => {
          files = files.filter((other) => other !== file);
          show();
        };
        return button;
      }),
    );
  };
  const add = (added) => {
    const large = [...added].find(({ size }) => size > 16 * 1024 * 1024);
    if (large) say(large.name + ' is larger than 16 MB.');
    else if (files.length + added.length > ${mostAttachments}) say('A message takes at most ${mostAttachments} files.');
    else files = [...files, ...added];
    show();
  };
  const picker = form.querySelector('input[type=file]');
  picker.onchange = () => {
    add([...picker.files]);
    picker.value = '';
  };
  form.addEventListener('paste', (event) => {
    const pasted = [...event.clipboardData.files];
    if (pasted.length === 0) return;
    event.preventDefault();
    add(pasted);
  });
  form.addEventListener('dragover', (event) => event.preventDefault());
  form.addEventListener('drop', (event) => {
    event.preventDefault();
    add([...event.dataTransfer.files]);
  });
  return {
    read: () => Promise.all(files.map(async (file) => ({ name: file.name || 'file', base64: await base64Of(file) }))),
    clear: () => {
      files = [];
      show();
    },
  };
};
/** A touch keyboard has no other key for a new line. */
const entersLines = matchMedia('(pointer: coarse)').matches;
const sendsWithEnter = (form, text) => {
  text.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.isComposing || event.shiftKey || event.altKey) return;
    if (entersLines && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    form.requestSubmit();
  });
};
`;

/** Starts sessions, and keeps the list of sessions up to date while the page is seen. */
export const listScript = `${writing}
const form = document.querySelector('#new form');
if (form) {
  const said = form.querySelector('.said');
  const say = (text) => {
    said.textContent = text;
  };
  const files = takeFiles(form, say);
  sendsWithEnter(form, form.elements.prompt);
  form.onsubmit = async (event) => {
    event.preventDefault();
    const button = form.querySelector('.main');
    if (button.disabled || form.elements.prompt.value.trim() === '') return;
    button.disabled = true;
    say('Starting …');
    const body = { prompt: form.elements.prompt.value, attachments: await files.read() };
    for (const name of ['cwd', 'model', 'title'])
      if (form.elements[name].value.trim() !== '') body[name] = form.elements[name].value.trim();
    const { value, problem } = await api('api/sessions', body);
    if (value) location.href = 's/' + value.session_id;
    else {
      say(problem);
      button.disabled = false;
    }
  };
}
const list = document.querySelector('#list');
const renew = async () => {
  if (document.hidden || !list) return;
  try {
    const reply = await fetch(location.href);
    if (!reply.ok) return;
    const fresh = new DOMParser().parseFromString(await reply.text(), 'text/html').querySelector('#list');
    if (fresh && fresh.innerHTML !== list.innerHTML) list.innerHTML = fresh.innerHTML;
  } catch {
    // The next look tries again.
  }
};
if (list) {
  setInterval(renew, 3000);
  document.addEventListener('visibilitychange', renew);
}`;

/** Puts updates of a session into its page, and sends what is written there. The server makes and escapes the content;
 * the policy of the page prevents scripts in it. */
export const liveScript = `${writing}
const box = document.querySelector('#entries');
const live = document.querySelector('#live');
const output = document.querySelector('#output');
const asks = document.querySelector('#asks');
const state = document.querySelector('#state');
const queued = document.querySelector('#queued');
const form = document.querySelector('#foot form');
const text = form.elements.text;
const said = form.querySelector('.said');
const interrupt = document.querySelector('#interrupt');
const session = '../api/sessions/' + location.pathname.split('/').pop();
const say = (message) => {
  said.textContent = message;
};
const atEnd = () => innerHeight + scrollY >= document.documentElement.scrollHeight - 80;
const keepEnd = (change) => {
  const stay = atEnd();
  change();
  if (stay) scrollTo(0, document.documentElement.scrollHeight);
};
const takers = {
  entries(entries) {
    for (const { seq, html, ref } of entries) {
      if (ref) queued.querySelector('[data-ref="' + CSS.escape(ref) + '"]')?.remove();
      const part = document.createElement('template');
      part.innerHTML = html;
      const old = document.getElementById('e' + seq);
      if (old) {
        const open = [...old.querySelectorAll('details')].map((each) => each.open);
        [...part.content.querySelectorAll('details')].forEach((each, index) => {
          each.open = open[index] ?? each.open;
        });
        old.replaceWith(part.content);
        continue;
      }
      let before = box.lastElementChild;
      while (before && Number(before.id.slice(1)) > seq) before = before.previousElementSibling;
      if (before) before.after(part.content);
      else if (!box.firstElementChild) box.append(part.content);
    }
  },
  text(value) {
    live.textContent = value;
  },
  output(value) {
    output.textContent = value;
  },
  state(value) {
    state.textContent = value;
  },
  work(value) {
    interrupt.hidden = value !== 'working';
    text.placeholder = value === 'stopped' ? 'Message: the session continues in the background' : 'Message';
    form.dataset.work = value;
  },
  asks(html) {
    const part = document.createElement('template');
    part.innerHTML = html;
    // What is typed into a prompt stays. A new prompt takes no click that was meant for something else.
    const shown = [...part.content.children].map((ask) => {
      const same = [...asks.children].find((old) => old.dataset.shown === ask.dataset.shown);
      if (same) return same;
      const buttons = [...ask.querySelectorAll('button')];
      for (const button of buttons) button.disabled = true;
      setTimeout(() => {
        for (const button of buttons) button.disabled = false;
      }, 700);
      return ask;
    });
    for (const old of [...asks.children]) if (!shown.includes(old)) old.remove();
    for (const ask of shown) if (ask.parentNode !== asks) asks.append(ask);
  },
  sign() {},
};
let last = box.dataset.last;
let source = null;
let heardAt = 0;
const connect = () => {
  source?.close();
  source = null;
  // A browser opens few connections to one server: a page that is not seen needs none.
  if (document.hidden) return;
  heardAt = Date.now();
  source = new EventSource(location.pathname + '/events?after=' + last);
  for (const [name, take] of Object.entries(takers))
    source.addEventListener(name, (event) => {
      heardAt = Date.now();
      if (event.lastEventId !== '') last = event.lastEventId;
      keepEnd(() => take(JSON.parse(event.data)));
    });
  source.onerror = () => {
    state.textContent = 'not connected';
  };
};
connect();
document.addEventListener('visibilitychange', connect);
addEventListener('online', connect);
addEventListener('pageshow', (event) => {
  if (event.persisted) connect();
});
// After sleep a connection may be dead without a sign of it.
setInterval(() => {
  if (!document.hidden && (Date.now() - heardAt > 45000 || source?.readyState === 2)) connect();
}, 5000);
const answerCall = (ask, answer) => {
  const { id, shown } = ask.dataset;
  const message = ask.querySelector('input').value.trim();
  return api(session + '/approvals/' + encodeURIComponent(id), {
    decision: answer === 'deny' ? 'deny' : 'allow',
    shown,
    ...(answer === 'session' ? { scope: 'session' } : {}),
    ...(message === '' ? {} : { message }),
  });
};
/** The answer to a question; undefined if there is none. The user's own words go before an option. */
const valueOf = (field) => {
  const { kind, several } = field.dataset;
  const own = field.querySelector('.own')?.value.trim() ?? '';
  const chosen = [...field.querySelectorAll('input:checked')].map(({ value }) => value);
  if (several) return own === '' ? chosen : [...chosen, own];
  const value = own === '' ? chosen[0] : own;
  if (value === undefined) return undefined;
  if (kind === 'boolean') return value === 'true';
  return kind === 'number' || kind === 'integer' ? Number(value) : value;
};
const answerForm = (ask, decision) => {
  const { form, shown } = ask.dataset;
  const values = {};
  if (decision === 'answer')
    for (const field of ask.querySelectorAll('fieldset')) {
      const value = valueOf(field);
      if (value !== undefined) values[field.dataset.name] = value;
    }
  const body = decision === 'answer' ? { decision, shown, values } : { decision, shown };
  return api(session + '/questions/' + encodeURIComponent(form), body);
};
asks.addEventListener('click', async (event) => {
  const { answer } = event.target.dataset;
  const ask = event.target.closest('.ask');
  if (!answer || !ask) return;
  for (const button of ask.querySelectorAll('button')) button.disabled = true;
  const { problem } = await (ask.dataset.form ? answerForm(ask, answer) : answerCall(ask, answer));
  if (!problem) return;
  say(problem);
  for (const button of ask.querySelectorAll('button')) button.disabled = false;
});
const files = takeFiles(form, say);
const draft = 'draft ' + location.pathname;
text.value = sessionStorage.getItem(draft) ?? '';
text.addEventListener('input', () => sessionStorage.setItem(draft, text.value));
sendsWithEnter(form, text);
text.addEventListener('keydown', (event) => {
  if (event.key === 'Escape' && !interrupt.hidden) interrupt.click();
});
form.onsubmit = async (event) => {
  event.preventDefault();
  const button = form.querySelector('.main');
  const message = text.value;
  if (button.disabled || message.trim() === '') return;
  button.disabled = true;
  const ref = crypto.randomUUID();
  const item = document.createElement('li');
  item.dataset.ref = ref;
  item.textContent = 'Sent: ' + message;
  queued.append(item);
  const { value, problem } = await api(session + '/messages', {
    text: message,
    ref,
    run: true,
    attachments: await files.read(),
  });
  button.disabled = false;
  if (!value) {
    item.remove();
    say(problem);
    return;
  }
  say('');
  text.value = '';
  sessionStorage.removeItem(draft);
  files.clear();
};
interrupt.onclick = async () => {
  const { problem } = await api(session + '/interrupt', {});
  say(problem ?? '');
};`;
