#!/bin/bash
# roots.sh: what a cell's root is made of: paths of the host that a task exposes, a folder as the whole root.
# shellcheck source-path=SCRIPTDIR disable=SC2154,SC2317,SC2119,SC2015,SC2016
. "$(dirname "$0")/lib.sh"

# A folder outside /tmp, which no cell may be shown. Removed with the case.
outside() {
  OUTSIDE=$(mktemp -d /var/tmp/e2e-roots.XXXXXX)
  chmod 0755 "$OUTSIDE"
  trap 'rm -rf "$OUTSIDE"; cleanup_case' EXIT
}

# A small system of the host's own programs in $1.
make_system() {
  local program file library
  mkdir -p "$1"/{bin,etc,usr/share}
  for program in sh cat ls grep id; do
    file=$(readlink -f "$(type -P "$program")")
    cp "$file" "$1/bin/$program"
    for library in $(ldd "$file" | grep -o '/[^ ]*'); do
      mkdir -p "$1${library%/*}"
      cp -nL "$library" "$1$library"
    done
  done
  echo theirs >"$1/marker"
}

case_exposes_a_toolchain() {
  outside
  mkdir -p "$OUTSIDE/tool/bin"
  printf '#!/bin/sh\necho tool runs\n' >"$OUTSIDE/tool/bin/tool"
  chmod 0755 "$OUTSIDE/tool/bin/tool"
  echo one >"$OUTSIDE/one.txt"
  export TOOL_PLACE=$OUTSIDE/tool
  TASK_MORE="sandbox: {expose: [\$TOOL_PLACE, $OUTSIDE/one.txt]}
grading: {expose: [$OUTSIDE/one.txt]}" \
    TASK_CRITERIA=$(command_criterion "grep -qx 'tool runs' done.txt && test ! -e $OUTSIDE/tool && grep -qx one $OUTSIDE/one.txt") \
    script_task t <<E2
#!/bin/sh
$OUTSIDE/tool/bin/tool >done.txt
cat $OUTSIDE/one.txt >>done.txt
touch $OUTSIDE/tool/new 2>>done.txt && echo wrote >>done.txt
ls $OUTSIDE >>done.txt
E2
  run_suite
  expect_status 0
  expect_trial '.view.systems.agent.expose | join(" ")' "$OUTSIDE/one.txt $OUTSIDE/tool"
  expect_trial '.view.systems.agent.kind' host
  cb show run/trials/default/t/00 done.txt
  expect_text out 'Read-only file system'
  [ ! -e "$OUTSIDE/tool/new" ] || fail "the agent wrote to the host"
}

case_exposes_what_usr_hides() {
  is_root || skip "needs a folder in /usr/local"
  place=$(mktemp -d /usr/local/e2e-roots.XXXXXX)
  trap 'rm -rf "$place"; cleanup_case' EXIT
  chmod 0755 "$place"
  echo shown >"$place/file"
  TASK_MORE="sandbox: {expose: [$place]}" \
    TASK_CRITERIA=$(command_criterion "test \"\$(cat done.txt)\" = 'shown ${place##*/}'") script_task t <<E2
#!/bin/sh
echo \$(cat $place/file) \$(ls /usr/local) >done.txt
E2
  run_suite
  expect_status 0
}

case_refuses_to_expose_what_is_not_its_to_show() {
  outside
  mkdir -p "$OUTSIDE/suite" suite/t
  mkfifo "$OUTSIDE/pipe"
  local path said
  while IFS='|' read -r path said; do
    TASK_MORE="sandbox: {expose: ['$path']}" script_task t </dev/null
    run_suite
    expect_status 2
    expect_text err "$said"
    [ ! -e run ] || fail "a run was started for $path"
  done <<E2
/workspace/x|own /workspace
/|own /workspace
/home|own /home/agent
/tmp|own /tmp
/tmp/x|own /tmp
/proc/self|own /proc
/dev/shm|own /dev
/etc/ssl|own /etc
/sys|own /sys
/run|own /run/closedbook
/nowhere|'/nowhere' cannot be opened: No such file or directory
$OUTSIDE/pipe|neither a folder nor a regular file
\$NOT_SET_AT_ALL/x|the variable 'NOT_SET_AT_ALL' is not set
E2
}

# The same folder by another name: found by what it is. The control: a link to something harmless works.
case_refuses_the_private_half_by_any_name() {
  outside
  mkdir -p "$OUTSIDE/suite/t/ref" "$OUTSIDE/harmless" links
  echo secret >"$OUTSIDE/suite/t/ref/answer"
  echo fine >"$OUTSIDE/harmless/file"
  ln -s "$OUTSIDE/suite" "$OUTSIDE/link-to-suite"
  ln -s "$OUTSIDE/harmless" "$OUTSIDE/link-to-harmless"
  ln -s "$OUTSIDE/suite/t/ref/answer" "$OUTSIDE/link-to-answer"
  ln -s "$XDG_CACHE_HOME" "$OUTSIDE/link-to-cache"
  ln -s "$PWD" "$OUTSIDE/link-to-runs"
  TASK_MORE='reference: {directory: ref}' script_task t <<'E2'
#!/bin/sh
cat /var/tmp/e2e-roots.*/*/file >done.txt 2>&1
E2
  cp suite/t/agent.sh "$OUTSIDE/suite/t/"
  local name want
  for name in link-to-suite link-to-answer link-to-runs link-to-harmless; do
    sed "s|^reference|sandbox: {expose: [$OUTSIDE/$name]}\n&|" suite/t/task.yaml >"$OUTSIDE/suite/t/task.yaml"
    rm -rf run
    cb run "$OUTSIDE/suite" --suite-root "$OUTSIDE/suite" --run-dir run --quiet
    if [ "$name" = link-to-harmless ]; then
      expect_status 0
      cb show run/trials/default/t/00 done.txt
      expect_text out fine
    else
      [ "$status" != 0 ] || fail "$name was exposed"
      expect_trial '.status' ERROR
      want='which the agent must not get'
      case $(trial .error) in *"$want"*) ;; *) fail "of $name: $(trial .error)" ;; esac
    fi
  done
  # As written, without any link: said while loading.
  sed "s|^reference|sandbox: {expose: [$OUTSIDE/suite]}\n&|" suite/t/task.yaml >"$OUTSIDE/suite/t/task.yaml"
  cb run "$OUTSIDE/suite" --suite-root "$OUTSIDE/suite" --run-dir run2 --quiet
  expect_status 2
  expect_text err 'holds the task file'
}

# A socket in an exposed folder leads nowhere. The control: outside the cell it answers.
case_reaches_no_socket_through_an_exposed_folder() {
  need python3
  outside
  python3 -c 'import os, socket, sys
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); os.chmod(sys.argv[1], 0o777); s.listen(); open(sys.argv[2], "w").close()
while True: s.accept()[0].sendall(b"host")' "$OUTSIDE/socket" "$OUTSIDE/ready" &
  echo $! >server
  trap 'kill "$(cat server)" 2>/dev/null; rm -rf "$OUTSIDE"; cleanup_case' EXIT
  wait_until 20 test -e "$OUTSIDE/ready"
  local ask="import socket
s = socket.socket(socket.AF_UNIX); s.connect('$OUTSIDE/socket'); print(s.recv(9).decode())"
  [ "$(python3 -c "$ask")" = host ] || fail "the control does not answer"
  TASK_MORE="sandbox: {expose: [$OUTSIDE]}" script_task t <<E2
#!/bin/sh
test -S $OUTSIDE/socket && echo there >done.txt
python3 -c "$ask" >>done.txt 2>&1
E2
  run_suite
  expect_status 0
  cb show run/trials/default/t/00 done.txt
  expect_text out there
  expect_text out ConnectionRefusedError
}

case_runs_in_a_root_of_its_own() {
  make_system system
  mkdir -p suite/t
  cp -r system suite/t/system
  TASK_MORE="sandbox: {rootfs: system}
grading: {rootfs: system}" \
    TASK_CRITERIA=$(command_criterion 'grep -qx theirs done.txt && test -e /marker && test ! -e /usr/bin/env') script_task t <<'E2'
#!/bin/sh
cat /marker >done.txt
ls /usr >>done.txt
ls -d /usr/lib/python3 /root >>done.txt 2>&1
(: >/marker) 2>>done.txt
id -un >>done.txt
E2
  run_suite
  expect_status 0
  expect_trial '.view.systems.agent.kind' rootfs
  expect_trial '.view.systems.grading.kind' rootfs
  cb show run/trials/default/t/00 done.txt
  expect_text out 'Read-only file system'
  expect_text out agent
  [ "$(cat suite/t/system/marker)" = theirs ] || fail "the root was changed"
}

# Without grading.rootfs the graders have the host's programs.
case_grades_on_the_host_unless_told() {
  make_system suite/t/system
  TASK_MORE="sandbox: {rootfs: system}" \
    TASK_CRITERIA=$(command_criterion 'grep -qx theirs done.txt && test ! -e /marker && test -e /usr/bin/env') script_task t <<'E2'
#!/bin/sh
cat /marker >done.txt
E2
  run_suite
  expect_status 0
  expect_trial '.view.systems.grading.kind' host
}

case_says_that_a_root_has_no_shell() {
  mkdir -p suite/t/system/bin
  echo x >suite/t/system/bin/x
  TASK_MORE="sandbox: {rootfs: system}" script_task t <<'E2'
#!/bin/sh
true
E2
  run_suite
  expect_status 3
  case $(trial .error) in *"/bin/sh"*) ;; *) fail "$(trial .error)" ;; esac
  cb cell suite/t
  expect_status 125
  expect_text err 'has no /bin/sh'
  TASK_MORE="agent: {type: nop}
grading: {rootfs: system}" TASK_CRITERIA=$(command_criterion true) script_task t </dev/null
  sed -i '/^agent: {type: script/d' suite/t/task.yaml
  rm -rf run
  run_suite
  case "$(trial .error) $(trial '.criteria[0].error')" in *"has no /bin/sh"*) ;; *) fail "$(trial .error)" ;; esac
}

case_refuses_a_root_that_is_none() {
  mkdir -p suite/t/empty
  echo x >suite/t/file
  local path said
  while IFS='|' read -r path said; do
    TASK_MORE="sandbox: {rootfs: $path}" script_task t </dev/null
    run_suite
    expect_status 2
    expect_text err "$said"
  done <<E2
empty|is empty: a root must hold a system
file|is not a folder
absent|cannot be opened: No such file or directory
/|this machine's own root
..|holds the task file
E2
  make_system suite/t/system
  TASK_MORE="sandbox: {rootfs: system}" script_task t </dev/null
  run_suite --driver tempdir
  expect_status 2
  expect_text err "no root of its own"
}

main exposes_a_toolchain:user exposes_what_usr_hides refuses_to_expose_what_is_not_its_to_show:user \
  refuses_the_private_half_by_any_name:user reaches_no_socket_through_an_exposed_folder:user \
  runs_in_a_root_of_its_own:user grades_on_the_host_unless_told:user says_that_a_root_has_no_shell:user \
  refuses_a_root_that_is_none
