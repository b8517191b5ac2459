#!/bin/bash
# steps.sh: pre_run and post_run: what the agent gets of them, what graders see, what the record says, and that neither
# the suite nor the reference reaches the agent by way of them.
# shellcheck source-path=SCRIPTDIR disable=SC2154,SC2317,SC2119,SC2015,SC2016
. "$(dirname "$0")/lib.sh"

# A task "t" with a template of two files, a helper beside it, and the given fields.
make_suite() { # FIELDS
  mkdir -p suite/tpl/sub suite/m suite/reference
  echo open >suite/tpl/sub/open.txt
  echo answer-in-the-open >suite/tpl/sealed.txt
  echo solution >suite/reference/solution.txt
  printf 'mv sealed.txt "$TMPDIR/x" && printf packed >store.bin && rm -r "$TMPDIR/x"\n' >suite/m/seal
  cat >suite/agent.sh <<'E2'
#!/bin/sh
ls -R >listing
{ cat sealed.txt; ls /graders; find / -name seal -o -name solution.txt; env; } >seen 2>/dev/null
echo more >>sub/open.txt
E2
  chmod 755 suite/agent.sh
  cat >suite/t.yaml <<E2
task_id: t
description: d
initial_prompt: p
agent: {type: script, script: agent.sh}
reference: {directory: reference}
sandbox: {template_sources: [{type: template_dir, path: tpl}]}
$1
E2
}

SEAL='pre_run:
  - {command: ". $TASK_DIR/m/seal"}
  - {command: "echo made >sub/made.txt; ! env | grep -q ^REFERENCE"}'
CHECKS='success_criteria:
  - {type: file_exists, path: store.bin, description: the store is there}
  - {type: run_command, description: the sealed file is gone, command: "test ! -e sealed.txt && test -e sub/made.txt"}
  - {type: file_contains, path: sub/open.txt, includes: [more], description: the agent worked on}'

case_the_agent_gets_what_the_steps_left() {
  make_suite "$SEAL"$'\n'"$CHECKS"
  run_suite
  expect_status 0
  cb show run/trials/default/t/00 listing
  expect_text out made.txt
  expect_text out store.bin
  ! grep -q sealed out || fail "the deleted file is still listed"
  cb show run/trials/default/t/00 seen
  ! grep -q 'answer-in-the-open\|seal$\|solution.txt\|TASK_DIR\|graders' out || fail "the agent saw $(head -c 300 out)"
  [ "$(jq -c '.pre_run | sort' run/trials/default/t/00/changes.json)" = '["sealed.txt","store.bin","sub/made.txt"]' ] ||
    fail "$(jq -c .pre_run run/trials/default/t/00/changes.json)"
  [ "$(jq -c '[.steps[] | .phase, .exit_code]' run/trials/default/t/00/trial.json)" = '["pre_run",0,"pre_run",0]' ] ||
    fail "$(jq -c .steps run/trials/default/t/00/trial.json)"
}

# The same search finds the file where no step removed it.
case_without_the_step_the_file_is_there() {
  make_suite 'success_criteria: [{type: file_exists, path: listing, description: it ran}]'
  run_suite
  cb show run/trials/default/t/00 seen
  expect_text out answer-in-the-open
}

# What is too large for a copy is seen through an overlay, which the agent's cell takes over from the steps'.
case_a_large_workspace_is_taken_over_whole() {
  make_suite 'pre_run:
  - {command: "rm tpl/gone.txt && mv tpl/folder tpl/moved && echo made >made.txt"}
  - {command: "echo more >>tpl/f1"}
success_criteria:
  - {type: run_command, description: what nobody touched is there, command: "test $(ls tpl | grep -c ^f) = 300 && cat keep.txt tpl/moved/inner"}
  - {type: run_command, description: what the steps did counts, command: "test ! -e tpl/gone.txt && test ! -e tpl/folder && grep more tpl/f1 && cat made.txt"}
  - {type: file_contains, path: sub/open.txt, includes: [more], description: the agent worked on}'
  local i
  mkdir -p suite/tpl/tpl/folder
  for ((i = 0; i < 300; i++)); do echo "$i" >"suite/tpl/tpl/f$i"; done
  echo gone >suite/tpl/tpl/gone.txt
  echo inner >suite/tpl/tpl/folder/inner
  echo keep >suite/tpl/keep.txt
  run_suite
  expect_status 0
  [ "$(jq -r .staging run/trials/default/t/00/trial.json)" = layered ] || fail "it was not layered, so this shows nothing"
  [ "$(jq -c '.deleted' run/trials/default/t/00/changes.json)" = '["tpl/folder","tpl/folder/inner","tpl/gone.txt"]' ] ||
    fail "deleted: $(jq -c .deleted run/trials/default/t/00/changes.json | head -c 300)"
  [ "$(jq -c '.refused' run/trials/default/t/00/changes.json)" = '[]' ] || fail "refused: $(jq -c .refused run/trials/default/t/00/changes.json)"
  [ "$(jq -c '.pre_run | index("sub/open.txt")' run/trials/default/t/00/changes.json)" = null ] || fail "the agent's change is the steps'"
  rm -r suite/tpl/tpl/f7
  rm -r run
  run_suite --agent nop
  expect_status 1
}

case_a_failing_step_is_an_error_before_the_agent() {
  make_suite 'pre_run: [{command: "echo broken >&2; exit 3"}]'$'\n'"$CHECKS"
  run_suite
  expect_status 3
  expect_trial .status ERROR t
  jq -r .error run/trials/default/t/00/trial.json >error
  expect_text error 'pre_run step 1 failed (exit code 3): broken'
  [ ! -e run/trials/default/t/00/agent.stdout ] || fail "the agent ran"
  [ "$(jq -r .error_code run/trials/default/t/00/trial.json)" = task ] || fail "whose fault: $(jq .error_code run/trials/default/t/00/trial.json)"
}

case_a_step_may_be_allowed_to_fail_and_runs_out_of_time() {
  make_suite 'pre_run: [{command: "exit 3", fail_on_error: false}, {command: "sleep 100", timeout: 1}]'$'\n'"$CHECKS"
  run_suite
  expect_status 3
  jq -r .error run/trials/default/t/00/trial.json >error
  expect_text error 'pre_run step 2 failed (ran longer than 1000 ms)'
}

case_what_runs_afterwards_decides_nothing() {
  make_suite 'post_run: [{command: "cat sub/open.txt $REFERENCE_DIR/solution.txt; exit 7"}]'$'\n''success_criteria: [{type: file_exists, path: listing, description: it ran}]'
  run_suite
  expect_status 0
  expect_trial .status SUCCESS t
  [ "$(jq -c '[.steps[] | .phase, .exit_code]' run/trials/default/t/00/trial.json)" = '["post_run",7]' ] || fail "$(jq -c .steps run/trials/default/t/00/trial.json)"
  printf 'open\nmore\nsolution\n' | cmp - run/trials/default/t/00/steps/post_run-01.out || fail "its output"
  cb report run
  expect_text out 'post_run step 1 failed (exit code 7)'
}

case_what_runs_afterwards_runs_after_errors_too() {
  make_suite $'pre_run: [{command: "true"}, {command: "exit 1"}]\npost_run: [{command: "echo bye"}]\n'"$CHECKS"
  run_suite
  expect_status 3
  [ "$(jq -c '[.steps[] | .phase]' run/trials/default/t/00/trial.json)" = '["pre_run","pre_run","post_run"]' ] || fail "$(jq -c .steps run/trials/default/t/00/trial.json)"
}

case_execute_leaves_the_teardown_to_grade() {
  make_suite 'post_run: [{command: "echo bye"}]'$'\n''success_criteria: [{type: file_exists, path: listing, description: it ran}]'
  cb execute suite --suite-root suite --run-dir run --quiet
  [ "$(jq -c .steps run/trials/default/t/00/trial.json)" = null ] || fail "it ran during execute"
  cb grade run --quiet
  expect_status 0
  [ "$(jq -c '[.steps[] | .phase]' run/trials/default/t/00/trial.json)" = '["post_run"]' ] || fail "it did not run during grade"
  cb grade run --quiet
  [ "$(jq -c '[.steps[] | .phase]' run/trials/default/t/00/trial.json)" = '["post_run"]' ] || fail "it ran again"
}

case_the_oracle_starts_from_what_the_steps_left() {
  make_suite 'pre_run: [{command: "echo made >made.txt"}]'$'\n''success_criteria: [{type: run_command, description: both, command: "cat made.txt solution.txt"}]'
  run_suite --agent oracle
  expect_status 0
}

main the_agent_gets_what_the_steps_left:user without_the_step_the_file_is_there a_large_workspace_is_taken_over_whole:user a_failing_step_is_an_error_before_the_agent:user \
  a_step_may_be_allowed_to_fail_and_runs_out_of_time what_runs_afterwards_decides_nothing:user \
  what_runs_afterwards_runs_after_errors_too execute_leaves_the_teardown_to_grade the_oracle_starts_from_what_the_steps_left
