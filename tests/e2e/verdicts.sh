#!/bin/bash
# verdicts.sh: whole runs, their exit statuses, and every command that reads or makes a run.
# shellcheck source-path=SCRIPTDIR disable=SC2154,SC2317,SC2119,SC2015,SC2016
. "$(dirname "$0")/lib.sh"

two_tasks() { # one that passes, one that fails
  script_task good <<<$'#!/bin/sh\necho x >done.txt'
  script_task bad <<<$'#!/bin/sh\ntrue'
}

case_a_passing_task_ends_with_0() {
  script_task t <<<$'#!/bin/sh\ncat >prompt.txt; echo x >done.txt; echo said; echo complained >&2'
  run_suite
  expect_status 0
  expect_trial .schema closedbook/trial/1
  expect_trial .status SUCCESS
  expect_trial .passed true
  expect_trial .score 1
  expect_trial .agent.type script
  expect_trial .agent.exit_code 0
  expect_trial .agent.stopped_by exit
  expect_trial .cell.seccomp true
  expect_trial .cell.driver native
  expect_trial .integrity.verdict CLEAN
  expect_trial '.integrity.reasons|length' 0
  grep -qx said run/trials/default/t/00/agent.stdout
  grep -qx complained run/trials/default/t/00/agent.stderr
  cb show run/trials/default/t/00 prompt.txt
  expect_text out 'do it'
}

case_a_report_that_cannot_be_written_is_said_before_the_run() {
  script_task t <<<$'#!/bin/sh\ncat >/dev/null; echo x >done.txt'
  run_suite --junit nowhere/junit.xml
  expect_status 2
  expect_text err nowhere/junit.xml
  [ ! -e run/run.json ] || fail "it ran all the same"
  run_suite --junit run/junit.xml --markdown summary.md
  expect_status 0
  grep -q '<testsuite' run/junit.xml && [ -s summary.md ] || fail "the reports were not written"
}

case_a_failing_task_ends_with_1() {
  two_tasks
  run_suite -j 2
  expect_status 1
  # However quiet: what did not pass, and how many did.
  expect_text out bad
  expect_text out '1 passed'
  [ "$(wc -l <out)" = 2 ] || fail "--quiet says more: $(cat out)"
  ! grep -q good out || fail "--quiet tells what passed"
  expect_trial .status SUCCESS good
  expect_trial .status FAILURE bad
  expect_trial .passed false bad
  expect_trial .score 0 bad
}

case_a_failed_trial_shows_the_last_words_of_its_agent() {
  script_task bad <<<$'#!/bin/sh\nprintf "first\\nsecond\\nthird\\033[2J\\nfourth\\n" >&2; exit 7'
  script_task good <<<$'#!/bin/sh\necho x >done.txt; echo grumble >&2'
  run_suite
  expect_status 1
  cb report run
  expect_text out "the agent's exit code was 7; the end of its agent.stderr:"
  expect_text out second
  expect_text out fourth
  ! grep -q first out || fail "more than three lines are shown"
  ! LC_ALL=C grep -q $'\x1b' out || fail "a raw escape in the report"
  ! grep -q grumble out || fail "an agent that passed is quoted"
}

case_usage_and_empty_selections_end_with_2() {
  two_tasks
  cb run suite --no-such-flag
  expect_status 2
  cb run no-such-folder --run-dir r1
  expect_status 2
  cb run suite --suite-root suite --run-dir r2 --only nobody
  expect_status 2
  cb run suite --suite-root suite --run-dir r3 --expect-tasks 3
  expect_status 2
  [ ! -e r3/trials ] || fail "--expect-tasks was checked after the run began"
  TASK_MORE='skip: not today' script_task good <<<$'#!/bin/sh\ntrue'
  cb run suite --suite-root suite --run-dir r4 --only good
  expect_status 2
  cb run suite --suite-root suite --run-dir r5 --only good --allow-empty
  expect_status 0
  cb run suite --suite-root suite --run-dir r6 --only good --include-skipped
  expect_status 1
}

case_tags_select() {
  TASK_MORE='tags: [red, big]' script_task one <<<$'#!/bin/sh\necho x >done.txt'
  TASK_MORE='tags: [blue]' script_task two <<<$'#!/bin/sh\necho x >done.txt'
  TASK_MORE='tags: [blue, big]' script_task three <<<$'#!/bin/sh\necho x >done.txt'
  cb run suite --suite-root suite --run-dir r1 --tags red,blue --expect-tasks 3
  expect_status 0
  cb run suite --suite-root suite --run-dir r2 --tags red,blue --tags big --expect-tasks 2
  expect_status 0
  cb run suite --suite-root suite --run-dir r3 --exclude-tags big --expect-tasks 1
  expect_status 0
  [ -f r3/trials/default/two/00/trial.json ]
}

case_an_agent_that_cannot_start_ends_with_3() {
  script_task t <<<$'#!/no/such/interpreter\n'
  run_suite
  expect_status 3
  expect_trial .status ERROR
  expect_trial .passed null
  expect_trial .score null
  [ "$(trial .error)" != null ] || fail "no reason is recorded"
}

case_an_agents_own_failure_is_graded() {
  script_task exits <<<$'#!/bin/sh\necho x >done.txt; exit 7'
  script_task dies <<<$'#!/bin/sh\necho x >done.txt; kill -SEGV $$'
  run_suite
  expect_status 0
  expect_trial .agent.exit_code 7 exits
  expect_trial .agent.signal 11 dies
  expect_trial .status SUCCESS dies
}

case_thresholds_relax_the_status() {
  two_tasks
  cb run suite --suite-root suite --run-dir r1 --min-pass-rate 0.5
  expect_status 0
  cb run suite --suite-root suite --run-dir r2 --min-pass-rate 0.6
  expect_status 1
  script_task broken <<<$'#!/no/such/interpreter\n'
  cb run suite --suite-root suite --run-dir r3 --exclude-tags none --only broken --max-errors 1
  [ "$status" != 3 ] || fail "--max-errors 1 did not forgive one error"
  cb run suite --suite-root suite --run-dir r4
  expect_status 3
}

case_a_load_error_starts_nothing() {
  two_tasks
  printf 'task_id: worse\ndescription: x\ninitial_prompt: x\nsandbox:\n  drivr: native\nsuccess_criteria: []\n' >suite/worse.yaml
  run_suite
  expect_status 2
  expect_text err 'worse.yaml:5:3'
  expect_text err "sandbox.drivr"
  expect_text err "driver"
  [ ! -e run/trials ] || fail "trials ran beside a task that does not load"
}

case_a_feature_of_later_is_an_error() {
  TASK_MORE='simulation: {enabled: true, script: [x], check_criteria: both}' script_task t <<<$'#!/bin/sh\ntrue'
  run_suite
  expect_status 2
  expect_text err 'not in this version'
}

case_output_for_machines_is_valid() {
  need jq python3
  two_tasks
  cb run suite --suite-root suite --run-dir run --json --junit junit.xml
  expect_status 1
  jq -e . out >/dev/null || fail "run --json is not JSON"
  python3 - <<'P' || fail "junit.xml is not as it must be"
import xml.etree.ElementTree as tree
root = tree.parse("junit.xml").getroot()
cases = list(root.iter("testcase"))
names = " ".join(c.get("name", "") + c.get("classname", "") for c in cases)
assert "good" in names and "bad" in names, names
assert len(list(root.iter("failure"))) == 1
assert not list(root.iter("error"))
P
  local command
  for command in 'plan suite --suite-root suite' 'report run' 'grade run' 'doctor' 'config'; do
    # shellcheck disable=SC2086
    cb $command --json
    jq -e . out >/dev/null || fail "$command --json is not JSON: $(head -c 200 out err)"
  done
}

case_real_records_are_as_their_schemas_say() {
  need python3
  two_tasks
  script_task broken <<<$'#!/no/such/interpreter\n'
  TASK_CRITERIA=$(command_criterion 'echo out; exit 3') TASK_AGENT='trust_self_reported: true' script_task events <<'E2'
#!/bin/sh
printf '{"kind": "tool_call", "tool": "Bash", "call_id": "1", "input": {"command": "ls"}}\nno event\n' >&3
mkfifo pipe; mkdir new; echo x >new/file; ln -s new link
E2
  run_suite -j 2
  local checked=0
  "$E2E_SOURCE/tests/formats/check_formats.py" "$E2E_SOURCE" --run run >checks || checked=$?
  [ "$checked" != 77 ] || skip "no python3-jsonschema here"
  ! grep '^not ok' checks >bad || fail "$(head -n 3 bad | tr '\n' ' ')"
  [ "$(grep -c '^ok' checks)" -ge 10 ] || fail "only $(grep -c '^ok' checks) things were checked"
}

case_infrastructure_errors_are_junit_errors() {
  need python3
  script_task t <<<$'#!/no/such/interpreter\n'
  run_suite --junit junit.xml
  python3 -c '
import xml.etree.ElementTree as tree
root = tree.parse("junit.xml").getroot()
assert len(list(root.iter("error"))) == 1 and not list(root.iter("failure"))' || fail "no <error> in junit.xml"
}

case_names_of_tasks_and_texts_are_escaped() {
  need python3
  TASK_CRITERIA=$'  - {type: file_exists, description: "a <b> & \\e[31mred\\a \\u202e ]]>", path: done.txt}' \
    script_task t <<<$'#!/bin/sh\nprintf \'\\033]0;owned\\007\\033[2J\''
  run_suite --junit junit.xml
  expect_status 1
  python3 -c 'import xml.etree.ElementTree as t; t.parse("junit.xml")' || fail "junit.xml is no XML"
  cb report run -v
  ! LC_ALL=C grep -q $'[\x01-\x08\x0b-\x1f\x7f]' out || fail "raw control bytes in the report"
  ! grep -q $'\u202e' out || fail "a raw bidi mark in the report"
}

case_plan_spends_nothing() {
  two_tasks
  cb plan suite --suite-root suite --repeats 3
  expect_status 0
  expect_text out good
  expect_text out bad
  [ ! -e runs ] || fail "plan made a run directory"
  cb plan suite --suite-root suite --json
  [ "$(jq -r '[.. | objects | .task_id? // empty] | unique | join(" ")' out)" = 'bad good' ] ||
    fail "plan --json does not list the tasks: $(head -c 300 out)"
}

case_execute_then_grade() {
  two_tasks
  cb execute suite --suite-root suite --run-dir run
  expect_status 0
  expect_trial .status NOT_GRADED good
  expect_trial .passed null good
  cb grade run
  expect_status 1
  expect_trial .status SUCCESS good
  expect_trial .status FAILURE bad
}

case_grading_again_keeps_what_happened() {
  TASK_CRITERIA=$(command_criterion 'test "$(cat done.txt)" = x') script_task good <<<$'#!/bin/sh\necho x >done.txt; exit 3'
  script_task broken <<<$'#!/no/such/interpreter\n'
  run_suite
  expect_status 3
  facts() { jq -S '{agent, cell, artifacts, view, events, staging, trial_id, run_id, agent_ms: .timing_ms.agent}' "run/trials/default/$1/00/trial.json"; }
  facts good >good.before
  facts broken >broken.before
  sha256sum run/trials/default/good/00/{artifacts.tar,changes.json,events.jsonl} >sums
  cb grade run
  expect_status 3
  expect_trial .status SUCCESS good
  expect_trial .status ERROR broken
  facts good | cmp - good.before || fail "grading changed the facts of a trial"
  facts broken | cmp - broken.before || fail "grading changed the facts of an ERROR"
  sha256sum --quiet -c sums || fail "grading changed a recorded file"
  [ "$(jq -r .status run/trials/default/good/00/previous/000.json)" = SUCCESS ] || fail "the previous record is gone"
  # One trial of a run; the others are left alone.
  script_task other <<<$'#!/bin/sh\ntrue'
  rm -r suite/broken run
  run_suite
  sed -i 's/= x/= y/' suite/good/task.yaml
  cb grade run/trials/default/good/00 --quiet
  expect_status 1
  expect_trial .status FAILURE good
  [ "$(jq -r .status run/trials/default/good/00/previous/000.json)" = SUCCESS ] || fail "the previous record is gone"
  [ ! -e run/trials/default/other/00/previous ] || fail "another trial was graded, too"
  cb grade run/trials/default/good/01
  expect_status 2
}

case_tempdir_says_unprotected() {
  script_task t <<<$'#!/bin/sh\necho x >done.txt'
  cb run suite --suite-root suite --run-dir run --driver tempdir
  expect_status 0
  expect_trial .integrity.verdict UNPROTECTED
  expect_trial .cell.driver tempdir
  cat out err >both
  expect_text both UNPROTECTED
  cb report run
  expect_text out UNPROTECTED
}

case_a_failed_command_names_its_cell() {
  TASK_CRITERIA=$(command_criterion 'echo wanted-but-missing; false') script_task t <<<$'#!/bin/sh\necho left >left.txt; printf "said\\033[2J\\n"; echo moaned >&2'
  run_suite
  expect_status 1
  cb report run
  expect_text out 'wanted-but-missing'
  expect_text out 'closedbook cell run/trials/default/t/00 --criterion'
  cb cell run/trials/default/t/00 --criterion 1 -- cat left.txt
  expect_status 0
  expect_text out left
  local operand
  for operand in run run/trials/default/t; do
    cb cell "$operand" -- true
    expect_status 125
    expect_text err 'RUN/trials/VARIANT/TASK/NN was expected'
  done
  cb cell suite/t --criterion 1
  expect_status 125
  expect_text err 'add --grader'
  cb show run/trials/default/t/00 --stdout
  [ "$(cat out)" = 'said\x1b[2J' ] || fail "not escaped: $(cat -A out)"
  cb show run/trials/default/t/00 --stderr
  expect_text out moaned
  rm run/trials/default/t/00/agent.stderr
  cb show run/trials/default/t/00 --stderr
  expect_status 0
  [ ! -s out ] || fail "something of nothing: $(cat out)"
}

case_each_command_has_a_fresh_home_and_tmp() {
  # What the first leaves in the workspace is the positive control: it is the same cell's content.
  TASK_CRITERIA=$(command_criterion 'touch "$HOME/left" /tmp/left left; sleep 1000 & echo $! >pid')$'\n'$(
    command_criterion 'test -e left && ls -A "$HOME" /tmp; ! ls "$HOME/left" /tmp/left && ! grep -lzx "[s]leep" /proc/[0-9]*/cmdline'
  ) script_task t <<<$'#!/bin/sh\ntrue'
  run_suite
  expect_status 0
  expect_trial '.criteria | map(.score) == [1, 1]' true
}

case_what_a_read_only_command_does_is_undone() {
  TASK_CRITERIA=$(
    command_criterion 'echo more >>done.txt; rm -r kept; touch new; test -e done.txt' | sed 's/}$/, read_only: true}/'
    command_criterion 'test "$(cat done.txt)" = x && test -e kept/file && test ! -e new' | sed 's/}$/, read_only: true}/'
    # The control: what one that is not read_only does stays.
    command_criterion 'test ! -e new && touch new'
    command_criterion 'test -e new'
  ) script_task t <<<$'#!/bin/sh\necho x >done.txt; mkdir kept; touch kept/file'
  run_suite
  expect_status 0
  expect_trial '.criteria | map(.score) == [1, 1, 1, 1]' true
  TASK_CRITERIA=$(
    command_criterion 'touch new'
    command_criterion 'test -e new' | sed 's/}$/, read_only: true}/'
  ) script_task t <<<$'#!/bin/sh\ntrue'
  cb plan suite
  expect_status 2
  expect_text err 'success_criteria[1].read_only: '
  expect_text err 'not in this version'
}

case_turns_are_counted_against_their_limits() {
  agent='#!/bin/sh
for i in 1 2 3; do echo "{\"kind\": \"turn_start\"}" >&3; done; '
  TASK_MORE='run_limits: {max_turns: 3, expected_turns: 2}' script_task failed <<<"$agent"
  TASK_MORE='run_limits: {max_turns: 4, expected_turns: 2}' script_task below <<<"$agent"
  TASK_MORE='run_limits: {max_turns: 3, expected_turns: 2}' script_task passed <<<"$agent touch done.txt"
  TASK_MORE='run_limits: {max_turns: 3, expected_turns: 3}' script_task quiet <<<"$agent touch done.txt"
  run_suite
  expect_status 1
  expect_trial .agent.turns 3 failed
  expect_trial .status MAX_TURNS_EXHAUSTED failed
  expect_trial .passed false failed
  expect_trial .status FAILURE below
  expect_trial .status SUCCESS passed
  cb report run
  expect_text out '3 turns, at most 3 allowed'
  [ "$(grep -c '3 turns, 2 expected' out)" = 2 ] || fail "$(grep -c '3 turns, 2 expected' out) remarks on expected_turns, wanted below and passed"
  rm run/trials/default/failed/00/grade -rf
  cb grade run --quiet
  expect_trial .status MAX_TURNS_EXHAUSTED failed
}

case_cell_passes_the_status_through() {
  cb cell -- /bin/sh -c 'exit 41'
  expect_status 41
  cb cell -- /no/such/program
  expect_status 127
  script_task t <<<$'#!/bin/sh\ntrue'
  cb cell suite/t --suite-root suite -- /bin/sh -c 'pwd; echo "$HOME"; id -un'
  expect_status 0
  [ "$(tr '\n' ' ' <out)" = '/workspace /home/agent agent ' ] || fail "the cell is: $(tr '\n' ' ' <out)"
}

case_the_pool_runs_them_all() {
  script_task t <<<$'#!/bin/sh\necho x >done.txt'
  run_suite --repeats 8 -j 2
  expect_status 0
  [ "$(find run/trials -name trial.json | wc -l)" = 8 ] || fail "not eight trials"
  [ "$(jq -r .replicate run/trials/default/t/*/trial.json | sort -n | tr '\n' ' ')" = '0 1 2 3 4 5 6 7 ' ]
  [ "$(grep -c finish run/journal.jsonl)" = 8 ] || fail "the journal has not eight ends"
}

main a_failed_trial_shows_the_last_words_of_its_agent a_report_that_cannot_be_written_is_said_before_the_run a_passing_task_ends_with_0:user a_failing_task_ends_with_1 usage_and_empty_selections_end_with_2 tags_select \
  an_agent_that_cannot_start_ends_with_3:user an_agents_own_failure_is_graded thresholds_relax_the_status \
  a_load_error_starts_nothing a_feature_of_later_is_an_error output_for_machines_is_valid real_records_are_as_their_schemas_say \
  infrastructure_errors_are_junit_errors names_of_tasks_and_texts_are_escaped plan_spends_nothing \
  execute_then_grade:user grading_again_keeps_what_happened:user tempdir_says_unprotected:user \
  a_failed_command_names_its_cell each_command_has_a_fresh_home_and_tmp:user \
  what_a_read_only_command_does_is_undone:user turns_are_counted_against_their_limits cell_passes_the_status_through:user the_pool_runs_them_all:user
