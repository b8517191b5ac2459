#!/bin/bash
# staging.sh: what the agent was given is its own to change, costs one copy however many trials use it, and stays as it was.
# shellcheck source-path=SCRIPTDIR disable=SC2154,SC2317,SC2119,SC2015,SC2016
. "$(dirname "$0")/lib.sh"

# A template with a file and a folder to edit, rename, replace and delete. $1: MiB of ballast, so that it becomes a layer.
make_template() {
  mkdir -p suite/t/template
  (
    cd suite/t/template
    mkdir -p keep move-me/inner replace-me delete-me/inner
    echo old >edit.txt
    echo stays >keep/file.txt
    echo moves >move-me/inner/file.txt
    echo first >replace-me/old.txt
    echo gone >delete-me/inner/file.txt
    echo single >single.txt
    printf '#!/bin/sh\necho runs\n' >tool.sh
    chmod 0755 tool.sh
    ln -s keep/file.txt link
    [ "$1" = 0 ] || head -c $(($1 << 20)) /dev/urandom >ballast
  )
  find suite/t/template | LC_ALL=C sort >tree.before
  find suite/t/template -type f -exec sha256sum {} + | LC_ALL=C sort >sums.before
}

template_task() { # BALLAST-MIB
  local checks='set -e
test "$(cat edit.txt)" = "old
new"
test "$(cat keep/file.txt)" = stays
test "$(cat moved/inner/file.txt)" = moves
test ! -e move-me
test "$(ls replace-me)" = new.txt
test ! -e delete-me
test ! -e single.txt
test "$(cat renamed.txt)" = single
test "$(./tool.sh)" = runs
test "$(readlink link)" = keep/file.txt
test "$(ls -A | wc -l)" = '
  local count=8 # edit.txt keep moved replace-me renamed.txt tool.sh link done.txt
  [ "$1" = 0 ] || count=9
  TASK_MORE='sandbox: {template_sources: [{type: template_dir, path: template}]}' \
    TASK_CRITERIA=$(command_criterion "$checks$count") script_task t <<'E2'
#!/bin/sh
set -e
echo new >>edit.txt
mv move-me moved
mv single.txt renamed.txt
rm -r replace-me && mkdir replace-me && echo second >replace-me/new.txt
rm -r delete-me
echo x >done.txt
E2
  make_template "$1"
}

template_unchanged() {
  find suite/t/template | LC_ALL=C sort | cmp - tree.before || fail "the template's tree changed"
  find suite/t/template -type f -exec sha256sum {} + | LC_ALL=C sort | cmp - sums.before || fail "a file of the template changed"
}

case_a_small_template_is_edited() {
  template_task 0
  run_suite --repeats 2
  expect_status 0
  expect_trial .staging copied
  template_unchanged
}

case_a_large_template_is_edited() {
  template_task 6
  run_suite --repeats 2
  expect_status 0
  case $(trial .staging) in
    layered) ;;
    copied) cb doctor && cat out ;; # where overlay or idmapping is missing; doctor says so
    *) fail "staging is $(trial .staging)" ;;
  esac
  # Only what the agent changed is in the archive, not the ballast.
  [ "$(stat -c %s run/trials/default/t/00/artifacts.tar)" -lt 1000000 ] || fail "the whole template was collected"
  template_unchanged
}

case_the_grader_sees_the_agents_tree_byte_for_byte() {
  template_task 6
  TASK_MORE='sandbox: {template_sources: [{type: template_dir, path: template}]}' \
    TASK_CRITERIA=$(command_criterion 'find . ! -path ./tree.txt ! -path . -printf "%P %y %m %l\n" | LC_ALL=C sort | cmp - tree.txt && sha256sum --quiet -c sums.txt') \
    script_task t <<'E2'
#!/bin/sh
set -e
echo new >>edit.txt
mv move-me moved
rm -r replace-me && mkdir replace-me && echo second >replace-me/new.txt
rm -r delete-me
mv ballast moved/ballast
chmod 0600 keep/file.txt
rm link && mkdir link && echo x >link/inside
rm tool.sh && ln -s keep tool.sh
mkdir -p empty/folder
rm -r keep && echo "now a file" >keep
find . -type f ! -name sums.txt ! -name tree.txt -exec sha256sum {} + >sums.txt
: >tree.txt
find . ! -path ./tree.txt ! -path . -printf '%P %y %m %l\n' | LC_ALL=C sort >tree.txt
E2
  run_suite
  expect_status 0
}

many_trials_one_copy() { # TRIALS
  mkdir -p suite/t/template
  head -c $((8 << 20)) /dev/urandom >suite/t/template/ballast
  TASK_MORE='sandbox: {template_sources: [{type: template_dir, path: template}]}' \
    TASK_CRITERIA='  - {type: file_exists, description: the ballast is there, path: ballast}' script_task t <<<$'#!/bin/sh\ntrue'
  # Where the store is: root's is shared by all runs, so its growth is what counts.
  local store=$XDG_CACHE_HOME/closedbook before=0 mib
  ! is_root || store=/var/cache/closedbook
  [ ! -d "$store" ] || before=$(du -sm --apparent-size "$store" | cut -f1)
  run_suite --repeats "$1" -j 2 --agent nop
  expect_status 0
  [ "$(find run/trials -name trial.json | wc -l)" = "$1" ] || fail "not $1 trials"
  [ -d "$store" ] || fail "the store is not at $store"
  mib=$(($(du -sm --apparent-size "$store" | cut -f1) - before))
  [ "$mib" -ge 8 ] && [ "$mib" -le 10 ] || fail "the store grew by $mib MiB for a template of 8"
  mib=$(du -sm run | cut -f1)
  [ "$mib" -le $((2 + $1 / 20)) ] || fail "the run directory has $mib MiB"
}

case_50_trials_of_one_template_cost_one_copy() { many_trials_one_copy 50; }
case_1000_trials_of_one_template_cost_one_copy() { E2E_TIMEOUT=600 many_trials_one_copy 1000; }

case_a_changed_template_is_staged_anew() {
  mkdir -p suite/t/template
  echo one >suite/t/template/file.txt
  TASK_MORE='sandbox: {template_sources: [{type: template_dir, path: template}]}' \
    TASK_CRITERIA='  - {type: file_contains, description: the new text, path: file.txt, includes: [two]}' script_task t <<<$'#!/bin/sh\ntrue'
  cb run suite --suite-root suite --run-dir r1
  expect_status 1
  # Same size, same second: only the bytes tell.
  touch -r suite/t/template/file.txt stamp
  echo two >suite/t/template/file.txt
  touch -r stamp suite/t/template/file.txt
  cb run suite --suite-root suite --run-dir r2
  expect_status 0
}

case_later_sources_win() {
  mkdir -p suite/t/one suite/t/two/sub
  echo one >suite/t/one/file.txt
  echo one >suite/t/one/only.txt
  echo two >suite/t/two/file.txt
  TASK_MORE='sandbox:
  template_sources:
    - {type: template_dir, path: one}
    - {type: template_dir, path: two, mount_point: .}
    - {type: template_dir, path: two, mount_point: below/here}
    - {type: starter_files, files: [{path: written.txt, content: "three\n"}]}
input_dir: input' TASK_CRITERIA=$(command_criterion 'cat file.txt only.txt below/here/file.txt written.txt input.txt | tr "\n" " " | grep -x "two one two three four "') \
    script_task t <<<$'#!/bin/sh\ntrue'
  mkdir suite/t/input
  echo four >suite/t/input/input.txt
  run_suite
  expect_status 0
}

case_inputs_that_cannot_be_staged() {
  TASK_MORE='sandbox: {template_sources: [{type: template_dir, path: template}]}' script_task t <<<$'#!/bin/sh\ntrue'
  run_suite
  expect_status 2
  expect_text err template
  mkdir suite/t/template
  mkfifo suite/t/template/pipe
  rm -rf run
  run_suite
  [ "$status" = 2 ] || [ "$status" = 3 ] || fail "a FIFO in a template ended with $status"
  cat err run/trials/default/t/00/trial.json >both 2>/dev/null || true
  expect_text both pipe
  rm suite/t/template/pipe
  ln -s /etc/passwd suite/t/template/out
  rm -rf run
  run_suite
  [ "$status" = 2 ] || [ "$status" = 3 ] || fail "a link out of a template ended with $status"
}

main a_small_template_is_edited:user a_large_template_is_edited:user the_grader_sees_the_agents_tree_byte_for_byte:user \
  50_trials_of_one_template_cost_one_copy:user 1000_trials_of_one_template_cost_one_copy:all \
  a_changed_template_is_staged_anew later_sources_win inputs_that_cannot_be_staged
