#!/bin/sh
# A scripted agent: the prompt comes on standard input, the workspace is the current directory.
prompt=$(cat)
echo "I was asked: $prompt"
echo 'Hello, world!' >greeting.txt
