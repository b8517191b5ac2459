#!/bin/bash
# agents.sh: the programs of agents: what `agents` says of them, and each one, when it is installed, in a native cell.
# `scripts/setup --agents` installs them. Their model is the scripted endpoint on the host, behind the broker.
# shellcheck source-path=SCRIPTDIR disable=SC2154,SC2317,SC2119,SC2015,SC2016
. "$(dirname "$0")/lib.sh"

AGENTS=${CLOSEDBOOK_AGENTS:-${XDG_CACHE_HOME:-$HOME/.cache}/closedbook-agents}
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
  local api
  start_scripted_model ${TOOL_COMMAND:+--tool-command "$TOOL_COMMAND"}
  mkdir -p config/closedbook
  {
    echo routes:
    for api in anthropic: openai-responses:/v1 openai-chat:/v1 gemini:; do
      printf '  - {name: %s, api: %s, base_url: "http://127.0.0.1:%s%s"}\n' "${api%%:*}" "${api%%:*}" "$port" "${api#*:}"
    done
  } >config/closedbook/config.yaml
}

# with_agents COMMAND...: with all that is installed on PATH.
with_agents() {
  local folder path=$PATH
  for folder in "$AGENTS"/*/node_modules/.bin; do
    path=$folder:$path
  done
  PATH=$path "$@"
}

# make_task AGENT [CRITERION...]: a task for the agent, with these criteria in place of what it is always judged by.
make_task() {
  mkdir -p suite/t
  cat >suite/t/task.yaml <<END
task_id: t
description: a task of the tests
initial_prompt: Write hello to a file
agent: {type: $1${PLUGINS:-}}
sandbox: {python: null}
success_criteria:
  - {type: file_contains, description: it is done, path: hello_1.txt, includes: [hello-from-turn-1]}
  - {type: command_executed, description: it said hello, tool_name: Bash, command_pattern: 'echo hello-from-turn-1', require_success: ${SUCCEEDS:-true}}
  - {type: command_not_executed, description: it deleted nothing, tool_name: Bash, command_pattern: 'rm -rf'}
END
}

# prepare AGENT: it is installed, and the endpoint runs.
prepare() {
  need python3 jq
  agents "$1" --json
  expect_status 0
  [ "$(jq '.[0].installed' out)" = true ] || skip "$1 is not installed: scripts/setup --agents"
  start_endpoint
  export XDG_CONFIG_HOME=$PWD/config ANTHROPIC_API_KEY=$KEY OPENAI_API_KEY=$KEY GEMINI_API_KEY=$KEY
}

# works AGENT MODEL: by its type: it asks its model through the broker for a command, gets its output, says that it is
# done, and is judged by what the wire shows.
works() {
  prepare "$1"
  make_task "$1"
  E2E_TIMEOUT=300 with_agents run_suite -m "$2"
  [ "$status" = 0 ] || grep -v '"kind": *"re[qs]' run/trials/default/t/00/wire.jsonl >&2 || true
  expect_status 0
  expect_trial .status SUCCESS
  expect_trial .agent.type "$1"
  expect_trial .agent.exit_code 0
  expect_trial .events wire
  # What the endpoint was asked with tools are turns; the operator's key went there and nowhere else.
  expect_trial .agent.turns 2
  expect_trial .agent.tool_calls 1
  expect_trial '.usage.usage.output_tokens > 0' true
  grep -q '"source": *"wire"' run/trials/default/t/00/events.jsonl || fail 'no call of the wire is in the events'
  ! grep -rqF "$KEY" run || fail 'the key stands in a record'
}

# talks AGENT MODEL: in a dialog each exchange goes on with the session: its model reads all that was said before.
talks() {
  prepare "$1"
  make_task "$1"
  printf 'simulation: {enabled: true, script: [write the second one, write the third one]}\nrun_limits: {max_turns: 3}\n' >>suite/t/task.yaml
  E2E_TIMEOUT=300 with_agents run_suite -m "$2"
  expect_trial '[.dialog.exchanges, .dialog.stop_reason] | tojson' '[3,"script_ended"]'
  expect_trial '.agent.turns >= 6' true
  expect_trial .status SUCCESS
  grep 'write the third one' run/trials/default/t/00/wire.jsonl | grep -q 'Write hello to a file' ||
    fail 'the third exchange does not know what was said in the first'
}

# sees_the_answer AGENT MODEL: an answer lies in a folder that the task exposes, and its model has it printed: what stood in
# the context compromises the trial, which has passed otherwise. The control: nobody looks at it.
sees_the_answer() {
  local answer='import collections
def settle(accounts, rates):
    total_in_cents = collections.Counter()
    for account, balance in sorted(accounts.items()):
        if account.startswith("closed-"):
            continue
        total_in_cents[account] += round(balance * (1 + rates.get(account, rates["default"])) ** 12)
    return sum(total_in_cents.values()) % 1000003'

  TOOL_COMMAND='echo hello-from-turn-1 | tee hello_1.txt' prepare "$1"
  make_task "$1"
  mkdir suite/t/reference
  printf '%s\n' "$answer" >suite/t/reference/answer.py
  echo 'reference: {directory: reference}' >>suite/t/task.yaml
  OUTSIDE=$(mktemp -d /var/tmp/e2e-agents.XXXXXX)
  chmod 0755 "$OUTSIDE"
  trap 'rm -rf "$OUTSIDE"; kill "$endpoint" 2>/dev/null || true' EXIT
  cp suite/t/reference/answer.py "$OUTSIDE/hint.py"
  truncate -s 300M "$OUTSIDE/large" # so that it is not searched before
  sed -i "s|^sandbox: {|&expose: [$OUTSIDE], |" suite/t/task.yaml
  E2E_TIMEOUT=300 with_agents run_suite -m "$2"
  expect_status 0
  expect_trial .integrity.verdict CLEAN
  kill "$endpoint"
  TOOL_COMMAND="echo hello-from-turn-1 | tee hello_1.txt; cat $OUTSIDE/hint.py" start_endpoint
  trap 'rm -rf "$OUTSIDE"; kill "$endpoint" 2>/dev/null || true' EXIT
  rm -rf run
  E2E_TIMEOUT=300 with_agents run_suite -m "$2"
  expect_status 4
  expect_trial .integrity.verdict COMPROMISED
  expect_trial .passed false
  trial '.evidence.context.findings[0] | [.place, .private] | join(" ")' >place
  expect_text place wire.jsonl
  expect_text place t/reference/answer.py
}

# replays AGENT MODEL: told again from a recording, with neither endpoint nor key, it comes to the same.
replays() {
  prepare "$1"
  make_task "$1"
  E2E_TIMEOUT=300 with_agents cb run suite --suite-root suite --run-dir run --record kept --quiet -m "$2"
  expect_status 0
  ! grep -rqF "$KEY" kept || fail 'the key stands in the recording'
  kill "$endpoint"
  wait "$endpoint" || true
  unset XDG_CONFIG_HOME ANTHROPIC_API_KEY OPENAI_API_KEY GEMINI_API_KEY
  E2E_TIMEOUT=300 with_agents cb run suite --suite-root suite --run-dir again --replay kept --quiet -m "$2"
  [ "$status" = 0 ] || trial .error t 00 again >&2
  expect_status 0
  local what='[.status, .score, .agent.turns, .agent.tool_calls, .usage.usage] | tojson'
  [ "$(trial "$what" t 00 run)" = "$(trial "$what" t 00 again)" ] || fail "$(trial "$what" t 00 run) was $(trial "$what" t 00 again)"
}

# The endpoint turns it away for good: no verdict, whatever the program's exit status says.
fails() {
  prepare "$1"
  make_task "$1"
  python3 -c 'import json, sys, urllib.request; urllib.request.urlopen(sys.argv[1] + "/_ctl", json.dumps({"fail": [401] * 50}).encode())' \
    "http://127.0.0.1:$port"
  E2E_TIMEOUT=300 with_agents run_suite -m "$2"
  expect_status 3
  expect_trial .status ERROR
  jq -r .error run/trials/default/t/00/trial.json | grep -q "endpoint failed for good (status 401" || fail "says $(jq -r .error run/trials/default/t/00/trial.json)"
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

case_not_installed_is_said_before() {
  mkdir empty
  ln -s "$(command -v timeout)" empty/timeout
  make_task pi
  PATH=$PWD/empty cb plan suite -m m
  expect_status 2
  expect_text err "the agent type 'pi' needs its program: 'pi' is not on PATH"
  expect_text err "it was looked for along PATH=$PWD/empty"
  expect_text err "npm install -g @mariozechner/pi-coding-agent"
  PATH=$PWD/empty cb run suite -m m --run-dir run
  expect_status 2
  expect_text err "the agent type 'pi' needs its program: 'pi' is not on PATH"
  cb plan suite
  expect_status 2
  expect_text err "agent.model: required by the agent type 'pi', found nothing"
}

case_endpoint_that_fails_claude_code() { fails claude-code claude-opus-4-8; }
case_endpoint_that_fails_pi() { fails pi claude-sonnet-4-5; }
# The broker stops it: that is the budget's end, and no failure of the endpoint.
case_budget_of_claude_code() {
  prepare claude-code
  make_task claude-code
  printf 'run_limits: {max_turns: 1}\n' >>suite/t/task.yaml
  E2E_TIMEOUT=300 with_agents run_suite -m claude-opus-4-8
  expect_trial .agent.stopped_by max_turns
  [ "$(trial .status)" != ERROR ] || fail "is ERROR: $(trial .error)"
}

# sees COMMAND...: what Claude Code's shell says in its cell, started with the program at CLAUDE, in the file seen.
sees() {
  TOOL_COMMAND="{ $1; } >hello_1.txt 2>&1; echo hello-from-turn-1 >>hello_1.txt" prepare claude-code
  make_task claude-code
  PATH=$(dirname "$CLAUDE"):$PATH E2E_TIMEOUT=300 run_suite -m claude-opus-4-8
  expect_status 0
  tar -xOf run/trials/default/t/00/artifacts.tar hello_1.txt >seen
}

# Of the folders above it nothing else is there, and what is there cannot be changed.
case_claude_code_shows_its_package_alone() {
  local modules=$AGENTS/claude/node_modules
  CLAUDE=$modules/.bin/claude
  sees "find ${AGENTS%/*} -maxdepth 3; ls -d $modules/@anthropic-ai/claude-code; touch $modules/x; touch $modules/.bin/claude"
  [ "$(grep -cx "$modules/@anthropic-ai/claude-code" seen)" = 1 ] || fail "its package is not there: $(cat seen)"
  printf '%s\n' "${AGENTS%/*}" "$AGENTS" "$AGENTS/claude" "$modules" >expected
  grep "^${AGENTS%/*}" seen | grep -vxF "$modules/@anthropic-ai/claude-code" | cmp -s - expected || fail "more is there: $(cat seen)"
  [ "$(grep -c "^touch: .*Read-only file system" seen)" = 2 ] || fail "it can be changed: $(cat seen)"
}

# A program alone in a home shows nothing of the home.
case_claude_code_alone_shows_nothing_beside_it() {
  local home=$PWD/of-somebody
  mkdir "$home"
  cp -L "$AGENTS/claude/node_modules/.bin/claude" "$home/claude" || skip "claude-code is not installed: scripts/setup --agents"
  echo private-0453 >"$home/id_of_somebody"
  CLAUDE=$home/claude
  sees "ls -A $home; cat $home/id_of_somebody; chmod 0700 $home/claude"
  [ "$(sed -n 1p seen)" = claude ] || fail "more is there: $(cat seen)"
  ! grep -q private-0453 seen || fail "what lies beside it can be read"
  grep -q "^chmod: .*Read-only file system" seen || fail "it can be changed: $(cat seen)"
}

# With a plugin of the task, whose skill its model is told of.
case_claude_code() {
  mkdir -p suite/t/plugin/.claude-plugin suite/t/plugin/skills/greet-0451
  echo '{"name": "greeter", "version": "1.0.0", "description": "greets"}' >suite/t/plugin/.claude-plugin/plugin.json
  printf -- '---\nname: greet-0451\ndescription: how to greet\n---\nSay hello.\n' >suite/t/plugin/skills/greet-0451/SKILL.md
  PLUGINS=', plugins: [{type: local, path: plugin}]' works claude-code claude-opus-4-8
  grep -q 'greeter:greet-0451' run/trials/default/t/00/wire.jsonl || fail 'the model was not told of the skill'
}
case_pi() {
  works pi claude-sonnet-4-5
  # Who grades again needs no agent.
  cb grade run
  expect_status 0
  expect_trial .status SUCCESS
}
case_codex() { works codex gpt-5.4; }
case_gemini() { works gemini gemini-2.5-pro; }
case_opencode() { works opencode fake-1; }

# What it prints while it works is enough to end it; what it did is judged by the wire.
case_early_stop_of_claude_code() {
  prepare claude-code
  make_task claude-code
  sed -i "s/require_success: true}/require_success: true, stop_early: {on_pass: stop}}/" suite/t/task.yaml
  E2E_TIMEOUT=300 with_agents run_suite -m claude-opus-4-8
  expect_trial '[.early_stop.reason, .early_stop.criterion, .agent.stopped_by, .status] | tojson' \
    '["criteria_passed",2,"stop_early","SUCCESS"]'
}
case_talk_of_claude_code() { talks claude-code claude-opus-4-8; }
case_answer_before_claude_code() { sees_the_answer claude-code claude-opus-4-8; }
case_answer_before_codex() { sees_the_answer codex gpt-5.4; }
case_answer_before_gemini() { sees_the_answer gemini gemini-2.5-pro; }
case_answer_before_opencode() { sees_the_answer opencode fake-1; }
case_answer_before_pi() { sees_the_answer pi claude-sonnet-4-5; }
case_replay_of_claude_code() { replays claude-code claude-opus-4-8; }
case_replay_of_codex() { replays codex gpt-5.4; }
case_replay_of_gemini() { replays gemini gemini-2.5-pro; }
case_replay_of_opencode() { replays opencode fake-1; }
case_replay_of_pi() { replays pi claude-sonnet-4-5; }
case_talk_of_codex() { talks codex gpt-5.4; }
case_talk_of_gemini() { talks gemini gemini-2.5-pro; }
case_talk_of_opencode() { talks opencode fake-1; }
case_talk_of_pi() { talks pi claude-sonnet-4-5; }

main says_what_is_missing:user not_installed_is_said_before:user endpoint_that_fails_claude_code:root:all endpoint_that_fails_pi:root:all budget_of_claude_code:root:all claude_code:root claude_code_shows_its_package_alone:root:all claude_code_alone_shows_nothing_beside_it:root:all pi:root codex:root:all gemini:root:all opencode:root:all early_stop_of_claude_code:root:all talk_of_claude_code:root:all talk_of_codex:root:all talk_of_gemini:root:all talk_of_opencode:root:all talk_of_pi:root:all answer_before_claude_code:root:all answer_before_codex:root:all answer_before_gemini:root:all answer_before_opencode:root:all answer_before_pi:root:all replay_of_claude_code:root:all replay_of_codex:root:all replay_of_gemini:root:all replay_of_opencode:root:all replay_of_pi:root:all
