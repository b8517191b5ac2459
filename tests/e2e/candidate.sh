#!/bin/bash
# candidate.sh: as-candidate in a grading cell: hostile programs in the candidate, and hostile ones beside the grader.
# shellcheck source-path=SCRIPTDIR disable=SC2154,SC2317,SC2119,SC2015,SC2016
. "$(dirname "$0")/lib.sh"

# grade COMMAND: the workspace is what the agent on standard input made; its exit status is in the trial's verdict.
grade() {
  mkdir -p suite/t/reference
  echo "SECRET-OF-THE-REFERENCE" >suite/t/reference/answer
  TASK_MORE='reference: {directory: reference}' TASK_CRITERIA=$(command_criterion "$1") script_task t < <(echo "#!/bin/sh"; cat)
  run_suite
  cat run/trials/default/t/00/grade/*.out >grade.out 2>/dev/null || true
}

case_hostile_askers_get_nothing() {
  # A program of the agent's beside the grader speaks to the monitor itself. Whatever it says, the grader's own candidates
  # work before and after, and the monitor lives.
  need python3
  grade 'as-candidate true && python3 ask.py; as-candidate sh -c "echo still" | grep still' <<'E2'
cat >ask.py <<'P'
import array, os, socket, struct
PATH = '/run/closedbook/candidates'
MAGIC = 0x63624b31
def connect():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(5)
    s.connect(PATH)
    return s
def answer(s):
    try:
        return len(s.recv(4096))
    except (ConnectionError, socket.timeout) as e:
        return type(e).__name__
def blob(data, seal=True):
    import fcntl
    fd = os.memfd_create('x', os.MFD_CLOEXEC | 2)
    os.write(fd, data)
    if seal:
        fcntl.fcntl(fd, 1033, 0xf)
    return fd
def exec_request(kind=8, cell=0, argc=1, size=10, fds=(1, 1, 1), count=3, cwd=b'', tty=0):
    head = struct.pack('<IIII', MAGIC, kind, cell, 0)
    command = struct.pack('<IIQ', argc, 0, size) + struct.pack('<8i', *(list(fds) + [-1] * 5))
    return head + struct.pack('<iI', 0, 0) + command + struct.pack('<II', count, tty) + cwd.ljust(512, b'\0')
out = os.open('/dev/null', os.O_RDWR)
good = blob(b'/bin/true\0')
here = os.open('/', os.O_RDONLY)
path = os.open('/', os.O_PATH)
cases = [
    ('empty word', b'x', []), ('end first', struct.pack('<IIII', MAGIC, 4, 0, 0), []),
    ('end of cell 1', struct.pack('<IIII', MAGIC, 4, 1, 0), []),
    ('release', struct.pack('<IIII', MAGIC, 5, 1, 0), []),
    ('connect', struct.pack('<IIII', MAGIC, 1, 0, 0), [out]),
    ('exec in cell 1', exec_request(kind=3, cell=1), [good, out]),
    ('foreign cell', exec_request(cell=1), [good, out]), ('no blob', exec_request(), []),
    ('loose blob', exec_request(), [blob(b'/bin/true\0', False), out]),
    ('long blob', exec_request(size=1 << 19), [good, out]),
    ('directory', exec_request(fds=(1, 2, 2)), [good, here, out]),
    ('mere path', exec_request(fds=(1, 2, 2)), [good, path, out]),
    ('terminal', exec_request(tty=1), [good, out]), ('outside', exec_request(cwd=b'/graders'), [good, out]),
    ('up and out', exec_request(cwd=b'/workspace/../graders'), [good, out]),
    ('many descriptors', exec_request(), [good] + [out] * 30), ('argc', exec_request(argc=70000), [good, out]),
    ('strings that do not add up', exec_request(argc=3), [good, out]),
]
for name, data, fds in cases:
    s = connect()
    s.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', fds))] if fds else [])
    print(name, answer(s))
# The control: the same bytes, well formed, start a candidate.
s = connect()
s.sendmsg([exec_request()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [good, out]))])
print('good', answer(s), answer(s))
# Idle ones take all places, then go away.
idle = [connect() for _ in range(40)]
P
E2
  expect_status 0
  local refused
  grep -q '^good [1-9][0-9]* [1-9][0-9]*$' grade.out || fail "the control did not start: $(tail -n 30 grade.out)"
  refused=$(grep -v '^exit code' grade.out | grep -cE '^[a-z0-9 ]+ (0|ConnectionResetError|BrokenPipeError)$')
  [ "$refused" = 17 ] || fail "$refused of 17 were refused: $(tail -n 30 grade.out)"
  grep -qE '^strings that do not add up [1-9]' grade.out || fail "an error was expected: $(tail -n 30 grade.out)"
}

case_signals_and_outlives_nobody() {
  local mark
  mark=$(new_mark)
  grade "sleep 300 & as-candidate ./rogue; kill -0 \$! && test -e rogue.ran" <<E2
printf '#!/bin/sh\ntouch rogue.ran\nsetsid sleep $mark &\nkill -9 -1 2>/dev/null\nsetsid sleep $mark &\n' >rogue; chmod +x rogue
E2
  expect_status 0
  no_mark "$mark" || fail "what the candidate left is alive"
}

with() { # COMMAND FIELDS: a criterion with further fields in flow style
  printf '  - {type: run_command, description: a command, command: %s, %s}\n' "$(jq -n --arg c "$1" '$c')" "$2"
}

case_a_whole_command_is_a_candidate_and_a_fresh_one_is_alone() {
  mkdir -p suite/t/reference
  echo SECRET >suite/t/reference/answer
  # What looks for the reference finds it as a grader (the control), not as a candidate.
  local look='env | grep -c -e TASK_DIR -e REFERENCE_DIR; ls -d /graders; echo from-the-command >>seen'
  TASK_MORE='reference: {directory: reference}' TASK_CRITERIA=$(
    with "$look; true" 'expected_stdout: "2\n/graders"'
    with "$look; true" 'as: candidate, expected_stdout: "0"'
    with 'kill -9 $$' 'as: candidate, expected_exit_code: 137'
    with 'no-such-program' 'as: candidate, expected_exit_code: 127'
    with 'test "$(wc -l <seen)" = 2 && echo 5 >count' 'as: candidate'
    # It begins with what the agent left, and what it does is gone after it.
    with 'test ! -e seen && test ! -e count && touch fresh && rm left' 'fresh: true'
    with 'test ! -e seen && test -e left && test ! -e fresh' 'fresh: true, as: candidate'
    command_criterion 'test "$(cat count)" = 5 && test -e left && test ! -e fresh'
    printf '  - {type: file_exists, description: a file, path: count}\n'
    # A cell that ran over its time is no later one's.
    with 'touch fresh; sleep 60' 'fresh: true, timeout: 0.3, weight: 0'
    command_criterion 'test "$(cat count)" = 5 && test ! -e fresh'
  ) script_task t <<<$'#!/bin/sh\ntouch left'
  run_suite
  expect_status 0
  expect_trial '.criteria | map(.score) == [1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1]' true
}

main a_whole_command_is_a_candidate_and_a_fresh_one_is_alone:user hostile_askers_get_nothing:user signals_and_outlives_nobody:user
