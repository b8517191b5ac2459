#!/bin/bash
# audit.sh: a run's records are sealed and signed, hold together after a resume and a grading, and tell when one was touched.
# shellcheck source-path=SCRIPTDIR disable=SC2154,SC2317,SC2119,SC2015,SC2016,SC2013
. "$(dirname "$0")/lib.sh"

AGENT=$'#!/bin/sh\necho x >done.txt'

expect_intact() { # ARGUMENT...
  cb audit "$@"
  expect_status 0
  expect_text out intact
}

expect_broken() { # TEXT ARGUMENT...
  cb audit "${@:2}"
  expect_status 1
  expect_text out 'NOT INTACT'
  expect_text out "$1"
}

case_a_run_is_sealed_and_signed() {
  script_task t <<<"$AGENT"
  cb keygen -o key
  expect_status 0
  [ "$(stat -c %a key)" = 600 ] || fail "the key is for others, too"
  cb keygen -o key
  expect_status 2
  expect_text err 'never overwritten'
  cb keygen -o other
  run_suite --sign-key key
  expect_status 0
  expect_intact run --key key.pub
  expect_text out 'Signed by ed25519:'
  expect_broken 'another key' run --key other.pub
  ! grep -rq "$(sed -n 2p key)" run || fail "the run holds the key"
  cb run suite --suite-root suite --run-dir run2 --sign-key key.pub
  expect_status 2
  expect_text err 'no Ed25519 private key'
  [ ! -e run2 ] || fail "a run began without its key"
}

case_what_was_touched_is_named() {
  script_task t <<<"$AGENT"
  script_task u <<<"$AGENT"
  run_suite
  expect_intact run
  expect_text out 'Nobody signed it'
  echo >>run/trials/default/t/00/artifacts.tar
  expect_broken "trials/default/t/00: 'artifacts.tar' is not as it was" run
  truncate -s -1 run/trials/default/t/00/artifacts.tar
  expect_intact run
  sed -i 's/"SUCCESS"/"FAILURE"/' run/trials/default/u/00/trial.json
  expect_broken 'trials/default/u/00: trial.json is not as it was' run
  rm -r run/trials/default/u
  expect_broken "'default/u/00'" run
  cb audit --json run
  expect_status 1
  [ "$(jq -r .intact out)" = false ] || fail "$(cat out)"
}

case_resuming_and_grading_go_on_with_the_chain() {
  script_task t <<<"$AGENT"
  run_suite --repeats 2
  rm run/trials/default/t/01/trial.json
  expect_broken 'did not finish' run
  run_suite --repeats 2 --resume
  expect_status 0
  expect_intact run
  cb grade run --quiet
  expect_status 0
  expect_intact run
  [ "$(grep -c '"seal"' run/journal.jsonl)" = 3 ] || fail "not sealed each time: $(cat run/journal.jsonl)"
  sed -i '3d' run/journal.jsonl
  expect_broken 'does not go on from the line before' run
}

# A bundle lacks what graders printed, says so, and holds together; what was not left out on purpose is missed.
case_a_bundle_leaves_out_what_graders_said() {
  TASK_CRITERIA=$(command_criterion 'echo said-by-a-grader-0471; exit 1') script_task t <<<"$AGENT"
  run_suite
  grep -rq said-by-a-grader-0471 run/trials/default/t/00/grade || fail "nothing of the grader's is there"
  cb bundle run -o bundle.tar
  expect_status 0
  expect_text out 'left out: 1 '
  tar tf bundle.tar >names
  ! grep -q grade/ names || fail "a grader's output is in it: $(cat names)"
  tar xOf bundle.tar bundle.json >list
  expect_text list trials/default/t/00/grade/01.out
  expect_intact bundle.tar
  expect_text out '1 files were left out'
  cb bundle run -o whole.tar --with-private
  tar tf whole.tar | grep -q grade/01.out || fail "not whole"
  expect_intact whole.tar
  mkdir open && tar xf bundle.tar -C open && chmod -R a+rX open
  rm open/trials/default/t/00/events.jsonl
  expect_broken "'events.jsonl' is not there" open
  tr '\1-\377' '\2-\377\1' <bundle.tar >noise.tar
  cb audit noise.tar
  expect_status 3
}

# What the cell is made of is written before it starts, and two trials' can be compared.
case_a_view_is_recorded_and_compared() {
  mkdir -p suite/template && echo one >suite/template/a
  TASK_MORE='sandbox: {template_sources: [{type: template_dir, path: ../template}]}' \
    script_task t <<<$'#!/bin/sh\ncp a done.txt'
  run_suite --repeats 2
  view=run/trials/default/t/00/view.jsonl
  [ "$(jq -r 'select(.kind == "path") | .entry.path' "$view")" = a ] || fail "paths: $(cat "$view")"
  [ "$(jq -r 'select(.kind == "path") | .entry.sha256' "$view")" = "$(sha256sum <suite/template/a | cut -d' ' -f1)" ] ||
    fail "another digest: $(cat "$view")"
  expect_text "$view" '"target": "/usr", "writable": false'
  [ "$(trial '.digests["view.jsonl"]')" = "sha256:$(sha256sum <"$view" | cut -d' ' -f1)" ] || fail "trial.json has not its digest"
  cb view-diff run/trials/default/t/00 run/trials/default/t/01
  expect_status 0
  echo two >suite/template/b
  cb run suite --suite-root suite --run-dir run2 --quiet
  cb view-diff run/trials/default/t/00 run2/trials/default/t/00
  expect_status 1
  [ "$(grep -c . out)" = 1 ] || fail "$(cat out)"
  expect_text out '+ {"kind": "path", "of": "workspace", "entry": {"path":"b"'
}

main a_run_is_sealed_and_signed:user \
  what_was_touched_is_named \
  resuming_and_grading_go_on_with_the_chain:user \
  a_view_is_recorded_and_compared:user \
  a_bundle_leaves_out_what_graders_said:user
