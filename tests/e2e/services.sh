#!/bin/bash
# services.sh: programs that run beside the agent and the grader, and what happens when one does not come up.
# shellcheck source-path=SCRIPTDIR disable=SC2154,SC2317,SC2119,SC2015,SC2016
. "$(dirname "$0")/lib.sh"

FETCH='python3 -c "import urllib.request; print(urllib.request.urlopen(\"http://127.0.0.1:8123/word.txt\").read().decode(), end=\"\")"'

# service RUN READY TIMEOUT: a sandbox block.
service() {
  jq -nr --arg run "$1" --arg ready "$2" --argjson timeout "$3" \
    '"sandbox: " + ({services: [{run: $run, ready: $ready, timeout: $timeout}]} | tojson)'
}

case_answers_agent_and_grader() {
  need python3
  TASK_MORE=$(service 'mkdir -p /tmp/www && echo served >/tmp/www/word.txt && exec python3 -m http.server -d /tmp/www -b 127.0.0.1 8123' \
    "$FETCH" 20) TASK_CRITERIA=$(command_criterion "$FETCH | cmp - got.txt && grep -qx served got.txt") script_task t <<E2
#!/bin/sh
cat >/dev/null
$FETCH >got.txt
E2
  run_suite
  expect_status 0
  expect_trial .status SUCCESS
}

case_that_is_never_ready_is_an_error() {
  TASK_MORE=$(service 'echo a reason to be found; sleep 1000' false 0.5) script_task t <<<$'#!/bin/sh\necho x >done.txt'
  run_suite
  expect_status 3
  expect_trial .status ERROR
  trial .error | grep -q "was not ready in time; the end of its output: a reason to be found" || fail "error: $(trial .error)"
}

case_that_ends_at_once_is_an_error() {
  TASK_MORE=$(service 'echo no such port >&2; exit 4' false 30) script_task t <<<$'#!/bin/sh\necho x >done.txt'
  local begun=$SECONDS
  run_suite
  expect_status 3
  expect_trial .status ERROR
  trial .error | grep -q "ended before it was ready; the end of its output: no such port" || fail "error: $(trial .error)"
  [ $((SECONDS - begun)) -lt 25 ] || fail "it was waited for: $((SECONDS - begun)) s"
}

# It was ready beside the agent: that it is not beside the grader is the agent's doing, and not tried again.
case_that_the_agent_breaks_is_the_agents_error() {
  TASK_CRITERIA=$(command_criterion true) TASK_MORE=$(service 'test ! -e broken && exec sleep 1000' 'test ! -e broken' 20) script_task t <<<$'#!/bin/sh\ntouch broken'
  run_suite
  [ "$(jq -r '"\(.status) \(.error_code)"' run/trials/default/t/00/trial.json)" = "ERROR agent" ] || fail "$(jq -c '[.status, .error_code, .error]' run/trials/default/t/00/trial.json)"
}

case_ends_with_the_cell() {
  local mark
  mark=$(new_mark)
  TASK_MORE=$(service "trap '' TERM; sleep $mark" true 5) script_task t <<<$'#!/bin/sh\necho x >done.txt'
  run_suite
  expect_status 0
  no_mark "$mark" || fail "the service is alive"
}

case_bad_values_are_told() {
  TASK_MORE='sandbox: {services: [{run: x, timeout: 0}, {ready: y}, {run: ""}]}' script_task t <<<'#!/bin/sh'
  cb plan suite --suite-root suite
  expect_status 2
  expect_text err 'sandbox.services[0].timeout'
  expect_text err 'sandbox.services[1].run'
  expect_text err 'sandbox.services[2].run'
}

main answers_agent_and_grader:user that_is_never_ready_is_an_error that_ends_at_once_is_an_error:user that_the_agent_breaks_is_the_agents_error ends_with_the_cell bad_values_are_told
