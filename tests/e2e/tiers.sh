#!/bin/bash
# usage: tiers.sh [NAME...]. Which tier a machine gives, and what is refused below it. The machines are containers made by
# crun: a bundle per situation, with the masks, ids and system calls that an engine would give it.
# shellcheck disable=SC2016,SC2034,SC2119,SC1091
. "$(dirname "$0")/lib.sh"

BUNDLE_USER=53017
# What docker gives the root of a container.
DOCKER_CAPS='["CAP_AUDIT_WRITE","CAP_CHOWN","CAP_DAC_OVERRIDE","CAP_FOWNER","CAP_FSETID","CAP_KILL","CAP_MKNOD","CAP_NET_BIND_SERVICE","CAP_NET_RAW","CAP_SETFCAP","CAP_SETGID","CAP_SETPCAP","CAP_SETUID","CAP_SYS_CHROOT"]'
# The paths of /proc that engines cover.
ENGINE_MASKS='["/proc/kcore","/proc/keys","/proc/timer_list","/proc/latency_stats","/proc/sched_debug","/proc/scsi","/proc/acpi"]'
ENGINE_READ_ONLY='["/proc/bus","/proc/fs","/proc/irq","/proc/sys","/proc/sysrq-trigger"]'
NO_FILTER=null

# A filter of one rule: CALLS (JSON list) end with ERRNO, all else is allowed.
deny_calls() { # CALLS ERRNO
  jq -cn --argjson calls "$1" --argjson errno "$2" \
    '{defaultAction: "SCMP_ACT_ALLOW", syscalls: [{names: $calls, action: "SCMP_ACT_ERRNO", errnoRet: $errno}]}'
}

# What moby's default profile makes of cells: clone3 is not there, and namespaces and mounts are refused.
moby_filter() {
  jq -cn '{defaultAction: "SCMP_ACT_ALLOW", syscalls: [
    {names: ["clone3"], action: "SCMP_ACT_ERRNO", errnoRet: 38},
    {names: ["unshare", "setns", "mount", "umount2", "pivot_root", "fsopen", "fsmount", "fsconfig", "open_tree",
             "move_mount", "mount_setattr", "keyctl", "add_key", "request_key", "bpf", "perf_event_open", "userfaultfd"],
     action: "SCMP_ACT_ERRNO", errnoRet: 1},
    {names: ["clone"], action: "SCMP_ACT_ERRNO", errnoRet: 1,
     args: [{index: 0, value: 2114060288, valueTwo: 0, op: "SCMP_CMP_MASKED_EQ"}]}]}' |
    jq -c '.syscalls |= (map(select(.names != ["clone"])) +
      [range(7) as $i | {names: ["clone"], action: "SCMP_ACT_ERRNO", errnoRet: 1,
        args: [{index: 0, value: ([131072, 33554432, 67108864, 134217728, 268435456, 536870912, 1073741824][$i]),
                valueTwo: ([131072, 33554432, 67108864, 134217728, 268435456, 536870912, 1073741824][$i]),
                op: "SCMP_CMP_MASKED_EQ"}]}])'
}

# in_bundle UID CAPS MASKS READ_ONLY FILTER COMMAND...: runs it in a container whose /work is a folder of this case, bundle/work,
# and whose /build is the build. Output in ./out and ./err, exit status in $status.
in_bundle() {
  local uid=$1 caps=$2 masks=$3 read_only=$4 filter=$5 build
  shift 5
  need crun jq unshare
  build=$(cd "$(dirname "$CLOSEDBOOK")/../.." && pwd)
  mkdir -p bundle/rootfs/{usr,etc,tmp,proc,dev,sys,run,work,build,var/cache} bundle/work bundle/state
  chmod 1777 bundle/work
  chown -R $BUNDLE_USER:$BUNDLE_USER bundle/work
  local link
  for link in bin sbin lib lib64; do
    [ -L "bundle/rootfs/$link" ] || ln -s "usr/$link" "bundle/rootfs/$link"
  done
  jq -n --argjson uid "$uid" --argjson caps "$caps" --argjson masks "$masks" --argjson readonly "$read_only" \
    --argjson filter "$filter" --arg build "$build" --arg work "$PWD/bundle/work" '
    {ociVersion: "1.0.2", root: {path: "rootfs"},
     process: {user: {uid: $uid, gid: $uid}, args: $ARGS.positional, cwd: "/work", noNewPrivileges: true,
               env: ["PATH=/usr/bin:/bin", "HOME=/work", "XDG_CACHE_HOME=/tmp"],
               capabilities: {bounding: $caps, effective: $caps, permitted: $caps}},
     mounts: [{destination: "/proc", type: "proc", source: "proc"},
              {destination: "/dev", type: "tmpfs", source: "tmpfs", options: ["nosuid", "mode=755"]},
              {destination: "/dev/pts", type: "devpts", source: "devpts",
               options: ["newinstance", "ptmxmode=0666", "mode=0620"]},
              {destination: "/tmp", type: "tmpfs", source: "tmpfs", options: ["mode=1777"]},
              ({"/usr": "/usr", "/etc": "/etc", "/build": $build} | to_entries[] |
               {destination: .key, type: "bind", source: .value, options: ["rbind", "ro"]}),
              {destination: "/work", type: "bind", source: $work, options: ["rbind"]}],
     linux: ({namespaces: [{type: "pid"}, {type: "mount"}, {type: "ipc"}, {type: "uts"}, {type: "network"}],
              maskedPaths: $masks, readonlyPaths: $readonly} +
             (if $filter == null then {} else {seccomp: $filter} end))}' --args -- "$@" >bundle/config.json
  status=0
  # crun wants no cgroup v2 with controllers of v1 beside it: it gets to see none.
  timeout -k 10 "${E2E_TIMEOUT:-120}" unshare --mount --propagation private sh -c '
    umount -l /sys/fs/cgroup/unified 2>/dev/null
    exec crun --cgroup-manager=disabled --root "$0/state" run --bundle "$0" "$1"' \
    "$PWD/bundle" "closedbook-test-$$" >out 2>err </dev/null || status=$?
  # One that hangs outlives the crun that started it.
  crun --root "$PWD/bundle/state" delete --force "closedbook-test-$$" 2>/dev/null || true
  if grep -q '^cgroups in hybrid mode' err; then skip "crun does not run on this machine"; fi
}

# As Kubernetes runs a container: nothing filtered, /proc partly covered.
in_pod() { # UID CAPS COMMAND...
  local uid=$1 caps=$2
  shift 2
  in_bundle "$uid" "$caps" "$ENGINE_MASKS" "$ENGINE_READ_ONLY" "$NO_FILTER" "$@"
}

BOOK=/build/src/cli/closedbook

# A suite below bundle/work whose agent writes done.txt, and asks for what TASK_MORE says.
pod_suite() {
  mkdir -p bundle/work
  (cd bundle/work && script_task t)
}

case_a_user_with_a_whole_proc_has_tier_b() {
  in_bundle $BUNDLE_USER '[]' '[]' '[]' "$NO_FILTER" $BOOK doctor --json
  expect_status 0
  [ "$(jq -r .tier out)" = B ] || fail "tier $(jq -r .tier out)"
  [ "$(jq -r .lacking out)" = "root did not start it" ] || fail "lacking: $(jq -r .lacking out)"
}

case_a_covered_proc_makes_tier_b_minus() {
  in_pod $BUNDLE_USER '[]' $BOOK doctor --json
  expect_status 0
  [ "$(jq -r .tier out)" = B- ] || fail "tier $(jq -r .tier out)"
  jq -e '.lacking | test("/proc")' out >/dev/null || fail "it does not say what is lacking"
  jq -e '.protections | contains(["static-proc", "no-ptrace"]) and (index("proc") == null)' out >/dev/null ||
    fail "protections: $(jq -c .protections out)"
}

case_the_root_of_a_pod_has_cells_as_an_ordinary_user() {
  in_pod 0 "$DOCKER_CAPS" $BOOK doctor --json
  expect_status 0
  [ "$(jq -r .tier out)" = B- ] || fail "tier $(jq -r .tier out)"
}

# What the agent of a B- cell sees of processes: nothing, though the harness runs in the same container.
LOOK='for file in /proc/[0-9]* /proc/self /proc/1; do [ ! -e "$file" ] || echo "sees $file"; done
python3 -c "
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print(\"traced\" if libc.ptrace(0, 0, 0, 0) == 0 else \"refused\")"'

case_a_trial_runs_in_tier_b_minus() {
  TASK_CRITERIA='  - {type: file_contains, description: no ptrace, path: look.txt, includes: [refused], excludes: [sees]}
  - {type: run_command, description: a second program gets in, timeout: 60, command: "grep refused look.txt"}'
  TASK_MORE='sandbox: {require_tier: B-}' pod_suite <<EOF
#!/bin/sh
{ $LOOK; } >look.txt 2>&1
sed -n 1p /proc/meminfo
EOF
  in_pod $BUNDLE_USER '[]' $BOOK run suite --suite-root suite --run-dir run --quiet
  expect_status 0
  cd bundle/work || exit
  expect_trial .status SUCCESS
  expect_trial .cell.tier B-
  expect_trial '.cell.protections | contains(["static-proc", "no-ptrace"])' true
  expect_trial '.cell.protections | index("proc")' null
}

# The control of the one above: with a /proc of its own the same agent finds both.
case_the_same_agent_sees_and_traces_in_tier_b() {
  TASK_CRITERIA='  - {type: file_contains, description: ptrace, path: look.txt, includes: [traced, "sees /proc/self"]}'
  pod_suite <<EOF
#!/bin/sh
{ $LOOK; } >look.txt 2>&1
EOF
  in_bundle $BUNDLE_USER '[]' '[]' '[]' "$NO_FILTER" $BOOK run suite --suite-root suite --run-dir run --quiet
  expect_status 0
  cd bundle/work || exit
  expect_trial .status SUCCESS
  expect_trial .cell.tier B
}

case_a_task_that_requires_more_is_refused() {
  TASK_MORE='sandbox: {require_tier: B}' pod_suite <<<'#!/bin/sh'
  in_pod $BUNDLE_USER '[]' $BOOK run suite --suite-root suite --run-dir run --quiet
  expect_status 3
  expect_text err "task 't' requires tier B (sandbox.require_tier), and cells here are of tier B-, because a fresh /proc"
  expect_text err 'a task that requires B- or less runs here'
  [ ! -e bundle/work/run ] || fail "a run was begun"
}

case_a_user_is_refused_what_needs_root() {
  ! is_root || not_here "for an ordinary user"
  TASK_MORE='sandbox: {require_tier: A}' script_task t <<<'#!/bin/sh'
  run_suite
  expect_status 3
  expect_text err 'and cells here are of tier B, because root did not start it'
  [ ! -e run ] || fail "a run was begun"
}

case_tempdir_meets_no_requirement() {
  TASK_MORE='sandbox: {require_tier: C, driver: tempdir}' script_task t <<<'#!/bin/sh'
  run_suite
  expect_status 2
  expect_text err 'the driver tempdir protects nothing'
}

case_what_is_met_runs() {
  TASK_MORE='sandbox: {require_tier: B}' script_task t <<<'#!/bin/sh
echo >done.txt'
  run_suite
  expect_status 0
  expect_trial '.cell.tier | test("^[AB]$")' true
}

# Engines answer clone3() with ENOSYS, as its flags lie in memory: clone() it is then.
case_without_clone3_there_is_clone() {
  TASK_MORE='sandbox: {require_tier: B-}' pod_suite <<<'#!/bin/sh
echo >done.txt'
  in_bundle $BUNDLE_USER '[]' "$ENGINE_MASKS" "$ENGINE_READ_ONLY" "$(deny_calls '["clone3"]' 38)" \
    $BOOK run suite --suite-root suite --run-dir run --quiet
  expect_status 0
  cd bundle/work || exit
  expect_trial .status SUCCESS
  expect_trial .cell.tier B-
}

# As docker runs a container: no namespaces, no clone3, /proc partly covered.
in_docker() { # UID CAPS COMMAND...
  local uid=$1 caps=$2
  shift 2
  in_bundle "$uid" "$caps" "$ENGINE_MASKS" "$ENGINE_READ_ONLY" "$(moby_filter)" "$@"
}

case_without_namespaces_there_is_tier_c_for_who_allows_it() {
  in_docker $BUNDLE_USER '[]' $BOOK doctor --json
  expect_status 0
  [ "$(jq -r .tier out)" = C ] || fail "tier $(jq -r .tier out)"
  jq -e '.lacking | test("namespaces are not allowed")' out >/dev/null || fail "lacking: $(jq .lacking out)"
  in_docker $BUNDLE_USER '[]' $BOOK cell -- true
  expect_status 125
  expect_text err 'cells here are of tier C (landlock and seccomp only), because'
  expect_text err '--allow-tier C accepts that'
  in_docker $BUNDLE_USER '[]' $BOOK cell --allow-tier C -- true
  expect_status 0
}

case_a_task_that_requires_b_minus_does_not_run_in_tier_c() {
  TASK_MORE='sandbox: {require_tier: B-}' pod_suite <<<'#!/bin/sh'
  in_docker $BUNDLE_USER '[]' $BOOK run suite --suite-root suite --run-dir run --quiet --allow-tier C
  expect_status 3
  expect_text err 'and cells here are of tier C, because'
  in_docker $BUNDLE_USER '[]' $BOOK run suite --suite-root suite --run-dir run --quiet
  expect_status 3
  expect_text err '--allow-tier C accepts that'
  [ ! -e bundle/work/run ] || fail "a run was begun"
}

case_the_root_of_a_container_has_cells_of_tier_c_as_an_ordinary_user() {
  in_docker 0 "$DOCKER_CAPS" $BOOK cell --allow-tier C -- id -u
  expect_status 0
  [ "$(cat out)" != 0 ] || fail "the command was root's"
}

# hunt_suite DRIVER: an agent that tries what no namespace keeps it from, and says which of it worked.
hunt_suite() {
  mkdir -p bundle/work/suite/t/reference
  echo the-answer >bundle/work/suite/t/reference/answer.txt
  mkdir -p bundle/work/exposed
  echo text >bundle/work/exposed/file
  TASK_MORE="reference: {directory: reference}
sandbox: {driver: $1, expose: [/work/exposed]}" TASK_CRITERIA='  - {type: file_contains, description: it hunted, path: hunt.txt, includes: [the end]}' \
    pod_suite <<'EOF'
#!/usr/bin/python3
import ctypes, fcntl, os, resource, socket, struct, sys
sys.stdout = open('hunt.txt', 'w')
task = '/work/suite/t/task.yaml'
libc = ctypes.CDLL(None, use_errno=True)

def attempt(name, action):
    try:
        action()
        print('FOUND', name)
    except OSError as error:
        print('DENIED', name, error.strerror)

def call(function, *arguments):
    if function(*arguments) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

def start_shared():
    if libc.shmget(4711, 4096, 0o1600) < 0:
        raise OSError(ctypes.get_errno(), 'shmget')

attempt('read', lambda: open('/work/suite/t/reference/answer.txt').read())
attempt('list', lambda: os.listdir('/work/suite/t'))
attempt('write', lambda: open('/work/suite/t/planted', 'w'))
attempt('mode', lambda: os.chmod(task, 0o644))
attempt('times', lambda: os.utime(task))
attempt('owner', lambda: os.chown(task, os.getuid(), -1))
attempt('attribute', lambda: os.setxattr('/work/suite', 'user.mark', b'y'))
# By a descriptor that can only read: of what belongs to the operator and is there to be read.
exposed = os.open('/work/exposed/file', os.O_RDONLY)
attempt('mode by descriptor', lambda: os.fchmod(exposed, 0o600))
attempt('owner by descriptor', lambda: os.fchown(exposed, os.getuid(), -1))
attempt('times by descriptor', lambda: os.utime(exposed, (1, 1)))
attempt('attribute by descriptor', lambda: os.setxattr(exposed, 'user.mark', b'y'))
attempt('attribute taken away', lambda: os.removexattr(exposed, 'user.mark'))
# All that it has and one more: to take one away can mean to write the file anew.
flags = struct.unpack('l', fcntl.ioctl(exposed, 0x80086601, struct.pack('l', 0)))[0]
attempt('flags by descriptor', lambda: fcntl.ioctl(exposed, 0x40086602, struct.pack('l', flags | 0x80)))
attempt('tracing', lambda: call(libc.ptrace, 0, 0, 0, 0))
attempt('priority', lambda: os.setpriority(os.PRIO_PROCESS, os.getppid(), os.getpriority(os.PRIO_PROCESS, os.getppid())))
attempt('everybody\'s priority', lambda: os.setpriority(os.PRIO_USER, 0, os.getpriority(os.PRIO_PROCESS, 0)))
attempt('processors', lambda: os.sched_setaffinity(os.getppid(), os.sched_getaffinity(os.getppid())))
attempt('scheduler', lambda: os.sched_setscheduler(os.getppid(), os.SCHED_BATCH, os.sched_param(0)))
attempt('disk priority', lambda: call(libc.syscall, 251, 1, os.getppid(), 3 << 13))
attempt('inet', lambda: socket.socket(socket.AF_INET))
attempt('udp', lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
attempt('unix', lambda: socket.socket(socket.AF_UNIX))
attempt('vsock', lambda: socket.socket(40))
attempt('signal', lambda: os.kill(os.getppid(), 0))
attempt('environ', lambda: open(f'/proc/{os.getppid()}/environ').read())
attempt('memory', lambda: open(f'/proc/{os.getppid()}/mem', 'rb'))
attempt('cmdline', lambda: open(f'/proc/{os.getppid()}/cmdline').read())
attempt('limit', lambda: resource.prlimit(os.getppid(), resource.RLIMIT_CORE))
attempt('shared-memory', start_shared)
# What programs need must go on working.
one, other = socket.socketpair()
one.send(b'x')
open('own', 'w').write('x')
os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0))
os.sched_setaffinity(0, os.sched_getaffinity(0))
open(os.environ['TMPDIR'] + '/own', 'w').write('x')
print('the end')
EOF
}

case_an_agent_in_tier_c_reaches_nothing_outside() {
  hunt_suite native
  in_docker $BUNDLE_USER '[]' $BOOK run suite --suite-root suite --run-dir run --quiet --allow-tier C
  cd bundle/work || exit
  expect_trial .status SUCCESS
  expect_trial .cell.tier C
  expect_trial .integrity.verdict PARTIAL
  "$CLOSEDBOOK" show run/trials/default/t/00 hunt.txt >hunt 2>err || fail "$(cat err)"
  ! grep FOUND hunt >found || fail "$(tr '\n' ' ' <found)"
  [ "$(grep -c DENIED hunt)" = 29 ] || fail "$(grep -c DENIED hunt) attempts were denied: $(tr '\n' ' ' <hunt)"
}

# What a step keeps outside of the workspace goes with its cell; and a new folder can be graded behind walls.
case_steps_in_tier_c_leave_their_workspace_alone() {
  TASK_MORE='pre_run: [{command: "echo answer >$HOME/kept; echo answer >$TMPDIR/kept; cp $TASK_DIR/task.yaml $HOME; echo made >made.txt"}]' \
    TASK_CRITERIA=$(command_criterion 'test -f made.txt && test -f new/deep/x && test ! -s seen') pod_suite <<'EOF'
#!/bin/sh
mkdir -p new/deep && echo x >new/deep/x
find "$HOME" "$TMPDIR" -name kept -o -name task.yaml >seen
EOF
  in_docker $BUNDLE_USER '[]' $BOOK run suite --suite-root suite --run-dir run --quiet --allow-tier C
  cd bundle/work || exit
  expect_trial .cell.tier C
  expect_trial .status SUCCESS
}

# The control: what tier C denies is there to be had in the same container.
case_the_same_agent_without_walls_finds_all() {
  hunt_suite tempdir
  in_docker $BUNDLE_USER '[]' $BOOK run suite --suite-root suite --run-dir run --quiet
  cd bundle/work || exit
  "$CLOSEDBOOK" show run/trials/default/t/00 hunt.txt >hunt 2>err || fail "$(cat err)"
  ! grep DENIED hunt >denied || fail "$(tr '\n' ' ' <denied)"
}

# Processes that leave their session, their group and their parent, again and again.
hopping_suite() { # MARK LAST-LINE
  pod_suite <<EOF
#!/bin/sh
echo >done.txt
setsid sh -c 'sleep $1 & : >a; sleep $1' &
python3 -c "
import os
open('b', 'w')
while True:
    if os.fork():
        os._exit(0)
    os.setsid()
" $1 &
until [ -e a ] && [ -e b ]; do :; done
$2
EOF
}

case_nothing_outlives_a_cell_of_tier_c() {
  local mark
  mark=$(new_mark)
  hopping_suite "$mark" true
  # The control: the look finds what lives.
  in_docker $BUNDLE_USER '[]' sh -c "sleep $mark & $BOOK run suite --suite-root suite --run-dir run --quiet --allow-tier C
    echo \"status \$?\"; grep -lzx $mark /proc/[0-9]*/cmdline; kill -9 \$!; wait; echo left:; grep -lzx $mark /proc/[0-9]*/cmdline"
  expect_text out 'status 0'
  sed '/^left:$/,$d' out | grep -q '^/proc/' || fail "the control was not found"
  [ "$(sed '1,/^left:$/d' out)" = "" ] || fail "left: $(sed '1,/^left:$/d' out)"
  cd bundle/work || exit
  expect_trial '.cell.kill.processes >= 3' true
}

case_killing_closedbook_ends_a_cell_of_tier_c() {
  local mark
  mark=$(new_mark)
  hopping_suite "$mark" 'sleep 1000'
  in_docker $BUNDLE_USER '[]' sh -c "$BOOK run suite --suite-root suite --run-dir run --quiet --allow-tier C & book=\$!
    until [ \$(grep -lzx $mark /proc/[0-9]*/cmdline 2>/dev/null | wc -l) -ge 3 ]; do :; done
    kill -9 \$book; wait
    while grep -lzx $mark /proc/[0-9]*/cmdline 2>/dev/null; do :; done; echo gone"
  expect_text out gone
}

# The parser of Debian 12 is older than the rule "userns" and the ABI that has it: all else it must take.
case_the_apparmor_profile_is_one() {
  local profile program
  need apparmor_parser
  profile=$(dirname "$CLOSEDBOOK")/../../share/closedbook-cell.apparmor
  [ -f "$profile" ] || skip "not a build directory"
  program=$(sed -n 's/^profile closedbook-cell \(.*\) flags=(unconfined) {$/\1/p' "$profile")
  [[ $program == /*/closedbook/closedbook-cell ]] || fail "the profile is for '$program'"
  grep -qx '  userns,' "$profile" || fail "the profile allows no user namespace"
  if [ -e /etc/apparmor.d/abi/4.0 ]; then
    apparmor_parser -Q "$profile" 2>err || fail "$(cat err)"
  else
    sed '/^  userns,$/d; s/^abi .*/abi <abi\/3.0>,/' "$profile" >older
    apparmor_parser -Q older 2>err || fail "$(cat err)"
    # The control: what is wrong is refused.
    sed 's/include if/including/' older >wrong
    ! apparmor_parser -Q wrong 2>/dev/null || fail "the parser takes anything"
  fi
}

main the_apparmor_profile_is_one a_user_with_a_whole_proc_has_tier_b:root a_covered_proc_makes_tier_b_minus:root \
  the_root_of_a_pod_has_cells_as_an_ordinary_user:root a_trial_runs_in_tier_b_minus:root \
  the_same_agent_sees_and_traces_in_tier_b:root a_task_that_requires_more_is_refused:root \
  a_user_is_refused_what_needs_root:user tempdir_meets_no_requirement:user what_is_met_runs:user \
  without_clone3_there_is_clone:root without_namespaces_there_is_tier_c_for_who_allows_it:root a_task_that_requires_b_minus_does_not_run_in_tier_c:root \
  the_root_of_a_container_has_cells_of_tier_c_as_an_ordinary_user:root an_agent_in_tier_c_reaches_nothing_outside:root \
  steps_in_tier_c_leave_their_workspace_alone:root \
  the_same_agent_without_walls_finds_all:root nothing_outlives_a_cell_of_tier_c:root \
  killing_closedbook_ends_a_cell_of_tier_c:root
