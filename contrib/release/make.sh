#!/bin/sh
# Makes the files of a release in build/release-VERSION, from the commit that is checked out: packages
# for Debian, tarballs of static programs and of the source, an npm package, recipes, an SPDX list,
# notes, install.sh, sums and their signatures. The same commit gives the same bytes, signatures apart.
#
# usage: ./dev release VERSION [--url URL] [--arch amd64|arm64]... [--ssh-key FILE]
#                              [--minisign-key FILE] [--draft]
# --url        where the files will lie, for recipes and install.sh
# --arch       only for this processor (default: both; arm64 is built by Debian's cross compiler, as root)
# --ssh-key    signs SHA256SUMS, for `ssh-keygen -Y verify`; install.sh then wants this signature
# --minisign-key  signs them once more (the key without a password), for `minisign -V`
# --draft      the tree may have changes, and CHANGELOG.md may still say that VERSION is not released
set -eu
cd "$(dirname "$0")/../.."
fail() {
  echo "release: $1" >&2
  exit "${2:-1}"
}
version= url= archs= ssh= minisign= draft=
while [ $# -gt 0 ]; do
  case $1 in
  --draft) draft=yes ;;
  --url | --arch | --ssh-key | --minisign-key)
    [ $# -gt 1 ] || fail "$1 wants a value" 2
    case $1 in
    --url) url=${2%/} ;;
    --arch) archs="$archs $2" ;;
    --ssh-key) ssh=$2 ;;
    --minisign-key) minisign=$2 ;;
    esac
    shift
    ;;
  -*) fail "there is no option $1 (./dev help)" 2 ;;
  *) [ -z "$version" ] && version=$1 || fail "one version, please" 2 ;;
  esac
  shift
done
ours=$(sed -n 's/^project(segue VERSION \([^ ]*\).*/\1/p' CMakeLists.txt)
[ -n "$version" ] || fail "which version? CMakeLists.txt says $ours" 2
[ "$version" = "$ours" ] || fail "CMakeLists.txt says $ours, not $version: change it there first" 2
notes=$(awk -v want="## $version" '/^## / { on = index($0 " ", want " ") == 1 } on' CHANGELOG.md)
[ -n "$notes" ] || fail "CHANGELOG.md has no heading '## $version'" 2
if [ -z "$draft" ]; then
  [ -z "$(git status --porcelain --untracked-files=no)" ] || fail "there are changes that are not committed (--draft)" 2
  case $(echo "$notes" | head -1) in *'not released'*)
    fail "CHANGELOG.md still says that $version is not released: put the date there (--draft)" 2
    ;;
  esac
fi
for key in "$ssh" "$minisign"; do
  [ -z "$key" ] || [ -r "$key" ] || fail "the key $key cannot be read" 2
done
[ -z "$minisign" ] || command -v minisign >/dev/null || fail "minisign is not installed" 2
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC
umask 022
out=$PWD/build/release-$version
stage=$PWD/build/release-stage
rm -rf "$out" "$stage"
mkdir -p "$out" "$stage"

same_tar() { # FILE FOLDER NAME...: the same bytes for the same files
  tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu -C "$2" -cf - "$3" |
    gzip -9n >"$1"
}

build_for() { # ARCH PRESET FOLDER: the preset's build, by a cross compiler for another processor
  if [ "$1" = "$(dpkg --print-architecture)" ]; then
    cmake --preset "$2" >/dev/null
  else
    cmake --preset "$2" -B "$3" -DCMAKE_TOOLCHAIN_FILE="$PWD/build/arm64-root/toolchain.cmake" >/dev/null
  fi
  cmake --build "$3" -- --quiet
}

make_for() { # ARCH
  suffix= cpu=x86_64
  [ "$1" = "$(dpkg --print-architecture)" ] || suffix=-$1
  [ "$1" = amd64 ] || cpu=aarch64
  package=build/package$suffix static=build/static$suffix
  build_for "$1" package "$package"
  build_for "$1" static "$static"
  # What Debian's tools say of the libraries of this processor is as true of the other's.
  [ -z "$suffix" ] || set -- "$1" -D CPACK_DEBIAN_PACKAGE_SHLIBDEPS=OFF -D CPACK_DEBIAN_PACKAGE_ARCHITECTURE="$1" \
    -D CPACK_OBJCOPY_EXECUTABLE=/usr/bin/aarch64-linux-gnu-objcopy \
    -D CPACK_DEBIAN_PACKAGE_DEPENDS="$(dpkg-deb -f "$out"/segue_*_"$(dpkg --print-architecture)".deb Depends)"
  rm -f "$package"/*deb
  (shift && cd "$package" && cpack -G DEB "$@" >/dev/null)
  cp "$package"/*deb "$out/"
  name=segue-$version-linux-$cpu
  DESTDIR="$stage/$name" cmake --install "$static" --prefix / --strip >/dev/null
  same_tar "$out/$name.tar.gz" "$stage" "$name"
  mkdir -p "$stage/npm"
  cp -R "$stage/$name" "$stage/npm/linux-$cpu"
}

[ -n "$archs" ] || archs="amd64 arm64"
mine=$(dpkg --print-architecture)
for arch in $mine $archs; do # this processor's first: the other's package asks it what it depends on
  case $arch in amd64 | arm64) ;; *) fail "no release is made for $arch" 2 ;; esac
  [ "$arch" = "$mine" ] || contrib/release/arm64.sh || fail "arm64 cannot be built here (--arch amd64)"
done
for arch in $mine $(echo "$archs" | tr ' ' '\n' | grep -vx "$mine" || true); do
  make_for "$arch"
done
git archive --prefix="segue-$version/" HEAD | gzip -9n >"$out/segue-$version.tar.gz"

# One npm package for each processor that was made: a script in it starts the program of this machine.
npm=$stage/npm
mkdir -p "$npm/bin"
cp contrib/release/npm-segue "$npm/bin/segue"
cp README.md LICENSE "$npm/"
cat >"$npm/package.json" <<END
{
  "name": "segue-runner",
  "version": "$version",
  "description": "runs coding agents through workflows and judges each step",
  "license": "MIT",
  "os": ["linux"],
  "bin": { "segue": "bin/segue" },
  "files": ["bin", "linux-x86_64", "linux-aarch64"]
}
END
if command -v npm >/dev/null; then
  (cd "$npm" && npm pack --silent --pack-destination "$out" >/dev/null)
else
  echo "release: npm is not installed: no npm package is made"
fi

contrib/release/spdx.py "$version" build/static "$out" >"$out/segue-$version.spdx.json"
printf '%s\n' "$notes" >"$out/NOTES.md"
# An address never has a bar in it; a signer's line has none either.
signer=
[ -z "$ssh" ] || signer="segue $(ssh-keygen -y -f "$ssh" | cut -d' ' -f1,2)"
sed "s|^version=.*|version=$version|; s|^from=.*|from='$url'|; s|^signer=.*|signer='$signer'|" \
  contrib/release/install.sh >"$out/install.sh"
chmod 755 "$out/install.sh"
sum() { # FILE
  [ ! -f "$out/$1" ] || sha256sum "$out/$1" | cut -d' ' -f1
}
for recipe in segue.rb PKGBUILD segue.nix; do
  sed "s|@VERSION@|$version|g; s|@URL@|$url|g; s|@SUM_x86_64@|$(sum "segue-$version-linux-x86_64.tar.gz")|g
    s|@SUM_aarch64@|$(sum "segue-$version-linux-aarch64.tar.gz")|g" "contrib/release/$recipe.in" >"$out/$recipe"
done
(cd "$out" && sha256sum -- * >"$stage/SHA256SUMS" && mv "$stage/SHA256SUMS" .)
[ -z "$ssh" ] || {
  ssh-keygen -q -Y sign -n segue-release -f "$ssh" <"$out/SHA256SUMS" >"$out/SHA256SUMS.sig"
  echo "$signer" >"$out/allowed_signers"
}
[ -z "$minisign" ] || minisign -S -W -s "$minisign" -m "$out/SHA256SUMS" -t "segue $version" >/dev/null
[ -n "$ssh$minisign" ] || echo "release: SHA256SUMS is not signed (--ssh-key, --minisign-key)"
rm -rf "$stage"
(cd "$out" && ls -1sh)
