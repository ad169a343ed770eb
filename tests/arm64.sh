#!/bin/sh
# Builds for arm64 with Debian's cross compiler and the arm64 libraries in a folder of their own, then
# runs the program and its unit tests under qemu-user. Nothing of the system is changed but what
# apt-get installs: the cross compiler and qemu-user. Needs root and a mirror; says what it skips.
#
# Not run: tests that start agents' programs (qemu-user 7.2 refuses PR_SET_CHILD_SUBREAPER) and those
# that open files through links (it has no openat2). Times mean nothing under it (SLOW_BUILD).
set -eu
cd "$(dirname "$0")/.."
[ "$(id -u)" -eq 0 ] || {
  echo "skipped: packages can only be fetched as root"
  exit 0
}
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
  gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user cmake ninja-build pkg-config >/dev/null || {
  echo "skipped: there is no cross compiler"
  exit 0
}
arm=$PWD/build/arm64-root
apt=$arm/apt
if [ ! -f "$arm/ready" ]; then
  rm -rf "$arm"
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
  : >"$apt/status"
  set -- -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State::lists="$apt/lists" \
    -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache" -o APT::Sandbox::User=root -qq
  apt-get "$@" update >/dev/null &&
    apt-get "$@" install -y -d --no-install-recommends libc6-dev libuv1-dev libcurl4-openssl-dev \
      libmicrohttpd-dev libexpat1-dev libjansson-dev libyaml-dev libpcre2-dev libssl-dev \
      libcmocka-dev libpq-dev >/dev/null || {
    echo "skipped: its libraries could not be fetched"
    exit 0
  }
  for deb in "$apt"/cache/archives/*.deb; do
    dpkg -x "$deb" "$arm"
  done
  rm -rf "$apt"
  # What links name absolutely lies below the folder.
  find "$arm" -type l -lname '/*' | while read -r link; do
    ln -sfn "$arm$(readlink "$link")" "$link"
  done
  touch "$arm/ready"
fi
cat >"$arm/toolchain.cmake" <<EOF
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_SYSROOT $arm)
set(CMAKE_C_FLAGS_INIT "-Wno-psabi -DSLOW_BUILD=1")
set(CMAKE_FIND_ROOT_PATH $arm)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L $arm)
set(ENV{PKG_CONFIG_SYSROOT_DIR} $arm)
set(ENV{PKG_CONFIG_LIBDIR} $arm/usr/lib/aarch64-linux-gnu/pkgconfig:$arm/usr/share/pkgconfig)
EOF
cmake -G Ninja -B build/arm64 -DCMAKE_TOOLCHAIN_FILE="$arm/toolchain.cmake" \
  -DCMAKE_BUILD_TYPE=RelWithDebInfo >/dev/null
cmake --build build/arm64 -- --quiet
qemu-aarch64 -L "$arm" build/arm64/segue version
ctest --test-dir build/arm64 -L unit --output-on-failure \
  -E 'unit/(daemon_mend|host|os_lease|os_process|provider_agent|provider_command|provider_script|store_files|workflow_load)_test' \
  -j "$(nproc)" "$@"
