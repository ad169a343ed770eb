#!/bin/sh
# The first minutes of somebody who has never seen segue: a fresh clone, README's build, README's five
# commands with an agent that stands for claude, up to its first judged turn. Prints seconds; fails
# beyond a minute of building or three in all, on two processors with nothing else to do.
set -eu
cd "$(dirname "$0")/.."
unset CMAKE_C_COMPILER_LAUNCHER || true
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
begin=$(date +%s)
git clone -q . "$work/segue"
cd "$work/segue"
cloned=$(date +%s)
./dev build >"$work/log" 2>&1 || {
  tail -20 "$work/log"
  exit 1
}
built=$(date +%s)
tests/system/readme_test.py build/release its_five_commands_work
end=$(date +%s)
echo "clone $((cloned - begin)) s, build $((built - cloned)) s, to the first judged turn $((end - begin)) s"
[ $((built - cloned)) -le 60 ] && [ $((end - begin)) -le 180 ]
