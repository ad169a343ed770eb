#!/bin/sh
# Builds this commit a second time, in a folder with a longer name and without a cache of objects,
# and compares the programs that packages hold byte for byte. usage: tests/reproducible.sh
set -eu
cd "$(dirname "$0")/.."
if [ -n "$(git status --porcelain --untracked-files=no)" ]; then
  echo "reproducible: there are changes that are not committed" >&2
  exit 2
fi
./dev build package
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
again="$work/another folder/with/a/longer-name"
git clone -q . "$again"
unset CMAKE_C_COMPILER_LAUNCHER
(cd "$again" && cmake --preset package >/dev/null && ninja -C build/package --quiet segue segue-shim)
for program in segue segue-shim; do
  cmp "build/package/$program" "$again/build/package/$program"
done
echo "reproducible: segue and segue-shim are the same, byte for byte"
