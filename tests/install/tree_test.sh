#!/bin/bash
# The suite is installed, moved, and runs there without the source tree's files; it holds no path of where it was built.
#
#   tree_test.sh SOURCE BUILD MOVED        leaves the tree in MOVED, which is removed first
set -euo pipefail
source=$1 build=$2 moved=$(realpath -m "$3")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -rf "$moved"

fail() {
  echo "FAILED: $*"
  exit 1
}

cmake --install "$build" --prefix "$work/a prefix" --strip >"$work/log" || fail "$(tail -n 5 "$work/log")"
mkdir -p "$(dirname "$moved")" && mv "$work/a prefix" "$moved"
cd "$work"

for file in bin/alpa-{profile,plan,train,cbc} share/alpa/{blocks/attention.toml,report/page.html,text/genesis.txt} \
  share/alpa/configs/{models/gpt-demo.toml,clusters/local-4.toml,pins/two-stages-of-two.toml} \
  share/alpa/slurm/{job.sh,workflow.sh,profile.sbatch,plan.sbatch,tune.sbatch,train.sbatch,sweep.sbatch} \
  share/doc/alpa/{README.md,LICENSE,third-party.md,options.md,tutorial.md,slurm.md,CHANGELOG.md,SECURITY.md,CONTRIBUTING.md} \
  share/man/man1/alpa-{profile,plan,train}.1 share/bash-completion/completions/alpa-{profile,plan,train}; do
  [[ -s $moved/$file ]] || fail "no $file is installed"
done
[[ $(ls "$moved") == $'bin\nshare' ]] || fail "something else is installed: $(ls "$moved")"
[[ -x $moved/share/alpa/slurm/workflow.sh ]] || fail "workflow.sh is not to be run"
if find "$moved" -type l | grep .; then fail "a link is installed, which may lead out of the tree"; fi

# Blocks and the report's frame come from the moved tree, the solver's process from its bin.
"$moved/bin/alpa-plan" "$moved/share/alpa/configs/models/gpt-demo.toml" --effort quick --method megatron \
  --cluster "$moved/share/alpa/configs/clusters/local-4.toml" --out plan.h5 >log 2>&1 || fail "$(cat log)"
"$moved/bin/alpa-plan" report plan.h5 --out plan.html >log 2>&1 || fail "$(cat log)"
mv "$moved/share/alpa/blocks" elsewhere
if "$moved/bin/alpa-plan" "$moved/share/alpa/configs/models/gpt-demo.toml" --cluster \
  "$moved/share/alpa/configs/clusters/local-4.toml" --out again.h5 >log 2>&1; then fail "blocks come from elsewhere"; fi
mv elsewhere "$moved/share/alpa/blocks"

if grep -rlF -e "$source/libalpa" -e "$source/apps" -e "$build/" "$moved"; then fail "these hold a path of where they were built"; fi

# A document holds what the source has, semicolons and brackets too, and its links lead to others there.
diff <(sed 's/](.*//' "$source/share/doc/slurm.md") <(sed 's/](.*//' "$moved/share/doc/alpa/slurm.md") || fail "a document is another"
"$source/tests/documents/links_test.sh" "$moved"/share/doc/alpa/*.md || fail "links of installed documents lead nowhere"

cmake --install "$build" --prefix "$work/documents" --component documents >log
[[ $(ls documents) == share && ! -e documents/share/alpa ]] || fail "the component documents has more than documents"

# The archive holds the same tree, below a folder of its own.
cpack --config "$build/CPackConfig.cmake" -G TGZ -B "$work/pack" >log || fail "$(tail -n 5 log)"
tar -tzf pack/alpa-*.tar.gz | grep -v '/$' | cut -d/ -f2- | sort >packed
(cd "$moved" && find . -type f | cut -c3- | sort) | diff - packed || fail "the archive holds another tree"
