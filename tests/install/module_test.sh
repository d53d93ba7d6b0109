#!/bin/bash
# The module puts the commands, their manual pages and their completion into reach, and takes them out again.
#
#   module_test.sh PREFIX
set -euo pipefail
prefix=$(realpath "$1")
init=/usr/share/modules/init/bash
if ! command -v modulecmd >/dev/null || [[ ! -e $init ]]; then
  echo "skipped: modulecmd is not installed (apt-get install environment-modules)"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/alpa"
ln -s "$prefix"/share/modulefiles/alpa/* "$work/alpa"

fail() {
  echo "FAILED: $*"
  exit 1
}

set +eu
# shellcheck source=/dev/null
. "$init"
unset MANPATH XDG_DATA_DIRS
before=$PATH
for modules in "$prefix/share/modulefiles" "$work"; do  # of the tree, and a link to it
  module use "$modules"
  module load alpa || fail "the module of $modules is not loaded"
  [[ $ALPA_ROOT == "$prefix" ]] || fail "the prefix is '$ALPA_ROOT', not '$prefix'"
  [[ $(command -v alpa-plan) == "$prefix/bin/alpa-plan" ]] || fail "alpa-plan is $(command -v alpa-plan)"
  [[ $MANPATH == "$prefix/share/man:" ]] || fail "manual pages are looked for in '$MANPATH'"
  [[ $XDG_DATA_DIRS == "$prefix/share:/usr/local/share:/usr/share" ]] || fail "completions are looked for in '$XDG_DATA_DIRS'"
  module unload alpa
  [[ $PATH == "$before" && -z ${MANPATH:-} && -z ${ALPA_ROOT:-} ]] || fail "something is left: '$PATH' '$MANPATH' '$ALPA_ROOT'"
  module unuse "$modules"
  unset XDG_DATA_DIRS
done
