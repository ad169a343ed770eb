// Turns the code in the address into a cookie, and removes it from the address.
const say = document.getElementById('say');
const code = location.hash.slice(1);

// Another page's link opens this page without the cookie; what this page asks for has it.
async function go(otherwise) {
  const known = await fetch('page.mjs').then((answer) => answer.ok, () => false);
  if (known) location.replace(location.pathname);
  else if (otherwise) say.textContent = otherwise;
}

async function enter() {
  history.replaceState(null, '', location.pathname);
  let answer;
  try {
    answer = await fetch('enter', {
      method: 'POST',
      headers: {'Content-Type': 'application/json', 'X-Segue': '1'},
      body: JSON.stringify({code}),
    });
  } catch {
    say.textContent = 'segue no longer answers. Run segue web again.';
    return;
  }
  if (!answer.ok) {
    say.textContent = 'This code has been used, or is more than a minute old. Run segue web again.';
    return;
  }
  await go('This browser does not keep cookies from this page: allow them, then run segue web again.');
}

if (/^[0-9a-f]{32}$/.test(code)) enter();
else go();
