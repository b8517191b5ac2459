#!/bin/sh
# usage: run.sh CASES. Runs ./double on each case ("input output" a line) and counts.
good=0
all=0
while read -r input output; do
  all=$((all + 1))
  if [ "$(echo "$input" | ./double)" = "$output" ]; then
    good=$((good + 1))
  else
    echo "wrong for $input"
  fi
done <"$1"
echo "$good of $all cases"
[ "$all" -gt 0 ] && [ "$good" = "$all" ]
