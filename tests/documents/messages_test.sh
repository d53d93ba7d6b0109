#!/bin/bash
# The messages that a document explains are ones that the sources have.
#
#   messages_test.sh DOCUMENT SOURCE
#
# They stand between backticks in the first column of its tables. Quoted words, figures and what follows a figure as its unit are the reader's.
set -uo pipefail
mapfile -t sources < <(find "$2/libalpa" "$2/apps" "$2/slurm" -name '*.cpp' -o -name '*.h' -o -name '*.sbatch' -o -name '*.sh' -o -name '*.cu')
perl -0777 -e '
  my ($document, @sources) = @ARGV;
  local $/; my $text = "";
  for (@sources) { open my $file, "<", $_ or die; $text .= <$file> }
  $text =~ s/"\s*\n\s*"//g;  # literals of several lines
  open my $file, "<", $document or die;
  my ($messages, $faults) = (0, 0);
  for (split /\n/, <$file>) {
    my ($first) = /^\| ([^|]*) \|/ or next;
    while ($first =~ /`([^`]+)`/g) {
      my $message = $1; ++$messages;
      for my $words (split /\x27[^\x27]*\x27|-?[0-9][0-9.]*(?: [KMG]iB)?|-nan/, $message) {
        $words =~ s/^\W+ | \W+$//g; $words =~ s/^ +| +$//g;
        next if length $words < 8 or index($text, $words) >= 0;
        print "$document: no source has \x27$words\x27\n"; ++$faults;
      }
    }
  }
  print "$messages messages, $faults faults\n";
  exit !($messages > 5 && $faults == 0);
' "$1" "${sources[@]}"
