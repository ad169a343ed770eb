#!/bin/sh
# The package as somebody meets it: made, looked at by lintian, put into a bare Debian, used as a user,
# taken away again; and the tarball of static programs, unpacked where no library is. Needs root, debootstrap and a mirror; says what it skips.
set -eu
cd "$(dirname "$0")/.."
if [ "$(id -u)" -eq 0 ]; then
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends lintian >/dev/null || true
fi
./dev package >/dev/null
deb=$(ls build/package/segue_*.deb)
if command -v lintian >/dev/null; then
  lintian --allow-root --fail-on error,warning "$deb"
else
  echo "skipped: lintian is not installed"
fi
root=$(mktemp -d)
trap 'umount "$root/proc" 2>/dev/null || true; rm -rf "$root"' EXIT
tests/bare_debian.sh "$root" || {
  [ $? -eq 77 ] || exit 1
  exit 0
}
mount -t proc proc "$root/proc" || {
  echo "skipped: nothing can be mounted here"
  exit 0
}
mkdir "$root/opt/segue"
tar -xzf "$(ls -t build/static/segue-*.tar.gz | head -1)" -C "$root/opt/segue" --strip-components=1
cat >"$root/tmp/w.yaml" <<'END'
name: w
provider: script
movements:
  - name: write
    instruction: Write a line.
    rules: [{condition: it is written, next: check}, {condition: it is not, next: ABORT}]
  - name: check
    command: [sh, -c, "exit 0"]
    rules: [{condition: when(exit == 0), next: COMPLETE}]
END
printf 'replies:\n  - {text: "A line. [WRITE:1]"}\n  - {text: "[WRITE:1]"}\n' >"$root/tmp/s.yaml"
chroot "$root" sh -euc '
  useradd -m unpacker
  su unpacker -c "cd ~ && PATH=/opt/segue/bin:\$PATH && segue version && segue lint demo &&
    segue run /tmp/w.yaml --scenario /tmp/s.yaml && segue verify last"
' >"$root/tmp/said" 2>&1 || {
  cat "$root/tmp/said"
  exit 1
}
echo "package: the static programs run a session in a bare Debian"
cp "$deb" "$root/tmp/segue.deb"
chroot "$root" sh -euc '
  find /usr /etc -xdev -type f | sort >/tmp/before
  apt-get update -qq || exit 75
  apt-get install -y -qq -d --no-install-recommends /tmp/segue.deb >/dev/null || exit 75
  apt-get install -y -qq --no-install-recommends /tmp/segue.deb >/dev/null
  useradd -m someone
  su someone -c "cd ~ && cp -R /usr/share/segue/workflows/demo/project . &&
    segue lint demo && segue version && segue providers --json >providers.json"
  apt-get purge -y -qq segue >/dev/null
  left=$(find /usr /etc -xdev -path "*segue*" -not -path "*/someone/*")
  [ -z "$left" ] || { echo "package: it left: $left" >&2; exit 1; }
' || {
  [ $? -eq 75 ] || exit 1
  echo "skipped: its libraries could not be fetched"
  exit 0
}
echo "package: installed, used and removed"
