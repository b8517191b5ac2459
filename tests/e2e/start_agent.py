#!/usr/bin/env python3
"""Starts an agent's program in its cell as its adapter would.

$SPEC is what `closedbook agents NAME --json` says of it, $CLOSEDBOOK_MODEL_KEY the key for its cell. The files for HOME are written here: an exec agent has none.
"""

import json
import os
import sys

spec = json.loads(os.environ.pop('SPEC'))['command']
for path, text in spec['files'].items():
    path = os.path.join(os.environ['HOME'], path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
for item in spec['env']:
    name, value = item.split('=', 1)
    os.environ[name] = os.environ['CLOSEDBOOK_MODEL_KEY'] if value == 'placeholder' else value
words = [word for word in spec['argv'] if word != '/run/agent/start']
null = os.open('/dev/null', os.O_RDONLY)
os.dup2(null, 0)
sys.stdout.flush()
os.execv(words[0], words)
