#!/bin/bash
# private.sh: where private bytes are, and where not; and what the process of a trial may do.
# shellcheck source-path=SCRIPTDIR disable=SC2154,SC2317,SC2119,SC2015,SC2016,SC2013
. "$(dirname "$0")/lib.sh"

# A task whose reference, hidden tests and task file hold $secret. The agent shows all it can see of itself.
secret_task() { # ID EXTRA-COMMANDS
  secret="SNTL-$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')"
  mkdir -p "suite/$1/reference" "suite/$1/tests"
  echo "$secret" >"suite/$1/reference/answer.txt"
  printf '#!/bin/sh\n# %s\ngrep -q x done.txt\n' "$secret" >"suite/$1/tests/check.sh"
  TASK_MORE="reference: {directory: reference}
# $secret" TASK_CRITERIA=$(command_criterion 'sh "$TASK_DIR/tests/check.sh" && test -s "$REFERENCE_DIR/answer.txt" # '"$secret") \
    script_task "$1" <<E2
#!/bin/sh
echo x >done.txt
env >env.txt
cat /proc/self/mountinfo /proc/1/cmdline >proc.txt 2>&1
ls -la / /run /home /tmp >list.txt 2>&1
find / -xdev -newer /etc/passwd >new.txt 2>/dev/null
${2:-}
exit 0
E2
}

# Files below the given folders that hold the secret, by name or content.
holders() { # FOLDER...
  grep -rlaF -- "$secret" "$@" 2>/dev/null || true
  find "$@" -name "*$secret*" 2>/dev/null || true
}

stores() { # every place where a store may be
  local store
  for store in "$XDG_CACHE_HOME/closedbook" /var/cache/closedbook; do
    [ ! -d "$store" ] || echo "$store"
  done
}

case_no_private_byte_after_a_run() {
  secret_task t
  run_suite
  expect_status 0
  # The control: the sweep finds what is there to be found.
  [ -n "$(holders suite)" ] || fail "the sweep finds nothing in the sources"
  local found
  # shellcheck disable=SC2046
  found=$(holders $(stores) "$TMPDIR" /run /dev/shm /var/tmp /var/lib | grep -v "^$PWD/suite" || true)
  [ -z "$found" ] || fail "private bytes outside: $found"
  found=$(holders run/trials/default/t/00/agent.stdout run/trials/default/t/00/agent.stderr \
    run/trials/default/t/00/events.jsonl run/trials/default/t/00/changes.json run/trials/default/t/00/artifacts.tar)
  [ -z "$found" ] || fail "private bytes in what came from the agent's cell: $found"
  [ -z "$(holders out err)" ] || fail "private bytes on the terminal"
  # Nothing that the agent saw names the sources.
  cb extract run/trials/default/t/00 to
  expect_status 0
  ! grep -rqF -- "$PWD/suite" to || fail "the agent saw the path of the suite: $(grep -rlF "$PWD/suite" to)"
  ! grep -rqE 'reference|answer\.txt|check\.sh' to/env.txt to/proc.txt to/list.txt || fail "the agent saw names of the private half"
}

case_no_private_byte_in_another_trial() {
  secret_task one
  script_task two <<<$'#!/bin/sh\necho x >done.txt'
  run_suite -j 2
  expect_status 0
  [ -z "$(holders run/trials/default/two)" ] || fail "private bytes of one task in another's trial"
}

case_private_bytes_lie_in_the_private_store_only_while_it_runs() {
  local mark found file mode
  mark=$(new_mark)
  secret_task t "timeout 6 sleep $mark"
  start_cb run suite --suite-root suite --run-dir run --quiet
  wait_until 30 has_mark "$mark"
  # shellcheck disable=SC2046
  found=$(holders $(stores) "$TMPDIR" /run /dev/shm /var/tmp | sort -u)
  for file in $found; do
    case $file in */private/*) ;; *) fail "private bytes at $file during the run" ;; esac
    mode=$(stat -c %a "${file%%/private/*}/private")
    [ "$mode" = 700 ] || fail "the private store has mode $mode"
  done
  # And the live cell: what its processes can reach, read through their own root.
  if is_root; then
    local pid
    pid=$(pids_of_mark "$mark" | tail -n 1)
    [ -e "/proc/$pid/root/workspace/done.txt" ] || fail "the control: the workspace is not where the sweep looks"
    found=$(cd "/proc/$pid/root" && grep -rlaF -- "$secret" workspace home tmp etc run dev/shm 2>/dev/null || true)
    [ -z "$found" ] || fail "private bytes in the agent's cell: $found"
    ! tr '\0' '\n' <"/proc/$pid/environ" | grep -qF -- "$secret" || fail "private bytes in the agent's environment"
  fi
  finish_cb
  expect_status 0
}

case_a_stale_private_store_is_removed() {
  local mark dir
  mark=$(new_mark)
  secret_task t "timeout 6 sleep $mark"
  start_cb run suite --suite-root suite --run-dir run --quiet
  wait_until 30 has_mark "$mark"
  kill -KILL "$started"
  finish_cb
  wait_until 20 no_mark "$mark"
  # The next run of anything cleans up.
  script_task other <<<$'#!/bin/sh\necho x >done.txt'
  cb run suite/other --suite-root suite/other --run-dir run2 --quiet
  expect_status 0
  # shellcheck disable=SC2046
  dir=$(holders $(stores))
  [ -z "$dir" ] || fail "private bytes of the dead run are still at $dir"
}

# The trial processes of a live run: the program's own children that are not monitor, opener or worker.
trial_pids() {
  local pid
  for pid in $(cat "/proc/$started/task/$started/children"); do
    [ "$(readlink "/proc/$pid/exe")" = "$(readlink -f "$CLOSEDBOOK")" ] && echo "$pid"
  done
}

status_of() { # PID FIELD
  sed -n "s/^$2:[[:space:]]*//p" "/proc/$1/status"
}

sleeping() { # PID: has become sleep(1) and waits in a call
  [ "$(basename "$(readlink "/proc/$1/exe")")" = sleep ] && grep -q '^State:.S' "/proc/$1/status"
}

case_a_trial_process_can_do_nothing_by_itself() {
  local mark pid confined=0 field poked=0
  mark=$(new_mark)
  script_task t <<<$'#!/bin/sh\necho x >done.txt\nexec timeout 20 sleep '"$mark"
  start_cb run suite --suite-root suite --run-dir run --quiet
  wait_until 30 has_mark "$mark"
  if is_root && [ "$(uname -m)" = x86_64 ] && command -v cc >/dev/null; then
    cc -O1 -o poke "$E2E_HERE/poke.c"
    sleep "$mark"0 &
    wait_until 10 sleeping $!
    ./poke $! getpid open=/etc/shadow socket exec=/bin/true >control || true
    kill $! 2>/dev/null || true
    grep -q '^open [0-9]' control && grep -q '^socket [0-9]' control && grep -q '^exec 0' control ||
      fail "the positive control of poke: $(tr '\n' ';' <control)"
    poked=1
  fi
  for pid in $(trial_pids); do
    [ "$(status_of "$pid" Seccomp)" = 2 ] || continue # the opener, when it is a child of the parent
    confined=$((confined + 1))
    for field in CapInh CapPrm CapEff CapAmb; do
      [ "$(status_of "$pid" "$field")" = 0000000000000000 ] || fail "trial process: $field is $(status_of "$pid" "$field")"
    done
    [ "$(status_of "$pid" NoNewPrivs)" = 1 ] || fail "trial process: no_new_privs is not set"
    ! is_root || [ "$(status_of "$pid" Uid | tr '\t' '\n' | sort -u | head -n 1)" != 0 ] || fail "trial process: runs as uid 0"
    if [ "$poked" = 1 ]; then
      ./poke "$pid" getpid open=/etc/shadow open=/etc/passwd socket exec=/bin/true >result || fail "poke: $(cat log 2>/dev/null)"
      grep -q "^getpid $pid$" result || fail "poke had no effect on $pid: $(tr '\n' ';' <result)"
      ! grep -qE '^(open|socket) [0-9]|^exec 0' result || fail "a trial process may: $(tr '\n' ';' <result)"
      grep -qE '^(open|socket|exec) (-|killed)' result || fail "nothing was refused: $(tr '\n' ';' <result)"
    fi
  done
  [ "$confined" -ge 1 ] || fail "no trial process was found under $started"
  # The parent has given its privilege up as well.
  if is_root; then
    [ "$(status_of "$started" CapEff)" = 0000000000000000 ] || fail "the parent has capabilities: $(status_of "$started" CapEff)"
    [ "$(status_of "$started" Uid | cut -f1)" != 0 ] || fail "the parent runs as root"
  fi
  kill -INT "$started"
  finish_cb
}

case_only_the_monitor_has_privilege() {
  local mark pid exe privileged=
  mark=$(new_mark)
  script_task t <<<$'#!/bin/sh\nexec timeout 20 sleep '"$mark"
  start_cb run suite --suite-root suite --run-dir run --quiet
  wait_until 30 has_mark "$mark"
  # Init (PID 1 of a cell) and the monitor come from one program. The opener and the claim helper, which make and open
  # files for root, may hold the capabilities of files alone: CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER (bits 0 to 3).
  for pid in $(descendants "$started"); do
    exe=$(basename "$(readlink "/proc/$pid/exe" 2>/dev/null || echo gone)")
    case "$(status_of "$pid" CapEff):$exe" in
      :*) ;;
      0000000000000000:*) ;;
      000000000000000[0-9a-f]:closedbook) ;;
      *:closedbook-cell) privileged=yes ;;
      *) fail "process $pid ($exe) has the capabilities $(status_of "$pid" CapEff)" ;;
    esac
  done
  [ -n "$privileged" ] || fail "no monitor was found: nothing is tested"
  kill -INT "$started"
  finish_cb
}

case_the_cell_is_what_it_must_be() {
  secret_task t
  cb cell suite/t --suite-root suite -- /bin/sh -c '
    id -un; id -u; pwd; echo "$HOME"; grep -E "^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp):" /proc/self/status
    for p in /sys/kernel /usr/local/bin /root /etc/shadow /boot /var/lib /proc/kcore; do head -c 1 $p >/dev/null 2>&1 && echo "readable: $p"; ls $p/ >/dev/null 2>&1 && echo "listable: $p"; done
    for p in /usr/probe /etc/probe /probe /proc/sys/kernel/core_pattern; do (: >$p) 2>/dev/null && echo "writable: $p"; done
    for p in /workspace $HOME /tmp /dev/shm; do (: >$p/probe) 2>/dev/null || echo "not writable: $p"; done
    ls /proc/1/fd >/dev/null 2>&1 && echo "init can be read"
    ls /proc/self/fd'
  expect_status 0
  [ "$(head -n 1 out)" = agent ] || fail "the user is $(head -n 1 out)"
  [ "$(sed -n 2p out)" != 0 ] || fail "the agent is uid 0"
  [ "$(grep -c '^Cap.*0000000000000000$' out)" = 5 ] || fail "capabilities: $(grep ^Cap out | tr '\n' ' ')"
  grep -qE '^NoNewPrivs:[[:space:]]*1' out && grep -qE '^Seccomp:[[:space:]]*2' out || fail "no_new_privs or seccomp is off"
  ! grep -qE '^(readable|listable|writable|not writable|init)' out || fail "$(grep -E '^(readable|listable|writable|not writable|init)' out | tr '\n' ';')"
  ! grep -qxE '[4-9]|[0-9]{2,}' <(sed -n '/^Seccomp:/,$p' out | tail -n +2 | grep -vx 3) || fail "descriptors leaked: $(tail -n 6 out | tr '\n' ' ')"
}

case_the_grader_has_what_the_agent_has_not() {
  secret_task t
  cb cell suite/t --suite-root suite --grader -- /bin/sh -c 'cat "$REFERENCE_DIR/answer.txt" && ls "$TASK_DIR" && (: >"$REFERENCE_DIR/x") 2>/dev/null && echo WRITABLE'
  expect_text out "$secret"
  expect_text out tests
  ! grep -q WRITABLE out || fail "the reference can be written by a grader"
  cb cell suite/t --suite-root suite -- /bin/sh -c 'echo "[$REFERENCE_DIR$TASK_DIR]"'
  expect_text out '[]'
}

main no_private_byte_after_a_run:user no_private_byte_in_another_trial \
  private_bytes_lie_in_the_private_store_only_while_it_runs:user a_stale_private_store_is_removed:user \
  a_trial_process_can_do_nothing_by_itself:user only_the_monitor_has_privilege:root the_cell_is_what_it_must_be:user \
  the_grader_has_what_the_agent_has_not:user
