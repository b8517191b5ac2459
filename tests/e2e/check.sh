#!/bin/bash
# check and new: the starter task is sound; a task that anybody passes, one that can be forged and one that
# passes sometimes are not; nothing is left behind.
# shellcheck source-path=SCRIPTDIR disable=SC2154,SC2317,SC2015,SC2016
. "$(dirname "$0")/lib.sh"

# task ID CRITERION: with what is in ./suite/ID/reference.
task() {
  mkdir -p "suite/$1"
  printf 'task_id: %s\ndescription: a task of the tests\ninitial_prompt: do it\nreference_dir: reference\nsuccess_criteria:\n  - %s\n' \
    "$1" "$2" >"suite/$1/task.yaml"
}

nothing_left() {
  [ -z "$(ls "$PWD/scratch")" ] || fail "left behind: $(ls "$PWD/scratch")"
}

case_starter_is_sound() {
  mkdir -m 1777 scratch
  export TMPDIR=$PWD/scratch
  cb new suite/starter
  expect_status 0
  cb new suite/starter
  expect_status 2
  expect_text err "cannot make 'suite/starter', nothing was written: File exists"
  chmod -R go+rX suite
  cb check suite/starter --suite-root suite --oracle-runs 2 --mutants 1 -j2
  expect_status 0
  expect_text out 'sound       nop fails  oracle passes 2/2  mutants 1/1 killed  forgers 6/6 held'
  nothing_left
}

case_unsound_tasks_are_told() {
  mkdir -m 1777 scratch
  export TMPDIR=$PWD/scratch
  mkdir -p suite/{anybody,forged}/reference
  echo 42 | tee suite/{anybody,forged}/reference/done.txt >/dev/null
  task anybody '{type: run_command, description: d, command: "python3 test.py || true"}'
  task forged '{type: file_exists, description: d, path: done.txt}'
  cb check suite --suite-root suite --oracle-runs 1 --mutants 1 --json
  expect_status 1
  jq -r '.[] | "\(.task) \(.sound) \(.nop_passes) \(.oracle.verdict) \(.mutants.killed)/\(.mutants.total) \(.forgers.held) \(.forgers.passed | join(","))"' out >said
  diff said - <<'END' || fail "other verdicts"
anybody false true passes 0/1 0 reward files,conftest,sitecustomize,early exit,output,reads the grader
forged false false passes 0/1 3 early exit,output,reads the grader
END
  nothing_left
}

# A program that is run beside the reference plays it; by as-candidate it finds nothing.
case_code_under_test_that_reads_the_grader() {
  mkdir -m 1777 scratch
  export TMPDIR=$PWD/scratch
  mkdir -p suite/{open,closed}/reference
  echo 'echo 42' | tee suite/{open,closed}/reference/prog.sh >/dev/null
  task open '{type: run_command, description: d, command: "test \"$(sh prog.sh)\" = 42"}'
  task closed '{type: run_command, description: d, command: "test \"$(as-candidate sh prog.sh)\" = 42"}'
  cb check suite --suite-root suite --oracle-runs 1 --mutants 0 --json
  expect_status 1
  jq -r '.[] | "\(.task) \(.sound) \(.forgers.held) \(.forgers.passed | join(","))"' out >said
  diff said - <<'END' || fail "other verdicts"
closed true 6 
open false 5 reads the grader
END
  cb lint suite --rule CB023
  [ "$(grep -c 'warning CB023' out)" = 1 ] || fail "$(cat out)"
  nothing_left
}

case_flaky_and_prose() {
  mkdir -m 1777 scratch
  export TMPDIR=$PWD/scratch
  mkdir -p suite/{flaky,prose}/reference
  # A coin for each of sixteen trials.
  echo 'head -c1 /dev/urandom | od -An -tu1 | awk "{print \$1 % 2}" >done.txt' >suite/flaky/reference/solve.sh
  echo 'Say it well.' >suite/prose/reference/answer.md
  task flaky '{type: file_contains, description: d, path: done.txt, includes: ["1"]}'
  task prose '{type: file_contains, description: d, path: done.txt, includes: [well]}'
  cb check suite --suite-root suite --oracle-runs 16 -j4 --mutants 0
  expect_status 1
  grep -Eq '^flaky +UNSOUND +nop fails +oracle flaky [0-9]+/16 ' out || fail "$(cat out)"
  expect_text out 'oracle no oracle  mutants 0/0'
  expect_text out 'no oracle: the reference is prose'
  nothing_left
}

main starter_is_sound:user unsound_tasks_are_told code_under_test_that_reads_the_grader:user flaky_and_prose
