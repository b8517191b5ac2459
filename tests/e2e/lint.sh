#!/bin/bash
# lint: each rule's bad example has the finding and its good one has not, both in docs/lint.md; fixes; output forms.
# shellcheck source-path=SCRIPTDIR disable=SC2154,SC2317,SC2015
. "$(dirname "$0")/lib.sh"

# A copy of the examples, with folders named as git wants them only in a checkout of its own.
copy_examples() {
  cp -R "$E2E_SOURCE/tests/lint" examples
  find examples -depth -name dot-git -execdir mv dot-git .git \;
  chmod -R go+rX .
}

case_examples() {
  copy_examples
  cb lint examples
  expect_status 1
  cut -f1 < <("$CLOSEDBOOK" lint --list-rules) | while read -r rule; do
    grep -q "^examples/$rule/bad/[^:]*:.* $rule: " out || fail "$rule is not found in its bad example: $(grep "$rule/bad" out)"
    ! grep "^examples/$rule/good/[^:]*:.* $rule: " out || fail "$rule is found in its good example"
  done
  # A good example has nothing wrong at all, but for criteria that are not in this version.
  ! grep '^examples/[^/]*/good/' out | grep -v 'not in this version' || fail "a good example has a finding"
}

case_documented() {
  bash "$E2E_SOURCE/tests/lint/document" "$CLOSEDBOOK" >lint.md
  diff -u "$E2E_SOURCE/docs/lint.md" lint.md || fail "docs/lint.md differs: tests/lint/document CLOSEDBOOK >docs/lint.md"
}

case_fixes() {
  copy_examples
  chmod -R a+rwX examples
  printf '\xef\xbb\xbftask_id: crlf # caf\xc3\xa9\r\ndescription: "\xc3\xa9"\r\ninitial_prompt: do it\r\nagent: {type: nop}\r\nsuccess_criteria:\r\n  - {type: file_exists, description: d, path: /workspace/a.txt} # stays\r\n' >examples/crlf.yaml
  chmod a+rw examples/crlf.yaml
  cb lint --fix examples/CB008/bad examples/CB022/bad examples/crlf.yaml
  expect_status 0
  expect_text err "3 fixed"
  expect_text examples/CB008/bad/task.yaml "path: 'done.txt'}"
  expect_text examples/CB022/bad/task.yaml "must_match: false}"
  printf '\xef\xbb\xbftask_id: crlf # caf\xc3\xa9\r\ndescription: "\xc3\xa9"\r\ninitial_prompt: do it\r\nagent: {type: nop}\r\nsuccess_criteria:\r\n  - {type: file_exists, description: d, path: '\''a.txt'\''} # stays\r\n' | cmp - examples/crlf.yaml
}

case_forms() {
  copy_examples
  cb lint --json --rule CB013 examples
  expect_status 0
  [ "$(jq -r '.findings[] | "\(.rule) \(.line) \(.field)"' out)" = 'CB013 5 run_limits.turn_timeout' ] || fail "$(cat out)"
  [ ! -e lint.sarif ]
  cb lint --rule turn-timeout-dead --warnings --sarif lint.sarif examples/CB013
  expect_status 1
  [ "$(jq -r '.runs[0].results[0] | "\(.ruleId) \(.level) \(.locations[0].physicalLocation.artifactLocation.uri)"' lint.sarif)" = \
    'CB013 warning examples/CB013/bad/task.yaml' ] || fail "$(cat lint.sarif)"
  cb lint --rule CB999 examples
  expect_status 2
  echo 'task_id: [' >broken.yaml
  cb lint broken.yaml
  expect_status 1
  expect_text out 'broken.yaml:2:1: error CB000'
}

# What a criterion is called by tells what is expected of the rule.
case_graders_that_run_the_agents_code() {
  mkdir reference
  echo x >reference/x
  cat >task.yaml <<'E'
task_id: x
description: d
initial_prompt: p
agent: {type: nop}
reference_dir: reference
success_criteria:
  - {type: run_command, description: WARN1, command: 'pytest -q'}
  - {type: run_command, description: WARN2, command: 'cd src && ./prog <in'}
  - {type: run_command, description: WARN3, command: 'python3 -c "import solution; assert solution.f(1) == 2"'}
  - {type: run_command, description: WARN4, command: 'python -m pytest "$TASK_DIR/tests"'}
  - {type: run_command, description: WARN5, command: 'test "$(node main.js)" = 3'}
  - {type: run_command, description: WARN6, command: 'make -s test'}
  - {type: run_command, description: WARN7, command: 'PYTHONPATH=. python3 x.py'}
  - {type: run_command, description: silent1, command: 'python3 "$TASK_DIR/check.py"'}
  - {type: run_command, description: silent2, command: 'python3 -c "import json,sys; json.load(open(\"a.json\"))"'}
  - {type: run_command, description: silent3, command: 'bash ${TASK_DIR}/run.sh'}
  - {type: run_command, description: silent4, command: 'python3 main.py', as: candidate}
  - {type: run_command, description: silent5, command: 'grep -q pytest out.txt && diff a "$REFERENCE_DIR/a"'}
  - {type: run_command, description: silent6, command: 'python3 -m json.tool a.json'}
  - {type: run_command, description: silent7, command: "python3 - <<'P'\nprint(1)\nP"}
E
  cb lint --rule CB023 task.yaml
  cut -d: -f2 <(grep CB023 out) >lines
  grep -n WARN task.yaml | cut -d: -f1 | diff - lines || fail "other findings"
}

main examples documented fixes forms graders_that_run_the_agents_code
