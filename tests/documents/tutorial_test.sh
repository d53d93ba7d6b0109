#!/bin/bash
# The commands of a document's blocks `console` succeed, one after another in one shell, and print what it shows.
#
#   tutorial_test.sh DOCUMENT BUILD FOLDER       works in FOLDER, which is removed first and left for other tests
#
# Of each shown line all up to the first figure or "..." is looked for, whatever the number of spaces.
set -uo pipefail
document=$(realpath "$1") folder=$(realpath -m "$3")
ALPA_ROOT=$(realpath "$2") PATH=$(realpath "$2")/bin:$PATH
export ALPA_ROOT PATH OMP_NUM_THREADS=1
rm -rf "$folder" && mkdir -p "$folder"
cd "$folder" || exit 1
command='' shown=() commands=0

fail() {
  echo "FAILED: $*"
  cat output
  exit 1
}

# Runs the command that was read, and looks for what is shown of it.
finish() {
  local line
  [[ -n $command ]] || return 0
  eval "$command" >output 2>&1 </dev/null || fail "'$command' ends with $?"
  tr -s ' ' <output >squeezed
  for line in "${shown[@]}"; do
    line=$(sed 's/[0-9].*//; s/\.\.\..*//' <<<"$line" | tr -s ' ')
    [[ -z ${line// /} ]] || grep -qF -- "$line" squeezed || fail "'$command' does not print '$line'"
  done
  command='' shown=()
  ((++commands))
}

while IFS= read -r line; do
  case $line in
    '$ '*) finish && command=${line:2} ;;
    '>'*) line=${line:1} && command+=$'\n'${line# } ;;
    *) shown+=("$line") ;;
  esac
done < <(sed -n '/^```console$/,/^```$/{/^```/!p}' "$document")
finish
((commands > 0)) || fail "$document has no commands"
echo "$commands commands"
