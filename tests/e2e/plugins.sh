#!/bin/bash
# plugins.sh: of a plugin the agent gets what its manifest names, sealed, and nothing of the suite that lies beside
# it; what is private and would come along all the same is an error that names both places.
# shellcheck source-path=SCRIPTDIR disable=SC2154,SC2317,SC2119,SC2015,SC2016,SC2013
. "$(dirname "$0")/lib.sh"

# The public layout: the plugin is the repository's root, the suite lies in tests/, templates beside the task file,
# and a link leads round in a circle.
public_layout() {
  mkdir -p suite/.claude-plugin suite/skills/pdf suite/hooks suite/bin suite/tests/t/template suite/tests/t/reference
  echo '{"name": "office"}' >suite/.claude-plugin/plugin.json
  echo 'Read me.' >suite/skills/pdf/SKILL.md
  echo '{"hooks": {"Stop": "${CLAUDE_PLUGIN_ROOT}/bin/stop.sh"}}' >suite/hooks/hooks.json
  echo 'echo stop' >suite/bin/stop.sh
  ln -s ../.. suite/skills/pdf/round
  echo 'answer = 42' >suite/tests/t/reference/main.py
  echo 'answer = 0' >suite/tests/t/template/main.py
  TASK_AGENT=${PLUGIN:-'plugins: [{type: local, path: $SUITE_HOME}]'} TASK_MORE='reference: {directory: reference}
sandbox: {template_sources: [{type: template_dir, path: template}]}' script_task tests/t <<<"$1"
  sed -i 's/^task_id: .*/task_id: t/' suite/tests/t/task.yaml
  export SUITE_HOME=$PWD/suite
}

case_the_agent_gets_the_plugin_and_nothing_of_the_suite_in_it() {
  TASK_CRITERIA="$DONE_CRITERION
  - {type: skill_triggered, description: the skill was used, skill_name: pdf, weight: 0}" \
    public_layout '#!/bin/sh
cd "$AGENT_PLUGINS" || exit 1
pwd >/workspace/seen.txt
find . ! -type d | sort >>/workspace/seen.txt
cat skills/pdf/SKILL.md >>/workspace/seen.txt
(echo more >>skills/pdf/SKILL.md || echo sealed) 2>/dev/null >>/workspace/seen.txt
find / -name task.yaml -o -name "main.py" -path "*reference*" 2>/dev/null >>/workspace/seen.txt
echo {\"kind\": \"tool_call\", \"tool\": \"Skill\", \"call_id\": \"1\", \"input\": {\"skill\": \"office:pdf\"}} >&3
touch /workspace/done.txt'
  run_suite
  expect_status 0
  expect_trial .status SUCCESS
  expect_trial '.criteria[1].score' 1
  cb show run/trials/default/t/00 seen.txt
  cat >expected <<'END'
/run/plugins/office
./.claude-plugin/plugin.json
./bin/stop.sh
./hooks/hooks.json
./skills/pdf/SKILL.md
./skills/pdf/round
Read me.
sealed
END
  diff expected out >&2 || fail "the agent saw something else: $(tr '\n' ' ' <out)"
  expect_trial '.view.systems.agent.plugins[0].path' /run/plugins/office
  expect_trial '.view.systems.agent.plugins[0].links[0].why' 'leads back to a folder that it lies in'
}

run_tests() { cb run suite/tests --suite-root suite --run-dir run --quiet; }

expect_refused() { # TEXT...
  run_tests
  expect_status 3
  expect_trial .status ERROR
  trial .error >error
  local text
  for text; do expect_text error "$text"; done
  expect_text error 'must not get'
}

case_a_suite_that_is_included_is_refused() {
  PLUGIN='plugins: [{path: ../.., include: ["."]}]' public_layout '#!/bin/sh'
  sed -i 's/"office"/"office", "skills": "."/' suite/.claude-plugin/plugin.json
  expect_refused suite/tests/t/ office/tests/t/
  sed -i 's/, include: \["."\]//' suite/tests/t/task.yaml
  rm -r run
  run_tests
  trial .error >error
  expect_text error "names the whole plugin"
}

case_a_hard_link_and_a_link_to_the_reference_are_refused() {
  public_layout '#!/bin/sh'
  ln suite/tests/t/reference/main.py suite/skills/pdf/example.py
  expect_refused suite/skills/pdf/example.py suite/tests/t/reference/main.py
  rm -r run suite/skills/pdf/example.py
  ln -s ../../tests/t/reference/main.py suite/skills/pdf/linked.py
  expect_refused suite/skills/pdf/linked.py suite/tests/t/reference/main.py
}

case_a_task_file_of_another_suite_is_refused() {
  public_layout '#!/bin/sh
touch done.txt'
  printf 'description: y\ntask_id: other\n' >suite/skills/pdf/sample.yaml
  expect_refused suite/skills/pdf/sample.yaml office/skills/pdf/sample.yaml 'line 2'
  rm -r run
  sed -i 's/, plugins:/, ignore_patterns: [sample.yaml], plugins:/' suite/tests/t/task.yaml
  run_tests
  expect_status 0
}

case_mistakes_are_found_before_anything_runs() {
  public_layout '#!/bin/sh'
  unset SUITE_HOME
  cb plan suite/tests/t/task.yaml
  expect_status 2
  expect_text err "agent.plugins[0].path: the variable 'SUITE_HOME' is not set"
  sed -i 's/path: $SUITE_HOME/path: gone, include: ["\/x", $TASK_DIR\/x]/' suite/tests/t/task.yaml
  cb plan suite/tests/t/task.yaml
  expect_status 2
  expect_text err "agent.plugins[0].path: '$PWD/suite/tests/t/gone' "
  expect_text err "agent.plugins[0].include: a pattern below the plugin's root expected"
  expect_text err '$TASK_DIR: the agent has no such folder'
}

main the_agent_gets_the_plugin_and_nothing_of_the_suite_in_it:user a_suite_that_is_included_is_refused \
  a_hard_link_and_a_link_to_the_reference_are_refused a_task_file_of_another_suite_is_refused \
  mistakes_are_found_before_anything_runs
