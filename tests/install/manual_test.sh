#!/bin/bash
# The manual pages are without a fault, and say what --help says.
#
#   manual_test.sh PREFIX
set -euo pipefail
prefix=$1
command -v mandoc >/dev/null || { echo "skipped: mandoc is not installed (apt-get install mandoc)"; exit 77; }

fail() {
  echo "FAILED: $*"
  exit 1
}

for command in alpa-profile alpa-plan alpa-train; do
  page=$prefix/share/man/man1/$command.1
  mandoc -Tlint "$page" || fail "mandoc complains of $page"
  # Each option of the help of the command and of each of its subcommands; spaces may differ.
  text=$(mandoc -Tutf8 -O width=1000 "$page" | sed 's/.\x08//g' | tr -s ' ')
  subcommands=$("$prefix/bin/$command" --help | sed -n '/^commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p')
  for subcommand in '' $subcommands; do
    help=$("$prefix/bin/$command" ${subcommand:+"$subcommand"} -h)
    [[ $help == "$("$prefix/bin/$command" ${subcommand:+"$subcommand"} --help)" ]] || fail "$command $subcommand -h is not --help"
    while read -r option; do
      [[ $text == *" $option"* ]] || fail "$command.1 has no '$option' of $command $subcommand"
    done < <(sed -n 's/^  \(--[a-z-]*\( [^ ]*\)\?\)  .*/\1/p; s/^  \(--[a-z-]* [^ ]*\)$/\1/p' <<<"$help")
  done
  for section in NAME SYNOPSIS OPTIONS 'EXIT STATUS' EXAMPLES; do
    grep -q "^$section$" <<<"$text" || fail "$command.1 has no section $section"
  done
done
