#!/bin/bash
# exec.sh: criteria that are programs of the suite.
# shellcheck source-path=SCRIPTDIR disable=SC2154,SC2317,SC2119,SC2015,SC2016
. "$(dirname "$0")/lib.sh"

grader() { # NAME: the evaluation, a shell program, on standard input
  mkdir -p suite/_judges_here
  {
    echo '#!/bin/sh'
    printf '[ "${1:-}" != --describe ] || { echo %s; exit; }\n' \
      "'{\"protocol\": \"closedbook/criterion/1\", \"params\": {\"required\": [\"n\"]}, \"needs\": {\"programs\": [\"${NEEDS:-sh}\"]}}'"
    cat
  } >"suite/_judges_here/$1"
  chmod 0755 "suite/_judges_here/$1"
}

criterion() { # NAME [PARAMS]
  printf '  - {type: "exec:../_judges_here/%s", description: a program, params: %s}\n' "$1" "${2:-{n: 1\}}"
}

case_programs_judge() {
  need jq
  grader good <<'END'
cat >request.json
[ "$(jq -c '[.protocol, .params, .final_message, .dialog, (.events | length > 0), .reference_dir]' request.json)" = \
  '["closedbook/criterion/1",{"n":1},"bye",[],true,null]' ] || exit 4
[ "$(jq -r .workspace request.json)" = "$PWD" ] && [ "$(jq -r .task_dir request.json)" = "$TASK_DIR" ] || exit 5
[ -f done.txt ] && [ -r "$CLOSEDBOOK_TRIAL/final.txt" ] || exit 6
echo '{"score": 1, "details": "fine", "metrics": {"files": 2}, "label": {"observed": "a", "expected": "a"}}'
END
  grader fails <<<'echo broken >&2; exit 3'
  NEEDS=no-such-program grader needs <<<'echo {\"score\": 1}'
  local agent=$'#!/bin/sh\necho x >done.txt; printf \'{"kind": "text", "output": "bye"}\\n\' >&3\nls -R / 2>/dev/null | grep -q _judges_here && echo seen >seen\ntrue'
  TASK_CRITERIA="$(criterion good)
  - {type: file_exists, description: unseen, path: done.txt}" script_task good <<<"$agent"
  TASK_CRITERIA=$(criterion fails) script_task fails <<<"$agent"
  TASK_CRITERIA=$(criterion needs) script_task needs <<<"$agent"
  TASK_CRITERIA=$(criterion good '{m: 1}') script_task params <<<"$agent"
  run_suite -j 2
  expect_status 3
  expect_trial .status SUCCESS good
  expect_trial '.criteria[0].type' 'exec:../_judges_here/good' good
  expect_trial '.criteria[0].metrics.files' 2 good
  expect_trial '.criteria[0].observed' a good
  expect_trial '.artifacts.files' 1 good
  # What it does over the agent's files may be their doing: not passed, and never tried again.
  expect_trial .status FAILURE fails
  expect_trial .passed false fails
  trial '.criteria[0].error' fails | grep -q 'exit code 3' || fail "no exit code in the record"
  # What it is, is not: nobody's failure.
  expect_trial .status ERROR needs
  trial .error needs | grep -q "needs the program 'no-such-program'" || fail "the missing program is not named"
  expect_trial .status ERROR params
  trial .error params | grep -q "params: .*'n'" || fail "the missing parameter is not named"
}

case_a_program_in_the_agents_view_is_refused() {
  grader good <<<'echo {\"score\": 1}'
  TASK_MORE='input_dir: input' TASK_CRITERIA='  - {type: "exec:input/judge", description: a program}' \
    script_task t <<<$'#!/bin/sh\ntrue'
  mkdir suite/t/input
  mv suite/_judges_here/good suite/t/input/judge
  run_suite
  expect_status 2
  expect_text err "input/judge', of the experiment, dataset or a criterion, which the agent must not get"
  # A copy of it under another name is found when it is staged.
  mkdir suite/t/graders
  mv suite/t/input/judge suite/t/graders/judge
  cp suite/t/graders/judge suite/t/input/helper
  sed -i 's,exec:input/judge,exec:graders/judge,' suite/t/task.yaml
  run_suite
  expect_status 3
  trial .error | grep -q "input/helper' would be in the agent's workspace .*graders/judge'" || fail "the copy is not named"
}

case_conformance() {
  need jq
  cp -R "$E2E_SOURCE/examples/own-criterion/graders" .
  cb criterion test graders/word-count --json
  expect_status 0
  [ "$(jq length out)" = 15 ] || fail "$(jq length out) cases, expected 15"
  cb criterion test graders/word-count --params '{x'
  expect_status 2
  expect_text err "--params: JSON expected, found '{x'"
  # It waits for a FIFO's writer, takes any protocol and fails without the file.
  cat >graders/bad <<'END'
#!/bin/sh
if [ "${1:-}" = --describe ]; then
  echo '{"protocol": "closedbook/criterion/1", "params": {"examples": [{"path": "a"}]}}'; exit
fi
n=$(cat a | wc -l) || exit 7
[ -e a ] || exit 3
echo "{\"score\": 1}"
END
  chmod 0755 graders/bad
  cb criterion test graders/bad
  expect_status 1
  grep -qx 'ok      describes itself' out || fail "the control fails"
  grep -qx 'not ok  scores an empty workspace' out || fail "a failing program passes"
  grep -qx 'not ok  scores a FIFO' out || fail "a hanging program passes"
  grep -qx 'not ok  refuses another protocol' out || fail "any protocol is taken"
  grep -qx 'ok      scores bytes that are no text' out || fail "what holds is not told"
  echo 'exit 1' >graders/bad
  cb criterion test graders/bad
  expect_status 1
  [ "$(grep -c ok out)" = 1 ] || fail "a program that does not describe itself is tried"
}

main conformance programs_judge:user a_program_in_the_agents_view_is_refused
