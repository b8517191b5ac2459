#!/bin/bash
# repo.sh: a repository in the workspace is made anew from one commit: nothing else of the one it comes from is there, and
# the agent can work with it. Each hostile repository is mined twice by the same program: as it is, where the answer must
# be found (the control), and in the agent's workspace.
# shellcheck source-path=SCRIPTDIR disable=SC2154,SC2317,SC2119,SC2015,SC2016
. "$(dirname "$0")/lib.sh"

export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a
export GIT_COMMITTER_EMAIL=a@b
ANSWER=THE-ANSWER-IS-42

# How often the answer is in the folder $1 or in what git knows there: objects of any kind, names, logs, raw files.
MINE='mine() {
  (
    cd "$1" || exit
    g() { git -c core.fsmonitor=false -c core.hooksPath=/dev/null -c safe.directory="*" "$@"; }
    {
      g cat-file --batch --batch-all-objects
      g for-each-ref
      g log --all --reflog --format=%B -p
      g stash list
      g config --list
      find . -type f -exec cat {} +
    } 2>/dev/null | grep -ac THE-ANSWER || true
  )
}'
eval "$MINE"

g() { git -C "$repo" "$@"; }

put() { # MESSAGE FILE TEXT: a commit
  mkdir -p "$repo/$(dirname "$2")"
  printf '%s\n' "$3" >"$repo/$2"
  g add -A
  g commit -qm "$1"
}

# suite/repos/$1: two commits before the base, whose hash is $base, and the fix after it.
make_repo() { # NAME [git init's arguments]
  repo=suite/repos/$1
  shift
  git init -q -b main "$@" "$repo"
  put first code.txt 'old old'
  put second code.txt old
  put base tool/run.sh 'echo runs'
  base=$(g rev-parse HEAD)
  put "fix with $ANSWER" code.txt "$ANSWER"
}

object() { # NAME: its file
  local id
  id=$(g rev-parse "$1")
  echo "$repo/.git/objects/${id:0:2}/${id:2}"
}

plant_names() { # all that can name the fix, and all that git would run
  local hook
  GIT_COMMITTER_DATE='2001-01-01T00:00:00Z' GIT_AUTHOR_DATE='2001-01-01T00:00:00Z' g tag -am "back-dated $ANSWER" v0
  g branch fix
  g update-ref refs/pull/7/head HEAD
  g notes add -m "$ANSWER" "$base"
  echo "$ANSWER stashed" >"$repo/code.txt"
  g stash -q
  g reset -q --hard "$base" # its reflog and ORIG_HEAD lead to the fix
  g replace "$base" fix
  g commit-graph write --reachable 2>/dev/null
  g config user.answer "$ANSWER"
  for hook in post-checkout post-index-change reference-transaction pre-commit; do
    printf '#!/bin/sh\necho %s >>"$PWD/hooked"\n' "$ANSWER" >"$repo/.git/hooks/$hook"
    chmod 0755 "$repo/.git/hooks/$hook"
  done
  g config core.fsmonitor "echo $ANSWER >>hooked; false"
  g config filter.x.smudge "sed s/old/$ANSWER/"
  g config core.attributesFile attributes
  echo '* filter=x' >"$repo/.git/info/attributes"
}

plant_unreachable() { # packed, and no name leads to it
  g repack -qad
  g reset -q --hard "$base"
  g reflog expire --expire=now --all
  rm -f "$repo/.git/ORIG_HEAD"
}

# The agent of all tasks: looks for the answer, then works with the repository. What it saw is seen.txt.
repo_task() { # NAME URL HISTORY
  TASK_MORE="sandbox: {template_sources: [{type: repo, url: $2, commit: '$base', history: $3}]}" \
    TASK_CRITERIA='  - {type: file_exists, description: it looked, path: seen.txt}' script_task "$1" <<E2
#!/bin/sh
$MINE
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
{
  echo "answers \$(mine .)"
  echo "status \$(git status --porcelain 2>&1 | tr '\\n' ' ')"
  echo "log \$(git log --format=%s 2>&1 | tr '\\n' ' ')end"
  echo "files \$(find . -type f -not -path './.git/*' | sort | tr '\\n' ' ')"
  echo "git \$(ls -A .git 2>&1 | tr '\\n' ' ')"
  echo "refs \$(git for-each-ref | wc -l) \$(git reflog --all | wc -l) \$(git fsck --full --unreachable --strict 2>&1 | wc -l)"
  echo new >>code.txt && git diff --stat | tail -1
  git commit -qam mine && git log -1 --format='committed %s'
} >/tmp/seen 2>&1
mv /tmp/seen seen.txt
E2
}

seen() { # TASK TEXT...
  local task=$1 text
  shift
  cb show "run/trials/default/$task/00" seen.txt
  for text; do expect_text out "$text"; done
}

complains() { # TASK TEXT: its trial is an ERROR that blames the task
  expect_trial .status ERROR "$1"
  expect_trial .error_code task "$1"
  trial .error "$1" >message
  expect_text message "$2"
}

case_nothing_but_the_commit_is_there() {
  need git jq
  local task
  make_repo names && plant_names && repo_task names ../repos/names base
  repo_task ancestors "file://$PWD/suite/repos/names" ancestors
  repo_task none ../repos/names none
  make_repo packed && plant_unreachable && repo_task packed ../repos/packed/.git base
  make_repo sha256 --object-format=sha256 && repo_task sha256 ../repos/sha256 base
  make_repo module && g branch fix && g reset -q --hard "$base" &&
    g -c protocol.file.allow=always submodule --quiet add "$PWD/suite/repos/packed" sub && g commit -qm 'with a module' &&
    base=$(g rev-parse HEAD) && repo_task module ../repos/module base
  # Complete, with a further store of objects behind it.
  make_repo borrower && g reset -q --hard "$base" && g reflog expire --expire=now --all && rm -f "$repo/.git/ORIG_HEAD" &&
    g gc -q --prune=now && echo "$PWD/suite/repos/names/.git/objects" >"$repo/.git/objects/info/alternates" &&
    repo_task borrower ../repos/borrower base
  # What a template's patterns take back, its repository is not.
  cp -r suite/repos/packed suite/repos/template
  repo_task template ../repos/packed base
  sed -i 's/^sandbox: .*/sandbox: {template_sources: [{type: template_dir, path: ..\/repos\/template}], ignore_patterns: ["!.g*"]}/' \
    suite/template/task.yaml
  # A clone of the base and its parent alone, of which the rest is cut off.
  git clone -q --depth 2 "file://$PWD/suite/repos/packed" suite/repos/shallow 2>/dev/null
  base=$(git -C suite/repos/shallow rev-parse HEAD)
  repo_task shallow ../repos/shallow base
  for task in names packed sha256 borrower module; do
    [ "$(mine "suite/repos/$task")" -gt 0 ] || fail "the control of $task does not find the answer"
  done
  run_suite -j 4
  expect_status 0
  for task in names packed sha256 borrower module shallow ancestors none template; do
    seen "$task" 'answers 0'
  done
  for task in names packed sha256 borrower shallow; do
    seen "$task" 'status ' 'log base end' 'files ./code.txt ./tool/run.sh ' 'git HEAD config index objects refs ' 'refs 1 0 0' \
      '1 file changed, 1 insertion(+)' 'committed mine'
  done
  seen ancestors 'log base second first end' 'refs 1 0 0' 'committed mine'
  seen none 'files ./code.txt ./tool/run.sh ' "git ls: cannot access '.git'"
  seen template 'files ./code.txt ./tool/run.sh ' "git ls: cannot access '.git'"
  seen module 'files ./.gitmodules ./code.txt ./tool/run.sh '
  [ ! -e suite/repos/names/hooked ] || fail "the host ran what the repository names"
}

case_what_cannot_be_taken_is_said() {
  need git jq
  make_repo whole && repo_task link ../repos/tree base && git -C "$repo" worktree add -q ../tree "$base"
  git clone -qs suite/repos/whole suite/repos/shared && repo_task shared ../repos/shared base
  git clone -q --depth 2 "file://$PWD/suite/repos/whole" suite/repos/shallow 2>/dev/null
  base=$(git -C suite/repos/shallow rev-parse HEAD) && repo_task cut ../repos/shallow ancestors
  base=$(g rev-parse 'HEAD^{tree}') && repo_task tree ../repos/whole base
  base=$(printf '%040d' 7) && repo_task absent ../repos/whole base
  mkdir suite/repos/plain && repo_task plain ../repos/plain base
  ln -s /etc "$repo/out" && g add -A && g commit -qm out && base=$(g rev-parse HEAD) && repo_task out ../repos/whole base
  make_repo damaged && repo_task damaged ../repos/damaged base
  # One object has the content of another.
  cp -f "$(object HEAD~3:code.txt)" "$(object "$base:code.txt")"
  run_suite -j 4
  complains damaged 'an object of the commit is damaged'
  complains link 'is no folder but leads to another place'
  complains shared 'it borrows objects from another repository'
  complains cut 'a shallow or a partial clone'
  complains tree 'is a tree, a commit expected'
  complains absent 'it has no commit 0000000000000000000000000000000000000007'
  complains plain 'it is no git repository'
  complains out "'out'"
}

# What an old commit has, or a later source covers, is the agent's by its objects: of what is private, that is an error. The
# controls are the same repositories with a history that does not reach it.
case_nothing_private_is_in_the_commits() {
  need git jq
  local task
  repo=suite/repos/old
  git init -q -b main "$repo"
  put 'with the reference' answer.txt "$ANSWER"
  g rm -q answer.txt && put 'with a task file' deep/t.yml 'task_id: t' && g rm -q deep/t.yml && put base code.txt old
  base=$(g rev-parse HEAD)
  for task in none base; do repo_task "task-$task" ../repos/old "$task"; done
  repo_task task-ancestors ../repos/old ancestors
  # Without the task file; and its bytes as those of the reference.
  repo=suite/repos/answer
  git init -q -b main --object-format=sha256 "$repo"
  put 'with the reference' answer.txt "$ANSWER"
  g rm -q answer.txt && put base code.txt old && base=$(g rev-parse HEAD)
  for task in none base ancestors; do
    repo_task "answer-$task" ../repos/answer "$task"
    mkdir "suite/answer-$task/reference" && echo "$ANSWER" >"suite/answer-$task/reference/main.txt"
    echo 'reference: {directory: reference}' >>"suite/answer-$task/task.yaml"
  done
  # Covered: the workspace has other bytes at that path, the repository still has these.
  repo=suite/repos/covered && git init -q -b main "$repo" && put base answer.txt "$ANSWER" && base=$(g rev-parse HEAD)
  mkdir suite/cover && echo nothing >suite/cover/answer.txt
  for task in none base; do
    repo_task "covered-$task" ../repos/covered "$task"
    mkdir "suite/covered-$task/reference" && echo "$ANSWER" >"suite/covered-$task/reference/main.txt"
    sed -i 's/}\]}$/}, {type: template_dir, path: ..\/cover}]}/' "suite/covered-$task/task.yaml"
    echo 'reference: {directory: reference}' >>"suite/covered-$task/task.yaml"
  done
  run_suite -j 4
  complains task-ancestors "a task file in the repository's commits, 'deep/t.yml'"
  complains answer-ancestors "suite/answer-ancestors/reference/main.txt' in one of its commits"
  complains covered-base "suite/covered-base/reference/main.txt' in one of its commits"
  for task in task-none task-base answer-none answer-base covered-none; do expect_trial .status SUCCESS "$task"; done
}

# The second run takes it from the store.
case_is_kept_by_commit() {
  need git jq
  make_repo kept && repo_task t ../repos/kept base
  rm -rf suite/t/x && run_suite
  expect_status 0
  rm -rf suite/repos/kept/.git run && run_suite
  expect_status 0
  seen t 'log base end'
}

main nothing_but_the_commit_is_there:user what_cannot_be_taken_is_said nothing_private_is_in_the_commits is_kept_by_commit
