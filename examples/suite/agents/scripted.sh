#!/bin/sh
# Stands for a model, so that the suite runs anywhere: it reads the prompt and does what that asks for.
prompt=$(cat)
case $prompt in *ticket*)
  echo '{"kind": "tool_call", "tool": "Skill", "call_id": "1", "input": {"skill": "tickets:triage"}}' >&3
  echo '{"kind": "tool_result", "call_id": "1", "output": "", "exit_code": 0}' >&3 ;;
esac
case $prompt in
  *"Close"*)
    id=$(tickets list | sed -n 's/ .*login.*//p')
    case $prompt in *"reason"*) tickets close "$id" --reason 'cannot be reproduced' ;; *) tickets close "$id" ;; esac ;;
  *"summary.sh"*) printf '%s\n' 'grep -c " open"' >summary.sh && stats --team core >team.txt ;;
esac
