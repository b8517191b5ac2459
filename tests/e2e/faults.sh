#!/bin/bash
# faults.sh: system calls that fail, one at a time. The program must say so (status 3, or 1 and 0 where the call did not
# matter), leave no process and no private byte behind.
# shellcheck source-path=SCRIPTDIR disable=SC2154,SC2317,SC2119,SC2015,SC2016
. "$(dirname "$0")/lib.sh"

# sweep CALL ERRNO FROM TO STEP: the Nth call of each process fails, for N = FROM, FROM + STEP ... TO.
sweep() {
  need strace
  local n mark secret tried=0 failed=0 hits
  mark=$(new_mark)
  secret="SNTL-$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')"
  mkdir -p suite/t/reference
  echo "$secret" >suite/t/reference/answer.txt
  TASK_MORE='reference: {directory: reference}' TASK_CRITERIA=$(command_criterion 'test -s "$REFERENCE_DIR/answer.txt"') \
    script_task t <<E2
#!/bin/sh
(setsid sleep $mark &) &
exit 0
E2
  for ((n = $3; n <= $4; n += $5)); do
    rm -rf run
    status=0
    timeout -k 5 60 strace -f -qq -o trace -e "trace=$1" -e "inject=$1:error=$2:when=$n" \
      "$CLOSEDBOOK" run suite --suite-root suite --run-dir run --quiet >out 2>err </dev/null || status=$?
    tried=$((tried + 1))
    grep -q INJECTED trace || continue
    case $status in
      0 | 1 | 2) ;; # the call was not needed, or the fault was seen as the file's
      3) failed=$((failed + 1)) ;;
      *) fail "$1 #$n failing with $2: status $status: $(tail -c 300 err | tr '\n' ' ')" ;;
    esac
    if [ "$status" = 3 ] && [ ! -s err ] && [ ! -s out ]; then fail "$1 #$n: status 3 without a word"; fi
    no_mark "$mark" || fail "$1 #$n: the agent's process is alive"
    hits=$(grep -rlaF -- "$secret" cache tmp 2>/dev/null | grep -v /private/ || true)
    [ -z "$hits" ] || fail "$1 #$n: private bytes at $hits"
    if [ -f run/trials/default/t/00/trial.json ]; then
      jq -e . run/trials/default/t/00/trial.json >/dev/null || fail "$1 #$n: a torn trial.json"
      # A fault of the machine is never a failure of the agent.
      [ "$(trial .status)" != FAILURE ] || fail "$1 #$n: a fault was charged to the agent: $(trial -c .criteria)"
    fi
  done
  # Whatever was left by the worst of them goes with the next run.
  rm -rf run
  run_suite
  expect_status 0
  hits=$(grep -rlaF -- "$secret" cache tmp 2>/dev/null || true)
  [ -z "$hits" ] || fail "private bytes stay at $hits"
  echo "$1: $tried runs, $failed ended with 3"
  [ "$failed" -gt 0 ] || fail "no injected fault of $1 was ever reported"
}

case_openat() { sweep openat EIO 1 19 3; }
case_write() { sweep write ENOSPC 1 10 3; }
case_fsync() { sweep fsync EIO 1 4 1; }
case_rename() { sweep renameat EIO 1 3 1; }
case_sendmsg() { sweep sendmsg EIO 1 21 4; }

case_every_openat() { sweep openat EIO 1 60 1; }
case_every_read() { sweep read EIO 1 200 1; }
case_every_write() { sweep write ENOSPC 1 60 1; }
case_every_mount() { sweep mount,move_mount,open_tree,fsopen,fsmount EPERM 1 60 1; }
case_every_clone() { sweep clone,clone3,fork,vfork EAGAIN 1 10 1; }
case_every_setup_call() { sweep prctl,setresuid,setresgid,capset,pivot_root,seccomp EPERM 1 80 1; }

main openat:root write:root fsync:root rename:root sendmsg:root every_openat:root:all every_read:root:all every_write:root:all \
  every_mount:root:all every_clone:root:all every_setup_call:root:all
