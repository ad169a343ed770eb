// A page of the window merges what changed, handles keys, and sends actions.
const root = document.body.dataset.root;
const watch = document.body.dataset.watch;
const line = document.getElementById('line');
const main = () => document.getElementById('main');

// --- changes ---

// A call's words come as text; words already shown are sent again only if pieces were missed.
const isNewer = (old, fresh) =>
  old.dataset?.end && fresh.dataset?.end && Number(old.dataset.end) >= Number(fresh.dataset.end);
const isEqual = (old, fresh) =>
  /^(acted|chosen|fresh)$/.test(old.id) || old.isEqualNode(fresh) || isNewer(old, fresh);
// A merge keeps what a person has opened, typed, or selected.
const isKept = (name, node) =>
  (name === 'class' && node.tagName === 'TR') ||
  (name === 'open' && node.tagName === 'DETAILS') || (name === 'value' && /^(INPUT|TEXTAREA)$/.test(node.tagName));
const keep = {
  ignoreActiveValue: true,
  callbacks: {
    beforeNodeMorphed: (old, fresh) => !isEqual(old, fresh),
    beforeAttributeUpdated: (name, node) => !isKept(name, node),
  },
};

// Most of a page stays as it was: the browser compares nodes at the same place, and only if rows
// were inserted or removed does Idiomorph match them up.
const isSame = (old, fresh) => old.nodeName === fresh.nodeName && old.id === fresh.id;
function merge(old, fresh) {
  if (isEqual(old, fresh)) return;
  if (old.nodeType !== Node.ELEMENT_NODE) {
    old.nodeValue = fresh.nodeValue;
    return;
  }
  if (old === document.activeElement || /^(SELECT|TEXTAREA)$/.test(old.tagName)) {
    Idiomorph.morph(old, fresh, keep);
    return;
  }
  for (const {name} of [...old.attributes])
    if (!fresh.hasAttribute(name) && !isKept(name, old)) old.removeAttribute(name);
  for (const {name, value} of fresh.attributes)
    if (old.getAttribute(name) !== value && !isKept(name, old)) old.setAttribute(name, value);
  mergeChildren(old, [...old.childNodes], fresh, [...fresh.childNodes]);
}
function mergeChildren(old, had, fresh, has) {
  let head = 0, tail = 0;
  const least = Math.min(had.length, has.length);
  while (head < least && isSame(had[head], has[head])) head++;
  while (tail < least - head && isSame(had.at(-1 - tail), has.at(-1 - tail))) tail++;
  const gone = had.slice(head, had.length - tail), come = has.slice(head, has.length - tail);
  const ids = new Set(come.map((node) => node.id));
  if (gone.length && come.length && (ids.has('') || ids.has(undefined) || gone.some((node) => !node.id || ids.has(node.id)))) {
    Idiomorph.morph(old, fresh, keep);
    return;
  }
  for (let i = 0; i < head; i++) merge(had[i], has[i]);
  for (let i = 1; i <= tail; i++) merge(had.at(-i), has.at(-i));
  for (const node of gone) node.remove();
  for (const node of come) old.insertBefore(node, had[had.length - tail] ?? null);
}

// Rows of a list stay where they are, and their contents are updated. A button shows how many
// sessions are new; pressing it brings them in.
const sessions = (page) => page.querySelector('[aria-label=sessions] tbody');
function hold(fresh) {
  const here = sessions(main()), there = sessions(fresh), told = document.getElementById('fresh');
  if (!here || !there || !told) return;
  const now = new Map([...there.rows].map((row) => [row.id, row]));
  const known = new Set([...here.rows].map((row) => row.id));
  const count = [...now.keys()].filter((id) => !known.has(id)).length;
  const stays = (row) => now.get(row.id) ?? (count ? row.cloneNode(true) : null);
  there.replaceChildren(...[...here.rows].map(stays).filter(Boolean));
  if (!count) return told.replaceChildren();
  if (told.textContent === `${count} new`) return;
  const button = document.createElement('button');
  button.dataset.fresh = '';
  button.textContent = `${count} new`;
  told.replaceChildren(button);
}

let taking = false;
let asking = false, again = false, closed = false, stale = false;

// The line is read aloud when it changes, so the same words are not written twice.
function tell(words) {
  if (line.textContent !== words) line.textContent = words;
}

// XMLHttpRequest parses the page without running anything in it.
function refresh() {
  if (asking) {
    again = true;
    return;
  }
  asking = true;
  const ask = new XMLHttpRequest();
  ask.open('GET', location.pathname + location.search);
  ask.responseType = 'document';
  ask.onloadend = () => {
    asking = false;
    const fresh = ask.status === 200 && ask.response && ask.response.getElementById('main');
    const why = !fresh && ask.response?.querySelector('#main [role=alert]');
    if (fresh) {
      if (stale) tell('');
      stale = false;
      if (!taking) hold(fresh);
      else document.getElementById('fresh')?.replaceChildren();
      taking = false;
      merge(main(), document.adoptNode(fresh));
      ticked();
    }
    else if (why) {
      tell(`This page is out of date: ${why.textContent}.`);
      stale = true;
    }
    else if (ask.status === 404 && !ask.response?.getElementById('main')) {
      tell('This window is closed: run segue web again.');
      closed = true;
    }
    if (again) {
      again = false;
      setTimeout(refresh, 10);
    }
  };
  ask.send();
}

let following = true;
function said(event) {
  const piece = JSON.parse(event.data);
  const pre = document.getElementById(`said-${piece.call}-${piece.thinking ? 'thinking' : 'text'}`);
  if (!pre || Number(pre.dataset.end) > piece.at) return;
  const atEnd = pre.scrollTop + pre.clientHeight >= pre.scrollHeight - 4;
  pre.append(document.createTextNode(piece.text));
  pre.dataset.end = piece.end;
  if (atEnd && following) pre.scrollTop = pre.scrollHeight;
}

let stream = null, resting = 0;
function listen() {
  if (!watch || document.hidden || stream || closed) return;
  stream = new EventSource(root + watch);
  stream.addEventListener('change', refresh);
  stream.addEventListener('said', said);
  stream.addEventListener('rest', () => { // this browser has too many pages open: poll now and then
    leave();
    resting = setInterval(() => { if (!document.hidden) refresh(); }, 5000);
    tell('Many pages are open: this one updates every 5 seconds.');
  });
  stream.onopen = () => { if (!stale) tell(''); };
  stream.onerror = () => {
    tell('Not connected: this page may be out of date. If this stays, run segue web again.');
    if (!stream || stream.readyState !== EventSource.CLOSED) return; // it retries by itself
    leave();
    refresh(); // says so if the window is no longer there
    setTimeout(listen, 3000);
  };
}
function leave() {
  clearInterval(resting);
  if (stream) stream.close();
  stream = null;
}
document.addEventListener('visibilitychange', () => {
  if (document.hidden) return leave();
  listen();
  refresh();
});
addEventListener('pagehide', leave);
if (watch) listen();
// Ages and waits count on while nothing is recorded, and no event tells that a log was removed.
setInterval(() => { if (stream?.readyState === EventSource.OPEN) refresh(); }, 5000);

// --- actions: only by a button, never by a key or an address ---

// What a plan says before anything runs: by whom, how much at most, and what the last runs used.
function planned(plan) {
  const by = (m) => m.work?.map((w) => w.provider).join(' or ') || (m.command ? 'a command' : 'a person or its parts');
  const who = plan.movements.map((m) => `${m.name} by ${by(m)}`).join(', ');
  const most = plan.calls === undefined || plan.calls === null ? 'any number of calls' : `at most ${plan.calls} calls`;
  const answers = plan.cost?.answers_usd;
  const used = plan.history?.cost_usd?.p50;
  return `It can run: ${who}; ${most}` + (typeof answers === 'number' ? `, at most $${answers.toFixed(4)} for answers` : '') +
    (typeof used === 'number' ? `; half of the last runs cost up to $${used.toFixed(4)}` : '') + '.';
}

async function act(button, what, body) {
  const said = document.getElementById('acted');
  button.disabled = true;
  try {
    const answer = await fetch((/^(s\/|start$|plan$)/.test(what) ? root : location.pathname) + what, {
      method: 'POST',
      headers: {'Content-Type': 'application/json', 'X-Segue': '1'},
      body: JSON.stringify(body),
    });
    const told = await answer.json();
    if (answer.ok && /^start$|\/fork$/.test(what)) location.href = `${root}s/${told.id}/`;
    if (answer.ok && what === 'plan') said.textContent = planned(told);
    else said.textContent = answer.ok ? `Done: the session is ${told.status}.` : told.detail;
  } catch {
    said.textContent = 'segue did not answer.';
  }
  button.disabled = false;
  refresh();
}

async function copy(button) {
  try {
    await navigator.clipboard.writeText(button.previousElementSibling.textContent);
    line.textContent = 'Copied.';
  } catch {
    tell('The browser does not allow this page to copy.');
  }
}

document.addEventListener('click', (event) => {
  const button = event.target.closest('button');
  if (button?.dataset.act && !button.form) act(button, button.dataset.act, JSON.parse(button.dataset.body ?? '{}'));
  if (button && 'fresh' in button.dataset) {
    taking = true;
    refresh();
  }
  if (button && 'copy' in button.dataset) copy(button);
  const link = event.target.closest('#main tbody a, #main article a');
  if (link) history.replaceState({at: link.getAttribute('href')}, '');
});
// Back at a list, keys go on from the row that was opened.
const opened = history.state?.at;
if (opened) document.querySelector(`#main a[href="${CSS.escape(opened)}"]`)?.focus({preventScroll: true});

// Turns the fields of an answer with a schema into JSON, with numbers as they were written.
function answered(fields) {
  const json = (field) => (field.dataset.form === 'text' ? JSON.stringify(field.value) : field.value);
  if (!fields[0].dataset.key) return json(fields[0]);
  return `{${fields.filter((f) => f.value).map((f) => `${f.dataset.key}:${json(f)}`).join(',')}}`;
}

document.addEventListener('change', (event) => {
  const row = event.target.matches('[type=checkbox]') && event.target.closest('tr[id^=r-]');
  if (row) select(row);
});

document.addEventListener('submit', (event) => {
  event.preventDefault();
  const form = event.target;
  if (form.dataset.act) {
    const body = {};
    for (const field of form.elements) {
      if (!field.name || !field.value) continue;
      const [name, inner] = field.name.split('.');
      const value = 'number' in field.dataset ? Number(field.value) : field.value;
      if (inner) (body[name] ??= {})[inner] = value;
      else body[name] = value;
    }
    const fields = [...form.elements].filter((f) => f.dataset.form);
    if (fields.length) body.text = answered(fields);
    const button = event.submitter ?? form.querySelector('button');
    act(button, button.dataset.act ?? form.dataset.act, body);
    return;
  }
  const asked = new URLSearchParams();
  for (const [name, value] of new FormData(form)) if (value) asked.set(name, value);
  const query = asked.toString();
  location.href = (form.dataset.go || location.pathname) + (query ? '?' + query : '');
});

for (const link of document.querySelectorAll('a[data-keep]'))
  if (link.dataset.keep) link.search += '&q=' + encodeURIComponent(link.dataset.keep);

// --- keys ---

const rows = () => [...document.querySelectorAll('#main tbody tr, #main article')].filter((row) => row.querySelector('a'));
let going = false;

function move(step) {
  const all = rows();
  const at = all.findIndex((row) => row.contains(document.activeElement));
  const next = all[Math.min(Math.max(at + step, 0), all.length - 1)];
  if (next) next.querySelector('a').focus();
}

// Selecting two sessions, by key or by its box, offers a link to their comparison.
function select(row) {
  const chosen = document.getElementById('chosen');
  if (!chosen || !row) return;
  row.classList.toggle('selected');
  ticked();
  const ids = [...document.querySelectorAll('tr.selected')].map((r) => r.id.slice(2)).sort();
  chosen.textContent = ids.length ? `${ids.length} selected. ` : '';
  if (ids.length !== 2) return;
  const link = document.createElement('a');
  link.href = `${root}compare/${ids[0]}_${ids[1]}`;
  link.textContent = 'Compare them';
  chosen.append(link);
}
// The class says what is selected; a merge keeps it.
function ticked() {
  for (const box of document.querySelectorAll('tr[id^=r-] [type=checkbox]'))
    box.checked = box.closest('tr').classList.contains('selected');
}

// With cookies off, a browser keeps nothing.
function kept() {
  try {
    return localStorage;
  } catch {
    return {};
  }
}

const keys = {
  x: () => select(document.activeElement.closest('#main tbody tr[id^=r-]')),
  j: () => move(1),
  k: () => move(-1),
  u: () => history.back(),
  e: () => { for (const d of document.querySelectorAll('#main details')) d.open = true; },
  '/': () => document.querySelector('input[name=q]')?.focus(),
  '?': () => { const help = document.getElementById('keys'); help.open = !help.open; help.querySelector('summary').focus(); },
  f: () => {
    following = true;
    for (const pre of document.querySelectorAll('pre.live')) pre.scrollTop = pre.scrollHeight;
  },
  g: () => { going = true; },
};
for (const key of 'npNP') keys[key] = () => document.querySelector(`a[data-key=${key}]`)?.click();

document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape') {
    document.activeElement?.blur();
    document.getElementById('keys').open = false;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest('input:not([type=checkbox]), textarea, select')) return;
  if (kept().keys === 'off') return;
  if (going) {
    going = false;
    const page = {s: '', i: 'inbox', w: 'workflows', a: 'audit', p: 'providers'}[event.key];
    if (page !== undefined) location.href = root + page;
    return;
  }
  if (!keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
});

const off = document.getElementById('keys-off');
off.checked = kept().keys === 'off';
off.addEventListener('change', () => { kept().keys = off.checked ? 'off' : 'on'; });
