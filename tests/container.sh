#!/bin/sh
# Builds the container image from a clean clone of HEAD and uses segue in it: version, init, lint, plan,
# a judgment. The base image is made by debootstrap, so no registry is asked. Needs root, podman,
# buildah and a mirror; says what it skips. Takes some four minutes.
#
# Steps run in a chroot (--isolation=chroot), which works where a container may make no container.
set -eu
cd "$(dirname "$0")/.."
skip() {
  echo "skipped: $1"
  exit 0
}
[ "$(id -u)" -eq 0 ] || skip "packages can only be fetched as root"
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends podman buildah crun >/dev/null ||
  skip "podman and buildah could not be installed"
base=localhost/segue-test/debian:12-slim
image=localhost/segue-test/segue
work=$(mktemp -d)
container=
trap '[ -z "$container" ] || buildah rm "$container" >/dev/null; rm -rf "$work"' EXIT
git clone -q . "$work/src"
if ! buildah inspect --type image "$base" >/dev/null 2>&1; then
  mkdir "$work/root"
  tests/bare_debian.sh "$work/root" || {
    [ $? -eq 77 ] || exit 1
    exit 0
  }
  tar -C "$work/root" -c . | podman import -q - "$base" >/dev/null
fi
sed "s|debian:12-slim|$base|" "$work/src/contrib/container/Dockerfile" >"$work/Dockerfile"
buildah build -q --isolation=chroot --network=host -t "$image" -f "$work/Dockerfile" "$work/src" >"$work/log" 2>&1 || {
  tail -20 "$work/log"
  exit 1
}
container=$(buildah from "$image")
inside() {
  buildah run --isolation=chroot "$container" -- "$@"
}
[ "$(buildah inspect --type image --format '{{.OCIv1.Config.Entrypoint}}' "$image")" = '[segue]' ] || {
  echo "container: its entry is not segue" >&2
  exit 1
}
inside segue version
inside sh -euc '
  [ "$(id -un)" = segue ]
  cd && mkdir project && cd project && git init -q
  segue init
  segue lint .segue/workflows/*.yaml
  printf "All five tests pass.\n\n[REVIEW:1]\n" |
    segue judge --name review --rule approved --rule "needs fix" --stages phase1_tag
'
echo "container: built, and used as its user"
