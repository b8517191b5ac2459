#!/bin/bash
# leaks.sh: private text in what the agent is given is found before anything runs, in whatever coding; what comes back to it
# or is left by it is found afterwards. Each with its control: the same text, without the secret in it, is clean.
# shellcheck source-path=SCRIPTDIR disable=SC2154,SC2317,SC2119,SC2015,SC2016,SC2013
. "$(dirname "$0")/lib.sh"

AGENT=$'#!/bin/sh\necho x >done.txt'

# A reference of a size that says something, and a template with a file of another kind.
leak_task() { # MORE-SANDBOX MORE-TASK; standard input: the agent
  mkdir -p suite/t/reference suite/template
  cat >suite/t/reference/settle.py <<'REFERENCE'
def settle(accounts, rates):
    total_in_cents = 0
    for account, balance in sorted(accounts.items()):
        if account.startswith('closed-'):
            continue
        rate = rates.get(account, rates['default'])
        total_in_cents += round(balance * (1 + rate) ** 12)
    return total_in_cents % 1000003
REFERENCE
  cat >suite/template/README <<'README'
Accounts are settled each month. Read the rates from rates.csv, one a line, and print what is owed in all;
closed accounts count for nothing, and an account without a rate of its own has the usual one.
README
  TASK_MORE="reference: {directory: reference}
sandbox: {template_sources: [{type: template_dir, path: ../template}]${1:-}}
${2:-}" script_task t
}

scan() { cb scan suite --suite-root suite "$@"; }
renamed() { sed 's/^ */\t\t/; s/total_in_cents/totalInCents/g' suite/t/reference/settle.py; }

expect_found() { # PLACE: scan tells it, and a run does not begin
  scan
  expect_status 1
  expect_text out LEAKS
  expect_text out "$1"
  expect_text out t/reference/settle.py
  expect_text out 'startswith'
  rm -rf run
  run_suite
  expect_status 3
  expect_trial .status ERROR
  expect_trial .passed null
  trial .error >error
  expect_text error "$1"
  expect_text error '--allow-leak'
  trial . >record
  ! grep -q startswith record || fail "the record holds private text"
}

case_an_innocent_workspace_is_clean() {
  leak_task <<<"$AGENT"
  scan
  expect_status 0
  expect_text out clean
  run_suite
  expect_status 0
  expect_trial .integrity.verdict CLEAN
  expect_trial .evidence.given.severe 0
  expect_trial .evidence.given.places 5
}

case_a_renamed_and_indented_copy_is_refused() {
  leak_task <<<"$AGENT"
  renamed >suite/template/notes.txt
  expect_found 'workspace: notes.txt'
}

case_coded_copies_are_refused() {
  leak_task <<<"$AGENT"
  renamed | base64 >suite/template/blob
  expect_found 'read as base64'
  renamed | gzip >suite/template/blob
  expect_found 'read as gzip'
  mkdir deep && renamed >deep/a.py && tar cJf suite/template/blob deep
  expect_found "of xz"
  renamed | xz | base64 -w0 >suite/template/blob
  expect_found 'xz in base64'
  renamed | python3 -c 'import json, sys; json.dump({"cells": [{"source": sys.stdin.readlines()}]}, sys.stdout)' \
    >suite/template/blob
  expect_found 'workspace: blob'
}

case_an_allowed_leak_runs_and_is_recorded() {
  leak_task <<<"$AGENT"
  renamed >suite/template/notes.txt
  scan --json
  id=$(jq -r '.[0].findings[0].id' out)
  cb run suite --suite-root suite --run-dir run --allow-leak "$id=it is a warm-up"
  expect_status 0
  expect_trial .evidence.given.findings[0].allowed 'it is a warm-up'
  trial '.integrity.reasons|join(" ")' >reasons
  expect_text reasons 'it is a warm-up'
  cb run suite --suite-root suite --run-dir run2 --allow-leak "${id}"
  expect_status 2
  expect_text err 'ID=REASON'
  cb run suite --suite-root suite --run-dir run3 --allow-leak 0123456789ab=another
  expect_status 3
}

# The task says itself what is meant, by either side's path; anything else is refused as before.
case_what_the_task_allows_is_no_leak() {
  leak_task '' 'leak_ok: [{file: "reference/*.py", reason: not these}, {file: "**/settle.py", reason: both are generated}]' <<<"$AGENT"
  renamed >suite/template/notes.txt
  run_suite
  expect_status 0
  expect_trial .integrity.verdict CLEAN
  expect_trial .evidence.given.findings[0].allowed 'both are generated'
  sed -i 's|"\*\*/settle.py"|notes.txt|' suite/t/task.yaml
  rm -r run && run_suite
  expect_status 0
  sed -i 's|notes.txt|other.txt|' suite/t/task.yaml
  rm -r run && run_suite
  expect_status 3
}

case_what_the_template_has_at_the_same_path_is_not_private() {
  leak_task <<<"$AGENT"
  sed 's/1000003/7/; s/\*\* 12/** 11/' suite/t/reference/settle.py >suite/template/settle.py
  scan
  expect_status 0
  expect_text out clean
  mkdir suite/template/old && mv suite/template/settle.py suite/template/old/settle.py
  scan
  expect_status 1
}

case_what_the_prompt_says_is_not_private() {
  leak_task <<<"$AGENT"
  sed -i '/^initial_prompt:/d' suite/t/task.yaml
  printf 'initial_prompt: |\n' >>suite/t/task.yaml
  sed 's/^/  /' suite/template/README suite/template/README suite/template/README >>suite/t/task.yaml
  scan --json
  expect_status 0
  [ "$(jq '.[0].findings | length' out)" = 0 ] || fail "$(cat out)"
  jq -e '.[0].private_files > 1 and .[0].fingerprints > 30' out >say || fail "nothing was looked for: $(cat out)"
}

# An answer lies in a folder that the task exposes, which is too large for the search before the run.
given_away() {
  OUTSIDE=$(mktemp -d /var/tmp/e2e-leaks.XXXXXX)
  chmod 0755 "$OUTSIDE"
  trap 'rm -rf "$OUTSIDE"; cleanup_case' EXIT
  leak_task ", expose: [$OUTSIDE]"
  sed -i "s|HINT|$OUTSIDE/hint.py|g" suite/t/agent.sh
  cp suite/t/reference/settle.py "$OUTSIDE/hint.py"
  truncate -s 300M "$OUTSIDE/large"
}

case_exposed_paths_are_searched_and_large_ones_named() {
  given_away <<<"$AGENT"
  run_suite
  expect_status 0
  expect_trial .evidence.given.left_out[0] "$OUTSIDE"
  scan
  expect_status 0
  expect_text out "too large, left out: $OUTSIDE"
  rm "$OUTSIDE/large"
  expect_found "exposed: $OUTSIDE/hint.py"
  mkdir "$OUTSIDE/deep" && gzip "$OUTSIDE/hint.py" && mv "$OUTSIDE/hint.py.gz" "$OUTSIDE/deep/x"
  expect_found "exposed: $OUTSIDE/deep/x"
  ln -s "$OUTSIDE/deep/x" "$OUTSIDE/link"
  chmod 0600 "$OUTSIDE/deep/x"
  ! is_root || scan
  ! is_root || expect_status 0
}

case_what_the_agent_prints_of_it_is_seen() {
  given_away <<<$'#!/bin/sh\necho x >done.txt\ncat HINT'
  run_suite
  expect_status 0
  expect_trial .integrity.verdict SUSPECT
  trial '.integrity.reasons|join(" ")' >reasons
  expect_text reasons agent.stdout
  expect_text reasons reference/settle.py
}

case_what_comes_back_to_the_agent_is_seen() {
  given_away <<'SCRIPT'
#!/usr/bin/python3
import json, os
open('done.txt', 'w').write('x')
text = open('HINT').read()
events = [{'kind': 'turn_start', 'turn': 1},
          {'kind': 'tool_call', 'turn': 1, 'tool': 'Bash', 'call_id': 'a', 'input': {'command': 'cat hint.py'}},
          {'kind': 'tool_result', 'turn': 1, 'call_id': 'a', 'output': text, 'exit_code': 0}]
os.write(3, ''.join(json.dumps(event) + '\n' for event in events).encode())
SCRIPT
  run_suite
  expect_trial .integrity.verdict SUSPECT
  trial '.evidence.context.findings[0].place' >place
  expect_text place tool_result
}

case_what_the_agent_wrote_itself_is_no_leak() {
  leak_task <<'SCRIPT'
#!/usr/bin/python3
import base64, json, os
open('done.txt', 'w').write('x')
text = 'SECRET'[::-1]  # else its own program would excuse it
events = [{'kind': 'turn_start', 'turn': 1},
          {'kind': 'tool_call', 'turn': 1, 'tool': 'Write', 'call_id': 'a', 'input': {'path': 'a', 'content': text}},
          {'kind': 'tool_result', 'turn': 1, 'call_id': 'a', 'output': text, 'exit_code': 0}]
os.write(3, ''.join(json.dumps(event) + '\n' for event in events).encode())
SCRIPT
  python3 - suite/t <<'PYTHON'
import glob, sys
secret = open('suite/t/reference/settle.py').read()
for path in glob.glob('suite/**/*', recursive=True):
    try:
        text = open(path).read()
    except (IsADirectoryError, UnicodeDecodeError):
        continue
    if "'SECRET'" in text:
        open(path, 'w').write(text.replace("'SECRET'", repr(secret[::-1])))
PYTHON
  run_suite
  expect_status 0
  expect_trial .integrity.verdict CLEAN
}

case_what_it_left_is_seen() {
  given_away <<<$'#!/bin/sh\necho x >done.txt\nmkdir answer && gzip -c HINT >answer/a.gz'
  run_suite
  expect_trial .integrity.verdict SUSPECT
  trial '.evidence.left.findings[0].place' >place
  expect_text place answer/a.gz
}

# A piece of the reference stands in a README that the agent gets: told before, and no news when it reads it.
case_shared_words_that_it_was_given_are_no_news() {
  leak_task <<<$'#!/bin/sh\necho x >done.txt\ncat README'
  sed -n 3,4p suite/t/reference/settle.py >>suite/template/README
  run_suite
  expect_status 0
  expect_trial '.evidence.given.findings | length' 1
  expect_trial .evidence.given.findings[0].severe false
  expect_trial .integrity.verdict CLEAN
}

# Settings stand in the task file one after the other, and so they do in the environment.
case_what_the_environment_says_is_not_private() {
  TASK_AGENT="env: [$(printf 'SETTING_%s=a-value-of-some-length-%s-for-the-agent, ' 1 one 2 two 3 three 4 four 5 five)]" leak_task <<<"$AGENT"
  scan
  expect_status 0
  expect_text out clean
  [ "$(cb scan suite --suite-root suite --json; jq '.[0].findings | length' out)" = 0 ] || fail "$(cat out)"
}

# More archives than anyone looks into: the trial is counted as what it is, and not as clean.
case_too_many_archives_are_no_way_out() {
  leak_task <<<$'#!/bin/sh\nfor i in $(seq 201); do echo $i | gzip >$i.gz; done\n'
  run_suite
  expect_status 1
  expect_trial .status FAILURE
  expect_trial .integrity.verdict PARTIAL
  trial '.integrity.reasons|join(" ")' >reasons
  expect_text reasons '1 archives were not looked into: there are more than 200'
}

# A private file that is too large is not searched for: nobody is told that all is well.
case_a_large_reference_is_not_clean() {
  leak_task <<<"$AGENT"
  truncate -s 40M suite/t/reference/large
  run_suite
  expect_status 0
  expect_trial .integrity.verdict PARTIAL
  expect_trial .evidence.given.left_out[0] 'private: t/reference/large'
  trial '.integrity.reasons|join(" ")' >reasons
  expect_text reasons 't/reference/large'
  renamed >suite/template/notes.txt
  expect_found 'workspace: notes.txt'
}

# Commands that hunt: listed; three kinds that were denied are suspect, two are not, nor three that were not denied.
hunter() { # EXIT-STATUS COMMAND...
  leak_task < <(
    echo '#!/usr/bin/python3'
    echo 'import json, os'
    echo "open('done.txt', 'w').write('x')"
    echo 'events = [{"kind": "turn_start", "turn": 1}]'
    printf "for i, c in enumerate(%s):\n" "$(printf '%s\n' "${@:2}" | jq -Rnc '[inputs]')"
    echo '    events.append({"kind": "tool_call", "turn": 1, "tool": "Bash", "call_id": str(i), "input": {"command": c}})'
    echo '    events.append({"kind": "tool_result", "turn": 1, "call_id": str(i), "output": "-", "exit_code": '"$1"'})'
    echo "os.write(3, ''.join(json.dumps(event) + chr(10) for event in events).encode())"
  )
  rm -rf run
  run_suite
}

case_attempts_are_listed_and_three_kinds_are_suspect() {
  hunter 1 'find / -name "*solution*"' 'git reflog' 'env | grep -i key' 'ls'
  expect_trial .integrity.verdict SUSPECT
  expect_trial .evidence.attempts.denied_classes 3
  expect_trial '[.evidence.attempts.listed[].class] | tojson' '["graders","history","keys"]'
  hunter 1 'find / -name "*solution*"' 'git reflog' 'ls'
  expect_trial .integrity.verdict CLEAN
  expect_trial .evidence.attempts.denied_classes 2
  hunter 0 'find / -name "*solution*"' 'git reflog' 'env | grep -i key'
  expect_trial .integrity.verdict CLEAN
  expect_trial '.evidence.attempts.listed | length' 3
}

# A step of the author's puts a grader's file into the workspace: that is given, and no doing of the agent's.
case_what_pre_run_leaves_is_given() {
  leak_task '' 'pre_run: [{command: "cp \"$TASK_DIR/answer.py\" hint.py"}]' <<<$'#!/bin/sh\necho x >done.txt\ncat hint.py'
  cp suite/t/reference/settle.py suite/t/answer.py
  run_suite
  expect_status 0
  expect_trial .integrity.verdict CLEAN
  trial '.integrity.reasons|join(" ")' >reasons
  expect_text reasons 'given by pre_run'
  trial '.evidence.prepared.findings[0].place' >place
  expect_text place 'pre_run/artifacts.tar: hint.py'
}

main an_innocent_workspace_is_clean:user \
  a_renamed_and_indented_copy_is_refused:user \
  coded_copies_are_refused \
  an_allowed_leak_runs_and_is_recorded \
  what_the_task_allows_is_no_leak \
  what_the_template_has_at_the_same_path_is_not_private \
  what_the_prompt_says_is_not_private \
  exposed_paths_are_searched_and_large_ones_named:user \
  what_the_environment_says_is_not_private \
  shared_words_that_it_was_given_are_no_news \
  what_the_agent_prints_of_it_is_seen:user \
  what_comes_back_to_the_agent_is_seen \
  what_the_agent_wrote_itself_is_no_leak \
  what_it_left_is_seen \
  attempts_are_listed_and_three_kinds_are_suspect \
  a_large_reference_is_not_clean \
  what_pre_run_leaves_is_given \
  too_many_archives_are_no_way_out:root:all
