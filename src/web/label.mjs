// Shows one judgment of the queue after the other, and sends what a person says of it.
const root = document.body.dataset.root;
const told = document.getElementById('queue');
const line = document.getElementById('line');
const queue = JSON.parse(told?.dataset.queue ?? '[]');
const labelled = Number(told?.dataset.labelled ?? 0), all = labelled + queue.length;
const said = new Map(), asked = []; // by place in the queue: the rule; the places, for the way back
const pages = new Map();
let at = 0, busy = false;

// XMLHttpRequest parses a page without running anything in it.
function page(i) {
  if (i >= queue.length) return null;
  if (!pages.has(i)) pages.set(i, new Promise((done) => {
    const ask = new XMLHttpRequest();
    ask.open('GET', `${root}label/${queue[i].session}/${queue[i].turn}`);
    ask.responseType = 'document';
    ask.onloadend = () => done(ask.response);
    ask.send();
  }));
  return pages.get(i);
}

async function show() {
  const here = document.getElementById('judged');
  told.textContent = `${labelled + said.size} of ${all} labelled`;
  if (at >= queue.length) {
    here.replaceChildren();
    told.textContent += said.size + labelled < all ? ': load the page again for those that you skipped.'
      : ': segue agree --wrong says how often verdicts are wrong.';
    return;
  }
  const found = await page(at);
  const article = found?.getElementById('judged');
  if (article) {
    here.replaceChildren(...document.adoptNode(article).childNodes);
    pages.delete(at);
    const text = here.querySelector('pre');
    text.scrollTop = text.scrollHeight; // the outcome stands at the end
  } else {
    here.textContent = found?.querySelector('#main [role=alert]')?.textContent ?? 'segue did not answer.';
  }
  here.dataset.at = at;
  page(at + 1);
}

function next() {
  asked.push(at);
  do at++; while (said.has(at));
  return show();
}

async function answer(rule) {
  const {session, turn, stratum, population} = queue[at];
  const sent = await fetch(`${root}s/${session}/label`, {
    method: 'POST',
    headers: {'Content-Type': 'application/json', 'X-Segue': '1'},
    body: JSON.stringify({turn, rule, stratum, population, as: told.dataset.as}),
  });
  if (!sent.ok) throw new Error((await sent.json()).detail);
  said.set(at, rule);
  line.textContent = '';
  await next();
}

async function back() {
  if (!asked.length) return;
  at = asked.pop();
  await show();
  if (said.has(at)) line.textContent = `You said ${said.get(at)}: another answer will count instead.`;
}

// What is pressed while an answer is being sent is left out: it may be meant for either judgment.
async function take(key) {
  const here = document.getElementById('judged');
  if (busy || !here || at >= queue.length && key !== 'u') return false;
  if (/^\d+$/.test(key) ? !here.querySelector(`[data-rule="${key}"]`) : !/^[su]$/.test(key)) return false;
  busy = true;
  try {
    if (key === 'u') await back();
    else if (key === 's') await next();
    else await answer(Number(key));
  } catch (error) {
    line.textContent = `Not kept: ${error.message}`;
  }
  busy = false;
  return true;
}

addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest('input, textarea, select')) return;
  if (document.getElementById('keys-off').checked || !/^[0-9su]$/.test(event.key)) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  take(event.key);
}, true);
document.addEventListener('click', (event) => {
  const button = event.target.closest('#judged button');
  if (button) take(button.dataset.rule ?? button.dataset.key);
});
if (document.getElementById('judged')) show();
