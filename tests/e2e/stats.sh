#!/bin/bash
# What a run's trials come to, and whether one run is better than another.
# shellcheck source-path=SCRIPTDIR disable=SC2317,SC2119,SC2016
. "$(dirname "$0")/lib.sh"

# Ten tasks; those up to FIRST pass.
suite() { # FIRST
  local n
  for n in 0 1 2 3 4 5 6 7 8 9; do
    TASK_CRITERIA='  - {type: file_exists, path: done.txt, description: it is there}' script_task "t$n" <<E2
#!/bin/sh
[ $n -ge $1 ] || touch done.txt
E2
  done
}

case_says_which_run_is_better() {
  suite 9
  cb run suite --suite-root suite --run-dir one --quiet --html page.html
  [[ $(grep -c '<details class="trial"' page.html) == 10 ]] || fail "the page does not have ten trials"
  suite 1
  cb run suite --suite-root suite --run-dir two --quiet
  cb stats one
  expect_status 0
  expect_text out '90.0 %'
  expect_text out '9 always pass, 1 never, 0 sometimes'
  # The agents' scripts differ and the graders do not; what an agent is, is not what it is asked.
  cb compare one two --fail-on-regression
  expect_status 1
  expect_text out 'B passes 8 fewer of 10 tasks (90.0 % and 10.0 %)'
  expect_text out 'p = 0.008: B is worse'
  cb compare two one --fail-on-regression --json
  expect_status 0
  [[ $(jq -r '.comparisons[0].verdict' out) == better ]] || fail "not better: $(cat out)"
  # Other graders are no pair, unless that is meant.
  TASK_CRITERIA='  - {type: file_exists, path: other.txt, description: it is there}' script_task t3 <<<$'#!/bin/sh\ntrue'
  cb run suite --suite-root suite --run-dir three --quiet
  cb compare one three
  expect_status 2
  expect_text err "1 of 10 shared tasks, or their graders, are not the same in one and three (the first: 't3')"
  cb compare one three --force
  expect_status 0
  expect_text out 'graded otherwise  1: t3'
  cb compare one
  expect_status 2
  expect_text err "has one variant, 'default'"
}

main says_which_run_is_better
