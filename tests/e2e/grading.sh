#!/bin/bash
# grading.sh: what graders compare with, that it stays what was staged, and grading again.
# shellcheck source-path=SCRIPTDIR disable=SC2154,SC2317,SC2119,SC2015,SC2016
. "$(dirname "$0")/lib.sh"

compare() { # FILE METHOD
  printf '  - {type: reference_comparison, description: alike, agent_file: %s, reference_file: %s, comparison_method: %s, pass_threshold: 0}\n' \
    "$1" "${3:-answer.py}" "$2"
}

case_files_are_compared_with_the_reference() {
  need python3
  mkdir -p suite/t/reference/deep
  printf 'def f(a):\n    if a:\n        return 1\n    return 2\n' >suite/t/reference/answer.py
  printf 'one\ntwo\n' >suite/t/reference/deep/words.txt
  TASK_MORE='reference: {directory: reference}' TASK_CRITERIA=$(
    compare same.py token
    compare same.py ast
    compare renamed.py ast
    compare renamed.py structure
    compare renamed.py token
    compare broken.py ast
    compare deep.py ast
    compare "\"it's.py\"" ast
    compare words.txt line deep/words.txt
    # A module that the agent left beside its file has no say: its own ast.py would print nothing.
    compare same.py ast
    command_criterion 'test ! -e ran'
  ) script_task t <<'E2'
#!/bin/sh
printf 'def f(a):  # a comment\n    if a:\n        return 1\n    return 2\n' >same.py
printf 'def other(b):\n    if b:\n        return 7\n    return 8\n' >renamed.py
cp renamed.py "it's.py"
printf 'def f(:\n' >broken.py
python3 -c 'print("x = " + "(" * 100000 + ")" * 100000)' >deep.py
printf 'open("ran", "w")\nraise SystemExit\n' | tee ast.py sys.py sitecustomize.py >usercustomize.py
printf 'one\n two\n' >words.txt
E2
  run_suite
  expect_status 0
  expect_trial '.criteria | map(.score) | .[0] == 1 and .[1] == 1 and .[2] == 1 and .[3] == 1' true
  expect_trial '.criteria | map(.score) | .[4] < 0.8 and .[5] == 0 and .[6] == 0 and .[7] == 1 and .[8] == 1 and .[9] == 1' true
  # What cannot be compared is said before an agent runs.
  TASK_MORE='reference: {directory: reference}' TASK_CRITERIA=$(compare x.py token absent.py) script_task t <<<$'#!/bin/sh\ntrue'
  cb plan suite
  expect_status 2
  expect_text err 'success_criteria[0].reference_file: '
  TASK_CRITERIA=$(compare x.py token) script_task t <<<$'#!/bin/sh\ntrue'
  cb plan suite
  expect_status 2
  expect_text err 'the task has no reference to compare with'
}

# Once the agent works: a copy that is still being made has a place of its own, which it leaves.
staged_answer() { { find "$XDG_CACHE_HOME"/closedbook /var/cache/closedbook -path "*/private/*/tree/$1" 2>/dev/null || true; } | grep . >staged; }

case_a_reference_that_changes_meanwhile_is_an_error() {
  # The grader waits until the copy that it reads says something else: only the change below lets it pass.
  local answer
  answer=answer-$(new_mark)
  mkdir -p suite/t/reference
  echo right >"suite/t/reference/$answer"
  TASK_MORE='reference: {directory: reference}' TASK_CRITERIA=$(
    command_criterion "until grep -q wrong \"\$REFERENCE_DIR/$answer\"; do :; done"
  ) script_task t <<<$'#!/bin/sh\ntrue'
  start_cb run suite --suite-root suite --run-dir run --quiet
  wait_until 30 test -e run/trials/default/t/00/artifacts.tar
  staged_answer "$answer"
  change wrong
  finish_cb
  expect_status 3
  expect_trial .status ERROR
  expect_trial .passed null
  trial .error >said
  expect_text said 'ReferenceTampered: '
  # The control: without a change the same reference is recorded, and the trial is graded.
  TASK_MORE='reference: {directory: reference}' TASK_CRITERIA=$(
    command_criterion "grep -q right \"\$REFERENCE_DIR/$answer\""
  ) script_task t <<<$'#!/bin/sh\ntrue'
  cb run suite --suite-root suite --run-dir again --quiet
  expect_status 0
  [[ $(trial .graded_with.reference t 00 again) == sha256:* ]] || fail "no digest is on record"
}

change() { # TEXT: of the staged copy
  chmod u+w "$(head -n 1 staged)"
  echo "$1" >"$(head -n 1 staged)"
}

# Ends what waits with the mark, once it is there.
release() { # MARK
  local pid
  wait_until 30 has_mark "$1"
  for pid in $(pids_of_mark "$1"); do kill "$pid"; done
}

case_each_moment_of_a_change_is_seen() {
  local answer agents graders
  answer=answer-$(new_mark) agents=$(new_mark) graders=$(new_mark)
  mkdir -p suite/t/reference
  echo right >"suite/t/reference/$answer"

  # While the agent works: no grader runs. This one would be seen, as the control below shows.
  TASK_MORE='reference: {directory: reference}' TASK_CRITERIA=$(command_criterion "sleep $graders; true") \
    script_task t <<<$'#!/bin/sh\nsleep '"$agents; true"
  start_cb run suite --suite-root suite --run-dir before --quiet
  wait_until 30 has_mark "$agents"
  staged_answer "$answer"
  change wrong
  release "$agents"
  while kill -0 "$started" 2>/dev/null; do no_mark "$graders" || fail "a grader runs over what was changed"; done
  finish_cb
  expect_status 3
  [[ $(trial .error t 00 before) == *'ReferenceTampered: '* ]] || fail "before: $(trial .error t 00 before)"

  # While graders work, and undone before they end.
  start_cb run suite --suite-root suite --run-dir undone --quiet
  release "$agents"
  wait_until 30 has_mark "$graders"
  staged_answer "$answer"
  change wrong
  change right
  release "$graders"
  finish_cb
  expect_status 3
  [[ $(trial .error t 00 undone) == *'ReferenceTampered: '* ]] || fail "undone: $(trial .error t 00 undone)"

  # The control, and after the verdict: while another trial of the run still works.
  script_task u <<<$'#!/bin/sh\ntouch done.txt; sleep '"$agents; true"
  TASK_MORE='reference: {directory: reference}' TASK_CRITERIA=$(command_criterion 'true') script_task t <<<$'#!/bin/sh'
  start_cb run suite --suite-root suite --run-dir none --quiet
  release "$agents"
  finish_cb
  expect_status 0
  start_cb run suite --suite-root suite --run-dir after --quiet
  wait_until 30 has_mark "$agents"
  staged_answer "$answer"
  change wrong
  release "$agents"
  finish_cb
  expect_status 3
  expect_trial .status SUCCESS t 00 after
  expect_text err 'ReferenceTampered: '
}

case_another_reference_is_refused_unless_it_is_meant() {
  mkdir -p suite/t/reference
  echo right >suite/t/reference/answer
  TASK_MORE='reference: {directory: reference}' TASK_CRITERIA=$(
    command_criterion 'cmp answer "$REFERENCE_DIR/answer"'
  ) script_task t <<<$'#!/bin/sh\necho right >answer'
  run_suite
  expect_status 0
  # The control: the same reference is graded with again, and nothing is said of another.
  cb grade run --quiet
  expect_status 0
  expect_trial .graded_with.instead_of null
  local before
  before=$(trial .graded_with.reference)
  echo other >suite/t/reference/answer
  cp run/trials/default/t/00/trial.json trial.before
  cb grade run --quiet
  expect_status 2
  expect_text err "'trials/default/t/00' was graded with $before, and its task has sha256:"
  expect_text err --new-reference
  cmp trial.before run/trials/default/t/00/trial.json || fail "it was graded all the same"
  cb grade run --quiet --new-reference
  expect_status 1
  expect_trial .graded_with.instead_of "$before"
  [ "$(trial .graded_with.reference)" != "$before" ] || fail "the new reference is not on record"
  # It is what the next grading is held against.
  cb grade run --quiet
  expect_status 1
  expect_trial .status FAILURE
  # No reference any more is another one, too.
  TASK_CRITERIA=$(command_criterion 'true') script_task t <<<$'#!/bin/sh\necho right >answer'
  cb grade run --quiet
  expect_status 2
  expect_text err 'and its task has no reference now'
}

case_repeated_gradings_that_differ_are_unstable() {
  # A coin, tossed 20 times: all alike once in half a million.
  TASK_CRITERIA="$(command_criterion 'exit $(($(od -An -N1 -tu1 /dev/urandom) % 2))')
$(command_criterion 'echo steady')" script_task coin <<<$'#!/bin/sh\ntrue'
  TASK_CRITERIA=$(command_criterion 'echo steady') script_task steady <<<$'#!/bin/sh\ntrue'
  run_suite
  # The control: what does not vary is not called unstable.
  cb grade run/trials/default/steady/00 --repeat 2
  expect_trial '.criteria[0].repeat == {"times":2,"passed":2,"scores":[1,1],"unstable":false}' true steady
  ! grep -q unstable out || fail "a steady criterion is called unstable"
  grep -q steady run/trials/default/steady/00/grade/repeat-02/01.out || fail "the second output is not kept"
  cb grade run/trials/default/coin/00 --repeat 20
  expect_status 1
  expect_trial '.criteria[0].repeat.unstable' true coin
  expect_trial '.criteria[0].repeat.scores | length' 20 coin
  expect_trial '.criteria[0].repeat | .passed == (.scores | add)' true coin
  expect_trial '.criteria[0].score == .criteria[0].repeat.scores[0]' true coin
  expect_trial '.criteria[1].repeat.unstable' false coin
  expect_text out "unstable: $(trial .criteria[0].repeat.passed coin) of 20 passed"
  expect_text out '1 unstable'
  cb report run --json
  expect_status 1
  jq -e '.totals.unstable == 1' out >/dev/null || fail "report --json does not count it"
  # Graded once again, nothing is known of it any more, but what was said and printed is kept.
  cp -r run/trials/default/steady/00/grade steady.grade
  cp run/trials/default/steady/00/trial.json steady.json
  cb grade run --quiet
  cmp steady.json run/trials/default/steady/00/previous/001.json || fail "the record before is not kept"
  diff -r steady.grade run/trials/default/steady/00/previous/001 || fail "what graders printed is not kept"
  [ ! -e run/trials/default/steady/00/grade/repeat-02 ] || fail "an older output stands beside the new one"
  [ -s run/trials/default/steady/00/previous/000/01.out ] || fail "the first output is gone"
  expect_trial '.criteria[0].repeat' null coin
}

# An agent that leaves out what a command of the workspace runs has failed; it is no machine's fault.
case_a_program_that_the_agent_was_to_write_is_not_the_graders() {
  TASK_CRITERIA=$(
    command_criterion /workspace/run.sh
    command_criterion '/workspace/./plain --all'
  ) script_task t <<'E2'
#!/bin/sh
echo 'no program' >plain
E2
  run_suite
  [ "$(jq -r '"\(.status) \(.error_code)"' run/trials/default/t/00/trial.json)" = "FAILURE null" ] || fail "$(jq -c '[.status, .error_code, .error]' run/trials/default/t/00/trial.json)"
  # One of the grader's is.
  TASK_CRITERIA=$(command_criterion /opt/no-such-grader) script_task t <<<'#!/bin/sh'
  rm -r run
  run_suite
  [ "$(jq -r .status run/trials/default/t/00/trial.json)" = ERROR ] || fail "$(jq -c .status run/trials/default/t/00/trial.json)"
}

# A run directory of somebody else's: a pipe in it is not waited for.
case_a_pipe_in_a_run_directory_is_not_waited_for() {
  TASK_CRITERIA=$(command_criterion true) script_task t <<<'#!/bin/sh'
  run_suite
  rm run/trials/default/t/00/artifacts.tar
  mkfifo run/trials/default/t/00/artifacts.tar
  cb grade run
  expect_status 3
  cb cell run/trials/default/t/00 -- true
  expect_status 125
  expect_text err 'left nothing to look at: artifacts.tar'
}

main a_pipe_in_a_run_directory_is_not_waited_for a_program_that_the_agent_was_to_write_is_not_the_graders repeated_gradings_that_differ_are_unstable another_reference_is_refused_unless_it_is_meant:user a_reference_that_changes_meanwhile_is_an_error:user each_moment_of_a_change_is_seen files_are_compared_with_the_reference:user
