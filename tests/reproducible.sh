#!/bin/sh
# Builds this commit in two folders with names of different length, without a cache of objects, and
# compares the programs byte for byte. usage: tests/reproducible.sh
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset CMAKE_C_COMPILER_LAUNCHER
for place in a "another folder/with/a/longer-name"; do
  mkdir -p "$work/$place"
  git archive HEAD | tar -x -C "$work/$place"
  cmake -S "$work/$place" -B "$work/$place/build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    -DBUILD_TESTING=OFF -DSEGUE_LTO=ON >/dev/null
  ninja -C "$work/$place/build" --quiet segue segue-shim
done
for program in segue segue-shim; do
  cmp "$work/a/build/$program" "$work/another folder/with/a/longer-name/build/$program"
done
echo "reproducible: segue and segue-shim are the same, byte for byte"
