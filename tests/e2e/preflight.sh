#!/bin/bash
# preflight.sh: what `run --preflight` and `probe` do around a run.
# shellcheck source-path=SCRIPTDIR disable=SC2154,SC2317,SC2119,SC2015,SC2016
. "$(dirname "$0")/lib.sh"

case_records_what_the_preflight_saw() {
  script_task one <<<'#!/bin/sh
echo done >done.txt'
  cp -R suite/one suite/two
  sed -i 's/task_id: one/task_id: two/' suite/two/task.yaml
  run_suite --preflight
  expect_status 0
  [[ $(trial .cell.preflight one) = sha256:* ]] || fail "no digest: $(trial .cell.preflight one)"
  expect_trial .cell.preflight "$(trial .cell.preflight one)" two
  cb probe suite/one --fast --json
  expect_status 0
  [ "$(jq -r .digest out)" = "$(trial .cell.preflight one)" ] || fail "probe gives another digest"
}

case_says_that_there_was_none() {
  script_task t <<<'#!/bin/sh
echo done >done.txt'
  run_suite
  expect_status 0
  expect_trial .cell.preflight null
}

case_leaves_nothing_behind() {
  cb probe --fast
  expect_status 0
  cb probe --fast --driver tempdir
  expect_status 4
  [ -z "$(ls -A tmp)" ] || fail "left in TMPDIR: $(ls -A tmp)"
}

main records_what_the_preflight_saw:user says_that_there_was_none leaves_nothing_behind:user
