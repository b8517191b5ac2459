#!/bin/bash
# hostile.sh: agents that misbehave while they run. Each run must end, in bounded time, with a verdict, and leave no process.
# shellcheck source-path=SCRIPTDIR disable=SC2154,SC2317,SC2119,SC2015,SC2016
. "$(dirname "$0")/lib.sh"

case_forks_without_end() {
  # The processes wait instead of forking on, so that the bound on their number is seen and not the bound on time.
  local mark killed
  mark=$(new_mark)
  TASK_MORE='sandbox: {limits: {max_pids: 200}}' script_task t <<E2
#!/bin/sh
echo x >done.txt
n=0
# A fork that fails ends this shell.
while [ \$n -lt 2000 ]; do
  sleep $mark &
  n=\$((n + 1))
done 2>/dev/null
E2
  run_suite
  no_mark "$mark" || fail "processes of the bomb are alive"
  case $(trial .status) in SUCCESS | FAILURE) ;; *) fail "status $(trial .status): $(trial .error)" ;; esac
  killed=$(trial .cell.kill.processes)
  [ "$killed" -ge 150 ] && [ "$killed" -le 210 ] || fail "$killed processes were alive at the end, 150 to 210 expected"
}

case_forks_faster_than_anyone_kills() {
  # A real bomb: every process forks for ever. The time limit ends it, all at once.
  local mark begun=$SECONDS
  mark=$(new_mark)
  TASK_MORE='sandbox: {limits: {max_pids: 300}}
run_limits: {turn_timeout: 10}' script_task t <<E2
#!/bin/sh
echo x >done.txt
bomb() { while :; do sh "\$0" again $mark 2>/dev/null & done; }
trap '' TERM INT HUP
bomb
E2
  run_suite
  [ $((SECONDS - begun)) -lt 45 ] || fail "took $((SECONDS - begun)) s"
  no_mark "$mark" || fail "processes of the bomb are alive"
  case $(trial .status) in SUCCESS | FAILURE | TIMEOUT) ;; *) fail "status $(trial .status): $(trial .error)" ;; esac
}

case_floods_its_output() {
  script_task t <<<$'#!/bin/sh\nhead -c 50331648 /dev/zero | tr "\\0" f; echo x >done.txt'
  run_suite
  expect_status 0
  expect_trial .agent.output_cut true
  expect_trial .agent.output_bytes 50331648
  local size
  size=$(stat -c %s run/trials/default/t/00/agent.stdout)
  [ "$size" -le $((17 << 20)) ] || fail "$size bytes of output were kept"
  tail -c 200 run/trials/default/t/00/agent.stdout | grep -q 'output cut here' || fail "the cut is not marked"
}

case_closes_its_output() {
  script_task t <<<$'#!/bin/sh\nexec >&- 2>&- <&-\necho x >done.txt'
  run_suite
  expect_status 0
  expect_trial .agent.exit_code 0
}

case_outlives_its_time_and_ignores_signals() {
  local mark begun=$SECONDS
  mark=$(new_mark)
  TASK_MORE='run_limits: {turn_timeout: 10}' script_task t <<E2
#!/bin/sh
trap '' TERM INT HUP QUIT USR1 USR2 ALRM PIPE
echo x >done.txt
(trap '' TERM; exec setsid sleep $mark) &
while :; do sleep $mark; done
E2
  run_suite
  expect_status 1
  [ $((SECONDS - begun)) -lt 40 ] || fail "took $((SECONDS - begun)) s"
  expect_trial .status TIMEOUT
  expect_trial .agent.stopped_by turn_timeout
  no_mark "$mark" || fail "the agent's processes are alive"
  # What it left is evidence, graded or not; the execution fact stays.
  cb grade run
  expect_status 1
  expect_trial .status TIMEOUT
  expect_trial .agent.stopped_by turn_timeout
}

case_leaves_processes_behind() {
  local mark
  mark=$(new_mark)
  script_task t <<E2
#!/bin/sh
echo x >done.txt
for i in 1 2 3; do
  setsid sh -c "trap '' TERM HUP; exec sleep $mark" &
done
# A child of a dead parent, its own session, pipes kept open.
(setsid sleep $mark &) &
exit 0
E2
  run_suite
  expect_status 0
  no_mark "$mark" || fail "a process of the agent is alive after the run"
}

case_a_process_left_behind_cannot_meet_the_grader() {
  # It waits for the grader's file to appear in any place that it can see and would then forge the result.
  TASK_CRITERIA=$(command_criterion 'for i in 1 2 3 4 5; do echo probe >"probe$i"; done; test ! -e forged') script_task t <<'E2'
#!/bin/sh
echo x >done.txt
setsid sh -c 'while :; do for f in /workspace/probe* /proc/[0-9]*/cwd/probe*; do [ -e "$f" ] && : >"$(dirname "$f")/forged"; done; done' >/dev/null 2>&1 &
exit 0
E2
  run_suite
  expect_status 0
}

case_fills_its_disk() {
  local limits='sandbox: {limits: {max_disk_mb: 16}}'
  TASK_MORE=$limits script_task t <<'E2'
#!/bin/sh
echo before >result.txt
if head -c 67108864 /dev/zero >filler 2>/dev/null; then echo it fitted >result.txt; fi
rm -f filler
echo 'stopped' >>result.txt
echo x >done.txt
head -c 67108864 /dev/zero >filler 2>/dev/null
head -c 67108864 /dev/zero >"$HOME/filler" 2>/dev/null
head -c 67108864 /dev/zero >/tmp/filler 2>/dev/null
E2
  cb plan suite --suite-root suite
  if [ "$status" = 2 ] && grep -q 'not in this version' err; then skip 'sandbox.limits is not in this version'; fi
  run_suite
  expect_status 0
  cb show run/trials/default/t/00 result.txt
  expect_text out stopped
  ! grep -q 'it fitted' out || fail "64 MiB fitted on a 16 MiB disk"
}

many_files() { # COUNT
  TASK_MORE='run_limits: {turn_timeout: 300}' script_task t <<E2
#!/bin/bash
echo x >done.txt
n=0
while ((n < $1)); do
  ((n % 1000)) || mkdir "d\$((n / 1000))" || break
  : >"d\$((n / 1000))/f\$n" || break
  ((n += 1))
done 2>/dev/null
echo \$n >/workspace/made.txt
E2
  run_suite
}

case_leaves_30000_files() {
  many_files 30000
  expect_status 0
  expect_trial '.artifacts.files >= 30000' true
}

case_leaves_a_million_files() {
  E2E_TIMEOUT=600 many_files 1000000
  case $(trial .status) in SUCCESS | FAILURE) ;; *) fail "status $(trial .status): $(trial .error)" ;; esac
}

case_sends_bad_events() {
  TASK_AGENT='trust_self_reported: true' TASK_CRITERIA='  - {type: command_executed, description: it ran, tool_name: Bash, command_pattern: "^make$"}' \
    script_task t <<'E2'
#!/bin/sh
printf '{"kind": "tool_call", "tool": "Bash", "call_id": "1", "input": {"command": "make"}}\n' >&3
printf 'no json\n{"kind": "no such kind"}\n[1, 2]\n{"kind": "tool_call"\n\377\376\n{}\n' >&3
head -c 3000000 /dev/zero | tr '\0' 'x' >&3
printf '\n{"kind": "tool_call", "tool": "Ba' >&3
E2
  run_suite
  expect_status 0
  jq -e . run/trials/default/t/00/events.jsonl >/dev/null || fail "events.jsonl is not JSON lines"
  [ "$(stat -c %s run/trials/default/t/00/events.jsonl)" -le $((8 << 20)) ] || fail "events.jsonl is too large"
}

case_events_without_trust_do_not_gate() {
  TASK_CRITERIA="  - {type: command_executed, description: it ran, tool_name: Bash, command_pattern: make}
$DONE_CRITERION" script_task t <<'E2'
#!/bin/sh
printf '{"kind": "tool_call", "tool": "Bash", "call_id": "1", "input": {"command": "true"}}\n' >&3
echo x >done.txt
E2
  run_suite
  expect_status 0
  expect_trial '.criteria[0].gating' false
  expect_trial .events self-reported
}

main forks_without_end:user forks_faster_than_anyone_kills:all floods_its_output:user closes_its_output outlives_its_time_and_ignores_signals:user \
  leaves_processes_behind:user a_process_left_behind_cannot_meet_the_grader:user fills_its_disk:user \
  leaves_30000_files:user leaves_a_million_files:all sends_bad_events events_without_trust_do_not_gate
