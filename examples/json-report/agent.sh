#!/bin/sh
# A scripted agent: sums the table with nothing but the shell.
cat >/dev/null
total=0
list=
for region in north south west; do
  sum=0
  months=
  while IFS=, read -r name month amount; do
    [ "$name" = "$region" ] || continue
    sum=$((sum + amount))
    months="$months${months:+, }\"$month\""
  done <sales.csv
  total=$((total + sum))
  list="$list${list:+, }{\"name\": \"$region\", \"total\": $sum, \"months\": [$months]}"
done
printf '{"total": %d, "regions": [%s]}\n' "$total" "$list" >report.json
