#!/bin/bash
# verify-host.sh: run --verify-host sees what changes on the host while a run is on, and nothing else.
# shellcheck source-path=SCRIPTDIR disable=SC2154,SC2317,SC2119,SC2015,SC2016,SC2013
. "$(dirname "$0")/lib.sh"

# An agent that tries to change its template on the host, by its path there.
tampering_task() {
  mkdir -p suite/template
  echo one >suite/template/a.txt
  TASK_MORE='sandbox: {template_sources: [{type: template_dir, path: ../template}]}' script_task t <<E2
#!/bin/sh
echo x >done.txt
echo evil >>"$PWD/suite/template/a.txt" || :
E2
  # When root starts it, the agent of a tempdir is an ordinary user.
  chmod -R a+rwX suite
  ! is_root || chmod a+x . ..
}

case_an_unchanged_host_is_said_to_be_so() {
  tampering_task
  for how in --verify-host --verify-host=full; do
    rm -rf run
    run_suite "$how"
    expect_status 0
    [ "$(jq -r .verdict run/host.json)" = unchanged ] || fail "$how: $(cat run/host.json)"
    [ "$(jq .paths run/host.json)" -ge 6 ] || fail "$how looked at $(jq .paths run/host.json) paths only"
  done
  cb report run --json
  expect_status 0
  [ "$(jq -r .host.verdict out)" = unchanged ] || fail 'report --json does not tell it'
  rm -rf run
  run_suite
  [ ! -e run/host.json ] || fail 'it looked without being asked to'
}

case_an_agent_without_walls_that_changes_its_template_is_seen() {
  tampering_task
  cb run suite --suite-root suite --run-dir run --driver tempdir --verify-host --junit junit.xml
  expect_status 4
  grep -q evil suite/template/a.txt || fail 'the control changed nothing'
  [ "$(jq -r .verdict run/host.json)" = COMPROMISED ] || fail "$(cat run/host.json)"
  [ "$(jq -r '.changes[] | select(endswith("suite/template/a.txt"))' run/host.json | wc -l)" = 1 ] ||
    fail "not in the list: $(jq -c .changes run/host.json)"
  expect_text out 'COMPROMISED: the host changed'
  expect_text out suite/template/a.txt
  cb report run
  expect_status 4
  expect_text out suite/template/a.txt
  cb report run --format markdown
  expect_text out suite/template/a.txt
  # What a part of a run has found stays when it goes on.
  cb run --resume --run-dir run --driver tempdir --verify-host --quiet
  expect_status 4
  [ "$(jq -r .verdict run/host.json)" = COMPROMISED ] || fail 'a resumed run forgot it'
}

main an_unchanged_host_is_said_to_be_so:user an_agent_without_walls_that_changes_its_template_is_seen:user
