#!/bin/bash
# env.sh: python and node environments: what is first on PATH, with which packages, and what is wrong with them.
# shellcheck source-path=SCRIPTDIR disable=SC2154,SC2317,SC2119,SC2015,SC2016,SC2013
. "$(dirname "$0")/lib.sh"

# A package folder and a wheel made by hand: a zip of a module and its three texts.
packages() {
  mkdir -p suite/folder/greet suite/wheel/hello-1.0.dist-info
  printf '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n[project]\nname = "greet"\nversion = "1.0"\ndependencies = ["hello"]\n' >suite/folder/pyproject.toml
  echo 'import hello' >suite/folder/greet/__init__.py
  echo 'def main(): print("hello from a wheel")' >suite/wheel/hello.py
  cd suite/wheel
  printf 'Metadata-Version: 2.1\nName: hello\nVersion: 1.0\n' >hello-1.0.dist-info/METADATA
  printf 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n' >hello-1.0.dist-info/WHEEL
  printf '[console_scripts]\nhello = hello:main\n' >hello-1.0.dist-info/entry_points.txt
  printf 'hello.py,,\nhello-1.0.dist-info/METADATA,,\nhello-1.0.dist-info/WHEEL,,\nhello-1.0.dist-info/entry_points.txt,,\nhello-1.0.dist-info/RECORD,,\n' >hello-1.0.dist-info/RECORD
  /usr/bin/python3 -m zipfile -c ../hello-1.0-py3-none-any.whl hello.py hello-1.0.dist-info
  cd ../..
  rm -r suite/wheel
}

need_pip() { /usr/bin/python3 -m pip --version >/dev/null 2>&1 && /usr/bin/python3 -c 'import setuptools' 2>/dev/null || skip 'no pip and setuptools of the system here'; }

case_python_is_first_on_the_path_and_nothing_is_built_for_it() {
  TASK_CRITERIA=$(command_criterion 'diff seen.txt - <<END
/run/env/python/bin/python
/run/env/python /usr
/run/env/python/bin/pip
sealed
END
test "$(command -v python3)" = /run/env/python/bin/python3 && as-candidate python -c "import json"') \
    script_task t <<'END'
#!/bin/sh
{ command -v python; python -c 'import sys; print(sys.prefix, sys.base_prefix)'; command -v pip
  (echo x >/run/env/python/bin/more || echo sealed) 2>/dev/null; } >seen.txt
END
  run_suite
  expect_status 0
  expect_trial .status SUCCESS
  expect_trial '.view.systems.agent.python.files' 6
  sed -i 's/^description.*/&\nsandbox: {python: null}/' suite/t/task.yaml
  rm -r run
  run_suite
  expect_status 1
  expect_trial '.view.systems.agent.python' null
  expect_trial '.view.systems.grading.python' null
}

case_packages_are_installed_once_and_seen_by_agent_and_graders() {
  need_pip
  packages
  TASK_MORE='sandbox: {python: {env_packages: [../folder, ../hello-1.0-py3-none-any.whl]}}' \
    TASK_CRITERIA=$(command_criterion 'test "$(hello)" = "hello from a wheel" && test "$(cat seen.txt)" = "hello from a wheel" && as-candidate python3 -c "import greet"') \
    script_task t <<<$'#!/bin/sh\nhello >seen.txt && python -c "import greet"'
  run_suite
  expect_status 0
  expect_trial .status SUCCESS
  trial .view.systems.agent.python.root >first
  find cache /var/cache/closedbook -path '*public*hello.py' 2>/dev/null >copies || true
  rm -r run
  run_suite
  trial .view.systems.agent.python.root | diff - first || fail 'another environment'
  sed -i 's/^sandbox.*/&\ngrading: {python: {}}/' suite/t/task.yaml
  rm -r run
  run_suite
  expect_status 1
  expect_text <(cat run/trials/default/t/00/grade/*) 'hello'
}

case_what_cannot_be_had_is_an_error_before_the_agent_starts() {
  script_task t <<<$'#!/bin/sh\ntouch done.txt'
  sed -i 's/^description.*/&\nsandbox: {python: {env_packages: [requests, gone.whl]}, node: {env_packages: ["@a\/b"]}}/' suite/t/task.yaml
  cb plan suite
  expect_status 2
  expect_text err "t/task.yaml:3:35: sandbox.python.env_packages[0]: a package of a registry ('requests') is not in this version"
  expect_text err "sandbox.python.env_packages[1]: '$PWD/suite/t/gone.whl' cannot be opened"
  expect_text err "sandbox.node.env_packages[0]: a package of a registry ('@a/b') is not in this version"
  need_pip
  packages
  sed -i 's/^sandbox.*/sandbox: {python: {env_packages: [..\/folder]}}/' suite/t/task.yaml
  run_suite
  expect_status 3
  expect_trial .status ERROR
  expect_trial .agent.duration_ms 0
  trial .error >error
  expect_text error 'sandbox.python: pip failed (status 1), with no registry to ask'
  expect_text error 'hello'
  mkdir -p bare/bin
  cp /bin/true bare/bin/true
  sed -i "s|^sandbox.*|sandbox: {rootfs: $PWD/bare, python: {}}|" suite/t/task.yaml
  rm -r run
  run_suite
  trial .error >error
  expect_text error "sandbox.python: the cell's root has no python3 on its PATH"
}

case_node_packages_are_on_the_path() {
  need node npm
  mkdir -p suite/tool
  echo '{"name": "tool", "version": "1.0.0", "main": "tool.js", "bin": {"tool": "tool.js"}}' >suite/tool/package.json
  printf '#!/usr/bin/env node\nconsole.log("from a package")\n' >suite/tool/tool.js
  chmod +x suite/tool/tool.js
  TASK_MORE='sandbox: {node: {env_packages: [../tool]}}' \
    TASK_CRITERIA=$(command_criterion 'test "$(tool)$(cat seen.txt)" = "from a packagefrom a package" && node -e "require(\"tool\")"') \
    script_task t <<<$'#!/bin/sh\ntool >seen.txt'
  run_suite
  expect_status 0
}

main python_is_first_on_the_path_and_nothing_is_built_for_it:user \
  packages_are_installed_once_and_seen_by_agent_and_graders:user \
  what_cannot_be_had_is_an_error_before_the_agent_starts node_packages_are_on_the_path
