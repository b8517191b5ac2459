#!/bin/sh
# An honest scripted agent: it writes the program that the prompt asks for.
cat >/dev/null
cat >double <<'PROGRAM'
#!/bin/sh
read -r n
echo $((n * 2))
PROGRAM
chmod +x double
