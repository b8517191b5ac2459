#!/bin/sh
# A scripted agent: edits in place, renames, deletes.
set -e
cat >/dev/null
sed -i 's/^level = low$/level = high/' config.ini
mv docs/old-name.txt docs/new-name.txt
rm -r scratch
rm src/unused.txt
