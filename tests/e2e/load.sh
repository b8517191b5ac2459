#!/bin/bash
# load.sh: task files that must not load. Nothing is started, the status is 2, and the message says where.
# shellcheck source-path=SCRIPTDIR disable=SC2154,SC2317,SC2119,SC2015,SC2016
. "$(dirname "$0")/lib.sh"

GOOD='task_id: t
description: a task
initial_prompt: do it
agent: {type: nop}
success_criteria:
  - {type: file_exists, description: there, path: x}'

# rejects TEXT...: `plan` of suite/t.yaml ends with 2 in little time and says every TEXT.
rejects() {
  local text
  E2E_TIMEOUT=20 cb plan suite --suite-root suite
  expect_status 2
  for text; do expect_text err "$text"; done
  cb run suite --suite-root suite --run-dir run
  expect_status 2
  [ ! -e run/trials ] || fail "something ran"
}

task_text() { mkdir -p suite && cat >suite/t.yaml; }

case_the_control_loads() {
  task_text <<<"$GOOD"
  cb plan suite --suite-root suite
  expect_status 0
}

case_unreadable() {
  task_text <<<"$GOOD"
  chmod 0000 suite/t.yaml
  if ! is_root; then rejects t.yaml; fi
  rm suite/t.yaml && ln -s nowhere suite/t.yaml
  cb plan suite/t.yaml --suite-root suite
  expect_status 2
  expect_text err t.yaml
}

case_empty() {
  task_text </dev/null
  cb plan suite/t.yaml --suite-root suite
  expect_status 2
  expect_text err t.yaml
}

case_huge() {
  { echo "$GOOD"; head -c 2000000 /dev/zero | tr '\0' '#'; } | task_text
  cb plan suite/t.yaml --suite-root suite
  expect_status 2
  expect_text err t.yaml
}

case_not_utf8() {
  printf '%s\ntags: ["\377\376"]\n' "$GOOD" | task_text
  rejects t.yaml
}

case_deeply_nested() {
  { echo "$GOOD"; printf 'reference: '; head -c 5000 /dev/zero | tr '\0' '['; echo; } | task_text
  rejects t.yaml
}

case_duplicate_keys() {
  printf '%s\ndescription: again\n' "$GOOD" | task_text
  rejects t.yaml:7 description
}

case_an_alias_bomb() {
  {
    echo "$GOOD"
    echo 'a0: &a0 [x, x, x, x, x, x, x, x, x, x]'
    for i in 1 2 3 4 5 6 7 8 9; do
      p=$((i - 1))
      echo "a$i: &a$i [*a$p, *a$p, *a$p, *a$p, *a$p, *a$p, *a$p, *a$p, *a$p, *a$p]"
    done
  } | task_text
  rejects t.yaml
}

case_wrong_types_and_unknown_keys_all_at_once() {
  task_text <<'E2'
task_id: [t]
description: a task
initial_prompt: do it
agent: {type: nop, modell: x}
sandbox:
  drivr: native
success_criteria:
  - {type: file_exists, description: there, path: x, wieght: 2}
  - {type: file_exist, description: there, path: x}
E2
  rejects t.yaml:1 t.yaml:4 modell t.yaml:6 "did you mean 'driver'" t.yaml:8 wieght t.yaml:9 file_exists
}

case_missing_files() {
  printf '%s\nreference: {directory: nowhere}\ninput_dir: none\n' "$GOOD" | task_text
  rejects nowhere none
}

case_a_task_id_that_escapes() {
  local id
  for id in ../../escaped /absolute a/b . .. '"a\nb"' "$(printf 'x%.0s' {1..200})"; do
    task_text <<<"${GOOD/task_id: t/task_id: $id}"
    rejects task_id
  done
  [ ! -e escaped ] && [ ! -e ../escaped ]
}

case_criteria_that_escape() {
  local path
  for path in /etc/passwd ../x a/../../x; do
    task_text <<<"${GOOD/path: x/path: $path}"
    rejects path
  done
}

case_regexes_and_expressions_that_do_not_parse() {
  task_text <<'E2'
task_id: t
description: a task
initial_prompt: do it
agent: {type: nop}
success_criteria:
  - {type: file_matches_regex, description: there, path: x, pattern: "a(b"}
  - {type: json_check, description: there, path: x, assertions: [{expression: "a[", operator: exists}]}
E2
  rejects t.yaml:6 t.yaml:7
}

case_no_agent() { # `plan` takes such a task: -T may name one later
  task_text <<<"${GOOD/agent: \{type: nop\}/tags: [x]}"
  cb run suite --suite-root suite --run-dir run
  expect_status 2
  expect_text err agent
  [ ! -e run/trials ] || fail "something ran"
}

case_paths_of_inputs_that_hold_the_private_half() {
  mkdir -p suite/reference
  printf '%s\nreference: {directory: reference}\ninput_dir: .\n' "$GOOD" | task_text
  E2E_TIMEOUT=20 cb run suite --suite-root suite --run-dir run
  case $status in
    2 | 3) ;;
    *) fail "an input that holds the reference ended with $status" ;;
  esac
}

main the_control_loads unreadable:user empty huge not_utf8 deeply_nested duplicate_keys an_alias_bomb \
  wrong_types_and_unknown_keys_all_at_once missing_files a_task_id_that_escapes criteria_that_escape \
  regexes_and_expressions_that_do_not_parse no_agent paths_of_inputs_that_hold_the_private_half
