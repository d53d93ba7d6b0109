#!/bin/bash
# file-formats.md lists every group, dataset and attribute of the files that the commands write, and nothing else.
#
#   formats_test.sh DOCUMENT BUILD SOURCE TUTORIAL FOLDER [print]
#
# TUTORIAL is the folder that tutorial_test.sh leaves. More files are made in FOLDER, so that what only some have is seen too;
# with "print" the entries of all are printed by kind, for whoever writes the document.
# shellcheck disable=SC2016  # backticks are Markdown's
set -uo pipefail
document=$(realpath "$1") source=$(realpath "$3") tutorial=$(realpath "$4") folder=$(realpath -m "$5") print=${6:-}
PATH=$(realpath "$2")/bin:$PATH
export PATH OMP_NUM_THREADS=1
rm -rf "$folder" && mkdir -p "$folder"
cd "$folder" || exit 1

make() { "$@" >log 2>&1 || { cat log && echo "FAILED: $*" && exit 1; }; }
plan() { # name, options...
  make alpa-plan "$tutorial/small.toml" --effort quick --out "$1.h5" "${@:2}"
}

cp "$source/tests/slurm/three_nodes.toml" nodes.toml
sed 's/^memory_gib = 2/memory_gib = 0.0025/' "$source/configs/clusters/local-2.toml" >small.toml
echo 'most_tensor_parallel = 1' >limits.toml
plan owned --cluster "$source/configs/clusters/local-4.toml" --method data-parallel --owners even
plan stale --cluster nodes.toml --servers 1 --staleness 1 --method data-parallel
plan offloaded --cluster small.toml --offload optimizer
plan limited --cluster "$source/configs/clusters/local-4.toml" --constraints limits.toml --cache solved.h5
plan unlike --cluster "$source/configs/clusters/p3.16xlarge-4-p4d.24xlarge-2.toml" --devices 2 --method data-parallel
plan extrapolated --profile "$tutorial/profile.h5" --cluster "$source/configs/clusters/local-4.toml" --method data-parallel
make mpiexec -n 2 alpa-train tune "$tutorial/plan.h5" --data "$tutorial/genesis.h5" --trials 2 --out tuned.h5
printf '%s\n' '(2 (2 good) (3 day))' '(1 (0 bad) (2 night))' >trees.txt
make alpa-train convert trees.txt --from ptb-trees --out trees.h5
printf '0,1,2,3,0\n4,5,6,7,1\n' >samples.csv
make alpa-train convert samples.csv --shape 2x2x1 --divide 7 --out samples.h5
make alpa-train convert trees.txt --from text --tokenizer "$source/tests/reference/tokenizers/gpt2.json" --out texts.h5
make alpa-train import "$tutorial/small.safetensors" "$tutorial/small.toml" --out imported.h5

# Entries of files: "/group", "/dataset", "/path@attribute". What dimension scales and units are is said once, names of tensors are the
# model's, and what all files or all clusters have is said in sections of its own. Rows "f16: ..." are of GPUs, "yours: ..." of users' files.
entries() {
  local file
  for file in "$@"; do
    h5dump -n 1 "$file" | awk '
      $1 == "group" || $1 == "dataset" || $1 == "datatype" { print $2 == "/" ? "" : $2 }
      $1 == "attribute" { n = match($2, "/[^/]*$"); print substr($2, 1, n - 1) "@" substr($2, n + 1) }'
  done | sed -E '/^$/d; s|^(/tensors)/.*|\1/NAME|; /@(units|CLASS|NAME|DIMENSION_LIST)$/d' | sort -u
}
listed() { # heading
  awk -v heading="## $1" '$0 == heading { inside = 1; next } /^## / { inside = 0 } inside' "$document" |
    grep '^| `' | grep -vE '\| (f16|yours): ' | sed -E 's/^\| ([^|]*) \|.*/\1/' | grep -oE '`[^`]+`' | tr -d '`' | sort -u
}

faults=0
compare() { # heading, files...
  entries "${@:2}" >found
  if [[ $1 != Provenance && $1 != Clusters ]]; then grep -vE '^@format|^/provenance|^/cluster(/|@|$)' found >own; else
    case $1 in Provenance) grep -E '^@format|^/provenance' found >own ;; *) grep -E '^/cluster(/|@|$)' found >own ;; esac
  fi
  if [[ -n $print ]]; then echo "## $1" && cat own; fi
  listed "$1" | diff - own >difference || {
    echo "$document, '$1' (< in the document alone, > in the files alone):"
    grep '^[<>]' difference
    ((++faults))
  }
}
plans=("$tutorial"/{plan,pipeline}.h5 {owned,stale,offloaded,limited,unlike,extrapolated,tuned}.h5)
checkpoints=("$tutorial"/run/checkpoints/step-*.h5 imported.h5)
compare Provenance "${plans[@]}" "${checkpoints[@]}" "$tutorial/profile.h5" "$tutorial/genesis.h5"
compare Clusters "${plans[@]}" "$tutorial/profile.h5"
compare Plans "${plans[@]}"
compare Profiles "$tutorial"/{profile,calibrated}.h5
compare Checkpoints "${checkpoints[@]}"
compare Timelines "$tutorial/run/timeline/steps.h5"
compare Data "$tutorial/genesis.h5" trees.h5 samples.h5 texts.h5
echo "$(grep -c '^| `' "$document") rows, $faults kinds of files differ"
((faults == 0))
