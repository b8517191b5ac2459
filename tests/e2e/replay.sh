#!/bin/bash
# replay.sh: a run whose exchanges with models are kept, and told again without any endpoint; and one that is shown live.
# shellcheck source-path=SCRIPTDIR disable=SC2154,SC2317,SC2119,SC2016
. "$(dirname "$0")/lib.sh"

KEY=sk-of-the-operator-0451
ASK='import datetime, json, os, sys, urllib.request, urllib.error, uuid
def ask(text, **more):
    body = {"model": os.environ["CLOSEDBOOK_MODEL"], "max_tokens": 50, "messages": [{"role": "user", "content": text}], **more}
    headers = {"x-api-key": os.environ["CLOSEDBOOK_MODEL_KEY"], "content-type": "application/json"}
    request = urllib.request.Request(os.environ["CLOSEDBOOK_MODEL_URL"] + "/v1/messages", json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
'

# asker: the program on standard input, behind $ASK, becomes the agent of a task that may ask a model.
asker() {
  mkdir -p suite/t
  { printf '#!/usr/bin/python3\n%s' "$ASK"; cat; } >suite/t/agent.py
  chmod 755 suite/t/agent.py
  cat >suite/t/task.yaml <<END
task_id: t
description: a task of the tests
initial_prompt: do it
agent: {type: script, script: agent.py, model: claude-haiku-4-5}
sandbox: {python: null, network: broker}
success_criteria:
$DONE_CRITERION
END
}

# What is the same of a trial that was replayed.
essence() { trial '{status, score, usage: (.usage | {usage, turns, model, requests, forwarded, cost_microusd})}' t 00 "$1"; }

case_an_agent_is_replayed_without_endpoint_and_key() {
  start_scripted_model
  mkdir -p config/closedbook
  printf 'routes:\n  - {name: anthropic, api: anthropic, base_url: "http://127.0.0.1:%s"}\n' "$port" >config/closedbook/config.yaml
  asker <<'END'
now = datetime.datetime.now().isoformat()
key = os.environ["CLOSEDBOOK_MODEL_KEY"]
seen = [ask(f"it is {now}, I am {uuid.uuid4()}, my key is {key}", metadata={"user_id": now}), ask("twice"), ask("twice"),
        ask("stream", stream=True)]
assert [status for status, text in seen] == [200] * 4, seen
assert "event: message_stop" in seen[3][1], seen
open("done.txt", "w").write("".join(text for status, text in seen))
END
  XDG_CONFIG_HOME=$PWD/config ANTHROPIC_API_KEY=$KEY cb run suite --suite-root suite --run-dir run --record kept --quiet
  expect_status 0
  grep -rqF "$KEY" kept run && fail "the key is in $(grep -rlF "$KEY" kept run | head -n 1)"
  [ "$(stat -c %a kept/trials/default/t/00/agent.jsonl)" = 600 ] || fail 'others can read the recording'
  [ "$(wc -l <kept/trials/default/t/00/agent.jsonl)" = 5 ] || fail "kept: $(cat kept/trials/default/t/00/agent.jsonl)"
  # The endpoint is gone, and so are key and configuration.
  kill "$endpoint"
  wait "$endpoint" || true
  cb run suite --suite-root suite --run-dir again --replay kept --quiet
  expect_status 0
  [ "$(essence run)" = "$(essence again)" ] || fail "another result: $(essence run) and then $(essence again)"
  jq -r 'select(.kind == "response") | .body' run/trials/default/t/00/wire.jsonl >was
  jq -r 'select(.kind == "response") | .body' again/trials/default/t/00/wire.jsonl | cmp - was || fail 'other answers'
  # Control: the same without the recording does not start.
  cb run suite --suite-root suite --run-dir control --quiet
  expect_status 2
  expect_text err 'no model endpoint has its key'
  # What was not recorded is the machine's error, whatever the agent makes of it, and says what differs.
  sed -i 's/"twice")$/"thrice")/; s/ask("twice"), ask/ask("twice"), ask("thrice"), ask/; s/\[200\] \* 4/[200, 200, 400, 200, 200]/; s/seen\[3\]/seen[4]/' suite/t/agent.py
  cb run suite --suite-root suite --run-dir miss --replay kept --quiet
  expect_status 3
  [[ $(trial .status t 00 miss) == ERROR ]] || fail "a miss is $(trial .status t 00 miss)"
  [[ $(trial .error t 00 miss) == *'the recording has no answer to a request'*'request.body.messages[0].content from byte 1 on'* ]] ||
    fail "$(trial .error t 00 miss)"
  [[ $(trial .error t 00 miss) != *hrice* ]] || fail 'the error quotes the request'
  # So is a trial of which nothing was recorded.
  rm -r kept/trials
  cb run suite --suite-root suite --run-dir none --replay kept --quiet
  expect_status 3
  [[ $(trial .error t 00 none) == *'it holds no exchange of this trial'* ]] || fail "$(trial .error t 00 none)"
  # A folder is recorded in once; and what is no recording is said before anything starts.
  XDG_CONFIG_HOME=$PWD/config ANTHROPIC_API_KEY=$KEY cb run suite --suite-root suite --run-dir twice --record kept --quiet
  expect_status 2
  expect_text err 'there is a recording already'
  echo '{"closedbook_recording": 2}' >kept/recording.json
  cb run suite --suite-root suite --run-dir newer --replay kept --quiet
  expect_status 2
  expect_text err "'kept' is a recording of version 2"
  cb run suite --suite-root suite --run-dir both --replay kept --record other --quiet
  expect_status 2
  expect_text err 'give one of them'
  for made in newer both other; do [ ! -e "$made" ] || fail "$made was made"; done
}

case_a_judge_and_a_user_are_replayed() {
  need python3
  mkdir -p model .config/closedbook suite/t
  python3 "$E2E_SOURCE/tests/e2e/judge_model.py" model >model/log 2>&1 &
  endpoint=$!
  trap 'kill "$endpoint" 2>/dev/null || true' EXIT
  wait_until 20 test -s model/port
  printf 'routes:\n  - {name: a, api: anthropic, base_url: "http://127.0.0.1:%s", key: E2E_JUDGE_KEY}\n' \
    "$(cat model/port)" >.config/closedbook/config.yaml
  printf '%s\n' '#!/bin/sh' 'read -r line' 'date +%s >work.txt' 'echo "my answer to $line"' >suite/t/agent.sh
  chmod 755 suite/t/agent.sh
  cat >suite/t/task.yaml <<'END'
task_id: t
description: a task of the tests
initial_prompt: do it
agent: {type: script, script: agent.sh}
sandbox: {python: null}
simulation: {enabled: true, persona: a cook, goal: dinner, model: a/m}
success_criteria:
  - {type: llm_judge, description: judged, prompt: "1 when it is well done", model: a/claude-haiku-4-5, files: [work.txt], include_reference: false}
END
  printf '%s\n' '{"message": "faster"}' '{"message": "good. <<<END>>>"}' '{"score": 0.95, "rationale": "nearly"}' >model/script
  E2E_JUDGE_KEY=$KEY cb run suite --suite-root suite --run-dir run --record kept --quiet
  expect_status 0
  expect_trial .criteria[0].score 0.95
  expect_trial '[.dialog.exchanges, .dialog.stop_reason] | tojson' '[2,"stop_token"]'
  grep -rqF "$KEY" kept run && fail 'the key is in a record'
  kill "$endpoint"
  wait "$endpoint" || true
  rm -r .config
  cb run suite --suite-root suite --run-dir again --replay kept --quiet
  expect_status 0
  [ "$(trial '.criteria[0] | [.score, .judge.cost_microusd, .judge.scores] | tojson' t 00 again)" = \
    "$(trial '.criteria[0] | [.score, .judge.cost_microusd, .judge.scores] | tojson' t 00 run)" ] || fail 'another judgement'
  [ "$(trial '.dialog | tojson' t 00 again)" = "$(trial '.dialog | tojson' t 00 run)" ] || fail 'another dialog'
  # Another rubric was never judged: an ERROR, not a failure of the agent.
  sed -i 's/well done/badly done/' suite/t/task.yaml
  cb run suite --suite-root suite --run-dir miss --replay kept --quiet
  expect_status 3
  [[ $(trial .status t 00 miss) == ERROR ]] || fail "a miss is $(trial .status t 00 miss)"
  grep -q 'the recording has no answer to a request' miss/trials/default/t/00/trial.json || fail "$(trial .error t 00 miss)"
}

# Events are shown while the agent still works, and cannot act on who looks at them.
case_stream_shows_events_as_they_happen() {
  script_task t <<'END'
#!/bin/sh
printf '%s\n' '{"kind":"tool_call","tool":"Bash","call_id":"1","input":{"command":"ls \u001b[31m"}}' >&3
exec tail -f /dev/null
END
  start_cb run suite --suite-root suite --run-dir run --stream
  wait_until 30 grep -q '^\[default/t/00\] .* tool_call Bash' err
  kill -0 "$started" || fail 'the run had ended already'
  ! grep -q "$(printf '\033')" err || fail 'an escape of the agent reached the terminal'
  kill -TERM -- "-$started"
  wait "$started" || true
  # Who does not ask for it sees none.
  script_task t <<'END'
#!/bin/sh
echo '{"kind":"text","output":"said"}' >&3
echo x >done.txt
END
  cb run suite --suite-root suite --run-dir silent
  expect_status 0
  ! grep -qF '[default/t/00]' err || fail 'events are shown unasked'
  cb run suite --suite-root suite --run-dir shown --stream
  expect_text err 'text said'
}

main an_agent_is_replayed_without_endpoint_and_key a_judge_and_a_user_are_replayed stream_shows_events_as_they_happen
