#!/bin/bash
# stop.sh: criteria that end a run while the agent works.
# shellcheck source-path=SCRIPTDIR disable=SC2154,SC2317,SC2119,SC2016
. "$(dirname "$0")/lib.sh"

# An agent that tells of three calls and then waits for ever; MARK names its last process.
waiter() { # CRITERIA [MORE]
  MARK=$(new_mark)
  TASK_AGENT="trust_self_reported: true" TASK_MORE=${2:-} TASK_CRITERIA=$1 script_task t <<E2
#!/bin/sh
echo '{"kind":"turn_start"}' >&3
for word in one two three; do
  echo '{"kind":"tool_call","tool":"Bash","call_id":"'\$word'","input":{"command":"do '\$word'"}}' >&3
  echo '{"kind":"tool_result","call_id":"'\$word'","output":"","exit_code":0}' >&3
done
touch done.txt
sleep $MARK
E2
}

executed() { # WORD STOP [MORE]
  printf '  - {type: command_executed, description: "%s", command_pattern: "do %s"%s%s}\n' "$1" "$1" "${2:+, stop_early: $2}" "${3:-}"
}

stopped() { # RUN EXPECTED: [reason, criterion, stopped_by, status, passed]
  [[ $(trial '[.early_stop.reason, .early_stop.criterion, .agent.stopped_by, .status, .passed] | tojson' t 00 "$1") == "$2" ]] ||
    fail "$1: $(trial '[.early_stop, .agent.stopped_by, .status] | tojson' t 00 "$1")"
  ! has_mark "$MARK" || fail "$1: the agent lives on"
}

case_armed_criteria_end_the_run() {
  # The one that stops passes: what is not armed decides nothing any more.
  waiter "$(executed two '{on_pass: stop}')"$'\n'"$(executed never '')"
  cb run suite --suite-root suite --run-dir passes --quiet
  stopped passes '["criteria_passed",1,"stop_early","SUCCESS",true]'
  # A guard that is broken cannot be mended.
  waiter '  - {type: command_not_executed, description: no three, command_pattern: "do three", stop_early: {}}'
  cb run suite --suite-root suite --run-dir fails --quiet
  stopped fails '["criteria_failed",1,"stop_early","FAILURE",false]'
  # So many calls, and it has not come.
  waiter "$(executed four '{decide_within: 3}')"
  cb run suite --suite-root suite --run-dir late --quiet
  stopped late '["decision_budget_exceeded",1,"stop_early","FAILURE",false]'
  # A broken guard waits for what could still pass; half of the weight is enough here.
  waiter "$(executed one '{on_pass: stop}')"$'\n  - {type: command_not_executed, description: no two, command_pattern: "do two", stop_early: {}}' \
    'run_limits: {stop_early_gate_threshold: 0.5}'
  cb run suite --suite-root suite --run-dir half --quiet
  stopped half '["criteria_passed",1,"stop_early","SUCCESS",true]'
  # Graded again, it is what it was.
  cb grade half --json
  stopped half '["criteria_passed",1,"stop_early","SUCCESS",true]'
}

case_what_an_agent_says_of_itself_ends_nothing() {
  # One line printed, and the work undone: with trust (the control) that is the end, and a good one.
  waiter "$(executed two '{on_pass: stop}')"$'\n  - {type: file_exists, description: the work, path: never.txt}'
  cb run suite --suite-root suite --run-dir trusted --quiet
  stopped trusted '["criteria_passed",1,"stop_early","SUCCESS",true]'
  sed -i 's/, trust_self_reported: true//' suite/t/task.yaml
  sed -i "s/^sleep .*/sleep 0/" suite/t/agent.sh
  cb run suite --suite-root suite --run-dir claimed --quiet
  [[ $(trial '[.early_stop, .status, .passed, .agent.stopped_by] | tojson' t 00 claimed) == '[null,"FAILURE",false,"exit"]' ]] ||
    fail "a line was believed: $(trial '[.early_stop, .status] | tojson' t 00 claimed)"
  # Nor does a record that says so make it pass.
  jq '.early_stop = {"reason":"criteria_passed","criterion":1,"type":"x","description":"x","armed":1,"turn":0,"calls":1,"gate_threshold":1}' \
    claimed/trials/default/t/00/trial.json >forged && cat forged >claimed/trials/default/t/00/trial.json
  cb grade claimed
  [[ $(trial .passed t 00 claimed) != true ]] || fail "a forged record passes"
}

case_what_is_not_armed_ends_nothing() {
  # Undecided, switched off, or only noted: the time limit is what ends it.
  waiter "$(executed two '{on_pass: continue}')" 'run_limits: {turn_timeout: 10}'
  sed -i "s/^sleep .*/sleep 0/" suite/t/agent.sh
  cb run suite --suite-root suite --run-dir noted --quiet
  [[ $(trial '[.early_stop, .status, .agent.stopped_by] | tojson' t 00 noted) == '[null,"SUCCESS","exit"]' ]] || fail "$(trial .early_stop t 00 noted)"
  waiter "$(executed two '{on_pass: stop}')" 'run_limits: {stop_early: false}'
  sed -i "s/^sleep .*/sleep 0/" suite/t/agent.sh
  cb run suite --suite-root suite --run-dir off --quiet
  [[ $(trial '[.early_stop, .status, .agent.stopped_by] | tojson' t 00 off) == '[null,"SUCCESS","exit"]' ]] || fail "$(trial .early_stop t 00 off)"
  waiter '  - {type: file_exists, description: there, path: done.txt, stop_early: {on_pass: stop}}'
  cb plan suite
  expect_status 2
  expect_text err "'file_exists' cannot end a run early: it would look at work that is half done"
}

main armed_criteria_end_the_run:user what_an_agent_says_of_itself_ends_nothing what_is_not_armed_ends_nothing
