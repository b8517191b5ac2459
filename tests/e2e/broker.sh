#!/bin/bash
# broker.sh: an agent that may ask a model, through the broker, of the scripted endpoint on the host's loopback.
# shellcheck source-path=SCRIPTDIR disable=SC2154,SC2317,SC2119,SC2016
. "$(dirname "$0")/lib.sh"

KEY=sk-of-the-operator-0451
ASK='import json, os, sys, urllib.request, urllib.error
def ask(path, body, key=None, **headers):
    data = json.dumps(body).encode()
    headers = {"x-api-key": key or os.environ["CLOSEDBOOK_MODEL_KEY"], "content-type": "application/json", **headers}
    request = urllib.request.Request(os.environ["CLOSEDBOOK_MODEL_URL"] + path, data, headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
def message(text, **more):
    return {"model": os.environ["CLOSEDBOOK_MODEL"], "max_tokens": 50, "messages": [{"role": "user", "content": text}],
            "tools": [{"name": "Bash", "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}}}], **more}
'

# The endpoint, for the rest of the case, and the configuration that leads to it.
start_endpoint() {
  start_scripted_model
  mkdir -p config/closedbook
  printf 'routes:\n  - {name: anthropic, api: anthropic, base_url: "http://127.0.0.1:%s"}\n' "$port" >config/closedbook/config.yaml
}

# asker LIMITS: the program on standard input, behind $ASK, becomes the agent of a task that may ask a model.
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
$1
success_criteria:
$DONE_CRITERION
END
}

run_asker() {
  XDG_CONFIG_HOME=$PWD/config ANTHROPIC_API_KEY=$KEY run_suite
}

case_an_agent_asks_its_model_and_is_counted() {
  start_endpoint
  asker '' <<'END'
status, text = ask("/v1/messages", message("hi"))
assert status == 200, (status, text)
assert json.loads(text)["usage"]["output_tokens"] > 0
open("done.txt", "w").write(text)
END
  run_asker
  expect_status 0
  expect_trial .status SUCCESS
  expect_trial .agent.turns 1
  expect_trial '.usage.source' wire
  expect_trial '.usage.usage.output_tokens > 0' true
  expect_trial '.usage.cost_microusd > 0' true
  expect_trial '.integrity.reasons | map(startswith("attempt")) | any' false
  [ "$(jq -r .kind run/trials/default/t/00/wire.jsonl | xargs)" = 'request response' ] || fail 'wire.jsonl holds something else'
  ! grep -rqF "$KEY" run || fail 'the key stands in a record'
}

case_what_is_asked_by_hand_is_refused_and_counted() {
  start_endpoint
  asker '' <<'END'
import socket
def by_hand(text):
    with socket.create_connection(("127.0.0.1", 4096), 10) as s:
        s.sendall(text.encode())
        return s.recv(20)[9:12].decode()
key = os.environ["CLOSEDBOOK_MODEL_KEY"]
head = "POST /v1/messages HTTP/1.1\r\nHost: a\r\nX-Api-Key: " + key + "\r\nConnection: close\r\n"
seen = [
    ask("/v1/messages", message("x", model="claude-opus-5"))[0],
    ask("/v1/files", {})[0],
    ask("/v1/messages", message("x", tools=[{"type": "web_search_20250305", "name": "web_search"}]))[0],
    ask("/v1/messages", message("x"), key="placeholder-of-another-trial")[0],
    int(by_hand(head + "Host: b\r\nContent-Length: 2\r\n\r\n{}")),
    int(by_hand(head + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}")),
]
assert seen == [400, 403, 400, 401, 400, 400], seen
assert ask("/v1/messages", message("the control"))[0] == 200
open("done.txt", "w").write("x")
END
  run_asker
  expect_status 0
  expect_trial .usage.refused 6
  expect_trial .usage.forwarded 1
  expect_trial '.integrity.reasons | map(startswith("attempt: the broker refused 6 requests")) | any' true
  [ "$(jq -r .kind run/trials/default/t/00/wire.jsonl | sort | uniq -c | xargs)" = '6 refused 1 request 1 response' ] ||
    fail 'wire.jsonl holds something else'
}

case_turns_end_where_the_task_says() {
  start_endpoint
  asker 'run_limits: {max_turns: 1}' <<'END'
first = message("hi")
assert ask("/v1/messages", first)[0] == 200
first["messages"] += [{"role": "assistant", "content": "yes"}, {"role": "user", "content": "more"}]
status, text = ask("/v1/messages", first)
assert status == 400 and "max_turns" in text, (status, text)
END
  run_asker
  expect_status 1
  expect_trial .status MAX_TURNS_EXHAUSTED
  expect_trial .agent.turns 1
  expect_trial .agent.stopped_by max_turns
  # Whoever breaks its own thread each time spends no turn, and comes to an end all the same.
  rm -rf run
  asker 'run_limits: {max_turns: 1}' <<'END'
answers = [ask("/v1/messages", message(f"begin {i}"))[0] for i in range(45)]
assert answers == [200] * 41 + [400] * 4, answers
END
  run_asker
  expect_status 1
  expect_trial .status MAX_TURNS_EXHAUSTED
  expect_trial .usage.aside 40
}

# A budget that is used up lets the agent go on without answers; the time limit that ends it is its end.
case_a_time_limit_outranks_a_budget() {
  start_endpoint
  asker 'run_limits: {max_turns: 1, turn_timeout: 10}' <<'END'
first = message("hi")
assert ask("/v1/messages", first)[0] == 200
first["messages"] += [{"role": "assistant", "content": "yes"}, {"role": "user", "content": "more"}]
assert ask("/v1/messages", first)[0] == 400
open("done.txt", "w").write("done")
while True:
    os.read(os.pipe()[0], 1)
END
  run_asker
  expect_trial .status TIMEOUT
  expect_trial .agent.stopped_by turn_timeout
  expect_trial .passed false
}

# 1 answer of the endpoint is below the limits, the second is not asked for.
case_budgets_of_tokens_and_money_end_a_trial() {
  local limit
  start_endpoint
  for limit in max_output_tokens:1 max_total_tokens:2 max_usd:0.0000001 max_usd:1; do
    rm -rf run suite
    asker "run_limits: {${limit/:/: }}" <<'END'
for _ in range(2):
    status, text = ask("/v1/messages", message("hi"))
open("last.txt", "w").write(f"{status} {text}")
END
    run_asker
    case $limit in
      max_usd:1)
        # The control: a budget that is not reached.
        expect_trial .agent.stopped_by exit
        continue
        ;;
      max_usd:*) expect_trial .status COST_BUDGET_EXCEEDED ;;
      *) expect_trial .status TOKEN_BUDGET_EXCEEDED ;;
    esac
    expect_status 1
    expect_trial .agent.stopped_by "${limit%:*}"
    expect_trial .passed false
    "$CLOSEDBOOK" show run/trials/default/t/00 last.txt | grep -q "400.*${limit%:*}" || fail "$("$CLOSEDBOOK" show run/trials/default/t/00 last.txt)"
    cb report run
    expect_text out "run_limits.${limit%:*} is used up"
  done
  asker 'run_limits: {max_usd: 1}' <<<'ask("/v1/messages", message("hi"))'
  sed -i s/claude-haiku-4-5/claude-of-no-price/ suite/t/task.yaml
  rm -rf run
  run_asker
  expect_status 3
  expect_text err "has no price of the model 'claude-of-no-price'"
}

# The control: the same search finds the key that stands in for it, and what the agent puts there itself.
case_no_key_is_in_the_cell() {
  start_endpoint
  asker '' <<END
import glob, subprocess
backwards = "$(rev <<<"$KEY")"
open("planted", "w").write(backwards)
found = {"key": [], "placeholder": [], "planted": []}
marks = {"key": backwards[::-1].encode(), "placeholder": os.environ["CLOSEDBOOK_MODEL_KEY"].encode(),
         "planted": backwards.encode()}
places = glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline") + glob.glob("/proc/1/mem")
for folder in ("/home", "/run", "/tmp", "/etc", "/workspace"):
    for path, folders, names in os.walk(folder):
        places += [os.path.join(path, name) for name in names]
for place in places:
    try:
        data = open(place, "rb").read(1 << 20)
    except OSError:
        continue
    for name, mark in marks.items():
        if mark in data and place != "/run/agent/script":
            found[name].append(place)
assert not found["key"], found
assert found["placeholder"] and found["planted"], found
open("done.txt", "w").write("x")
END
  run_asker
  expect_status 0
  expect_trial .status SUCCESS
}

case_without_a_key_nothing_starts() {
  need jq
  asker '' <<<'pass'
  env -u ANTHROPIC_API_KEY -u OPENAI_API_KEY -u GEMINI_API_KEY XDG_CONFIG_HOME="$PWD/config" \
    timeout 60 "$CLOSEDBOOK" run suite --suite-root suite --run-dir run --quiet >out 2>err </dev/null && fail 'it started'
  expect_text err 'no model endpoint has its key'
  [ ! -e run/trials ] || fail 'a trial was made'
  # A route that is named and has no key must not be passed over for the next one.
  mkdir -p config/closedbook
  echo 'routes: [{name: mine, api: anthropic, base_url: "http://127.0.0.1:9", key: MY_KEY}]' >config/closedbook/config.yaml
  run_asker
  expect_status 2
  expect_text err "the route 'mine' of config.yaml has no key here"
  # And its key is no agent's, whatever its name.
  asker '' <<<'open("env.txt", "w").write(repr(os.environ))'
  sed -i 's/model: claude-haiku-4-5/&, env: [MY_KEY]/' suite/t/task.yaml
  MY_KEY=secret-value-1 run_asker
  expect_status 2
  expect_text err "agent.env: 'MY_KEY' is the key of the route 'mine' of config.yaml"
  ! grep -rq secret-value-1 run 2>/dev/null || fail 'it is in a record'
}

main an_agent_asks_its_model_and_is_counted:user what_is_asked_by_hand_is_refused_and_counted:user \
  turns_end_where_the_task_says a_time_limit_outranks_a_budget:all budgets_of_tokens_and_money_end_a_trial no_key_is_in_the_cell:user without_a_key_nothing_starts
