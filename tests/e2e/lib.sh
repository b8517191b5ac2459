# lib.sh: what the end-to-end tests share. Sourced by each *.sh of this folder; not run by itself.
#
# A file defines functions case_NAME and ends with a call of `main NAME...`. Each case runs in a shell of its own,
# in an empty folder of its own ($PWD), under `set -euo pipefail`; the first command that fails is the reason
# of "not ok". When the tests run as root, names with ":user" run a second time as an ordinary user, names with
# ":root" are skipped for others, names with ":all" run under ALL=1 only.
#
# Lines: "ok FILE/NAME", "not ok FILE/NAME reason", "skip FILE/NAME reason", and "elsewhere FILE/NAME reason" for a case
# that is about another machine or user. Exit status 1 when any is not ok.
#
# CLOSEDBOOK        the program (default: found in CLOSEDBOOK_BUILD, else on PATH)
# CLOSEDBOOK_BUILD  the build directory
# ALL=1             the slow cases as well
# E2E_ONCE=1        no second run as an ordinary user
# shellcheck shell=bash disable=SC2317,SC2119,SC2120,SC2034,SC2013

set -euo pipefail
E2E_ARGS=("$@")
E2E_FILE=$(basename "$0" .sh)
E2E_SELF=$(cd "$(dirname "$0")" && pwd)/$(basename "$0")
E2E_HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
E2E_SOURCE=$(cd "$E2E_HERE/../.." && pwd)
# An id that no account has, for the runs as an ordinary user.
E2E_USER=${E2E_USER:-53017}
unset XDG_CONFIG_HOME GITHUB_ACTIONS SUDO_UID SUDO_GID

find_closedbook() {
  local candidate
  for candidate in "${CLOSEDBOOK:-}" ${CLOSEDBOOK_BUILD:+"$CLOSEDBOOK_BUILD/src/cli/closedbook" "$CLOSEDBOOK_BUILD/closedbook"} \
    "$(command -v closedbook || true)"; do
    if [ -n "$candidate" ] && [ -x "$candidate" ]; then
      CLOSEDBOOK=$(cd "$(dirname "$candidate")" && pwd)/$(basename "$candidate")
      export CLOSEDBOOK
      return 0
    fi
  done
  echo "closedbook is not built: set CLOSEDBOOK or CLOSEDBOOK_BUILD" >&2
  exit 2
}

# --- verdicts of a case -------------------------------------------------------------------------------------

fail() {
  echo "$*" >"$E2E_CASE/reason"
  exit 1
}

skip() {
  echo "$*" >"$E2E_CASE/reason"
  exit 77
}

# The case is about another machine or user: it could not be tried here, and nothing is left out.
not_here() {
  echo "$*" >"$E2E_CASE/reason"
  exit 78
}

need() { # PROGRAM...
  local program
  for program; do
    command -v "$program" >/dev/null || skip "no $program here"
  done
}

is_root() { [ "$(id -u)" = 0 ]; }

# --- running the program ------------------------------------------------------------------------------------

# Runs closedbook; its output is in ./out and ./err, its exit status in $status.
cb() {
  status=0
  timeout -k 10 "${E2E_TIMEOUT:-120}" "$CLOSEDBOOK" "$@" >out 2>err </dev/null || status=$?
}

expect_status() { # STATUS: of the last cb
  [ "$status" = "$1" ] || fail "exit status $status, expected $1: $(tail -c 400 err | tr '\n' ' ')"
}

expect_text() { # FILE TEXT
  grep -qF -- "$2" "$1" || fail "$1 does not say '$2': $(tail -c 300 "$1" | tr '\n' ' ')"
}

# Runs `closedbook run` of the suite in ./suite into ./run.
run_suite() {
  cb run suite --suite-root suite --run-dir run --quiet "$@"
}

# trial FIELD [TASK [NN [RUN]]]: a field (jq path) of trial.json, as plain text.
trial() {
  jq -r "$1" "${4:-run}/trials/default/${2:-t}/${3:-00}/trial.json"
}

expect_trial() { # FIELD VALUE [TASK [NN [RUN]]]
  local got
  got=$(trial "$1" "${@:3}")
  [ "$got" = "$2" ] || fail "$1 of ${3:-t}/${4:-00} is $got, expected $2: $(trial .error "${@:3}")"
}

# --- tasks and agents ---------------------------------------------------------------------------------------

DONE_CRITERION='  - {type: file_exists, description: it is done, path: done.txt}'

# script_task ID: the program on standard input becomes the agent of suite/ID/task.yaml. Further lines of the
# task are taken from $TASK_MORE, criteria from $TASK_CRITERIA, both YAML.
script_task() {
  mkdir -p "suite/$1"
  cat >"suite/$1/agent.sh"
  chmod 0755 "suite/$1/agent.sh"
  {
    printf 'task_id: %s\ndescription: a task of the tests\ninitial_prompt: do it\n' "$1"
    printf 'agent: {type: script, script: agent.sh%s}\n' "${TASK_AGENT:+, $TASK_AGENT}"
    printf '%s\n' "${TASK_MORE:-}"
    printf 'success_criteria:\n%s\n' "${TASK_CRITERIA:-$DONE_CRITERION}"
  } >"suite/$1/task.yaml"
}

command_criterion() { # COMMAND: a run_command criterion in flow style, the command as a JSON string
  printf '  - {type: run_command, description: a command, timeout: 60, command: %s}\n' "$(jq -n --arg c "$1" '$c')"
}

# --- processes ----------------------------------------------------------------------------------------------

# A number that no other process has as an argument: `sleep $(new_mark)` is found again by has_mark.
new_mark() { echo "7$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')"; }

pids_of_mark() { # MARK: the processes that have it as a whole argument
  local file
  for file in $(grep -lzxF -- "$1" /proc/[0-9]*/cmdline 2>/dev/null || true); do
    file=${file#/proc/}
    echo "${file%/cmdline}"
  done
}

has_mark() { [ -n "$(pids_of_mark "$1")" ]; }
no_mark() { ! has_mark "$1"; }

# wait_until SECONDS COMMAND...: polls a condition; there is nothing to sleep for, only a bound.
wait_until() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$deadline" ] || fail "gave up waiting until: $*"
    read -r -t 0.02 <>/dev/null || true
  done
}

# The scripted endpoint of all wire formats, on loopback for the rest of the case, with these further arguments; its port is in
# $port.
start_scripted_model() {
  need python3 jq
  rm -f port
  python3 "$E2E_HERE/scripted_model.py" --port 0 --port-file port --log "$PWD/endpoint.log" "$@" >endpoint.out 2>&1 &
  endpoint=$!
  trap 'kill "$endpoint" 2>/dev/null || true' EXIT
  wait_until 30 test -s port
  port=$(cat port)
}

# Starts closedbook in the background as the leader of a process group; its id is in $started.
start_cb() {
  setsid env --default-signal=INT,QUIT,TERM "$CLOSEDBOOK" "$@" >out 2>err </dev/null &
  started=$!
  echo "$started" >>"$E2E_CASE/started"
}

finish_cb() { # waits for start_cb's program; its exit status is in $status
  status=0
  wait "$started" || status=$?
}

# descendants PID: every process below it.
descendants() {
  local child
  for child in $(cat "/proc/$1/task/"*/children 2>/dev/null); do
    echo "$child"
    descendants "$child"
  done
}

# --- one case, all cases ------------------------------------------------------------------------------------

cleanup_case() {
  local pid
  if [ -f "$E2E_CASE/started" ]; then
    while read -r pid; do
      kill -KILL -- "-$pid" 2>/dev/null || true
    done <"$E2E_CASE/started"
  fi
}

run_case_here() { # NAME: in the folder $E2E_CASE/work; this shell ends with the case's verdict
  trap 'cleanup_case' EXIT
  trap 'echo "line $LINENO: $BASH_COMMAND" >>"$E2E_CASE/trace"' ERR
  set -E
  cd "$E2E_CASE/work"
  mkdir -m 1777 tmp
  mkdir cache
  export TMPDIR=$PWD/tmp XDG_CACHE_HOME=$PWD/cache HOME=$PWD
  "case_$1"
}

# Runs the case in a shell of its own, through PREFIX (setpriv ...) when it is for the ordinary user.
run_case() { # NAME SHOWN-NAME PREFIX...
  local name=$1 shown=$2 case_status=0 reason
  shift 2
  E2E_CASE=$(mktemp -d "${E2E_TMP}/case.XXXXXX")
  export E2E_CASE
  chmod 0755 "$E2E_CASE"
  mkdir "$E2E_CASE/work"
  [ $# = 0 ] || chown -R "$E2E_USER:$E2E_USER" "$E2E_CASE"
  "$@" bash "$E2E_SELF" --case "$name" >"$E2E_CASE/log" 2>&1 || case_status=$?
  reason=$(cat "$E2E_CASE/reason" 2>/dev/null || head -n 1 "$E2E_CASE/trace" 2>/dev/null || true)
  case $case_status in
    0) echo "ok $E2E_FILE/$shown" ;;
    77) echo "skip $E2E_FILE/$shown ${reason:-no reason}" ;;
    78) echo "elsewhere $E2E_FILE/$shown ${reason:-no reason}" ;;
    *)
      echo "not ok $E2E_FILE/$shown ${reason:-ended with $case_status}"
      tail -n 20 "$E2E_CASE/log" "$E2E_CASE/trace" "$E2E_CASE/work/err" 2>/dev/null | sed 's/^/    /' >&2 || true
      find "$E2E_CASE/work" -name trial.json -exec jq -c '{trial_id, status, error, criteria: [.criteria[].error]}' {} + 2>/dev/null |
        head -n 5 | sed 's/^/    /' >&2 || true
      E2E_BAD=1
      ;;
  esac
  if [ -n "${E2E_KEEP:-}" ] && [ "$case_status" != 0 ]; then
    echo "    kept: $E2E_CASE" >&2
  else
    chmod -R u+rwx "$E2E_CASE" 2>/dev/null || true
    rm -rf "$E2E_CASE"
  fi
}

user_can_run() { # why an ordinary user cannot, on standard output
  setpriv --reuid "$E2E_USER" --regid "$E2E_USER" --clear-groups -- test -x "$CLOSEDBOOK" 2>/dev/null ||
    { echo "$(dirname "$CLOSEDBOOK") cannot be reached by an ordinary user"; return 1; }
  setpriv --reuid "$E2E_USER" --regid "$E2E_USER" --clear-groups -- test -r "$E2E_SELF" 2>/dev/null ||
    { echo "the tests cannot be read by an ordinary user"; return 1; }
  setpriv --reuid "$E2E_USER" --regid "$E2E_USER" --clear-groups -- unshare -Ur true 2>/dev/null ||
    { echo "the kernel gives no user namespace to an ordinary user"; return 1; }
}

main() {
  find_closedbook
  command -v jq >/dev/null || { echo "the end-to-end tests need jq: apt-get install jq" >&2; exit 2; }
  if [ "${E2E_ARGS[0]:-}" = --case ]; then
    run_case_here "${E2E_ARGS[1]}"
    exit 0
  fi
  local spec name why only="${E2E_ARGS[*]:-}"
  E2E_BAD=0
  E2E_TMP=$(mktemp -d "${TMPDIR:-/tmp}/e2e.XXXXXX")
  chmod 0755 "$E2E_TMP"
  trap 'rm -rf "$E2E_TMP" 2>/dev/null || true' EXIT
  trap 'exit 130' INT TERM
  for spec; do
    name=${spec%%:*}
    if [ -n "$only" ] && [[ " $only " != *" $name "* ]]; then continue; fi
    if [[ $spec == *:all* ]] && [ "${ALL:-0}" != 1 ]; then
      echo "skip $E2E_FILE/$name only with ALL=1"
    elif [[ $spec == *:root* ]] && ! is_root; then
      echo "skip $E2E_FILE/$name needs root"
    else
      run_case "$name" "$name"
    fi
    if [[ $spec == *:user* ]] && is_root && [ -z "${E2E_ONCE:-}" ]; then
      if [[ $spec == *:all* ]] && [ "${ALL:-0}" != 1 ]; then
        continue
      elif why=$(user_can_run); then
        run_case "$name" "$name (user)" setpriv --reuid "$E2E_USER" --regid "$E2E_USER" --clear-groups --
      else
        echo "skip $E2E_FILE/$name (user) $why"
      fi
    fi
  done
  if [ -n "${E2E_KEEP:-}" ]; then trap - EXIT; fi
  exit "$E2E_BAD"
}
