#!/bin/bash
# Links between documents lead somewhere: files are there, and so is the heading that a link names.
#
#   links_test.sh DOCUMENT...
# shellcheck disable=SC2016  # backticks are Markdown's
set -uo pipefail
faults=0 links=0

# The names that headings have in links, as GitHub makes them: lower case, spaces to hyphens, no other punctuation.
anchors() { # document
  sed '/^```/,/^```/d' "$1" | sed -n 's/^##* *//p' | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}

for document in "$@"; do
  folder=$(dirname "$document")
  while IFS= read -r target; do
    ((++links))
    file=${target%%#*}
    file=${file:+$folder/$file}
    file=${file:-$document}
    if [[ ! -e $file ]]; then
      echo "$document: there is no '$target'" && ((++faults))
    elif [[ $target == *#* ]] && ! anchors "$file" | grep -qxF -- "${target#*#}"; then
      echo "$document: '$file' has no heading '#${target#*#}'" && ((++faults))
    fi
    # A link may go on in the next line.
  done < <(sed '/^```/,/^```/d' "$document" | tr '\n' ' ' | grep -oP '\]\(\K[^)\s]+(?=\))' | grep -vE '^[a-z]+:')
done
echo "$links links, $faults faults"
((links > 0 && faults == 0))
