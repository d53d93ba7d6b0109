#!/bin/bash
# What an interactive bash offers at the end of a line. Its key M-* puts all that it offers into the line.
#
#   completion_test.sh PREFIX
set -euo pipefail
completions=$(realpath "$1")/share/bash-completion/completions
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir models
touch models/gpt.toml models/mlp.toml "explained.h5" plan.h5

lines=(
  'alpa-plan ex'                       'explain explained.h5'
  'alpa-plan mod'                      'models'
  'alpa-plan models/gpt.toml --prof'   'models/gpt.toml --profile'
  'alpa-plan m.toml --effort '         'm.toml --effort normal quick thorough'
  'alpa-plan m.toml --effort=q'        'm.toml --effort=quick'
  'alpa-plan m.toml --out=pl'          'm.toml --out=plan.h5'
  'alpa-plan explain pl'               'explain plan.h5'
  'alpa-plan explain plan.h5 --wh'     'explain plan.h5 --why-not'
  'alpa-plan m.toml --wh'              'm.toml --wh'
  'alpa-plan solve --log-level w'      'solve --log-level warning'
  'alpa-train pl'                      'plan.h5'
  'alpa-train plan.h5 --device c'      'plan.h5 --device checked-cpu cpu cuda'
  'alpa-train plan.h5 --resume m'      'plan.h5 --resume models must'
  'alpa-profile models/'               'models/gpt.toml models/mlp.toml'
  'alpa-profile m.toml --cores '       'm.toml --cores any own'
)
{
  for name in alpa-profile alpa-plan alpa-train; do echo ". $completions/$name; $name() { echo \"\$*\" >>said; }"; done
  for ((i = 0; i < ${#lines[@]}; i += 2)); do printf '%s\e*\n' "${lines[i]}"; done
} | bash --norc --noprofile -i >session 2>&1

expected=$(for ((i = 1; i < ${#lines[@]}; i += 2)); do echo "${lines[i]}"; done)
diff <(echo "$expected") said || { echo "FAILED: other words are offered"; exit 1; }
