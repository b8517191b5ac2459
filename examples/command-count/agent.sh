#!/bin/sh
# A scripted agent that runs commands and reports each as two event lines on descriptor 3.
cat >/dev/null
call=0
tool() {
  call=$((call + 1))
  printf '{"kind": "tool_call", "tool": "Bash", "call_id": "%d", "input": {"command": "%s"}}\n' "$call" "$1" >&3
  sh -c "$1" >/dev/null
  printf '{"kind": "tool_result", "call_id": "%d", "output": "", "exit_code": %d}\n' "$call" "$?" >&3
}
tool 'ls -l'
tool 'pwd'
tool 'ls /usr/bin'
