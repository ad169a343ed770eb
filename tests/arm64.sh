#!/bin/sh
# Builds for arm64 as a release does, then runs the program and its unit tests under qemu-user. Needs
# root and a mirror; says what it skips.
#
# Not run: tests that start agents' programs (qemu-user 7.2 refuses PR_SET_CHILD_SUBREAPER) and those
# that open files through links (it has no openat2). Times mean nothing under it (SLOW_BUILD).
set -eu
cd "$(dirname "$0")/.."
contrib/release/arm64.sh || {
  [ $? -eq 77 ] || exit 1
  exit 0
}
arm=$PWD/build/arm64-root
cmake -G Ninja -B build/arm64 -DCMAKE_TOOLCHAIN_FILE="$arm/toolchain.cmake" -DCMAKE_C_FLAGS=-DSLOW_BUILD=1 \
  -DCMAKE_BUILD_TYPE=RelWithDebInfo >/dev/null
cmake --build build/arm64 -- --quiet
qemu-aarch64 -L "$arm" build/arm64/segue version
ctest --test-dir build/arm64 -L unit --output-on-failure \
  -E 'unit/(daemon_mend|host|os_lease|os_process|provider_agent|provider_command|provider_script|store_files|workflow_load)_test' \
  -j "$(nproc)" "$@"
