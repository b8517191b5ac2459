#!/bin/sh
# usage: run-all.sh [NAME...]. Runs every example (or those named) and compares how each ends with
# what it must; prints "ok NAME" or "not ok NAME reason" a line. Used by scripts/demo and the tests.
#
# CLOSEDBOOK names the program (default: closedbook). Exit status 0: all as they must be.
set -eu
closedbook=${CLOSEDBOOK:-closedbook}
export CLOSEDBOOK="$closedbook"
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/examples.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
bad=0
wanted="$*"

report() { # STATUS EXPECTED NAME
  if [ "$1" = "$2" ]; then
    echo "ok $3"
  else
    echo "not ok $3 ended with $1, expected $2"
    sed 's/^/    /' "$work/log"
    bad=1
  fi
}

selected() { # NAME
  [ -z "$wanted" ] && return 0
  case " $wanted " in *" $1 "*) return 0 ;; esac
  return 1
}

example() { # NAME FOLDER EXPECTED FLAGS...
  name=$1 folder=$here/$2 expected=$3
  shift 3
  selected "$name" || return 0
  status=0
  timeout -k 10 120 "$closedbook" run "$folder" --suite-root "$folder" --run-dir "$work/$name" "$@" >"$work/log" 2>&1 ||
    status=$?
  report "$status" "$expected" "$name"
}

#       name                  folder         status  flags
example hello                 hello          0
example hello-nop             hello          1       --agent nop
example hidden-tests          hidden-tests   0
example hidden-tests-guesser  hidden-tests   1       --agent "script:$here/hidden-tests/guesser.sh"
example hidden-tests-peeker   hidden-tests   1       --agent "script:$here/hidden-tests/peeker.sh"
example hidden-tests-nop      hidden-tests   1       --agent nop
example hidden-tests-oracle   hidden-tests   0       --agent oracle
example json-report           json-report    0
example json-report-nop       json-report    1       --agent nop
example template              template       0
example template-again        template       0       --repeats 2 -j 2
example template-nop          template       1       --agent nop
example own-criterion         own-criterion  0
example own-criterion-nop     own-criterion  1       --agent nop
example command-count         command-count  0
example command-count-nop     command-count  1       --agent nop
example suite                 suite          1       -e hint
example suite-hinted          suite          0       -e hint --variant hinted

for hunt in answer-hunt peek; do
  selected "$hunt" || continue
  status=0
  "$here/adversarial/$hunt/run.sh" >"$work/log" 2>&1 || status=$?
  report "$status" 0 "$hunt"
  [ "$status" != 0 ] || sed 's/^/    /' "$work/log"
done
exit "$bad"
