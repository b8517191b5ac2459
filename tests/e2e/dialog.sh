#!/bin/bash
# dialog.sh: agents that talk with a simulated user: a script, or a model at a scripted endpoint on loopback.
# shellcheck source-path=SCRIPTDIR disable=SC2154,SC2317,SC2119,SC2016
. "$(dirname "$0")/lib.sh"

# An agent that keeps what it is told, and answers each time.
talker() { # SIMULATION [CRITERIA]
  mkdir -p suite/t
  TASK_MORE="simulation: $1" TASK_CRITERIA=${2:-'  - {type: file_contains, path: said, description: kept, includes: [do it]}'} \
    script_task t <<'E2'
#!/bin/sh
read -r line || true
echo "$line" >>said
echo "my answer to $line"
E2
}

case_a_script_is_played() {
  talker '{enabled: true, script: [second, third, "bye <<<END>>>", never], n_trials: 2}' \
    '  - {type: run_command, description: three, command: "test $(wc -l <said) = 3 && grep -qx third said && ! grep -q bye said"}'
  run_suite
  expect_status 0
  expect_trial '[.dialog.exchanges, .dialog.stop_reason, .dialog.user] | tojson' '[3,"stop_token","script"]'
  expect_trial .status SUCCESS t 01
  [[ $(jq -r 'select(.kind == "user" or .kind == "text") | .output' run/trials/default/t/00/events.jsonl | tr '\n' '|') == \
    'my answer to do it|second|my answer to second|third|my answer to third|' ]] || fail "events: $(cat run/trials/default/t/00/events.jsonl)"
  [[ $(jq -r '[.steps[].source] | join(" ")' run/trials/default/t/00/trajectory.json) == 'user agent user agent user agent' ]] ||
    fail "trajectory: $(jq -c .steps run/trials/default/t/00/trajectory.json)"
  # Exchanges have an end of their own, and so has the script.
  talker '{enabled: true, script: [second, third, fourth], max_turns: 2}'
  cb run suite --suite-root suite --run-dir short --quiet
  [[ $(trial '[.dialog.exchanges, .dialog.stop_reason] | tojson' t 00 short) == '[2,"max_turns"]' ]] || fail "$(trial .dialog t 00 short)"
  talker '{enabled: true, script: [second]}'
  cb run suite --suite-root suite --run-dir ended --quiet
  [[ $(trial '[.dialog.exchanges, .dialog.stop_reason] | tojson' t 00 ended) == '[2,"script_ended"]' ]] || fail "$(trial .dialog t 00 ended)"
  # An agent that fails is not talked to any more; one that takes too long neither.
  TASK_MORE='simulation: {enabled: true, script: [second]}' script_task t <<<$'#!/bin/sh\nexit 3'
  cb run suite --suite-root suite --run-dir failed --quiet
  [[ $(trial '[.dialog.stop_reason, .agent.exit_code] | tojson' t 00 failed) == '["agent_failed",3]' ]] || fail "$(trial .dialog t 00 failed)"
  TASK_MORE='simulation: {enabled: true, script: [second]}' script_task t <<<$'#!/bin/sh\nkill -9 $$'
  cb run suite --suite-root suite --run-dir killed --quiet
  [[ $(trial '[.dialog.stop_reason, .agent.signal] | tojson' t 00 killed) == '["agent_failed",9]' ]] || fail "$(trial .dialog t 00 killed)"
  # The control of what nop and oracle do: they talk to nobody.
  cb run suite --suite-root suite --run-dir nop -T nop --quiet
  [[ $(trial .dialog t 00 nop) == null ]] || fail "nop has a dialog"
}

SECRET='nine seven three one'

case_a_model_plays_the_user() {
  need python3
  mkdir -p model .config/closedbook suite/t/reference
  python3 "$E2E_SOURCE/tests/e2e/judge_model.py" model >model/log 2>&1 &
  echo $! >model/pid
  trap 'kill "$(cat model/pid)" 2>/dev/null || true; cleanup_case' EXIT
  wait_until 20 test -s model/port
  printf 'routes:\n  - {name: u, api: openai-chat, base_url: "http://127.0.0.1:%s/v1", key: null}\n  - {name: a, api: anthropic, base_url: "http://127.0.0.1:%s", key: null}\n' \
    "$(cat model/port)" "$(cat model/port)" >.config/closedbook/config.yaml
  echo "$SECRET" >suite/t/reference/code.txt
  talker '{enabled: true, persona: an impatient cook, goal: dinner, constraints: [says little], model: u/m}
reference: {directory: reference}' '  - {type: run_command, description: kept, command: "grep -qx faster said && grep -q seven $REFERENCE_DIR/code.txt"}'
  printf '%s\n' '{"message": "faster"}' '{"message": "good. <<<END>>>"}' >model/script
  run_suite
  expect_status 0
  expect_trial '[.dialog.exchanges, .dialog.stop_reason, .dialog.user, .dialog.asks, .dialog.model] | tojson' '[2,"stop_token","model",2,"m"]'
  # The model knows who it is and what was said; of the private half it knows the description alone.
  local text
  text=$(jq -s -r '.[1].body.messages[].content' model/requests)
  for word in 'an impatient cook' dinner 'says little' 'my answer to do it' 'user: faster' 'my answer to faster'; do
    [[ $text == *"$word"* ]] || fail "the user does not know '$word': $text"
  done
  ! grep -qE "seven|kept|REFERENCE|grep" model/requests || fail "the user knows of the private half"
  grep -q 'about: a task of the tests' model/requests || fail "the user does not know the description: $text"
  # Another wire format, no description, and a user who begins.
  rm model/requests
  talker '{enabled: true, persona: p, goal: g, share_description: false, max_turns: 1}'
  sed -i '/^initial_prompt/d' suite/t/task.yaml
  printf '%s\n' '{"message": "do it"}' >model/script
  cb run suite --suite-root suite --run-dir begins --simulator-model a/claude-x --quiet
  expect_status 0
  [[ $(trial .dialog.model t 00 begins) == claude-x ]] || fail "$(trial .dialog t 00 begins)"
  ! grep -q 'about: a task of the tests' model/requests || fail "the user knows the description"
  # A user who does not answer is nobody's failure: the trial is an ERROR.
  # What the agent did before is kept.
  sed -i 's/^description:/initial_prompt: do it\n&/; s/max_turns: 1/max_turns: 2/' suite/t/task.yaml
  printf '%s\n' '{"status": 400, "text": "{\"error\": {\"message\": \"no such model\"}}"}' >model/script
  cb run suite --suite-root suite --run-dir gone --simulator-model a/claude-x --quiet
  expect_status 3
  [[ $(trial .error t 00 gone) == *'plays the user did not answer (status 400): no such model'* ]] || fail "$(trial .error t 00 gone)"
  [[ $(cat gone/trials/default/t/00/agent.stdout) == 'my answer to do it' ]] || fail "what the agent printed is lost"
  grep -q 'my answer to do it' gone/trials/default/t/00/events.jsonl || fail "its events are lost"
  # Who grades again, or plays the reference, needs nobody to talk to; who only executes does.
  rm .config/closedbook/config.yaml
  cb grade begins
  expect_status 0
  cb run suite --suite-root suite --run-dir nop -T nop --quiet
  expect_status 1
  cb execute suite --suite-root suite --run-dir executed
  expect_status 2
  expect_text err "task 't', simulation"
}

case_without_a_route_nothing_runs() {
  talker '{enabled: true, persona: p, goal: g}'
  run_suite
  expect_status 2
  expect_text err "task 't', simulation"
  [ ! -e run ] || fail "a run directory was made"
}

main a_script_is_played:user a_model_plays_the_user without_a_route_nothing_runs:user
