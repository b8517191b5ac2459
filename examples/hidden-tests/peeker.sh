#!/bin/sh
# A cheating agent: its program multiplies nothing, it looks the answer up while it is graded.
cat >/dev/null
cat >double <<'PROGRAM'
#!/bin/sh
# Where the reference lies: by this program's environment, those of its parents, or the mount table.
read -r n
places=$(
  {
    echo "REFERENCE_DIR=$REFERENCE_DIR"
    cat /proc/[0-9]*/environ | tr '\0' '\n' | grep ^REFERENCE_DIR=
    sed -n 's|^.* \(/graders/[^ /]*\) .*|REFERENCE_DIR=\1|p' /proc/self/mountinfo
    ls -d /graders/*/ | sed 's/^/REFERENCE_DIR=/'
  } 2>/dev/null | cut -d= -f2- | sort -u
)
for place in $places; do
  sed -n "s/^$n //p" "$place/cases.txt" 2>/dev/null
done | head -n 1
PROGRAM
chmod +x double
