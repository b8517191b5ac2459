#!/bin/bash
# agents.sh: the programs of agents: what `agents` says of them, and each one, when it is installed, in a native cell.
# `scripts/setup --agents` installs them. Their model is the scripted endpoint on the host, behind the broker.
# shellcheck source-path=SCRIPTDIR disable=SC2154,SC2317,SC2119,SC2015,SC2016
. "$(dirname "$0")/lib.sh"

AGENTS=${CLOSEDBOOK_AGENTS:-${XDG_CACHE_HOME:-$HOME/.cache}/closedbook-agents}
URL=http://127.0.0.1:4096
KEY=sk-of-the-operator-0452

# agents NAME...: what the program says of one, with all that is installed on PATH.
agents() {
  local folder path=$PATH
  for folder in "$AGENTS"/*/node_modules/.bin; do
    path=$folder:$path
  done
  PATH=$path cb agents "$@"
}

# The endpoint, for the rest of the case, and the configuration that leads to it.
start_endpoint() {
  local port api
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  python3 "$E2E_HERE/scripted_model.py" --port "$port" --log "$PWD/endpoint.log" >endpoint.out 2>&1 &
  endpoint=$!
  trap 'kill "$endpoint" 2>/dev/null || true' EXIT
  wait_until 30 python3 -c "import socket; socket.create_connection(('127.0.0.1', $port), 1)" 2>/dev/null
  mkdir -p config/closedbook
  {
    echo routes:
    for api in anthropic: openai-responses:/v1 openai-chat:/v1 gemini:; do
      printf '  - {name: %s, api: %s, base_url: "http://127.0.0.1:%s%s"}\n' "${api%%:*}" "${api%%:*}" "$port" "${api#*:}"
    done
  } >config/closedbook/config.yaml
}

# works AGENT MODEL: it asks its model through the broker for a command, gets its output, and says that it is done.
works() {
  need python3 jq
  agents "$1" --json -m "$2" --base-url "$URL" --prompt 'Write hello to a file'
  expect_status 0
  jq -c '.[0]' out >spec
  [ "$(jq .installed spec)" = true ] || skip "$1 is not installed: scripts/setup --agents"
  start_endpoint
  mkdir -p suite/t/inputs/.endpoint
  cp "$E2E_HERE"/start_agent.py suite/t/inputs/.endpoint
  jq -n --slurpfile spec spec --arg model "$2" '{
    task_id: "t", description: "a task of the tests", initial_prompt: "unused", input_dir: "inputs",
    agent: {type: "exec", model: $model, command: ["python3", ".endpoint/start_agent.py"], env: ["SPEC=" + ($spec[0] | tojson)]},
    sandbox: {python: null, expose: $spec[0].expose, network: "broker"},
    success_criteria: [
      {type: "file_contains", description: "it is done", path: "hello_1.txt", includes: ["hello-from-turn-1"]}]}' >suite/t/task.yaml
  export XDG_CONFIG_HOME=$PWD/config ANTHROPIC_API_KEY=$KEY OPENAI_API_KEY=$KEY GEMINI_API_KEY=$KEY
  E2E_TIMEOUT=300 run_suite
  [ "$status" = 0 ] || grep -v '"kind": *"re[qs]' run/trials/default/t/00/wire.jsonl >&2 || true
  expect_status 0
  expect_trial .status SUCCESS
  expect_trial .agent.exit_code 0
  grep -q 'Done: turn 1 wrote hello_1.txt' run/trials/default/t/00/agent.stdout || fail "it did not say that it is done"
  # What the endpoint was asked with tools are turns; the operator's key went there and nowhere else.
  expect_trial .agent.turns 2
  expect_trial '.usage.usage.output_tokens > 0' true
  ! grep -rqF "$KEY" run || fail 'the key stands in a record'
}

case_says_what_is_missing() {
  need jq
  mkdir bin empty
  ln -s "$(command -v timeout)" empty/timeout
  ln -s "$(command -v timeout)" bin/timeout
  PATH=$PWD/empty cb agents
  expect_status 0
  expect_text out "claude-code  -          'claude' is not on PATH (npm package '@anthropic-ai/claude-code')"
  printf '#!/bin/sh\nexit 0\n' >bin/pi && chmod 755 bin/pi
  PATH=$PWD/bin cb agents pi --json
  expect_status 0
  [ "$(jq -r '.[0] | [.name, .installed, .missing] | @text' out)" = \
    "[\"pi\",false,\"'$PWD/bin/pi' is neither an ELF file nor a program for node: a wrapper cannot be shown to a cell\"]" ] ||
    fail "says $(cat out)"
  cb agents nobody
  expect_status 2
}

case_claude_code() { works claude-code claude-opus-4-8; }
case_pi() { works pi claude-sonnet-4-5; }
case_codex() { works codex gpt-5.4; }
case_gemini() { works gemini gemini-2.5-pro; }
case_opencode() { works opencode fake-1; }

main says_what_is_missing:user claude_code:root pi:root codex:root:all gemini:root:all opencode:root:all
