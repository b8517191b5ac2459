#!/bin/sh
# usage: run.sh. Grades a program that looks for the answers while it is graded, twice: by as-candidate, where it must
# fail, and in the grading cell itself, where it must pass, or it is no good and the first run proves nothing.
#
# CLOSEDBOOK names the program (default: closedbook). Exit status 0: both as they must be.
set -eu
closedbook=${CLOSEDBOOK:-closedbook}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/peek.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

cp -R "$here/../../hidden-tests" "$work/candidate"
cp -R "$here/../../hidden-tests" "$work/in-process"
sed -i 's/as-candidate --timeout 5 //' "$work/in-process/tests/run.sh"

# grade FORM WORD STATUS CASES
grade() {
  status=0
  timeout -k 10 120 "$closedbook" run "$work/$1" --suite-root "$work/$1" --agent "script:$here/../../hidden-tests/peeker.sh" \
    --run-dir "$work/run-$1" --quiet >"$work/log-$1" 2>&1 || status=$?
  cases=$(grep -Eho '^[0-9]+ of [0-9]+ cases' "$work/run-$1"/trials/*/*/*/grade/*.out || true)
  echo "peek $1: $2 ($cases answered)"
  if [ "$status" != "$3" ] || [ "$cases" != "$4" ]; then
    cat "$work/log-$1" >&2
    echo "peek $1: expected $2 with status $3 and '$4', got status $status and '$cases'" >&2
    return 1
  fi
}

grade candidate DENIED 1 '0 of 5 cases'
grade in-process FOUND 0 '5 of 5 cases'
