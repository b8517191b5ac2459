#!/bin/bash
# manual.sh: the manual page says what is so: its examples run, and it has every option that the program has.
# shellcheck source-path=SCRIPTDIR disable=SC2154,SC2317,SC2119,SC2015,SC2016,SC2013
. "$(dirname "$0")/lib.sh"

PAGE=$E2E_SOURCE/man/closedbook.1

case_its_examples_run() {
  awk '/^\.Sh EXAMPLES/ { on = 1 } /^\.Sh SEE/ { on = 0 } on && /^\.Bd/ { block = 1; next } /^\.Ed/ { block = 0 } on && block' "$PAGE" |
    sed 's/\\e/\\/g; s/\\-/-/g; s/\\&//g' >examples.sh
  [ "$(wc -l <examples.sh)" -ge 10 ] || fail "the examples were not found in the manual page"
  cp -R "$E2E_SOURCE/examples" .
  mkdir bin && ln -s "$CLOSEDBOOK" bin/closedbook
  PATH=$PWD/bin:$PATH sh -eu examples.sh >out 2>err </dev/null || fail "ended with $?: $(tail -n 3 err | tr '\n' ' ')"
}

case_it_has_every_option() {
  need mandoc
  mandoc -T ascii "$PAGE" | sed 's/.\x08//g' >page
  local command option missing=
  cb help
  for command in $(sed -n 's/^  \([a-z]*\)  .*/\1/p' out); do
    grep -qw -- "$command" page || missing="$missing $command"
    cb help "$command"
    for option in $(grep -oE -- '--[a-z][a-z-]+' out | sort -u); do
      case $option in --help) continue ;; esac
      grep -qF -- "$option" page || missing="$missing $command $option;"
    done
  done
  [ -z "$missing" ] || fail "not in the manual page: $missing"
}

case_it_has_no_option_too_many() {
  need mandoc
  mandoc -T ascii "$PAGE" | sed 's/.\x08//g' >page
  local command option extra=
  cb help
  : >all
  for command in $(sed -n 's/^  \([a-z]*\)  .*/\1/p' out); do
    "$CLOSEDBOOK" help "$command" >>all
  done
  for option in $(grep -oE -- '--[a-z][a-z-]+' page | sort -u); do
    case $option in --version) continue ;; esac
    grep -qF -- "$option" all || extra="$extra $option"
  done
  [ -z "$extra" ] || fail "only in the manual page: $extra"
}

main its_examples_run:user it_has_every_option it_has_no_option_too_many
