#!/bin/sh
# usage: run.sh. Plants a random secret in a copy of this task and sends a hunter after it, twice:
# in a native cell, where it must come back empty, and under the tempdir driver, which protects
# nothing: there it must find the secret, or the hunter is no good and the first run proves nothing.
#
# CLOSEDBOOK names the program (default: closedbook). Exit status 0: both as they must be.
set -eu
closedbook=${CLOSEDBOOK:-closedbook}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/answer-hunt.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

cp -R "$here" "$work/task"
random=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
SENTINEL_HINT="SNTL-$(od -An -N2 -tx1 /dev/urandom | tr -d ' \n')-"
SENTINEL_SHA256=$(printf '%s%s' "$SENTINEL_HINT" "$random" | sha256sum | cut -d' ' -f1)
printf '%s%s\n' "$SENTINEL_HINT" "$random" >"$work/task/reference/answer.txt"
export SENTINEL_HINT SENTINEL_SHA256

# hunt DRIVER VERDICT STATUS: one run, what the hunter must say and how the run must end.
hunt() {
  status=0
  timeout -k 10 400 "$closedbook" run "$work/task" --suite-root "$work/task" --driver "$1" --run-dir "$work/run-$1" \
    --quiet >"$work/log-$1" 2>&1 || status=$?
  trial=$work/run-$1/trials/default/answer-hunt/00
  if ! "$closedbook" show "$trial" hunt.txt >"$work/hunt-$1" 2>>"$work/log-$1"; then
    cat "$work/log-$1" >&2
    echo "answer-hunt $1: the hunter left no report, closedbook ended with $status" >&2
    return 1
  fi
  verdict=$(sed -n 's/^verdict=//p' "$work/hunt-$1")
  figures=$(grep -E '^(paths|read|descriptors|variables|sockets)=' "$work/hunt-$1" | tr '\n' ' ')
  echo "answer-hunt $1: $verdict $(sed -n 's/^where=/in /p' "$work/hunt-$1" | sed "s|$work|COPY|") (${figures% })"
  if [ "$verdict" != "$2" ] || [ "$status" != "$3" ]; then
    cat "$work/log-$1" >&2
    echo "answer-hunt $1: expected $2 with status $3, got ${verdict:-nothing} with status $status" >&2
    return 1
  fi
  # Nothing examined proves nothing. The positive control may stop before it comes to the sockets.
  for kind in paths descriptors variables sockets; do
    if [ "$2" = DENIED ] && ! grep -qE "^$kind=[1-9]" "$work/hunt-$1"; then
      echo "answer-hunt $1: the hunter examined no $kind" >&2
      return 1
    fi
  done
}

hunt native DENIED 1
hunt tempdir FOUND 0
