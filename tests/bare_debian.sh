#!/bin/sh
# Makes a bare Debian 12 in a folder, from this machine's mirror and with its settings of apt, so that
# packages can be installed there. Exits with 77, and says why, where none can be made.
# usage: tests/bare_debian.sh FOLDER [PACKAGE,PACKAGE...]
set -eu
root=$1
skip() {
  echo "skipped: $1"
  exit 77
}
[ "$(id -u)" -eq 0 ] || skip "only root can make a bare Debian"
command -v debootstrap >/dev/null ||
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends debootstrap >/dev/null 2>&1 || true
command -v debootstrap >/dev/null || skip "debootstrap is not installed"
mirror=$(apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(CODENAME)' 'Created-By: Packages' |
  awk '$2 == "Debian" && $3 == "bookworm" { print $1; exit }')
[ -n "$mirror" ] || skip "apt has no mirror of Debian 12 here"
chmod 755 "$root"
# shellcheck disable=SC2086
debootstrap --variant=minbase ${2:+--include=$2} bookworm "$root" "$mirror" >"$root.log" 2>&1 || {
  tail -3 "$root.log"
  rm -f "$root.log"
  skip "no bare Debian could be made"
}
rm -f "$root.log"
for kept in /etc/apt/apt.conf.d /etc/apt/auth.conf.d /usr/local/share/ca-certificates; do
  [ ! -d "$kept" ] || { mkdir -p "$root$kept" && cp -R "$kept/." "$root$kept/"; }
done
printf '127.0.0.1 localhost\n::1 localhost\n' >"$root/etc/hosts" # as the installer does
cp /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
[ ! -x "$root/usr/sbin/update-ca-certificates" ] || chroot "$root" update-ca-certificates >/dev/null
