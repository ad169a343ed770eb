// Turns the code in the address into a cookie, and removes it from the address.
const say = document.getElementById('say');
const code = location.hash.slice(1);

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
  go();
}

// A page opened by another program comes without the cookie; one opened by this page has it.
function go() {
  if (sessionStorage.getItem('tried')) {
    sessionStorage.removeItem('tried');
    say.textContent = code ? 'The browser does not keep cookies from this page: allow them, then run segue web again.'
      : say.textContent;
    return;
  }
  sessionStorage.setItem('tried', '1');
  location.replace(location.pathname);
}

if (/^[0-9a-f]{32}$/.test(code)) enter();
else go();
