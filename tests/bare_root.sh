#!/bin/sh
# README's two commands on a Debian 12 that has nothing but git: a fresh clone of HEAD in a root of its
# own, with mounts and processes of its own, so that all of it is gone at the end. A machine on which
# somebody once installed a program by hand hides that a test needs it; this one cannot.
#
# usage: tests/bare_root.sh [ctest arguments]   (with -R the demo is left out)
# SEGUE_OPTIONAL=no: ./dev installs none of the programs that only some tests need.
# SEGUE_BARE_ROOT=FILE.tar: the root is taken from there, or kept there for the next time.
# Exits with 77, and says why, where no such root can be made.
set -eu

inside() { # FOLDER [ctest arguments]: in namespaces of its own
  root=$1
  shift
  mount --make-rprivate /
  mount --bind "$root" "$root"
  mount -t proc proc "$root/proc"
  mount --rbind /sys "$root/sys"
  mount --rbind /dev "$root/dev"
  mount -t tmpfs tmpfs "$root/tmp"
  mkdir -p "$root/mnt"
  cd "$root"
  # Not a chroot, in which no user may make a namespace.
  pivot_root . mnt
  exec chroot . env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb \
    ${http_proxy:+"http_proxy=$http_proxy"} ${https_proxy:+"https_proxy=$https_proxy"} \
    ${SEGUE_OPTIONAL:+"SEGUE_OPTIONAL=$SEGUE_OPTIONAL"} sh -euc '
    umount -l /mnt
    cd /root/segue
    timed() {
      begin=$(date +%s)
      echo "== $*"
      status=0
      "$@" || status=$?
      echo "== $1 $2: $(($(date +%s) - begin)) s, exit $status"
      return $status
    }
    case " $* " in *" -R "*) ;; *) timed ./dev demo ;; esac
    timed ./dev test "$@"' sh "$@"
}

if [ "${1:-}" = --inside ]; then
  shift
  inside "$@"
fi

cd "$(dirname "$0")/.."
skip() {
  echo "skipped: $1"
  exit 77
}
[ "$(id -u)" -eq 0 ] || skip "only root can make a bare Debian"
unshare --mount --pid --fork true 2>/dev/null || skip "no namespaces can be made here"
work=$(mktemp -d /var/tmp/segue-bare-XXXXXX)
trap 'rm -rf --one-file-system "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
mkdir "$work/root"
: >"$work/said"
begin=$(date +%s)
if [ -f "${SEGUE_BARE_ROOT:-}" ]; then
  tar -C "$work/root" -xf "$SEGUE_BARE_ROOT"
else
  tests/bare_debian.sh "$work/root" ca-certificates,git
  [ -z "${SEGUE_BARE_ROOT:-}" ] || tar -C "$work/root" -cf "$SEGUE_BARE_ROOT" .
fi
echo "== a bare Debian: $(($(date +%s) - begin)) s"
git clone -q . "$work/root/root/segue"
status=0
# Whatever ends this script, unshare ends with it, and all processes within with unshare, which heeds no TERM.
setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child "$PWD/tests/bare_root.sh" --inside "$work/root" "$@" >"$work/said" 2>&1 &
inner=$!
tail -n +1 -f --pid="$inner" "$work/said" &
told=$!
trap 'kill -KILL "$inner" "$told" 2>/dev/null; wait; exit 143' INT TERM HUP
wait "$inner" || status=$?
wait "$told" || true
if warned=$(grep -i 'lto-wrapper\|warning:' "$work/said"); then
  printf 'bare root: the build warns:\n%s\n' "$warned"
  [ "$status" -ne 0 ] || status=1
fi
exit "$status"
