#!/bin/sh
# Makes an npm package of the static programs: contrib/npm/make.sh, then npm install -g the .tgz. It is
# not published. `segue` finds its shim and its workflows beside itself, as where it was installed.
set -eu
cd "$(dirname "$0")/../.."
./dev package >/dev/null
out=build/npm
version=$(build/static/segue version --json | sed 's/.*"segue":"\([^"]*\)".*/\1/')
rm -rf "$out"
mkdir -p "$out"
cmake --install build/static --prefix "$out" --strip >/dev/null
case $(uname -m) in x86_64) cpu=x64 ;; aarch64) cpu=arm64 ;; *) cpu=$(uname -m) ;; esac
cat >"$out/package.json" <<EOF
{
  "name": "segue-runner",
  "version": "$version",
  "description": "runs coding agents through workflows and judges each step",
  "license": "MIT",
  "os": ["linux"],
  "cpu": ["$cpu"],
  "bin": { "segue": "bin/segue" },
  "files": ["bin", "libexec", "share"]
}
EOF
cp README.md LICENSE "$out/"
(cd "$out" && npm pack --silent)
ls "$out"/*.tgz
