#!/bin/bash
# What README.md and share/doc have to type in indented blocks succeeds, in a folder with the files that they name. The tutorial has a
# test of its own, with what commands print. What takes long is shortened, what asks for hundreds of devices is planned as far as
# --dry-run goes, and what other tests run is named with them.
#
#   commands_test.sh ROOT BUILD FOLDER       works in FOLDER, which is removed first
# shellcheck disable=SC2016  # backticks are Markdown's
set -uo pipefail
root=$(realpath "$1") build=$(realpath "$2") folder=$(realpath -m "$3")
export ALPA_ROOT=$build PATH=$build/bin:$PATH OMP_NUM_THREADS=1
rm -rf "$folder" && mkdir -p "$folder"
cd "$folder" || exit 1

elsewhere=(  # expression, and what runs it
  '^\./scripts/(demo|test|setup)\.sh'          'those who build it; scripts/test.sh is what runs this test'
  '^(cmake|cpack|ctest) '                      'documents.tutorial, install.tree, scripts/test.sh'
  '^export PATH='                              'this test itself'
  '^(module|man) '                             'install.module, install.manual'
  '^(sbatch |srun --mpi=list)'                 'slurm.chain, slurm.scripts'
  '--device cuda( |$)'                         'the tests labelled gpu, scripts/gpu_check.sh'
  '(scripts/bundle\.sh|gpu_check\.sh)'         'bundle'
)

toml='^(\[|[a-z_]+ =)'
trained='alpa-train [^ ]*\.h5 .*--run-dir ([^ ]+)'

fail() {
  echo "FAILED: $*"
  tail -n 30 output 2>/dev/null
  exit 1
}

# A command as it is run here.
shortened() {
  local command=$1 newest
  case $command in
    *'slurm/workflow.sh '*' -- '*) command=${command/ -- / --dry-run -- } ;;
    *'slurm/workflow.sh '*) command+=' --dry-run' ;;
    'alpa-plan sweep '*) command=${command/32..256/2} command=${command/gpt-39b/gpt-125m} ;;
    alpa-plan*/gpt-1.3b.toml* | alpa-plan*/gpt-15b.toml* | alpa-plan*/gpt-2.6b.toml*) command+=' --dry-run' ;;
    *'alpa-profile '*' --check') ;;
    *'alpa-profile '*) command+=' --micro-batch-samples 8 --repetitions 1 --least-sample-ms 0.1' ;;
    *'alpa-plan configs'*'--profile '*) command+=' --micro-batches 2' ;;
    *'alpa-train tune '*) command=${command/--trials 60/--trials 2} ;;
    *'--device emulated'*) command=${command/--steps 20/--steps 2} ;;
    *'--timeline-steps 20'*) command="${command/--timeline-steps 20/--timeline-steps 2} --steps 4" ;;
    *) [[ ! $command =~ $trained ]] || command+=' --steps 2 --checkpoint-every 1' ;;
  esac
  newest=$(find run/checkpoints -name 'step-*.h5' 2>/dev/null | sort | tail -n 1)
  echo "$command" | sed -E "s/srun --mpi=pmi2( --[a-z-]+ [0-9]+)*/mpiexec -n 4/; s|run/checkpoints/step-00000100.h5|$newest|"
}

files_that_are_named() {
  ln -s "$root/share" "$root/slurm" "$root/scripts" .
  cp -r "$root/configs" .
  # The published models are not at hand, small ones of their form are.
  cat >configs/models/gpt2-124m.toml <<EOF
base = "gpt.toml"
name = "gpt2-124m"
[dimensions]
vocabulary = 1536
model = 32
layers = 2
heads = 4
[training]
batch = 4
sequence = 32
EOF
  sed 's/gpt.toml/llama.toml/; s/gpt2-124m/llama-8b/; s/^heads = 4/heads = 4\ngroups = 2\ninner = 40/' configs/models/gpt2-124m.toml >configs/models/llama-8b.toml
  cp "$root/tests/reference/tokenizers/gpt2.json" tokenizer.json
  cp share/text/genesis.txt poems.txt && gzip poems.txt
  mkdir corpus && cp share/text/genesis.txt corpus
  printf '{"text": "And it was so."}\n' | gzip >more.jsonl.gz
  printf 'In the beginning\nAnd God said\n' >prompts.txt
  printf '(3 (2 It) (4 (2 was) (3 good)))\n(1 (2 No) (1 (2 good) (2 end)))\n' >train.txt
  echo 'stages = 2' >limits.toml
  printf '[[stage]]\nlayers = 17\nmesh = %s\n' '[4, 8]' '[2, 8]' >stages.toml
  python3 - <<'EOF'
import gzip, os, random, struct, zlib
random.seed(1)
with gzip.open("digits.csv.gz", "wt") as f:
    for i in range(40): f.write(",".join(str(random.randrange(17)) for _ in range(64)) + f",{i % 10}\n")
with gzip.open("train-images-idx3-ubyte.gz", "wb") as f:
    f.write(struct.pack(">IIII", 0x803, 20, 28, 28) + random.randbytes(20 * 28 * 28))
with gzip.open("train-labels-idx1-ubyte.gz", "wb") as f:
    f.write(struct.pack(">II", 0x801, 20) + bytes(i % 10 for i in range(20)))
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
for kind in "cat", "dog":
    os.makedirs("pets/" + kind)
    rows = zlib.compress(b"".join(b"\0" + random.randbytes(224 * 3) for _ in range(224)))
    with open(f"pets/{kind}/1.png", "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 224, 224, 8, 2, 0, 0, 0)) + chunk(b"IDAT", rows) + chunk(b"IEND", b""))
text = open("share/text/genesis.txt", "rb").read()
for name, part in ("tokens.bin", text), ("held-out.bin", text[-20000:]):  # as llm.c has them
    with open(name, "wb") as f: f.write(struct.pack("<256i", 20240520, 1, len(part), *[0] * 253) + struct.pack(f"<{len(part)}H", *part))
EOF
}

# Weights as others publish them: of the small models, under their names; Llama's in files with an index.
published_weights() {
  local model=$1 names=$2
  alpa-plan "configs/models/$model.toml" --cluster configs/clusters/local-4.toml --out "$model.plan.h5" &&
    mpiexec -n 4 alpa-train "$model.plan.h5" --data synthetic:64 --run-dir "$model-run" --steps 1 &&
    alpa-train export "$model-run/checkpoints/step-00000001.h5" --names "$names" --out "$names.safetensors"
}

files_that_are_named >output 2>&1 || fail "its files are not made"
published_weights gpt2-124m gpt2 >output 2>&1 || fail "no weights of GPT-2"
published_weights llama-8b llama >output 2>&1 || fail "no weights of Llama"
cp gpt2.safetensors model.safetensors
python3 - <<'EOF'
import json, struct
data = open("llama.safetensors", "rb").read()
header = json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])
json.dump({"weight_map": {name: "llama.safetensors" for name in header if name != "__metadata__"}}, open("model.safetensors.index.json", "w"))
EOF
cp gpt2-124m.plan.h5 gpt2-plan.h5
alpa-train import model.safetensors configs/models/gpt2-124m.toml --out gpt2.h5 >output 2>&1 || fail "no checkpoint of GPT-2"
alpa-plan configs/models/gpt-demo.toml --cluster configs/clusters/local-4.toml --method inter-only --out other.h5 >output 2>&1 || fail "no other plan"

run=0 named=0
for document in README.md share/doc/{data,planning,synchronisation,slurm}.md CONTRIBUTING.md share/packaging/README.md; do
  while IFS= read -r command; do
    [[ $command =~ $toml ]] && continue
    for ((i = 0; i < ${#elsewhere[@]}; i += 2)); do
      [[ $command =~ ${elsewhere[i]} ]] && ((++named)) && continue 2
    done
    here=$(shortened "$command")
    out=$(sed -nE 's/.* --out ([^ ]+).*/\1/p' <<<"$here")
    [[ -z $out ]] || rm -rf "$out"
    [[ ! $here =~ $trained ]] || rm -rf "${BASH_REMATCH[1]}"
    (eval "$here") >output 2>&1 </dev/null || fail "$document: '$command', here '$here', ends with $?"
    echo "$here"
    ((++run))
  done < <(sed -n '/^```/,/^```/d; /^    /p' "$root/$document" | sed -e ':a' -e '/\\$/N; s/\\\n *//; ta' | sed -E 's/^    //; s/ +# .*//')
done
echo "$run commands, $named that other tests run"
((run > 40 && named > 15)) || fail "the documents are not understood"
