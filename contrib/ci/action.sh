#!/bin/sh
# What action.yml does. Its inputs are the variables SEGUE_..., never words of this script, so that no
# title of a pull request and no task can be a command. usage: action.sh install | evidence | run
set -eu
fail() {
  echo "::error::segue: $1"
  exit 2
}
here=$(cd "$(dirname "$0")/../.." && pwd)
folder=${RUNNER_TEMP:-/tmp}/segue # the log, the report, the work: what is kept
prefix=${RUNNER_TEMP:-/tmp}/segue-program

install() {
  version=${SEGUE_VERSION:-$(sed -n 's/^project(segue VERSION \([^ ]*\).*/\1/p' "$here/CMakeLists.txt")}
  set -- --prefix "$prefix" --from "$SEGUE_RELEASE" --version "$version"
  if [ -n "${SEGUE_SIGNERS:-}" ]; then set -- "$@" --signers "$SEGUE_SIGNERS"; else set -- "$@" --unsigned; fi
  "$here/contrib/release/install.sh" "$@"
  echo "$prefix/bin" >>"$GITHUB_PATH"
}

output() { # NAME VALUE, of one line
  printf '%s=%s\n' "$1" "$(printf '%s' "$2" | tr -d '\n\r')" >>"$GITHUB_OUTPUT"
}

evidence() {
  [ -n "${SEGUE_CHECK:-}" ] || fail "the input check is missing: the command that shows that the work is done"
  [ -n "${SEGUE_BASE:-}" ] || fail "the input base is missing: this is no pull request"
  git -c safe.directory='*' cat-file -e "$SEGUE_BASE^{commit}" 2>/dev/null ||
    fail "the clone has no commit $SEGUE_BASE: actions/checkout wants fetch-depth: 0"
  status=0
  "$prefix/bin/segue" evidence "$SEGUE_BASE...HEAD" --check "$SEGUE_CHECK" --md \
    --junit "$folder/evidence.xml" >"$folder/evidence.md" || status=$?
  result=$(sed -n '1s/^\*\*\([a-z_]*\)\*\*.*/\1/p' "$folder/evidence.md")
  [ -n "$result" ] || exit "$status" # it has said why
  output result "$result"
  cat "$folder/evidence.md" >>"$GITHUB_STEP_SUMMARY"
  case " ${SEGUE_ACCEPT:-} " in *" $result "*) return 0 ;; esac
  echo "::error::segue: the evidence is $result"
  return 1
}

run() {
  find .segue/workflows -name '*.yaml' -print0 2>/dev/null | xargs -0r "$prefix/bin/segue" lint --format github
  set -- run "${SEGUE_WORKFLOW:-default}" --logs "$folder" --budget "${SEGUE_BUDGET:-cost=5}"
  [ -z "${SEGUE_TASK:-}" ] || set -- "$@" --task "$SEGUE_TASK"
  [ -z "${SEGUE_ISSUE:-}" ] || set -- "$@" --issue "$SEGUE_ISSUE"
  [ -z "${SEGUE_PROVIDER:-}" ] || set -- "$@" --provider "$SEGUE_PROVIDER"
  while read -r line; do
    [ -z "$line" ] || set -- "$@" --input "$line"
  done <<END
${SEGUE_INPUTS:-}
END
  status=0
  "$prefix/bin/segue" "$@" || status=$?
  report "$status"
  return "$status"
}

# The session's line for programs has its status and its cost; the summary is the report up to its turns'
# texts, which lie in the artefact with the rest.
report() { # EXIT-STATUS
  line=$("$prefix/bin/segue" ls --logs "$folder" --json 2>/dev/null | head -1)
  [ -n "$line" ] || return 0
  output result "$(printf '%s' "$line" | sed -n 's/^.*"status":"\([a-z_]*\)","origin".*/\1/p')"
  cost=$(printf '%s' "$line" | sed 's/^.*"spent":{//' | grep -o '"cost_usd":[0-9.e-]*' | head -1 | cut -d: -f2)
  output cost "$cost"
  "$prefix/bin/segue" report last --logs "$folder" -o "$folder/report.html" || true
  git add --intent-to-add -- . 2>/dev/null && git diff --binary >"$folder/work.patch" || true
  {
    "$prefix/bin/segue" report last --logs "$folder" --format md | sed '/^### Turn 1/,$d'
    echo "Cost: ${cost:-none that is known} US dollars. Exit status: $1."
  } >>"$GITHUB_STEP_SUMMARY"
}

mkdir -p "$folder"
case ${1:-} in
install) install ;;
evidence | run)
  output folder "$folder"
  "$1"
  ;;
*) fail "the mode is evidence, run or install, not '${1:-}'" ;;
esac
