#!/bin/sh
# A scripted agent.
cat >/dev/null
echo 'The rain came late this year, and when it came it stayed for weeks.' >text.txt
