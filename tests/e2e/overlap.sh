#!/bin/bash
# overlap.sh: nothing private is staged for the agent: copies, hard links and links are errors that name both
# places; what the reference shares with its template is none.
# shellcheck source-path=SCRIPTDIR disable=SC2154,SC2317,SC2119,SC2015,SC2016,SC2013
. "$(dirname "$0")/lib.sh"

# A task with a reference (main.py differs from the template's, util.py does not) and a template.
reference_task() {
  mkdir -p suite/t/reference/sub suite/template
  echo 'print(42)' >suite/t/reference/main.py
  echo 'print("broken")' >suite/template/main.py
  echo 'def help(): pass' | tee suite/t/reference/sub/util.py >suite/template/other.py
  mkdir suite/template/sub && mv suite/template/other.py suite/template/sub/util.py
  touch suite/t/reference/__init__.py suite/template/elsewhere.py
  TASK_MORE='reference: {directory: reference}
sandbox: {template_sources: [{type: template_dir, path: ../template'"${1:-}"'}]}' \
    script_task t <<<$'#!/bin/sh\necho x >done.txt'
}

# The run ends as an error of the task that names both places.
expect_refused() { # STAGED PRIVATE
  run_suite
  expect_status 3
  expect_trial .status ERROR
  expect_trial .passed null
  trial .error >error
  expect_text error "$1"
  expect_text error "$2"
  expect_text error 'must not get'
}

case_what_a_reference_shares_with_its_template_is_not_private() {
  reference_task
  run_suite
  expect_status 0
  expect_trial .status SUCCESS
}

case_a_copy_of_the_reference_is_refused() {
  reference_task
  cp suite/t/reference/main.py suite/template/old.txt
  expect_refused suite/template/old.txt suite/t/reference/main.py
}

case_a_hard_link_to_the_reference_is_refused() {
  reference_task ', mount_point: deep/er'
  ln suite/t/reference/main.py suite/template/linked
  expect_refused suite/template/linked suite/t/reference/main.py
  expect_text error deep/er/linked
}

case_a_link_to_the_reference_is_refused() {
  reference_task
  ln -s ../t/reference/main.py suite/template/linked
  run_suite
  expect_status 3
  expect_trial .status ERROR
  trial .error >error
  expect_text error linked
  expect_text error t/reference/main.py
}

case_a_template_that_is_a_link_to_the_tasks_folder_is_refused() {
  reference_task
  rm -r suite/template
  ln -s t suite/template
  expect_refused suite/template/ suite/t/
}

case_a_copy_of_the_task_file_is_refused() {
  reference_task
  cp suite/t/task.yaml suite/template/notes.txt
  expect_refused suite/template/notes.txt suite/t/task.yaml
}

case_an_ignored_copy_is_not_staged() {
  reference_task
  cp suite/t/reference/main.py suite/template/old.txt
  sed -i 's/^sandbox: {/sandbox: {ignore_patterns: [old.txt], /' suite/t/task.yaml
  run_suite
  expect_status 0
}

case_a_reference_that_the_agent_gets_whole_is_refused() {
  reference_task
  cp suite/t/reference/main.py suite/template/main.py
  run_suite
  expect_status 3
  expect_trial .status ERROR
  trial .error >error
  expect_text error 'all of the reference'
  expect_text error suite/t/reference
}

case_a_starter_file_with_the_answer_is_refused() {
  reference_task
  sed -i 's/^sandbox:.*/sandbox: {template_sources: [{type: starter_files, files: [{path: a.py, content: "print(42)\\n"}]}]}/' suite/t/task.yaml
  expect_refused 'starter_files: a.py' suite/t/reference/main.py
}

main what_a_reference_shares_with_its_template_is_not_private:user \
  a_copy_of_the_reference_is_refused \
  a_hard_link_to_the_reference_is_refused:user \
  a_link_to_the_reference_is_refused \
  a_template_that_is_a_link_to_the_tasks_folder_is_refused \
  a_copy_of_the_task_file_is_refused \
  an_ignored_copy_is_not_staged \
  a_reference_that_the_agent_gets_whole_is_refused \
  a_starter_file_with_the_answer_is_refused
