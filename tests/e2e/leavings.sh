#!/bin/bash
# leavings.sh: hostile things in the workspace after the agent. Copy-out lists what it refuses, the grader sees only
# what is safe, and nothing reaches the terminal raw.
# shellcheck source-path=SCRIPTDIR disable=SC2154,SC2317,SC2119,SC2015,SC2016
. "$(dirname "$0")/lib.sh"

refused() { # PATH: must be in the list of refusals
  trial '.artifacts.refused[].path' | grep -qxF -- "$1" || fail "$1 is not listed as refused: $(trial -c '.artifacts.refused' 2>/dev/null | head -c 300)"
}

names_in_tar() { tar -tf run/trials/default/t/00/artifacts.tar --quoting-style=escape; }

case_fifos_sockets_and_devices() {
  need python3
  script_task t <<'E2'
#!/bin/sh
echo x >done.txt
mkfifo pipe
mkdir deep && mkfifo deep/pipe
python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'
mknod device c 1 3 2>/dev/null && echo made >mknod.txt
mknod block b 8 0 2>/dev/null && echo made >mknod.txt
exit 0
E2
  run_suite
  expect_status 0
  refused pipe
  refused deep/pipe
  refused socket
  ! names_in_tar | grep -qE 'pipe|socket|device|block|mknod.txt' || fail "special files were collected, or a device was made"
}

case_links_out_of_the_tree() {
  echo "a secret of the host" >host-secret
  TASK_CRITERIA="  - {type: file_exists, description: a link is not the file, path: answer.txt, weight: 0}
$(command_criterion 'test ! -e host && test ! -e up && test ! -e hop/environ && cat inside.txt')" script_task t <<E2
#!/bin/sh
ln -s "$PWD/host-secret" host
ln -s ../../../../../../../../..$PWD/host-secret up
ln -s /etc/passwd answer.txt
ln -s /proc/self hop
ln -s . loop
ln -s nowhere dangling
echo text >real.txt
ln -s real.txt inside.txt
ln -s /usr/bin/env tool
ln real.txt hard.txt
E2
  run_suite
  expect_status 0
  refused host
  refused up
  refused answer.txt
  refused hop
  ! grep -q 'a secret of the host' run/trials/default/t/00/artifacts.tar || fail "host bytes in artifacts.tar"
  names_in_tar >names
  grep -q 'inside.txt' names || fail "an honest link was not collected"
  cb extract run/trials/default/t/00 to
  expect_status 0
  [ -z "$(find to -type l)" ] || fail "extract made links: $(find to -type l)"
}

case_a_link_in_place_of_the_expected_file() {
  mkdir -p suite/t/reference
  echo secret-answer >suite/t/reference/answer.txt
  TASK_MORE='reference: {directory: reference}' TASK_CRITERIA='  - {type: file_contains, description: the answer, path: answer.txt, includes: [secret-answer]}' \
    script_task t <<'E2'
#!/bin/sh
ln -s /proc/self/environ answer.txt
for d in /run /tests /reference /private; do ln -sf "$d" "link$(basename "$d")"; done
E2
  run_suite
  expect_status 1
  expect_trial .status FAILURE
}

case_set_id_bits_go() {
  script_task t <<'E2'
#!/bin/sh
echo x >done.txt
cp /bin/true tool && chmod 6755 tool
mkdir shared && chmod 3777 shared && echo x >shared/file
E2
  run_suite
  expect_status 0
  tar -tvf run/trials/default/t/00/artifacts.tar >listing
  ! grep -E '^.{3}[sS]|^.{6}[sS]' listing || fail "a set-id bit was collected"
  grep -q tool listing || fail "the tool was not collected"
}

case_names_that_bite() {
  need python3
  script_task t <<'E2'
#!/usr/bin/python3
import os
open("done.txt", "w").close()
for name in (b"a\nPASS\n", b"\x1b]0;owned\x07", b"\x1b[2J\x1b[H", b"-rf", b"--checkpoint=1", b"$(touch x)", b"`id`", b"a\rb",
             b"\xff\xfe", "x\u202egnp.exe".encode(), b"n" * 255, b" ", b"%s%n", b"{{7*7}}", b"quote\"back\\slash", b"tab\there"):
    with open(name, "w") as f:
        f.write("x")
E2
  run_suite
  expect_status 0
  expect_trial '.artifacts.files + (.artifacts.refused | length) >= 17' true
  jq -e . run/trials/default/t/00/changes.json >/dev/null || fail "changes.json is not JSON"
  ! LC_ALL=C grep -rq $'\xe2\x80\xae' run --include='*.json' --include='*.jsonl' || fail "a raw bidi mark in a record"
  local command
  for command in 'report run -v' 'show run/trials/default/t/00'; do
    # shellcheck disable=SC2086
    cb $command
    cat out err >both
    ! LC_ALL=C grep -q $'[\x01-\x08\x0b-\x1f\x7f]' both || fail "'$command' prints raw control bytes"
    ! grep -qx PASS both || fail "'$command' lets a file name forge a line"
    iconv -f UTF-8 -t UTF-8 both >/dev/null || fail "'$command' prints invalid UTF-8"
  done
  cb extract run/trials/default/t/00 to
  expect_status 0
  [ ! -e x ] && [ ! -e to/x ] || fail "a name was run as a command"
}

case_a_tree_deeper_than_any_path() {
  need python3
  script_task t <<'E2'
#!/usr/bin/python3
import os
open("done.txt", "w").close()
for i in range(300):
    os.mkdir("d" * 50)
    os.chdir("d" * 50)
open("bottom", "w").close()
E2
  run_suite
  case $(trial .status) in SUCCESS | FAILURE) ;; *) fail "status $(trial .status): $(trial .error)" ;; esac
  expect_trial '.artifacts.refused | length > 0' true
}

case_a_huge_hole() {
  script_task t <<<$'#!/bin/sh\necho x >done.txt; truncate -s 1T hole || truncate -s 3G hole; exit 0'
  run_suite
  case $(trial .status) in SUCCESS | FAILURE) ;; *) fail "status $(trial .status): $(trial .error)" ;; esac
  [ "$(du -sm run | cut -f1)" -le 100 ] || fail "the hole was filled: $(du -sm run)"
}

case_files_that_cannot_be_read() {
  script_task t <<'E2'
#!/bin/sh
echo x >done.txt
echo hidden >shut.txt && chmod 0000 shut.txt
mkdir closed && echo in >closed/file && chmod 0000 closed
exit 0
E2
  run_suite
  expect_status 0
}

case_git_in_the_workspace_runs_nothing() {
  need git
  local marker=$PWD/fired
  TASK_CRITERIA="$(command_criterion 'cat repo/f.txt')" script_task t <<E2
#!/bin/sh
mkdir repo && cd repo && git init -q . || exit 0
echo x >f.txt
printf '#!/bin/sh\n: >$marker\n' >.git/run.sh; chmod +x .git/run.sh
git config core.fsmonitor "\$PWD/.git/run.sh"
git config core.hooksPath "\$PWD/.git"
git config diff.external "\$PWD/.git/run.sh"
E2
  run_suite
  expect_status 0
  cb extract run/trials/default/t/00 to
  expect_status 0
  [ -z "$(find to -name .git)" ] || fail "extract wrote a live .git"
  (cd to && git status >/dev/null 2>&1) || true
  [ ! -e "$marker" ] || fail "the agent's program ran on the host"
}

case_show_and_extract_are_exact() {
  script_task t <<'E2'
#!/bin/sh
echo x >done.txt
mkdir -p a/b
printf 'line\nno newline at the end' >a/b/text
printf '\000\001\377' >binary
chmod 0755 a/b/text
E2
  run_suite
  expect_status 0
  cb extract run/trials/default/t/00 to
  expect_status 0
  printf 'line\nno newline at the end' | cmp - to/a/b/text
  printf '\000\001\377' | cmp - to/binary
  [ -x to/a/b/text ] || fail "the mode was lost"
  cb show run/trials/default/t/00 a/b/text
  expect_text out 'no newline at the end'
  cb show run/trials/default/t/00 no/such/file
  expect_status 2
}

main fifos_sockets_and_devices:user links_out_of_the_tree:user a_link_in_place_of_the_expected_file set_id_bits_go:user \
  names_that_bite:user a_tree_deeper_than_any_path a_huge_hole:user files_that_cannot_be_read:user \
  git_in_the_workspace_runs_nothing show_and_extract_are_exact:user
