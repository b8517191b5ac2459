#!/bin/bash
# The agent of the battery: runs the scripts in ./attacks (those named in SCRIPTS; else all one-phase ones, or with MODE=plant
# the plants) and prints a verdict line for each. Its workspace gets a few files and a repository first, so that no search has nothing to look at.
cat >/dev/null
echo '{"colour": "blue"}' >data.json
echo plain >notes.txt
if command -v git >/dev/null; then
  git init -q . && git add data.json && git -c user.name=a -c user.email=a@b commit -qm first
fi >/dev/null 2>&1
for script in attacks/[0-9]*; do
  name=${script#attacks/}
  if [ -n "${SCRIPTS:-}" ]; then
    case " $SCRIPTS " in *" $name "*) ;; *) continue ;; esac
  else
    case ${MODE:-read}:$name in
      read:43_* | plant:*_plant.* | plant:63_*) ;;
      read:*_plant.* | read:63_* | plant:*) continue ;;
    esac
  fi
  begun=$SECONDS
  verdict=$(timeout -k 5 "${CHEAT_TIMEOUT:-60}" "$script" </dev/null 2>/dev/null | grep -aE '^(FOUND|DENIED|PLANTED|SKIP|ERROR) ' | tail -n 1)
  echo "${verdict:-ERROR ${name%.*} no verdict} ($((SECONDS - begun)) s)"
done
exit 0
