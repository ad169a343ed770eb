#!/bin/sh
# Installs segue from the files of a release: no compiler, no root. It verifies the signature of
# SHA256SUMS (with ssh-keygen) and the sum of what it unpacks, and changes nothing before both are right.
#
# usage: install.sh [--prefix DIR] [--from URL|FOLDER] [--version VERSION] [--signers FILE | --unsigned]
#        install.sh --uninstall [--prefix DIR]
# --prefix     where to (default ~/.local): DIR/bin/segue and what belongs to it
# --from       where the files of the release lie
# --signers    whose signature counts: a file in the form of ssh's allowed_signers, for the name segue
# --unsigned   there is no signature that could be checked: only sums are
# --uninstall  takes away what was installed below DIR
# Exit: 0 done, 1 not installed, 2 bad usage.
set -eu
version=
from=
signer=
prefix=$HOME/.local signers='' unsigned='' uninstall=''
fail() {
  echo "install.sh: $1" >&2
  exit "${2:-1}"
}
while [ $# -gt 0 ]; do
  case $1 in
  -h | --help)
    sed -n '2,/^set /s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
  --unsigned) unsigned=yes ;;
  --uninstall) uninstall=yes ;;
  --prefix | --from | --version | --signers)
    [ -n "${2:-}" ] || fail "$1 wants a value" 2
    case $1 in
    --prefix) prefix=$2 ;;
    --from) from=${2%/} ;;
    --version) version=$2 ;;
    --signers) signers=$2 ;;
    esac
    shift
    ;;
  *) fail "there is no option $1 (--help)" 2 ;;
  esac
  shift
done
case $prefix in /*) ;; *) prefix=$PWD/$prefix ;; esac
list=$prefix/share/segue/installed

# LIST has a path below the prefix a line; LIST.dirs the folders that were made for them.
take_away() { # FILE-OF-PATHS
  while read -r path; do
    case $path in '' | /* | *..*) ;; *) rm -f -- "$prefix/$path" ;; esac
  done <"$1"
}
if [ -n "$uninstall" ]; then
  [ -f "$list" ] || fail "nothing was installed below $prefix: there is no $list"
  folders=$(sort -ru "$list.dirs")
  take_away "$list"
  rm -f "$list" "$list.dirs"
  printf '%s\n' "$folders" | while read -r folder; do
    case $folder in '' | /* | *..*) ;; *) rmdir "$prefix/$folder" 2>/dev/null || true ;; esac
  done
  echo "segue is gone from $prefix; your settings and logs are where they were"
  exit 0
fi

[ "$(uname -s)" = Linux ] || fail "segue needs Linux (on macOS: in a virtual machine)"
cpu=$(uname -m)
case $cpu in x86_64 | aarch64) ;; arm64) cpu=aarch64 ;; *) fail "there is no program for $cpu" ;; esac
[ -n "$from" ] || fail "where do the files of the release lie? --from URL|FOLDER" 2
[ -n "$version" ] || fail "which version? --version VERSION" 2
[ -n "$signer$signers$unsigned" ] || fail "whose signature counts? --signers FILE, or --unsigned" 2
mkdir -p "$prefix" 2>/dev/null && [ -w "$prefix" ] || fail "$prefix cannot be written (--prefix DIR)"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

fetch() { # NAME
  case $from in
  *://*)
    if command -v curl >/dev/null; then
      curl -fsSL --retry 3 -o "$tmp/$1" "$from/$1" || fail "$from/$1 could not be fetched"
    elif command -v wget >/dev/null; then
      wget -q -O "$tmp/$1" "$from/$1" || fail "$from/$1 could not be fetched"
    else
      fail "neither curl nor wget is installed"
    fi
    ;;
  *) cp -- "$from/$1" "$tmp/$1" || fail "$from/$1 cannot be read" ;;
  esac
}
fetch SHA256SUMS
if [ -z "$unsigned" ]; then
  command -v ssh-keygen >/dev/null ||
    fail "ssh-keygen, which checks the signature, is not installed (package openssh-client; or --unsigned)"
  fetch SHA256SUMS.sig
  [ -n "$signers" ] || { printf '%s\n' "$signer" >"$tmp/signers" && signers=$tmp/signers; }
  ssh-keygen -Y verify -n segue-release -I segue -f "$signers" -s "$tmp/SHA256SUMS.sig" \
    <"$tmp/SHA256SUMS" >/dev/null 2>&1 || fail "SHA256SUMS is not signed by whom you trust; nothing was installed"
fi
name=segue-$version-linux-$cpu
grep "  $name\.tar\.gz\$" "$tmp/SHA256SUMS" >"$tmp/sum" || fail "this release has no $name.tar.gz"
fetch "$name.tar.gz"
(cd "$tmp" && sha256sum --quiet -c sum >/dev/null 2>&1) ||
  fail "$name.tar.gz is not what SHA256SUMS says; nothing was installed"
mkdir "$tmp/new"
tar -xzf "$tmp/$name.tar.gz" -C "$tmp/new" --strip-components=1 --no-same-owner
for unit in "$tmp"/new/lib/systemd/user/*; do # which name the program where it is now
  sed "s|/bin/segue|$prefix/bin/segue|g" "$unit" >"$tmp/unit" && cat "$tmp/unit" >"$unit"
done
"$tmp/new/bin/segue" version >/dev/null || fail "the program does not run here; nothing was installed"
(cd "$tmp/new" && find . -type f -o -type l) | sed 's|^\./||' | sort >"$tmp/files"
(cd "$tmp/new" && find . -mindepth 1 -type d) | sed 's|^\./||' | sort >"$tmp/all-folders"
{
  [ ! -f "$list.dirs" ] || cat "$list.dirs"
  while read -r folder; do [ -d "$prefix/$folder" ] || echo "$folder"; done <"$tmp/all-folders"
} | sort -u >"$tmp/folders"
[ ! -f "$list" ] || { # of a version before, what this one no longer has
  sort "$list" | comm -23 - "$tmp/files" >"$tmp/former" && take_away "$tmp/former"
}
cp -RP --remove-destination "$tmp/new/." "$prefix/"
mv "$tmp/files" "$list"
mv "$tmp/folders" "$list.dirs"
echo "$("$prefix/bin/segue" version | head -1) is installed below $prefix"
case :$PATH: in *":$prefix/bin:"*) ;; *) echo "$prefix/bin is not in your PATH" ;; esac
