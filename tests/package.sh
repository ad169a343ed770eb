#!/bin/sh
# A release as somebody meets it: made and signed, twice the same bytes, its package looked at by lintian, its recipes
# by their own tools; in a bare Debian, from its files alone, install.sh and a first judged turn, and the
# package put in, used as a user and taken away. Needs root, debootstrap and a mirror; says what it skips.
set -eu
cd "$(dirname "$0")/.."
get() { # PROGRAM PACKAGE...: a tool that Debian has; without it what it would look at is skipped
  command -v "$1" >/dev/null && return
  tool=$1
  shift
  [ "$(id -u)" -eq 0 ] && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1 &&
    command -v "$tool" >/dev/null && return
  echo "skipped: $tool is not installed"
  return 1
}
version=$(sed -n 's/^project(segue VERSION \([^ ]*\).*/\1/p' CMakeLists.txt)
keys=$(mktemp -d) root=$(mktemp -d)
trap 'umount "$root/proc" 2>/dev/null || true; rm -rf "$root" "$keys"' EXIT
ssh-keygen -q -t ed25519 -N '' -C release -f "$keys/key"
minisign=
if get minisign minisign; then
  minisign -G -W -p "$keys/mini.pub" -s "$keys/mini" >/dev/null
  minisign="--minisign-key $keys/mini"
fi
made=$PWD/build/release-$version
make_release() {
  # shellcheck disable=SC2086
  ./dev release "$version" --draft --arch "$(dpkg --print-architecture)" --url https://segue.example/r \
    --ssh-key "$keys/key" $minisign >/dev/null
}
make_release
cp "$made/SHA256SUMS" "$keys/first"
make_release
diff "$keys/first" "$made/SHA256SUMS" # the same commit gives the same bytes, in all files
(cd "$made" && sha256sum --quiet -c SHA256SUMS)
[ -z "$minisign" ] || minisign -V -q -p "$keys/mini.pub" -m "$made/SHA256SUMS"
! get ruby ruby || ruby -c "$made/segue.rb" >/dev/null
! get nix-instantiate nix-bin || nix-instantiate --parse "$made/segue.nix" >/dev/null
! get makepkg makepkg || {
  cp "$made/PKGBUILD" "$keys/" && chmod 755 "$keys" && chown -R nobody "$keys"
  su -s /bin/sh nobody -c "cd $keys && makepkg --printsrcinfo" | grep -q "pkgver = $version"
}
if command -v npm >/dev/null; then
  npm install -g --silent --prefix "$keys/npm" "$made/segue-runner-$version.tgz" >/dev/null
  "$keys/npm/bin/segue" version && "$keys/npm/bin/segue" lint demo
fi
echo "package: a release is made twice alike and signed; its recipes are sound"
deb=$(ls "$made"/segue_*.deb)
get lintian lintian || true
! command -v lintian >/dev/null || lintian --allow-root --fail-on error,warning "$deb"
tests/bare_debian.sh "$root" || {
  [ $? -eq 77 ] || exit 1
  exit 0
}
mount -t proc proc "$root/proc" || {
  echo "skipped: nothing can be mounted here"
  exit 0
}
mkdir "$root/files"
cp "$made"/* "$root/files/"
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
  if command -v cc; then exit 1; fi
  su unpacker -c "cd ~ && begun=\$(date +%s) && sh /files/install.sh --from /files --unsigned &&
    PATH=~/.local/bin:\$PATH && segue run /tmp/w.yaml --scenario /tmp/s.yaml &&
    echo \"a judged turn \$((\$(date +%s) - begun)) s after the first command\" &&
    segue version && segue lint demo && segue verify last && sh /files/install.sh --uninstall && test ! -e .local/bin"
' >"$root/tmp/said" 2>&1 || {
  cat "$root/tmp/said"
  exit 1
}
grep 'a judged turn' "$root/tmp/said"
echo "package: from the files alone, without a compiler, a session runs in a bare Debian"
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
