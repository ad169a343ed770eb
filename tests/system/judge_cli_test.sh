#!/bin/sh
# segue judge: one text, judged without a workflow.
# usage: judge_cli_test.sh BUILD_DIR
set -u
build=$(cd "$1" && pwd) || exit 2
segue=$build/segue
[ -x "$segue" ] || { echo "usage: $0 BUILD_DIR   (no segue in $1)"; exit 2; }
dir=$(mktemp -d "${TMPDIR:-/tmp}/segue-judge-XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
HOME=$dir XDG_CONFIG_HOME=$dir/config XDG_STATE_HOME=$dir/state SEGUE_SHIM=$build/segue-shim
export HOME XDG_CONFIG_HOME XDG_STATE_HOME SEGUE_SHIM
unset SEGUE_LOGS SEGUE_FAULT NO_COLOR
cd "$dir" || exit 1
failed=0
number=0

# check NAME STATUS TEXT ARGUMENTS...: judges the input in $input; stdout and stderr must hold the
# pattern (grep -E; "" for none). A pattern that begins with ! must not be there.
check() {
  name=$1 status=$2 pattern=$3
  shift 3
  number=$((number + 1))
  printf '%s' "$input" | "$segue" judge "$@" > out 2> err
  got=$?
  why=
  [ "$got" = "$status" ] || why="status $got instead of $status"
  case $pattern in
    '') ;;
    !*) grep -qE -e "${pattern#!}" out err && why="$why; it printed ${pattern#!}" ;;
    *) grep -qE -e "$pattern" out err || why="$why; no $pattern" ;;
  esac
  [ -z "${SEGUE_TEST_FAIL:-}" ] || { why="made wrong"; SEGUE_TEST_FAIL=; }
  grep -q -e Sanitizer -e 'runtime error' err && why="$why; sanitizer"
  if [ -n "$why" ]; then
    failed=1
    echo "FAIL  $name: ${why#; }"
    echo "      repeat with: printf '%s' '$input' | segue judge $*"
    sed 's/^/      | /' out err
  else
    echo "ok    $name"
  fi
}

# scenario TEXT: what the script provider replies
scenario() {
  printf '%s\n' "$1" > scenario.yaml
}

set -- --name review --rule approved --rule 'needs fix'

# ---- no provider ----
input='Two tests fail.

[REVIEW:2]'
check "the example" 0 '^2  needs fix  tag_fallback$' "$@" --stages phase1_tag
check "its record" 0 '"rule":2,.*"method":"phase1_tag","match_method":"tag_fallback"' \
  "$@" --stages phase1_tag --json
check "quiet" 0 '!.' "$@" --stages phase1_tag --quiet
check "the default name" 4 'none' --rule a --rule b --stages phase1_tag
input='[STEP:1]'
check "a tag of the default name" 0 '^1  a' --rule a --rule b --stages phase1_tag
input='no tag at all'
check "none holds" 4 '^none' "$@" --stages phase1_tag
check "none holds, as JSON" 4 '"rule":null,.*"failure":"rule_no_match"' "$@" --stages phase1_tag --json
check "none holds, quietly" 4 '!.' "$@" --stages phase1_tag -q
input='[REVIEW:3]'
check "a rule that was not offered" 4 'none' "$@" --stages phase1_tag
input='> [REVIEW:1]
"[REVIEW:1]"'
check "a quoted tag is no evidence" 4 'none' "$@" --stages phase1_tag
input='I think [REVIEW:2] fits'
check "a tag in a sentence is a mention" 4 'none' "$@" --stages phase1_tag
check "a mention is noted" 4 '"mentions":\[\{"rule":2,"text":"\[REVIEW:2\]","line":1\}\]' \
  "$@" --stages phase1_tag --json
input='[REVIEW:1]
[REVIEW:2]'
check "two tags decide nothing" 4 '^none  the evidence conflicts .*REVIEW:1\] on line 1 and \[REVIEW:2\] on line 2' \
  "$@" --stages phase1_tag
input='All pass.

[REVIEW:1] k7wd'
check "a tag with its mark" 0 '^1  approved  tag_fallback$' "$@" --stages phase1_tag --mark k7wd
check "another word" 4 "another word than this turn's mark" "$@" --stages phase1_tag --mark x3pq
check "what became of it" 4 '"reader":3,"mark":"wrong"' "$@" --stages phase1_tag --mark x3pq --json
check "no mark" 2 'a consonant' "$@" --stages phase1_tag --mark okay
input=''
check "an empty text" 4 'none' "$@" --stages phase1_tag
input='anything'
check "one rule is chosen without a call" 0 '^1  done  auto_select' --rule done

# ---- with a judge ----
scenario 'replies: [{stage: structured_output, structured: {reason: fine, step: 1}}]'
check "structured output" 0 '^1  approved  structured_output' "$@" -p script -s scenario.yaml
scenario 'replies: [{stage: structured_output, text: "[REVIEW:2]"}]'
check "a tag instead of a value saves a call" 0 '^2  needs fix  tag_fallback' "$@" -p script -s scenario.yaml
scenario 'replies:
  - {stage: structured_output, times: 0, text: "{\"reason\": \"x\", \"step\": 9}"}
  - {stage: phase3_tag, times: 0, text: "no tag"}
  - {stage: ai_judge, text: "{\"reason\": \"x\", \"matched_index\": 2}"}'
check "why each stage did not decide" 0 '^   structured_output +out_of_range \$.step: 9' "$@" -p script -s scenario.yaml
check "every stage" 0 '^2  needs fix  ai_judge' "$@" -p script -s scenario.yaml
check "what each stage found" 0 'structured_output +[a-z_]+ .*9' "$@" -p script -s scenario.yaml
scenario 'replies: [{text: "{\"reason\": \"none\", \"step\": 0, \"matched_index\": 0}", times: 0}]'
check "0 is: no rule holds" 4 'none' "$@" -p script -s scenario.yaml --stages structured_output
scenario 'replies:
  - {purpose: judge, text: "{\"reason\": \"x\", \"step\": 9}"}
  - {purpose: reask, contains: "9", text: "{\"reason\": \"mended\", \"step\": 2}"}'
check "without a reask" 4 'none' "$@" -p script -s scenario.yaml --stages structured_output --max-reasks 0
check "a reask mends the answer" 0 '^2  needs fix  structured_output' "$@" -p script -s scenario.yaml \
  --stages structured_output
check "why a mended answer decided" 0 '^   structured_output +matched +mended$' "$@" -p script \
  -s scenario.yaml --stages structured_output --max-reasks 1
check "both calls are in the record" 0 '"calls":\[2,3\]' "$@" -p script -s scenario.yaml \
  --stages structured_output --max-reasks 1 --json
scenario 'replies: [{error: {class: auth}, times: 0}]'
check "a judge that is down" 1 'judge_unavailable' "$@" -p script -s scenario.yaml
scenario 'replies: [{error: {class: auth, message: "\e[2J\u009b31m"}, times: 0}]'
check "what it says steers no terminal" 1 '\\e\[2J\\x9b31m' "$@" -p script -s scenario.yaml
scenario 'replies: [{error: {class: network, retry_after_ms: 5}, times: 0}]'
check "a network that is down" 1 'judge_unavailable' "$@" -p script -s scenario.yaml
check "and no verdict as JSON" 1 '!"rule"' "$@" -p script -s scenario.yaml --json
check "but why as JSON" 1 '^\{.*"type":"session_stop".*"reason":"judge_unavailable"' "$@" -p script -s scenario.yaml --json
scenario 'replies:
  - {stage: structured_output, error: {class: timeout}}
  - {stage: phase3_tag, times: 2, text: "no"}
  - {stage: ai_judge, text: "[JUDGE:2]"}'
check "a stage's error has its class" 0 '^   structured_output +error +timeout: ' "$@" -p script -s scenario.yaml
check "the judge's tag" 0 '^   ai_judge +matched +\[REVIEW:2\]$' "$@" -p script -s scenario.yaml
scenario 'replies: [{error: {class: network, retry_after_ms: 5}, times: 2}, {structured: {reason: r, step: 1}}]'
check "a network that comes back" 0 '^1  approved  structured_output' "$@" -p script -s scenario.yaml
scenario 'replies: [{structured: {reason: r, step: 1}}]'
check "a log, when asked for" 0 '^1  approved' "$@" -p script -s scenario.yaml --logs logs
if "$segue" verify last --logs logs > out 2> err; then
  echo "ok    its log verifies"
else
  failed=1
  echo "FAIL  its log does not verify"
  sed 's/^/      | /' out err
fi
[ -e state ] && { failed=1; echo "FAIL  something was written below the state folder"; }

# ---- output that goes nowhere ----
for flag in '' --json; do
  # shellcheck disable=SC2086
  if echo '[REVIEW:2]' | "$segue" judge "$@" --stages phase1_tag $flag > /dev/full 2> err ||
    [ $? != 1 ] || ! grep -q 'cannot write to standard output' err; then
    failed=1
    echo "FAIL  a full device $flag"
    sed 's/^/      | /' err
  else
    echo "ok    a full device $flag"
  fi
done

# ---- a log that ends before the text ----
mkdir programs
printf '#!/bin/sh\ntouch ran\n' > programs/given
chmod +x programs/given
echo '[REVIEW:2]' | "$segue" judge "$@" --stages phase1_tag --logs torn > out 2>&1
head -n 3 torn/*.ndjson > torn.ndjson
head -n 4 torn/*.ndjson > whole.ndjson
PATH=$dir/programs:$PATH "$segue" resume torn.ndjson > out 2> err
[ $? = 1 ] && grep -q 'ends before the text' err && [ ! -e ran ] &&
  [ "$(wc -l < torn.ndjson)" = 3 ] && "$segue" resume whole.ndjson > out 2> err &&
  grep -q 'tag in the reply' out && echo "ok    a log that ends before the text" ||
  { failed=1; echo "FAIL  a log that ends before the text"; cat out err; }

# ---- bad words ----
input='x'
check "a model that is not UTF-8" 2 '--model.*UTF-8' "$@" --stages phase1_tag --model "$(printf 'm\377')"
check "a rule that is none" 2 'segue judge: --rule 2: .*empty' --rule a --rule '' --stages phase1_tag
check "a when that is none" 2 'segue judge: --rule 1: ' --rule 'when(exit = 0)' --rule b --stages phase1_tag
check "no rule" 2 'give at least one --rule' --name review
check "an unknown stage" 2 'is not a stage' "$@" --stages tag
check "a stage twice" 2 'is listed twice' "$@" --stages phase1_tag,phase1_tag
check "no judge" 2 'can(not)? judge' "$@"
check "script without a scenario" 2 'give --scenario' "$@" -p script
check "too many reasks" 2 'write a number from 0 to 5' "$@" --max-reasks 99
check "an unknown language" 2 'en or ja' "$@" --language fr
check "an unknown provider" 2 'no provider' "$@" -p nobody
check "a word too many" 2 'too many arguments' "$@" word
head -c 17825792 /dev/zero | tr '\0' 'x' > big
"$segue" judge "$@" --stages phase1_tag < big > out 2> err
[ $? = 2 ] && echo "ok    a text over the limit" || { failed=1; echo "FAIL  a text over the limit"; cat out err; }

exit $failed
