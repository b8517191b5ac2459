#!/bin/sh
# What the oracle runs: a solution that the task's author vouches for.
cp "$REFERENCE_DIR/double" ./double
chmod +x ./double
