#!/bin/sh
# Compiles the tests and runs them; the status is theirs.
set -e
out=${TMPDIR:-/tmp}/queue_test.$$
trap 'rm -f "$out"' EXIT
${CC:-cc} -std=c17 -Wall -Wextra -Isrc -o "$out" src/queue.c tests/queue_test.c
"$out"
