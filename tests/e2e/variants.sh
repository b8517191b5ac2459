#!/bin/bash
# variants.sh: experiments and datasets, from the plan to the records: trials of each, what their agents and graders get,
# resume and grade, and that neither file reaches an agent.
# shellcheck source-path=SCRIPTDIR disable=SC2154,SC2317,SC2119,SC2015,SC2016
. "$(dirname "$0")/lib.sh"

# A suite whose agent copies its prompt into out.
make_suite() {
  mkdir -p suite/experiments suite/tasks suite/.claude-plugin
  echo '{"name": "suite"}' >suite/.claude-plugin/plugin.json
  cat >suite/tasks/agent.sh <<'E2'
#!/bin/sh
cat >out
find / \( -name rows.jsonl -o -name ab.yaml \) 2>/dev/null >seen || true
E2
  chmod 755 suite/tasks/agent.sh
  cat >suite/tasks/t.yaml <<'E2'
task_id: t
description: copies
initial_prompt: say ${row.word}
agent: {type: script, script: agent.sh}
dataset: {paths: [rows.jsonl]}
success_criteria:
  - {type: file_contains, path: out, includes: ["${row.answer}"], description: the answer is there}
E2
  printf '{"id": "%s", "word": "%s", "answer": "%s"}\n' one yes yes two no perhaps >suite/tasks/rows.jsonl
  cat >suite/experiments/ab.yaml <<'E2'
experiment_id: a-b
variants:
  - variant_id: plain
  - variant_id: hinted
    repeats: 2
    prompt_mutations: [{type: suffix, content: or perhaps}]
E2
}

statuses() { # of the run: "variant/task status" lines
  jq -r '"\(.trial_id) \(.status)"' run/trials/*/*/*/trial.json | sort | tr '\n' ';'
}

case_each_variant_of_each_row_is_a_trial() {
  make_suite
  run_suite -e ab
  expect_status 1
  [ "$(statuses)" = "hinted/t@one/00 SUCCESS;hinted/t@one/01 SUCCESS;hinted/t@two/00 SUCCESS;hinted/t@two/01 SUCCESS;plain/t@one/00 SUCCESS;plain/t@two/00 FAILURE;" ] ||
    fail "$(statuses)"
  [ "$(jq -r '.task_id + " " + .variant_id' run/trials/plain/t@two/00/trial.json)" = "t/two plain" ] || fail "names in trial.json"
  cb show run/trials/hinted/t@two/00 out
  [ "$(cat out)" = $'say no\n\nor perhaps' ] || fail "the prompt was $(cat out)"
  cb show run/trials/hinted/t@two/00 seen
  [ ! -s out ] || fail "the agent saw $(cat out)"
  # The same search finds both where nothing is hidden.
  cb run suite --suite-root suite -e ab --variant plain --only t/one --driver tempdir --run-dir open --quiet
  cb show open/trials/plain/t@one/00 seen
  expect_text out rows.jsonl
  expect_text out ab.yaml
}

case_figures_of_a_dataset_are_kept() {
  make_suite
  sed -i '$s/description: the answer is there/description: it is there, suite_thresholds: {mean: 0.9}/' suite/tasks/t.yaml
  run_suite
  expect_status 1
  cb report run --json
  [ "$(jq -c '.suites[0] | [.task_id, .metrics.count, .metrics.mean, .checks[0].passed]' out)" = '["t",2,0.5,false]' ] ||
    fail "figures: $(jq -c .suites out)"
  [ "$(jq -S .suites out)" = "$(jq -S .suites run/run.json)" ] || fail "run.json has other figures than the report"
  sed -i 's/perhaps/no/' suite/tasks/rows.jsonl
  cb grade run --quiet
  expect_status 0
  [ "$(jq -c '.suites[0].metrics.mean == 1' run/run.json)" = true ] || fail "grading again left the old figures"
}

case_resume_notices_a_changed_variant() {
  make_suite
  run_suite -e ab
  rm -r run/trials/hinted/t@two/01
  sed -i 's/or perhaps/or maybe/' suite/experiments/ab.yaml
  cb run --run-dir run --resume
  expect_status 2
  expect_text err "task 'hinted/t/one': what the agent gets changed"
  sed -i 's/or maybe/or perhaps/' suite/experiments/ab.yaml
  cb run --run-dir run --resume --quiet
  expect_status 1
  [ -f run/trials/hinted/t@two/01/trial.json ] || fail "the missing trial was not run"
}

case_grade_and_cell_find_the_variant() {
  make_suite
  run_suite -e ab
  cb grade run --quiet
  expect_status 1
  [ "$(statuses | tr ';' '\n' | grep -c SUCCESS)" = 5 ] || fail "$(statuses)"
  cb cell run/trials/hinted/t@two/00 -- cat out
  expect_status 0
  expect_text out "or perhaps"
  cb cell run/trials/plain/t@two/00 -- cat out
  expect_status 0
  [ "$(cat out)" = "say no" ] || fail "the other variant's cell: $(cat out)"
}

case_no_copy_of_the_rows_is_staged() {
  make_suite
  mkdir suite/tasks/in
  cp suite/tasks/rows.jsonl suite/tasks/in/other-name
  echo 'input_dir: in' >>suite/tasks/t.yaml
  run_suite
  expect_status 3
  jq -r .error run/trials/default/t@one/00/trial.json >error
  expect_text error other-name
  expect_text error rows.jsonl
}

case_a_sample_stays_the_same_when_resumed() {
  make_suite
  run_suite --sample 1
  local first
  first=$(statuses)
  rm -r run/trials/default/*/00
  cb run --run-dir run --resume --quiet
  [ "$(statuses)" = "$first" ] || fail "first $first, then $(statuses)"
}

main figures_of_a_dataset_are_kept:user each_variant_of_each_row_is_a_trial:user resume_notices_a_changed_variant grade_and_cell_find_the_variant \
  no_copy_of_the_rows_is_staged a_sample_stays_the_same_when_resumed
