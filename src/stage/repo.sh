#!/bin/sh
# usage: repo.sh COMMIT HISTORY FORMAT. Makes a repository of one commit in the current folder, which is empty, from the
# objects of another one. Run in a cell by repo.c, which holds it as text.
#
# Of the other repository only the objects are there: its configuration, references, logs, hooks, attributes and index
# cannot be looked at, and each object that is taken is packed anew by its content. What is left behind: HEAD on the
# branch main, one pack, and no other name that leads to an object.
# Exit status 3: standard error says what is wrong with the repository; another: what went wrong here.
set -eu
commit=$1 history=$2 format=$3
source=/run/closedbook/objects

refuse() {
  echo "$*" >&2
  exit 3
}

git() {
  command git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c core.commitGraph=false -c core.multiPackIndex=false \
    -c pack.useBitmaps=false -c pack.threads=1 -c core.attributesFile=/dev/null -c core.logAllRefUpdates=false "$@"
}

# Why an object that is named cannot be had.
lacks() {
  if [ -e "$source/info/alternates" ]; then
    refuse "it borrows objects from another repository: give it its own ('git repack -a -d', then remove objects/info/alternates)"
  fi
  for folder in "$source" "$source/pack"; do
    [ ! -e "$folder" ] || { [ -r "$folder" ] && [ -x "$folder" ]; } ||
      refuse "not everybody may read its objects, so no cell can: chmod -R a+rX its objects folder"
  done
  refuse "$1"
}

command -v git >/dev/null || { echo 'git is not installed: apt-get install git' >&2 && exit 4; }
command git init -q --template= --object-format="$format" --initial-branch=main .

export GIT_ALTERNATE_OBJECT_DIRECTORIES="$source"
kind=$(git cat-file -t "$commit" 2>/tmp/said) || lacks "it has no commit $commit, or not everybody may read it"
[ "$kind" = commit ] || refuse "$commit is a $kind, a commit expected"
new=$commit
if [ "$history" != ancestors ]; then
  tree=$(git rev-parse --verify -q "$commit^{tree}") || lacks "it lacks the tree of the commit"
  date="@$(git show -s --format=%ct "$commit") +0000"
  new=$(GIT_AUTHOR_DATE=$date GIT_COMMITTER_DATE=$date git commit-tree -m base "$tree")
fi
echo "$new" | git pack-objects -q --revs --no-reuse-object --delta-base-offset --stdout >/tmp/pack 2>/tmp/said ||
  { grep -q 'No space left' /tmp/said && cat /tmp/said >&2 && exit 5; } ||
  lacks "it lacks objects of the commit: a shallow or a partial clone, of which history: base may do"

# From here on there is nothing but what was packed.
unset GIT_ALTERNATE_OBJECT_DIRECTORIES
git index-pack --stdin </tmp/pack >/dev/null
rm /tmp/pack
git prune-packed -q
git rev-list --objects --quiet "$new" || refuse "an object of the commit is damaged"
git update-ref --no-deref refs/heads/main "$new"
git read-tree --reset -u HEAD
# Whatever suite it belongs to, and however old it is: a task file says how its task is graded.
is_task_file() { grep -aq '^task_id[[:blank:]]*:'; }
if [ "$history" != none ]; then
  git rev-list --objects "$new" | grep -E '\.ya?ml$' >/tmp/yaml || true
  if cut -d' ' -f1 /tmp/yaml | git cat-file --batch 2>/dev/null | is_task_file; then
    while read -r id path; do
      ! git cat-file blob "$id" 2>/dev/null | is_task_file ||
        refuse "the agent would find a task file in the repository's commits, '$path' ($id): take a commit that never had one, or say history: base or none"
    done </tmp/yaml
  fi
fi
# The index that read-tree writes knows times and inodes of this place; the one without is the same everywhere.
rm .git/index
git read-tree HEAD
[ "$history" != none ] || rm -rf .git
