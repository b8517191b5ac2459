#!/bin/bash
# mocks.sh: programs that stand in for others: an author's own on PATH, with the sealing step that suites carry, and
# those that are recorded and answered for from outside the cell. Also the steps that run in the agent's cell, and those
# that are trusted with the bare host.
# shellcheck source-path=SCRIPTDIR disable=SC2154,SC2317,SC2119,SC2015,SC2016
. "$(dirname "$0")/lib.sh"

FOUND='success_criteria: [{type: file_exists, path: seen, description: it ran}]'

# A task "t" whose template holds a mock "m/tool" and its recorded answer, the program on standard input as agent, and
# the given fields.
make_suite() { # FIELDS [SANDBOX]
  mkdir -p suite/tpl/m
  cat >suite/agent.sh
  chmod 755 suite/agent.sh
  echo 'recorded-answer-0451' >suite/tpl/m/answers.txt
  printf '#!/bin/sh\nif [ -f store.bin ]; then tr a-z n-za-m <store.bin; else cat "${0%%/*}/answers.txt"; fi\necho "$*" >>calls.log\n' >suite/tpl/m/tool
  chmod 644 suite/tpl/m/tool
  cat >suite/t.yaml <<E2
task_id: t
description: d
initial_prompt: p
agent: {type: script, script: agent.sh}
sandbox: {template_sources: [{type: template_dir, path: tpl}], ${2:-mock_path_dirs: [m]}}
$1
E2
}

# What an agent that wants the answers does. A word that is in them is built, so that the search does not find itself.
SEARCH='w=recorded-ans; for p in /workspace /home /tmp /dev /run /etc /proc/[0-9]*/environ; do grep -rlsD skip "${w}wer-0451" "$p"; done >/tmp/where; cp /tmp/where .; echo >>seen'

SEAL='pre_run: [{command: "tr a-z n-za-m <m/answers.txt >store.bin && rm m/answers.txt"}]'

case_an_authors_mock_is_first_on_path_and_executable_there_only() {
  make_suite "$SEAL"$'\n''success_criteria:
  - {type: file_contains, path: said, includes: [recorded-answer-0451], description: the mock answered from its store}
  - {type: run_command, command: "test \"$(cat calls.log)\" = \"list all\"", description: its log is where it wrote it}' <<'E2'
#!/bin/sh
tool list all >said 2>&1
command -v tool >seen
E2
  run_suite
  expect_status 0
  cb show run/trials/default/t/00 seen
  expect_text out /workspace/m/tool
  [ "$(stat -c %a suite/tpl/m/tool)" = 644 ] || fail "the source was changed"
}

# The step that suites carry: the answers are packed and the originals deleted before the agent comes.
case_a_sealing_step_works_as_written() {
  make_suite "$SEAL"$'\n'"$FOUND" <<<"#!/bin/sh"$'\n'"$SEARCH"
  run_suite
  expect_status 0
  cb show run/trials/default/t/00 where
  [ ! -s out ] || fail "the agent found $(cat out)"
  [ -e suite/tpl/m/answers.txt ] || fail "the source is gone"
  # The same search, without the step.
  rm -r run
  make_suite "$FOUND" <<<"#!/bin/sh"$'\n'"$SEARCH"
  run_suite
  cb show run/trials/default/t/00 where
  expect_text out /workspace/m/answers.txt
}

case_steps_run_in_the_agents_cell_with_what_the_agent_gets() {
  make_suite 'pre_run:
  - {command: "test -d $TASK_DIR && echo host >order"}
  - {command: "tool x >/dev/null; echo agent >>order; echo kept >~/kept; { env; ls /graders; } >what 2>&1; true", runs_in: agent}
success_criteria:
  - {type: run_command, command: "test \"$(cat order)\" = \"host\nagent\" && cat calls.log", description: in their order}
  - {type: file_contains, path: seen, includes: [kept], description: it was the same cell}
  - {type: file_contains, path: what, excludes: [TASK_DIR, suite], description: with nothing private}' <<'E2'
#!/bin/sh
cat ~/kept >seen
E2
  run_suite
  expect_status 0
  [ "$(jq -c '[.steps[] | .runs_in]' run/trials/default/t/00/trial.json)" = '["host","agent"]' ] || fail "$(jq -c .steps run/trials/default/t/00/trial.json)"
}

case_a_failing_step_of_the_agents_cell_is_an_error_before_the_agent() {
  make_suite 'pre_run: [{command: "echo broken >&2; exit 3", runs_in: agent}]'$'\n'"$FOUND" <<<'#!/bin/sh'
  run_suite
  expect_status 3
  expect_trial .status ERROR t
  jq -r .error run/trials/default/t/00/trial.json >error
  expect_text error 'pre_run step 1 failed (exit code 3): broken'
  rm -r run
  make_suite 'pre_run: [{command: "sleep 100", runs_in: agent, timeout: 1, fail_on_error: false}]'$'\n'"$FOUND" <<<'#!/bin/sh'
  run_suite --agent nop
  expect_status 3
  jq -r .error run/trials/default/t/00/trial.json >error
  expect_text error 'ran longer than 1000 ms'
}

case_trusted_steps_run_on_the_bare_host_and_it_is_said() {
  local mark=$PWD/mark
  mkdir -m 777 mark
  make_suite "pre_run: [{command: 'echo \$OPERATOR >$mark/pre; rm m/answers.txt; echo \$OPERATOR >made'}]
post_run: [{command: 'ls -A m >$mark/post; ls seen planted made >>$mark/post 2>/dev/null'}]
$FOUND" <<'E2'
#!/bin/sh
cat made >seen
ls m >>seen
touch planted
E2
  chmod 755 . suite
  OPERATOR=0451 cb run suite --suite-root suite --run-dir run --trust-host-steps
  expect_status 0
  [ "$(cat mark/pre)" = 0451 ] || fail "the step did not reach the host"
  # There nothing of the agent's meets a program of the host's: it is as it was staged.
  [ "$(tr '\n' ' ' <mark/post)" = 'answers.txt tool ' ] || fail "post_run saw: $(cat mark/post)"
  expect_text err 'on the bare host'
  [ "$(jq -c '[.steps[] | .runs_in]' run/trials/default/t/00/trial.json)" = '["bare host","bare host"]' ] || fail "$(jq -c .steps run/trials/default/t/00/trial.json)"
  jq -r '.integrity.reasons[]' run/trials/default/t/00/trial.json >reasons
  expect_text reasons '--trust-host-steps'
  # Without the flag the same step does not reach it.
  rm -r run mark/*
  OPERATOR=0451 run_suite
  expect_status 0
  [ -z "$(ls mark)" ] || fail "a step reached the host"
}

case_an_interrupt_ends_a_step_and_the_teardown_runs() {
  local mark=$PWD/mark pid i
  mkdir -m 777 mark
  make_suite "pre_run: [{command: 'touch $mark/pre; exec sleep 300', timeout: 300}]
post_run: [{command: 'touch $mark/post'}]
$FOUND" <<<'#!/bin/sh'
  chmod 755 . suite
  "$CLOSEDBOOK" run suite --suite-root suite --run-dir run --quiet --trust-host-steps >out 2>err </dev/null &
  pid=$!
  for ((i = 0; i < 3000; i++)); do [ ! -e mark/pre ] || break; read -rt 0.01 <> <(:) || true; done
  kill -INT "$pid"
  status=0
  wait "$pid" || status=$?
  expect_status 130
  [ -e mark/post ] || fail "the teardown did not run"
}

# --- recorded programs --------------------------------------------------------------------------------------

RECORD='record_cli: [{tool: uip, responses: [
  {when: {verb: list}, stdout: "recorded-answer-0451\n"},
  {when: {verb: run, flags: {id: 7}}, stderr: "no such id\n", exit_code: 9}]}, {tool: id, passthrough: true}]'

case_recorded_programs_answer_from_outside_and_calls_are_graded() {
  make_suite 'success_criteria:
  - {type: cli_called, tool: uip, verb: list, min_count: 2, max_count: 2, description: listed twice}
  - {type: cli_called, tool: uip, verb: run, flags: {id: 7}, description: ran it}
  - {type: cli_called, tool: uip, verb: delete, max_count: 0, description: deleted nothing}
  - {type: cli_called, tool: id, positional: [], flags: {u: true}, description: the real one was called}
  - {type: file_contains, path: said, includes: [recorded-answer-0451, "no such id", "9 1", "real:"], description: it was answered}
  - {type: run_command, command: "jq -es length cli_mocks/calls.jsonl", expected_stdout: "5", description: graders find the log where it belongs}' "$RECORD" <<'E2'
#!/bin/sh
{
  uip list --all; uip --output json list; uip run --id=7; a=$?; uip other; echo "$a $?"
  echo "real:$(id -u):$?"
} >said 2>&1
ls -a / /run/tools /workspace >/dev/null
E2
  run_suite
  expect_status 0
  [ "$(jq -c .mocks run/trials/default/t/00/trial.json)" = '{"calls":5,"refused":0,"unreported":0,"cut":false,"forged":[]}' ] ||
    fail "$(jq -c .mocks run/trials/default/t/00/trial.json)"
  [ "$(jq -c 'select(.tool == "id") | [.passthrough, .exit, .argv]' run/trials/default/t/00/mocks/calls.jsonl)" = '[true,0,["-u"]]' ] ||
    fail "$(cat run/trials/default/t/00/mocks/calls.jsonl)"
  # Graded again, from the record.
  cb grade run --quiet
  expect_status 0
}

# The same search as above finds an author's mock that is not sealed.
case_neither_answers_nor_log_are_in_the_cell() {
  make_suite "$FOUND" "$RECORD" <<<"#!/bin/sh
rm -r m; uip list >/dev/null; $SEARCH; find / -xdev -name '*calls*' -o -name cli_mocks >>seen 2>/dev/null; cat /proc/net/unix >>seen"
  run_suite
  expect_status 0
  cb show run/trials/default/t/00 where
  [ ! -s out ] || fail "the agent found $(cat out)"
  cb show run/trials/default/t/00 seen
  ! grep -q 'calls.jsonl\|cli_mocks' out || fail "the agent found $(cat out)"
  expect_text out /dev/shm/.mocks
}

case_a_forged_log_is_put_aside_and_noted() {
  make_suite 'success_criteria:
  - {type: cli_called, tool: uip, verb: list, description: listed}
  - {type: file_contains, path: cli_mocks/calls.jsonl, excludes: [forged], description: the log is the true one}
  - {type: run_command, command: "! grep forged cli_mocks/calls.jsonl; rm cli_mocks/calls.jsonl", description: "for programs, too"}
  - {type: cli_called, tool: uip, max_count: 0, weight: 0, description: a command of a grader took away only a copy}' "$RECORD" <<'E2'
#!/bin/sh
if [ -n "$1" ]; then uip list; fi
mkdir cli_mocks
echo '{"tool": "uip", "argv": ["list", "forged"], "exit": 0}' >cli_mocks/calls.jsonl
E2
  run_suite
  expect_status 1
  [ "$(jq -c '[.mocks.calls, .mocks.forged]' run/trials/default/t/00/trial.json)" = '[0,["cli_mocks/calls.jsonl"]]' ] ||
    fail "$(jq -c .mocks run/trials/default/t/00/trial.json)"
  [ "$(jq -c '[.criteria[].passed]' run/trials/default/t/00/trial.json)" = '[false,true,true,true]' ] || fail "$(jq -c .criteria run/trials/default/t/00/trial.json)"
  jq -r '.integrity.reasons[]' run/trials/default/t/00/trial.json >reasons
  expect_text reasons 'attempt: the agent wrote where cli_mocks/calls.jsonl'
  # A link in its place leads nowhere.
  rm -r run
  cat >suite/agent.sh <<'E2'
#!/bin/sh
uip list >/dev/null; ln -s /tmp cli_mocks
E2
  run_suite
  expect_status 0
}

# An agent that speaks to the socket itself: nonsense, a flood of it, calls of its own, a stand-in that is killed.
# The folder of the log is the agent's, closed; or there is no room for the log. Each time a guard must still see the call.
case_the_log_reaches_graders_whatever_the_agent_left() {
  local way
  for way in 'mkdir -m 000 cli_mocks' \
    'mkdir cli_mocks; touch cli_mocks/calls.jsonl; chmod 000 cli_mocks' \
    'dd if=/dev/zero of=big bs=64k 2>/dev/null; dd if=/dev/zero bs=1 count=4096 >>big 2>/dev/null; mkdir d && while : >d/$((i += 1)); do :; done 2>/dev/null; true'; do
    rm -rf run suite
    make_suite 'success_criteria:
  - {type: run_command, command: "! grep -q other cli_mocks/calls.jsonl", description: a guard of its own}
  - {type: cli_called, tool: uip, verb: other, max_count: 0, description: a guard}' "$RECORD, limits: {max_disk_mb: 1, max_inodes: 60}" <<E2
#!/bin/sh
uip other
$way
E2
    run_suite
    expect_status 1
    [ "$(jq -c '[.criteria[] | .passed, .error]' run/trials/default/t/00/trial.json)" = '[false,null,false,null]' ] ||
      fail "$way: $(jq -c .criteria,.error run/trials/default/t/00/trial.json)"
    grep -q 'Permission denied' run/trials/default/t/00/grade/* 2>/dev/null && fail "$way: the log is closed"
  done
  return 0
}

case_a_cell_that_speaks_by_hand_is_bounded_and_counted() {
  need python3
  make_suite 'success_criteria:
  - {type: cli_called, tool: uip, verb: list, min_count: 41, max_count: 41, description: all calls and nothing else}
  - {type: file_contains, path: said, includes: ["refused 200", "good 40"], description: as told}' "$RECORD" <<'E2'
#!/usr/bin/python3
import os, signal, socket, struct, subprocess
def speak(data):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect('/dev/shm/.mocks')
    try:
        s.send(data)
        return s.recv(1 << 17)
    except OSError:
        return b''
refused = sum(b'secret' not in speak(d) for d in [os.urandom(100), b'', struct.pack('<IIII', 0x31434243, 1, 9, 0)] * 66 + [b'x' * 150000, b'y'])
idle = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(20)]
for s in idle:
    s.connect('/dev/shm/.mocks')
good = [subprocess.Popen(['uip', 'list', str(i)], stdout=subprocess.PIPE) for i in range(40)]
count = sum(p.communicate()[0] == b'recorded-answer-0451\n' for p in good)
speak(struct.pack('<IIII', 0x31434243, 1, 3, 0) + b'uip\0/\0list\0')
p = subprocess.Popen(['uip', *['x' * 100000] * 2], stderr=subprocess.DEVNULL)
p.wait()
open('said', 'w').write(f'refused {refused} good {count}\n')
E2
  run_suite
  expect_status 0
  [ "$(jq .mocks.refused run/trials/default/t/00/trial.json)" -ge 150 ] || fail "$(jq -c .mocks run/trials/default/t/00/trial.json)"
}

case_a_recorded_program_that_is_there_twice_is_an_error() {
  make_suite "$FOUND" 'mock_path_dirs: [m], record_cli: [{tool: tool}]' <<<'#!/bin/sh'
  run_suite
  expect_status 3
  jq -r .error run/trials/default/t/00/trial.json >error
  expect_text error "'tool' is recorded, and mock_path_dirs has 'm/tool'"
}

# Programs of an author's own, which run beside the agent's cell.
sealed_suite() { # FIELDS [SANDBOX]
  mkdir -p suite/tpl/m
  cat >suite/agent.sh
  chmod 755 suite/agent.sh
  echo 'recorded-answer-0451' >suite/tpl/m/answers.txt
  cat >suite/tpl/m/tool <<'E2'
#!/bin/sh
here=$(dirname "$0")
for l in calls.log z y/x y/a a b c d; do
  case $1:$l in many:*/*) mkdir -p "$here/y" ;; many:* | *:calls.log) ;; *) continue ;; esac
  echo "$*" >>"$here/$l"
done
case $1 in
  ask) cat "$here/answers.txt" ;;
  in) wc -c ;;
  where) pwd ;;
  live) cat "$2" ;;
  write) echo x >"$2" ;;
  env) echo "${EVIL-none} $(command -v other)" ;;
  fail) echo bad >&2; exit 7 ;;
  real) shift; printf 'before '; tool "$@"; echo "status $?" ;;
  fill) for i in $(seq 300); do : >"$here/f$i"; done ;;
  stay) setsid sh -c 'while :; do echo x >"$1"; : >"$1"; done' sh "$here/flip" >/dev/null 2>&1 </dev/null & ;;
esac
E2
  printf '#!/bin/sh\necho other\n' >suite/tpl/m/other
  cat >suite/t.yaml <<E2
task_id: t
description: d
initial_prompt: p
agent: {type: script, script: agent.sh}
sandbox: {template_sources: [{type: template_dir, path: tpl}], mock_path_dirs: [m], ${2:-mocks: sealed}}
$1
E2
}

case_sealed_programs_answer_and_neither_they_nor_their_log_are_there() {
  local fields='success_criteria:
  - {type: file_contains, path: said, includes: [erpbeqrq-nafjre-0451], description: "it answered, which is written down in another alphabet"}
  - {type: run_command, command: "head -n 2 m/calls.log | tr \"\\n\" ,", expected_stdout: "ask me,in,", description: its log is in its folder}'
  sealed_suite "$fields" <<<"#!/bin/sh
tool ask me | tr a-z n-za-m >said; printf 12345 | tool in >count; tool many; $SEARCH; ls -a >list; command -v tool >>list"
  run_suite
  expect_status 0
  cb show run/trials/default/t/00 where
  [ ! -s out ] || fail "the agent found $(cat out)"
  cb show run/trials/default/t/00 count
  expect_text out 5
  cb show run/trials/default/t/00 list
  grep -qx m out && fail "the folder is there"
  grep -qx /run/tools/bin/tool out || fail "$(cat out)"
  [ "$(jq -c .mocks.kept run/trials/default/t/00/trial.json)" != null ] && [ "$(jq -c '.mocks.kept | sort' run/trials/default/t/00/trial.json)" = '["m/a","m/b","m/c","m/calls.log","m/d","m/y/a","m/y/x","m/z"]' ] || fail "$(jq -c .mocks run/trials/default/t/00/trial.json)"
  # The same search, unsealed.
  rm -r run
  sealed_suite "$fields" 'ignore_patterns: []' <<<"#!/bin/sh"$'\n'"tool ask me | tr a-z n-za-m >said; $SEARCH"
  run_suite
  cb show run/trials/default/t/00 where
  grep -qx /workspace/m/answers.txt out || fail "the search finds nothing: $(cat out)"
}

case_a_sealed_program_sees_the_live_workspace_and_cannot_write_it() {
  sealed_suite "$FOUND" <<'E2'
#!/bin/sh
mkdir d; echo one >d/x; cd d
{ tool where; tool live x; mv x y; echo two >x; tool live x; tool live /workspace/d/y; tool fail; echo "status $?"
  tool write /workspace/new || echo denied; EVIL=1 tool env; tool real --version; } >/workspace/seen 2>&1
mkdir -p ~/bin; printf '#!/bin/sh\necho "real $* in $PWD"; exit 3\n' >~/bin/tool; chmod 755 ~/bin/tool
PATH=$PATH:$HOME/bin tool real a b >/workspace/real 2>&1
mkdir /workspace/m; echo forged >/workspace/m/calls.log
E2
  run_suite
  expect_status 0
  cb show run/trials/default/t/00 seen
  grep -v -e 'annot create' out >seen
  expect_text seen "$(printf '%s\n' /workspace/d one two one bad 'status 7' denied 'none /run/tools/bin/other' 'before tool: not found' 'status 127')"
  cb show run/trials/default/t/00 real
  expect_text out "$(printf '%s\n' 'before real a b in /workspace/d' 'status 3')"
  [ "$(jq -c .mocks.forged run/trials/default/t/00/trial.json)" = '["m"]' ] || fail "$(jq -c .mocks run/trials/default/t/00/trial.json)"
}

# A log of calls that nobody made: what the agent put there is gone, be it a folder, a link or a file.
case_a_sealed_folder_is_never_the_agents() {
  local way
  for way in 'mkdir m; echo "ask me" >m/calls.log' 'ln -s /tmp m' 'echo x >m' ':'; do
    sealed_suite 'success_criteria:
  - {type: file_exists, path: seen, description: it ran}
  - {type: run_command, command: "test -d m && test ! -L m && test -z \"$(ls -A m)\"", description: nothing was called}' <<<"#!/bin/sh
$way; touch seen"
    rm -rf run
    run_suite
    expect_status 0
  done
  [ "$(jq -c .mocks run/trials/default/t/00/trial.json)" = '{"kept":[],"forged":[]}' ] || fail "$(jq -c .mocks run/trials/default/t/00/trial.json)"
}

# The folder comes by starter_files, or is all of a source.
# The calls are the agent's: it could choose not to be graded.
case_what_calls_of_sealed_programs_write_is_bounded_at_the_agents_cost() {
  sealed_suite 'success_criteria: [{type: run_command, command: "true", description: d}]' <<<$'#!/bin/sh\ntool fill'
  run_suite
  [ "$(jq -r '"\(.status) \(.error_code)"' run/trials/default/t/00/trial.json)" = "ERROR agent" ] || fail "$(jq -c '[.status, .error_code, .error]' run/trials/default/t/00/trial.json)"
  # One that goes on when its caller has ended is ended before its files are looked at.
  rm -r run
  sealed_suite 'success_criteria: [{type: run_command, command: "true", description: d}]' <<<$'#!/bin/sh\ntool stay'
  run_suite
  expect_status 0
}

case_sealed_folders_of_any_source_are_taken_out() {
  sealed_suite "$FOUND" <<<"#!/bin/sh
{ find . -type f; tool ask; here; } >seen"
  mkdir suite/more
  printf '#!/bin/sh\necho here\n' >suite/more/here
  sed -i 's|template_sources: .*tpl}\]|template_sources: [{type: template_dir, path: tpl}, {type: template_dir, path: more, mount_point: m/n}, {type: starter_files, files: [{path: m/late, content: "#!/bin/sh"}]}, {type: starter_files, files: [{path: m/n/x, content: secret}, {path: mm, content: seen}]}]|; s|mock_path_dirs: .m.|mock_path_dirs: [m, m/n]|' suite/t.yaml
  run_suite
  expect_status 0
  cb show run/trials/default/t/00 seen
  sort out >sorted
  [ "$(jq -c .mocks.kept run/trials/default/t/00/trial.json)" = '["m/calls.log"]' ] || fail "$(jq -c .mocks run/trials/default/t/00/trial.json)"
  expect_text sorted "$(printf '%s\n' ./mm ./seen here recorded-answer-0451)"
}

main an_authors_mock_is_first_on_path_and_executable_there_only:user a_sealing_step_works_as_written:user \
  steps_run_in_the_agents_cell_with_what_the_agent_gets:user a_failing_step_of_the_agents_cell_is_an_error_before_the_agent \
  trusted_steps_run_on_the_bare_host_and_it_is_said:user an_interrupt_ends_a_step_and_the_teardown_runs \
  recorded_programs_answer_from_outside_and_calls_are_graded:user neither_answers_nor_log_are_in_the_cell:user \
  the_log_reaches_graders_whatever_the_agent_left:user \
  a_forged_log_is_put_aside_and_noted:user a_cell_that_speaks_by_hand_is_bounded_and_counted:user \
  a_recorded_program_that_is_there_twice_is_an_error \
  what_calls_of_sealed_programs_write_is_bounded_at_the_agents_cost \
  a_sealed_folder_is_never_the_agents:user sealed_folders_of_any_source_are_taken_out sealed_programs_answer_and_neither_they_nor_their_log_are_there:user \
  a_sealed_program_sees_the_live_workspace_and_cannot_write_it:user
