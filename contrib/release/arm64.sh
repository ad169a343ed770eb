#!/bin/sh
# Gets what builds for arm64 need, once, below build/arm64-root: Debian's cross compiler and qemu-user for
# the system, and the arm64 libraries in that folder only; writes toolchain.cmake there. Exits with 77,
# and says why, where it cannot (it needs root and a mirror).
set -eu
cd "$(dirname "$0")/../.."
skip() {
  echo "skipped: $1"
  exit 77
}
[ "$(id -u)" -eq 0 ] || skip "packages can only be fetched as root"
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
  gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user cmake ninja-build pkg-config >/dev/null ||
  skip "there is no cross compiler"
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
      libmicrohttpd-dev libexpat1-dev libjansson-dev libyaml-dev libpcre2-dev libssl-dev libsqlite3-dev \
      libcmocka-dev libpq-dev >/dev/null || skip "its libraries could not be fetched"
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
cat >"$arm/toolchain.cmake" <<END
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_SYSROOT $arm)
set(CMAKE_C_FLAGS_INIT -Wno-psabi)
set(CMAKE_FIND_ROOT_PATH $arm)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L $arm)
set(ENV{PKG_CONFIG_SYSROOT_DIR} $arm)
set(ENV{PKG_CONFIG_LIBDIR} $arm/usr/lib/aarch64-linux-gnu/pkgconfig:$arm/usr/share/pkgconfig)
END
