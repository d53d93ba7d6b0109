#!/bin/bash
# The commands of a document's blocks `console` succeed, one after another in one shell, and print what it shows.
#
#   tutorial_test.sh DOCUMENT BUILD FOLDER       works in FOLDER, which is removed first and left for other tests
#
# Figures may be others, and so may the word behind a figure (a unit, a plural) and the number of spaces; "..." stands for anything.
# shellcheck disable=SC2016  # backticks are Markdown's
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

# Prints the first shown line that no line of the output is like.
find_missing() {
  perl -e '
    open(my $output, "<", "output"); my @printed = map { s/\s+/ /gr } <$output>;
    open(my $shown, "<", "shown");
    while (my $line = <$shown>) {
      (my $words = $line) =~ s/\s+/ /g;
      my $like = join ".*", map {
        s/([0-9][0-9.]*)( [^ ]+)?|([^0-9]+)/defined $3 ? quotemeta $3 : "[0-9][0-9.]*" . ($2 ? " [^ ]+" : "")/ger
      } split /\.\.\./, $words, -1;
      next if grep { /^$like$/ } @printed;
      print $line; last;
    }'
}

# Runs the command that was read, and looks for what is shown of it.
finish() {
  local missing
  [[ -n $command ]] || return 0
  eval "$command" >output 2>&1 </dev/null || fail "'$command' ends with $?"
  ((${#shown[@]} == 0)) || printf '%s\n' "${shown[@]}" | grep -v '^ *$' >shown
  missing=$(find_missing)
  [[ -z $missing ]] || fail "'$command' does not print '$missing'"
  command='' shown=()
  rm -f shown
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
