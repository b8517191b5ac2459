#!/bin/sh
# No program is sealed where the reference is played, so it leaves what a call would.
echo 'grep -c " open"' >summary.sh
echo 'core: 12' >team.txt
mkdir -p mocks
echo '--team core' >mocks/calls.log
