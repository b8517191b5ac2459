#!/bin/bash
# usage: identity.sh [NAME...]. sandbox.identity: root. The agent is root of its cell and of nothing else: it installs a
# package, and what it tries on the host fails.
# shellcheck disable=SC2016,SC2034,SC1091
. "$(dirname "$0")/lib.sh"

# The folder of a small package, below the task.
make_package() {
  need dpkg-deb
  mkdir -p package/DEBIAN package/usr/bin package/etc
  printf '%s\n' 'Package: closedbook-hello' 'Version: 1.0' 'Architecture: all' 'Maintainer: Nobody <nobody@example.org>' \
    'Description: says hello' >package/DEBIAN/control
  printf '#!/bin/sh\nset -e\nid -u >/usr/share/closedbook-hello.ids\nchown 33:33 /etc/closedbook-hello.conf\n' >package/DEBIAN/postinst
  printf '#!/bin/sh\necho hello from the package\n' >package/usr/bin/closedbook-hello
  printf 'greeting=hello\n' >package/etc/closedbook-hello.conf
  chmod 0755 package package/DEBIAN package/usr package/usr/bin package/etc package/DEBIAN/postinst package/usr/bin/closedbook-hello
  mkdir -p suite/t/input
  dpkg-deb --root-owner-group --build package suite/t/input/hello.deb >/dev/null 2>err || fail "$(cat err)"
}

# What of this machine the agent must not have changed.
host_state() {
  stat -c '%n %u %g %a %s %Y' /etc /etc/passwd /usr /usr/bin /usr/bin/env /usr/local/bin /var/lib/dpkg /var/lib/dpkg/status
  cat /proc/sys/kernel/core_pattern /proc/sys/vm/swappiness
}

case_root_installs_a_package_and_stays_inside() {
  make_package
  host_state >before
  TASK_MORE='input_dir: input
sandbox: {identity: root}' TASK_CRITERIA="$(command_criterion 'grep -qx "hello from the package" greeting && grep -qx 0 ids && ! command -v closedbook-hello')
  - {type: file_contains, description: it tried, path: tried, includes: [the end], excludes: [FOUND]}" \
    script_task t <<'EOF'
#!/bin/sh
set -e
[ "$(id -u)" = 0 ] && [ "$(id -un)" = root ]
dpkg -i hello.deb >dpkg.log 2>&1
closedbook-hello >greeting
cp /usr/share/closedbook-hello.ids ids
[ "$(stat -c %u:%g /etc/closedbook-hello.conf)" = 33:33 ]
dpkg -s closedbook-hello | grep -q '^Status: install ok installed'
echo x >/usr/local/bin/own; chmod 4755 /usr/local/bin/own
echo '127.0.0.1 elsewhere' >>/etc/hosts
rm /usr/bin/env; mkdir -p /opt/x; echo x >/opt/x/y; echo x >/root-made
useradd -M tester 2>>dpkg.log
setpriv --reuid tester --regid users --clear-groups sh -c 'touch /opt/x/z 2>/dev/null && exit 1; id -u >/tmp/uid'
[ "$(cat /tmp/uid)" -ge 1000 ]
# What must not work.
attempt() { if "$@" >/dev/null 2>&1; then echo "FOUND $*"; else echo "DENIED $*"; fi; }
{
  attempt mount -t tmpfs none /opt
  attempt chroot / true
  attempt mknod /opt/null c 1 3
  attempt unshare -U true
  attempt unshare -n true
  attempt sh -c 'echo core >/proc/sys/kernel/core_pattern'
  attempt sh -c 'echo 1 >/proc/sys/vm/swappiness'
  attempt sh -c 'echo b >/proc/sysrq-trigger'
  attempt kill -9 1
  attempt hostname other
  attempt ip link set lo down
  attempt sh -c 'echo "0 0 4294967295" >/proc/self/uid_map'
  attempt python3 -c 'import os; os.setpriority(0, 0, -5)'
  attempt ls /proc/1/root/
  attempt dmesg
  attempt setpriv --reuid 70000 true
  attempt python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)'
  attempt python3 -c 'import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)'
  attempt sh -c 'ls /sys/kernel || ls /var/cache/closedbook'
  attempt grep -q '^CapEff:.*[1-9a-f].*$' /proc/1/status
  sed -n 's/^\(CapEff\|CapBnd\|NoNewPrivs\|Seccomp\):\s*/\1 /p' /proc/self/status
  cat /proc/self/uid_map
  echo the end
} >tried 2>&1
EOF
  run_suite
  expect_status 0
  expect_trial .status SUCCESS
  expect_trial .cell.tier A
  expect_trial '.cell.protections | contains(["user-ns", "seccomp", "landlock", "leased-uid", "init-uid", "pids", "no-new-privs"]) and (index("no-caps") == null)' true
  host_state >after
  cmp -s before after || fail "the host changed: $(diff before after | tr '\n' ' ')"
  "$CLOSEDBOOK" show run/trials/default/t/00 tried >attempts 2>err || fail "$(cat err)"
  [ "$(grep -c DENIED attempts)" -ge 20 ] || fail "$(grep -c DENIED attempts) attempts: $(cat attempts)"
  ! awk '$2 == 0 && NF == 3' attempts | grep . || fail "the host's root is in the map"
  # Only the workspace is kept.
  ! jq -e '[.. | strings | select(test("opt/x|usr/local"))] | length > 0' run/trials/default/t/00/changes.json >/dev/null ||
    fail "what is outside of the workspace was collected"
}

case_who_has_no_range_is_told() {
  ! is_root || not_here "for an ordinary user"
  TASK_MORE='sandbox: {identity: root}' script_task t <<<'#!/bin/sh'
  run_suite
  expect_status 3
  expect_text err "task 't' wants to be root (sandbox.identity), which takes a range of ids that only tier A has"
  [ ! -e run ] || fail "a run was begun"
  TASK_MORE='sandbox: {identity: root, driver: tempdir}' script_task t <<<'#!/bin/sh'
  run_suite
  expect_status 2
  expect_text err 'the driver tempdir has no ids to give'
}

main root_installs_a_package_and_stays_inside:root who_has_no_range_is_told:user
