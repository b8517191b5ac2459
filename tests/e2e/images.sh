#!/bin/bash
# images.sh: a cell's root from an image: unpacked once, checked, shared; hostile and damaged ones refused.
# shellcheck source-path=SCRIPTDIR disable=SC2154,SC2317,SC2119,SC2015,SC2016
. "$(dirname "$0")/lib.sh"

MAKE_IMAGE=$E2E_SOURCE/tests/images/make-image

# A small system of the host's own programs in ./system.
make_system() {
  local program file library
  mkdir -p system/{bin,etc,tool}
  for program in sh cat ls grep id; do
    file=$(readlink -f "$(type -P "$program")")
    cp "$file" "system/bin/$program"
    for library in $(ldd "$file" | grep -o '/[^ ]*'); do
      mkdir -p "system${library%/*}"
      cp -nL "$library" "system$library"
    done
  done
  printf '#!/bin/sh\necho tool of the image\n' >system/tool/tool
  chmod 0755 system/tool/tool
  cp system/bin/id system/bin/setid
  chmod 6755 system/bin/setid
  echo lower >system/marker
}

# The description of an image of ./system and a second layer; $1: further members of the object.
image_json() {
  jq -n --arg tree "$PWD/system" "{layers: [[{tree: \$tree}], [{name: \"marker\", data: \"upper\\n\"}, {name: \"tool/.wh.absent\"}]],
    config: {Env: [\"PATH=/tool:/bin\", \"FROM_IMAGE=yes\", \"HOME=/elsewhere\", \"TASK_SETS=no\"], WorkingDir: \"/workspace/sub\", User: \"0\",
      Entrypoint: [\"/bin/entry\"]}} + ${1:-{\}}"
}

image_task() { # REFERENCE
  TASK_AGENT='env: [TASK_SETS=task]' \
    TASK_MORE="sandbox: {image: '$1', template_sources: [{type: starter_files, files: [{path: sub/x, content: x}]}]}
grading: {image: '$1'}" \
    TASK_CRITERIA=$(command_criterion 'grep -q "^upper yes /home/agent task$" done.txt && test ! -e /usr/bin/env && tool') script_task t <<'E2'
#!/bin/sh
echo "$(cat /marker) $FROM_IMAGE $HOME $TASK_SETS" >/workspace/done.txt
{ tool; id -un; ls; setid -u; (: >/marker); ls /nowhere; } >>/workspace/done.txt 2>&1
E2
}

check_run() {
  run_suite
  expect_status 0
  cb show run/trials/default/t/00 done.txt
  for line in 'upper yes /home/agent task' 'tool of the image' agent x 'Read-only file system'; do
    expect_text out "$line"
  done
  grep -qx 0 out && fail "a set-id program of the image took effect"
  expect_trial '.view.systems.agent.kind' image
  expect_trial '.view.systems.agent.image.entrypoint[0]' /bin/entry
}

# Root's store is shared with others: what counts there is the difference.
images() { # how many more than at first are in the store
  cb cache --json
  expect_status 0
  echo $(($(jq length out) - ${FIRST:-0}))
}

case_runs_in_an_image() {
  need python3 zstd
  make_system
  date +%N >system/unique
  FIRST=$(images)
  image_json | "$MAKE_IMAGE" oci suite/t/image
  image_task oci:image:latest
  check_run
  [ "$(images)" = 1 ] || fail "$(images) images are kept"
  # The same layers, compressed otherwise, in an archive: found by what they are.
  image_json '{compress: "zstd"}' | "$MAKE_IMAGE" oci suite/t/image2
  image_task oci:image2
  rm -rf run
  check_run
  image_json | "$MAKE_IMAGE" docker-archive suite/t/image.tar
  image_json '{archive: "zstd"}' | "$MAKE_IMAGE" docker-archive suite/t/image.tar.zst
  image_task docker-archive:image.tar
  rm -rf run
  check_run
  image_task docker-archive:image.tar.zst
  rm -rf run
  check_run
  # One of several in an archive, by its name.
  image_json '{several: true}' | "$MAKE_IMAGE" docker-archive suite/t/several.tar
  image_task docker-archive:several.tar:test
  rm -rf run
  check_run
  image_task docker-archive:several.tar
  rm -rf run
  run_suite
  [ "$status" != 0 ] || fail "an archive of several images was taken without a name"
  expect_text err "2 images are in the archive; name one: docker-archive:FILE:REF, with 'other:1', 'test:latest'"
  [ "$(images)" = 1 ] || fail "$(images) images are kept of the same layers"
  # The second use needs nothing of the source but its index.
  rm -r suite/t/image/blobs
  image_task oci:image:latest
  rm -rf run
  check_run
}

case_keeps_images_until_pruned() {
  need python3
  make_system
  date +%N >system/unique
  cb cache prune --all
  FIRST=$(images)
  image_json | "$MAKE_IMAGE" oci suite/t/image
  image_task oci:image
  check_run
  cb cache prune
  expect_status 0
  [ "$(images)" = 1 ] || fail "one that was just used was removed"
  # In use: a cell holds it.
  mkfifo hold
  start_cb cell suite/t -- sh -c 'echo started; cat /dev/stdin; while :; do :; done'
  wait_until 60 grep -q started out
  cp out started.out
  cb cache prune --all
  expect_text out 'in use'
  [ "$(images)" = 1 ] || fail "one that is in use was removed"
  kill -KILL -- "-$started" 2>/dev/null || true
  wait "$started" 2>/dev/null || true
  prune_all() { cb cache prune --all && [ "$(images)" = 0 ]; }
  wait_until 20 prune_all
  rm -rf run
  check_run
}

# Each is refused with its reason, leaves nothing in the store, and nothing outside it.
case_refuses_what_is_wrong_with_an_image() {
  need python3
  mkdir -p suite/t
  FIRST=$(images)
  local file='{"name": "bin/sh", "data": "no shell at all, but some bytes"}' name json said
  while IFS='|' read -r name json said; do
    rm -rf suite/t/image run
    printf '%s' "$json" | "$MAKE_IMAGE" oci suite/t/image
    TASK_MORE="sandbox: {image: 'oci:image'}" script_task t </dev/null
    run_suite
    expect_status 3
    case $(trial .error) in *"$said"*) ;; *) fail "$name: $(trial .error)" ;; esac
    [ "$(images)" = 0 ] || fail "$name: it was kept"
    [ -z "$(find / -maxdepth 2 -name 'e2e-escaped*' 2>/dev/null)" ] || fail "$name: it escaped"
  done <<E2
a wrong byte|{"layers": [[$file]], "break": "blob"}|is damaged: its digest is
a wrong diff id|{"layers": [[$file]], "break": "diff_id"}|layer 1 is damaged: its digest is
cut off|{"layers": [[$file]], "break": "cut"}|truncated
another size|{"layers": [[$file]], "break": "size"}|it is cut off or another
a wrong configuration|{"layers": [[$file]], "break": "config"}|is damaged
a blob that is not there|{"layers": [[$file]], "break": "missing"}|No such file
an unknown media type|{"layers": [[$file]], "break": "media_type"}|the media type 'text/plain' is unknown
another architecture|{"layers": [[$file]], "arch": "s390x"}|the image is for linux/s390x, this machine is linux/
a path with ..|{"layers": [[{"name": "../../../../../../tmp/e2e-escaped"}]]}|has '..' in its path
a file through a link|{"layers": [[{"name": "e", "type": "symlink", "link": "/tmp"}, {"name": "e/e2e-escaped"}]]}|cannot be made
a hard link out|{"layers": [[{"name": "h", "type": "hardlink", "link": "/etc/passwd"}]]}|which is no file of the image
a whiteout of ..|{"layers": [[{"name": "a/.wh..."}]]}|hides no name
E2
  TASK_MORE="sandbox: {image: 'oci:absent'}" script_task t </dev/null
  rm -rf run
  run_suite
  case $(trial .error) in *"absent': No such file or directory"*) ;; *) fail "absent: $(trial .error)" ;; esac
}

# The control: the same layers by a tool that trusts them do escape.
case_would_notice_an_escape() {
  need python3
  mkdir outside into
  printf '{"layers": [[{"name": "e", "type": "symlink", "link": "%s/outside"}, {"name": "e/escaped"}]]}' "$PWD" | "$MAKE_IMAGE" oci image
  python3 -c 'import sys, tarfile
with tarfile.open(sys.argv[1]) as tar:
    for member in tar:
        tar.extract(member, sys.argv[2])' "$(for blob in image/blobs/sha256/*; do if gzip -t "$blob" 2>/dev/null; then echo "$blob"; fi; done)" into
  [ -e outside/escaped ] || fail "even a naive extractor is not fooled"
}

case_says_what_a_reference_should_look_like() {
  mkdir -p suite/t
  TASK_MORE="sandbox: {image: 'python:3.12'}" script_task t </dev/null
  run_suite
  expect_status 2
  expect_text err 'oci:PATH[:tag], docker-archive:FILE[:ref], docker-daemon:NAME or docker://NAME expected'
  [ ! -x /usr/bin/skopeo ] && [ ! -x /usr/local/bin/skopeo ] || not_here "skopeo is here"
  TASK_MORE="sandbox: {image: 'docker://localhost/x'}" script_task t </dev/null
  run_suite
  expect_status 3
  case $(trial .error) in *"apt-get install skopeo"*) ;; *) fail "$(trial .error)" ;; esac
}

main runs_in_an_image:user keeps_images_until_pruned:user refuses_what_is_wrong_with_an_image:user would_notice_an_escape \
  says_what_a_reference_should_look_like
