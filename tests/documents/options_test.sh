#!/bin/bash
# What users are to type by the documents exists: subcommands and options of the commands, and of workflow.sh.
#
#   options_test.sh BIN WORKFLOW DOCUMENT...
#
# Commands stand in blocks (fenced, or indented by four spaces) and between backticks. Options between backticks that stand there alone
# are those of any command, or of the programs of others that are listed here.
set -uo pipefail
bin=$1 workflow=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# "COMMAND --option" for each option of each command, and what stands for any of them: "any --option".
options_in() { grep -oE '^ +(-[a-z], )?--[a-z0-9-]+' | grep -oE -- '--[a-z0-9-]+' | sed "s/^/$1 /"; }
for program in alpa-profile alpa-plan alpa-train; do
  "$bin/$program" --help >"$work/help" || exit 1
  options_in $program <"$work/help" >>"$work/known"
  while read -r subcommand; do
    echo "$program $subcommand" >>"$work/subcommands"
    "$bin/$program" "$subcommand" --help | options_in "$program-$subcommand" >>"$work/known"
  done < <(sed -n "s/^ *$program \([a-z-]*\) \.\.\. .*/\1/p" "$work/help")
done
"$workflow" --help | options_in workflow.sh >>"$work/known"
[[ $(wc -l <"$work/known") -gt 150 && $(wc -l <"$work/subcommands") -ge 13 ]] || {
  echo "FAILED: the help is not understood: $(wc -l <"$work/known") options, $(wc -l <"$work/subcommands") subcommands"
  exit 1
}
{
  cut -d' ' -f2 "$work/known"
  # sbatch, srun, cmake, ctest and tests of the suite
  printf -- '--%s\n' array begin constraint cpus-per-task dependency distribution exclusive exclude export gpus-per-node gpus-per-task \
    gpu-bind kill-on-bad-exit kill-on-invalid-dep mem mpi nodes ntasks ntasks-per-node open-mode parsable partition qos requeue signal \
    time test-only account output build component install preset prefix strip target check netlab row only model peer mode seconds \
    plot gtest_filter hosts precision rounds format test-dir
} | sort -u >"$work/any"

# Lines "DOCUMENT COMMAND WORDS...": what follows a command's name up to the end of the line, a pipe or the like.
for document in "$@"; do
  perl -0777 -ne '
    my @spans; s/\\\n>?\s*/ /g;                                                   # lines that go on
    while (/^```.*?\n(.*?)^```/msg) { push @spans, split /\n/, $1 }
    s/^```.*?^```//msg;
    push @spans, $1 while /^ {4}(.*)$/mg;
    s/^ {4}.*$//mg;
    push @spans, $1 =~ s/\s+/ /gr while /`([^`]+)`/g;
    for (@spans) {
      if (/^(--[a-z0-9-]+)/) { print "'"$document"' any $1\n"; next }
      for (split /\s(?:\|\|?|&&|;|#)\s/) {
        print "'"$document"' $1 $2\n" if m{(?:^|[\s/])(alpa-profile|alpa-plan|alpa-train|workflow\.sh)((?:\s.*)?)$} and !/^alpa-\w+: /;
      }
    }' "$document"
done >"$work/spans"

# A report's line "alpa-plan: ..." is no command; a subcommand is the first word, where it is one.
awk -v known="$work/known" -v any="$work/any" -v subcommands="$work/subcommands" '
  BEGIN {
    while ((getline line < known) > 0) has[line] = 1
    while ((getline line < any) > 0) has["any " line] = 1
    while ((getline line < subcommands) > 0) sub_of[line] = 1
  }
  {
    command = $2; first = 3
    if ((command " " $3) in sub_of) { command = command "-" $3; first = 4 }
    else if (command != "any" && $3 ~ /^[a-z]+(-[a-z]+)*$/ && $0 ~ / --/) {
      printf "%s: %s has no subcommand %s\n", $1, $2, $3; ++faults; next
    }
    for (i = first; i <= NF; ++i) {
      if ($i == "--") break
      if ((command == "workflow.sh") && ($i == "--option" || $i == "--sbatch")) { i += 2; continue }
      if ($i !~ /^--[a-z]/) continue
      option = $i; sub(/[=,.;:)].*/, "", option); ++checked
      if (!((command " " option) in has)) { printf "%s: %s has no option %s\n", $1, command, option; ++faults }
    }
  }
  END { printf "%d options, %d faults\n", checked, faults; exit !(checked > 50 && faults == 0) }' "$work/spans"
