#!/bin/sh
# usage: run.sh CASES. Runs ./double on each case ("input output" a line) and counts.
#
# By as-candidate: a cell of its own, in which there are no cases to be found. See ../README.md.
good=0
all=0
while read -r input output; do
  all=$((all + 1))
  if [ "$(echo "$input" | as-candidate --timeout 5 ./double)" = "$output" ]; then
    good=$((good + 1))
  else
    echo "wrong for $input"
  fi
done <"$1"
echo "$good of $all cases"
[ "$all" -gt 0 ] && [ "$good" = "$all" ]
