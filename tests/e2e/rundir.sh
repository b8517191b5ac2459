#!/bin/bash
# rundir.sh: the run directory under bad luck: full disks, no rights, two owners, Ctrl-C, SIGKILL, and resume.
# shellcheck source-path=SCRIPTDIR disable=SC2154,SC2317,SC2119,SC2015,SC2016
. "$(dirname "$0")/lib.sh"

# Tasks "a" to "d" are quick; "slow" runs a marked process for a while, long enough to be found and stopped.
quick_and_slow() { # MARK
  local task
  for task in a b c d; do script_task "$task" <<<$'#!/bin/sh\necho x >done.txt'; done
  script_task slow <<E2
#!/bin/sh
echo x >done.txt
timeout 6 sleep $1
exit 0
E2
}

quick_ones_are_done() {
  local task
  for task in a b c d; do [ -f "run/trials/default/$task/00/trial.json" ] || return 1; done
}

kept() { sha256sum run/trials/default/[abcd]/00/trial.json; }

case_a_second_run_in_the_same_directory() {
  script_task t <<<$'#!/bin/sh\necho x >done.txt'
  run_suite
  expect_status 0
  sha256sum run/trials/default/t/00/trial.json run/run.json >before
  run_suite
  expect_status 2
  expect_text err --resume
  sha256sum --quiet -c before || fail "the second run touched the first"
}

case_two_owners_at_once() {
  local mark
  mark=$(new_mark)
  quick_and_slow "$mark"
  start_cb run suite --suite-root suite --run-dir run --quiet
  wait_until 30 has_mark "$mark"
  cp out first.out
  local pid=$started
  cb run suite --suite-root suite --run-dir run --resume
  expect_status 2
  kill -INT "$pid"
  started=$pid finish_cb
  no_mark "$mark" || fail "the agent is alive"
}

case_a_run_directory_that_cannot_be_made() {
  script_task t <<<$'#!/bin/sh\necho x >done.txt'
  echo file >in-the-way
  local dir
  for dir in in-the-way in-the-way/run /proc/run; do
    cb run suite --suite-root suite --run-dir "$dir"
    [ "$status" = 2 ] || [ "$status" = 3 ] || fail "--run-dir $dir ended with $status"
    expect_text err "$dir"
  done
  if ! is_root; then
    mkdir shut && chmod 0555 shut
    cb run suite --suite-root suite --run-dir shut/run
    [ "$status" = 2 ] || [ "$status" = 3 ] || fail "--run-dir shut/run ended with $status"
    expect_text err shut/run
  fi
}

case_a_full_disk_under_the_run_directory() {
  need unshare
  local mark
  mark=$(new_mark)
  script_task t <<E2
#!/bin/sh
echo x >done.txt
head -c 2000000 /dev/urandom >noise
(setsid sleep $mark &) &
E2
  mkdir small
  cat >in-namespace <<'E2'
set -eu
mount -t tmpfs -o size=300k,mode=0777 none small
status=0
"$CLOSEDBOOK" run suite --suite-root suite --run-dir small/run --quiet >out 2>err || status=$?
cp small/run/trials/default/t/00/trial.json full.json 2>/dev/null || true
ls -laR small >listing
exit "$status"
E2
  status=0
  timeout 60 unshare -m --propagation private sh ./in-namespace </dev/null >>log 2>&1 || status=$?
  expect_status 3
  cat err full.json >both 2>/dev/null || true
  expect_text both 'No space left'
  no_mark "$mark" || fail "the agent is alive"
  if [ -s full.json ]; then
    jq -e . full.json >/dev/null || fail "a torn trial.json"
    [ "$(jq -r .status full.json)" = ERROR ] || fail "a full disk was recorded as $(jq -r .status full.json)"
  fi
}

case_sigkill_of_the_parent_loses_nothing_finished() {
  local mark tree pid
  mark=$(new_mark)
  quick_and_slow "$mark"
  start_cb run suite --suite-root suite --run-dir run --quiet -j 2
  wait_until 30 has_mark "$mark"
  wait_until 30 quick_ones_are_done
  kept >before
  tree=$(descendants "$started")
  [ -n "$tree" ] || fail "the parent has no children: nothing is tested"
  kill -KILL "$started"
  finish_cb
  expect_status 137
  # Everything it started dies with it, without anyone's help.
  wait_until 20 no_mark "$mark"
  for pid in $tree; do wait_until 20 gone "$pid"; done
  sha256sum --quiet -c before || fail "a finished trial was lost"
  cb run suite --suite-root suite --run-dir run --resume --quiet -j 2
  expect_status 0
  sha256sum --quiet -c before || fail "--resume ran a finished trial again"
  expect_trial .status SUCCESS slow
}

gone() { # PID: no such process, or one that only waits to be reaped
  local state
  state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null) || true
  [ -z "$state" ] || [ "$state" = Z ]
}

case_ctrl_c_ends_cleanly() {
  local mark pid tree
  mark=$(new_mark)
  quick_and_slow "$mark"
  start_cb run suite --suite-root suite --run-dir run --quiet
  wait_until 30 has_mark "$mark"
  quick_ones_are_done || fail "the quick trials are not finished"
  kept >before
  tree=$(descendants "$started")
  # As a terminal does it: the whole process group at once.
  kill -INT -- "-$started"
  finish_cb
  expect_status 130
  no_mark "$mark" || fail "the agent is alive after the end"
  for pid in $tree; do gone "$pid" || fail "process $pid is alive after the end"; done
  sha256sum --quiet -c before || fail "a finished trial was lost"
  [ ! -f run/trials/default/slow/00/trial.json ] || fail "an interrupted trial has a record: $(trial .status slow)"
  cb report run
  expect_status 130
  cb run suite --suite-root suite --run-dir run --resume --quiet
  expect_status 0
  sha256sum --quiet -c before || fail "--resume ran a finished trial again"
  expect_trial .status SUCCESS slow
}

case_sigint_to_the_parent_alone() {
  local mark
  mark=$(new_mark)
  quick_and_slow "$mark"
  start_cb run suite --suite-root suite --run-dir run --quiet
  wait_until 30 has_mark "$mark"
  kill -INT "$started"
  finish_cb
  expect_status 130
  no_mark "$mark" || fail "the agent is alive after the end"
}

case_sigkill_of_the_monitor_is_noticed() {
  local mark pid found=
  mark=$(new_mark)
  quick_and_slow "$mark"
  start_cb run suite --suite-root suite --run-dir run --quiet
  wait_until 30 has_mark "$mark"
  for pid in $(descendants "$started"); do
    case $(readlink "/proc/$pid/exe" 2>/dev/null || tr '\0' ' ' <"/proc/$pid/cmdline") in
      *closedbook-cell*) [ -n "$found" ] || found=$pid ;;
    esac
  done
  [ -n "$found" ] || fail "no closedbook-cell below the parent"
  kill -KILL "$found"
  finish_cb
  expect_status 3
  wait_until 20 no_mark "$mark"
}

case_a_changed_task_stops_a_resume() {
  local mark
  mark=$(new_mark)
  quick_and_slow "$mark"
  start_cb run suite --suite-root suite --run-dir run --quiet
  wait_until 30 has_mark "$mark"
  kill -INT "$started"
  finish_cb
  cp suite/slow/agent.sh same.sh
  TASK_CRITERIA='  - {type: file_exists, description: another grader, path: other.txt}' script_task slow <same.sh
  cb run suite --suite-root suite --run-dir run --resume
  expect_status 2
  expect_text err slow
  cb run suite --suite-root suite --run-dir run --resume=force
  expect_status 1
}

case_retry_errors_runs_only_those() {
  script_task good <<<$'#!/bin/sh\necho x >done.txt'
  script_task broken <<<$'#!/no/such/interpreter\n'
  run_suite
  expect_status 3
  sha256sum run/trials/default/good/00/trial.json >before
  local first
  first=$(trial .started_unix_ms broken)
  cb run suite --suite-root suite --run-dir run --resume --quiet
  expect_status 3
  [ "$(trial .started_unix_ms broken)" = "$first" ] || fail "--resume alone ran an ERROR again"
  cb run suite --suite-root suite --run-dir run --resume --retry-errors --quiet
  expect_status 3
  [ "$(trial .started_unix_ms broken)" != "$first" ] || fail "--retry-errors ran nothing"
  sha256sum --quiet -c before || fail "--retry-errors ran a finished trial again"
}

case_a_torn_record_is_run_again() {
  script_task t <<<$'#!/bin/sh\necho x >done.txt'
  run_suite --repeats 3
  expect_status 0
  head -c 40 run/trials/default/t/01/trial.json >torn && cat torn >run/trials/default/t/01/trial.json
  echo more >>run/trials/default/t/02/artifacts.tar
  printf '{"t": 1, "event": "fin' >>run/journal.jsonl
  sha256sum run/trials/default/t/00/trial.json >before
  cb run suite --suite-root suite --run-dir run --resume --repeats 3 --quiet
  expect_status 0
  expect_trial .status SUCCESS t 01
  expect_trial .status SUCCESS t 02
  sha256sum --quiet -c before || fail "a whole trial was run again"
}

case_the_run_directory_is_private() {
  script_task t <<<$'#!/bin/sh\necho x >done.txt'
  umask 0000
  run_suite
  expect_status 0
  [ "$(stat -c %a run)" = 700 ] || fail "the run directory has mode $(stat -c %a run)"
}

# Root's own folder, as a fresh checkout of root's: who it becomes cannot go there.
case_it_runs_from_a_folder_that_only_root_reaches() {
  local name build=${CLOSEDBOOK%/src/cli/closedbook}
  [ "$build" != "$CLOSEDBOOK" ] || skip "CLOSEDBOOK is not in a build directory"
  mkdir -m 0700 hidden
  for name in cli/closedbook cell/closedbook-cell cell/as-candidate collect/closedbook-worker evidence/closedbook-probe \
    image/closedbook-unpack broker/closedbook-broker broker/closedbook-mock; do
    mkdir -p "hidden/src/${name%/*}"
    cp "$build/src/$name" "hidden/src/$name"
  done
  CLOSEDBOOK=$PWD/hidden/src/cli/closedbook
  script_task t <<<$'#!/bin/sh\necho x >done.txt'
  run_suite
  expect_status 0
  rm -rf run
  run_suite --driver tempdir
  expect_status 0
  cb probe suite --suite-root suite --fast
  expect_status 0
}

main a_second_run_in_the_same_directory:user two_owners_at_once a_run_directory_that_cannot_be_made:user \
  a_full_disk_under_the_run_directory:root sigkill_of_the_parent_loses_nothing_finished:user ctrl_c_ends_cleanly:user \
  sigint_to_the_parent_alone sigkill_of_the_monitor_is_noticed:user a_changed_task_stops_a_resume \
  retry_errors_runs_only_those a_torn_record_is_run_again the_run_directory_is_private:user \
  it_runs_from_a_folder_that_only_root_reaches:root
