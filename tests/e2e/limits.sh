#!/bin/bash
# limits.sh: memory and processors, with and without cgroups that could limit them.
# shellcheck source-path=SCRIPTDIR disable=SC2154,SC2317,SC2119,SC2015,SC2016
. "$(dirname "$0")/lib.sh"

HOG='perl -e '\''$x = "x" x 60000000; print length($x), "\n"'\'

limited() { # NAME: cgroups of this machine and user limit it
  cb doctor --json
  jq -e --arg name "$1" '.limits | index($name) != null' out >/dev/null
}

need_limit() { limited "$1" || skip "no cgroup limits $1 here"; }

case_an_agent_that_takes_too_much_memory_is_graded() {
  need_limit max_memory_mb
  TASK_MORE='sandbox: {limits: {max_memory_mb: 24, max_disk_mb: 2}}' script_task t <<<$'#!/bin/sh\necho x >done.txt\nexec '"$HOG"
  run_suite
  expect_status 0
  expect_trial .status SUCCESS
  expect_trial .agent.stopped_by oom
  expect_trial .agent.signal 9
  expect_trial .cell.used.oom_kills 1
  expect_trial .cell.limits.max_memory_mb 24
  expect_trial '.cell.limits.not_enforced | length' 0
  expect_trial '.cell.protections | index("memory") != null' true
  expect_trial '.cell.used.memory_peak_bytes <= 32 * 1048576' true
}

case_it_gets_its_memory_without_a_limit() {
  script_task t <<<$'#!/bin/sh\necho x >done.txt\nexec '"$HOG"
  run_suite
  expect_status 0
  expect_trial .agent.stopped_by exit
  grep -qx 60000000 run/trials/default/t/00/agent.stdout
  expect_trial '.cell.protections | index("memory")' null
  expect_trial '.cell.used.cpu_ms > 0' true
  limited max_memory_mb || return 0
  expect_trial .cell.used.oom_kills 0
  expect_trial '.cell.used.memory_peak_bytes > 56 * 1048576' true
}

case_a_child_that_is_killed_is_the_agents_affair() {
  need_limit max_memory_mb
  TASK_MORE='sandbox: {limits: {max_memory_mb: 24, max_disk_mb: 2}}' script_task t <<<$'#!/bin/sh\n'"$HOG"$' || echo killed >done.txt'
  run_suite
  expect_status 0
  expect_trial .agent.stopped_by exit
  expect_trial .cell.used.oom_kills 1
}

case_a_grader_has_the_same_limit() {
  need_limit max_memory_mb
  TASK_CRITERIA=$(command_criterion "$HOG") script_task t <<<$'#!/bin/sh\ntrue'
  run_suite
  expect_status 0
  rm -r run
  TASK_MORE='sandbox: {limits: {max_memory_mb: 24, max_disk_mb: 2}}' TASK_CRITERIA=$(command_criterion "$HOG") \
    script_task t <<<$'#!/bin/sh\ntrue'
  run_suite
  expect_status 1
  expect_trial .status FAILURE
}

case_what_a_program_reads_of_its_limits() {
  need_limit max_memory_mb
  need_limit max_cpus
  TASK_MORE='sandbox: {limits: {max_memory_mb: 400, max_cpus: 0.5}}' script_task t <<'A'
#!/bin/sh
echo "$GOMEMLIMIT $NODE_OPTIONS $JAVA_TOOL_OPTIONS"
grep MemTotal /proc/meminfo
grep -c processor /proc/cpuinfo
nproc
cat /proc/self/cgroup | grep -vc ':/$'
echo x >done.txt
A
  run_suite
  expect_status 0
  printf '%s\n' '360MiB --max-old-space-size=300 -XX:MaxRAM=400m' 'MemTotal:         409600 kB' 1 1 0 |
    diff - run/trials/default/t/00/agent.stdout
  expect_trial .cell.limits.max_cpu_millis 500
  expect_trial '.cell.protections | index("cpu") != null' true
}

case_what_an_agent_sets_itself_stays() {
  TASK_AGENT='env: [GOMEMLIMIT=mine]' TASK_MORE='sandbox: {limits: {max_memory_mb: 400, best_effort: true}}' \
    script_task t <<<$'#!/bin/sh\necho "$GOMEMLIMIT"; echo x >done.txt'
  run_suite
  expect_status 0
  grep -qx mine run/trials/default/t/00/agent.stdout
}

case_a_limit_that_cannot_be_enforced_is_an_error() {
  ! limited max_memory_mb || not_here "cgroups limit max_memory_mb here"
  TASK_MORE='sandbox: {limits: {max_memory_mb: 100}}' script_task t <<<$'#!/bin/sh\necho x >done.txt'
  run_suite
  expect_status 3
  expect_text err "task 't' sets sandbox.limits.max_memory_mb, which cannot be enforced here: "
  expect_text err 'best_effort: true runs without it'
  [ ! -e run/trials ] || fail "something was started"
}

case_best_effort_records_what_is_not_enforced() {
  ! limited max_memory_mb || not_here "cgroups limit max_memory_mb here"
  TASK_MORE='sandbox: {limits: {max_memory_mb: 100, max_cpus: 1, best_effort: true}}' script_task t <<<$'#!/bin/sh\necho x >done.txt'
  run_suite
  expect_status 0
  expect_trial '.cell.limits.not_enforced | join(" ")' 'max_memory_mb max_cpus'
  expect_trial .cell.used.oom_kills null
}

case_best_effort_is_a_candidates_too() {
  TASK_MORE='sandbox: {limits: {max_memory_mb: 100, max_cpus: 1, best_effort: true}}' \
    TASK_CRITERIA=$(command_criterion 'as-candidate true') script_task t <<<$'#!/bin/sh\ntrue'
  run_suite
  expect_status 0
}

main an_agent_that_takes_too_much_memory_is_graded it_gets_its_memory_without_a_limit:user \
  a_child_that_is_killed_is_the_agents_affair a_grader_has_the_same_limit what_a_program_reads_of_its_limits \
  what_an_agent_sets_itself_stays:user a_limit_that_cannot_be_enforced_is_an_error:user \
  best_effort_records_what_is_not_enforced:user best_effort_is_a_candidates_too:user
