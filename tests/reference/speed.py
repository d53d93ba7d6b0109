#!/usr/bin/python3
"""Training speed on CPU ranks beside PyTorch, in turn on the same machine.

    apt-get install python3-torch libopenblas0-openmp
    tests/reference/speed.py BIN_DIR [--model gpt|wide-resnet|moe] [--precision f32|bf16] [--ranks 1] [--threads 2]
        [--peer PYTHON ...] [--rounds 5] [--steps 12]
    tests/reference/speed.py BIN_DIR --check [--peer PYTHON ...]

BIN_DIR holds alpa-plan and alpa-train, and bench_kernels for --check, which measures every case of speed_targets.toml that this
processor can, prints "N of M targets reached" and exits with 1 unless all are. All train the model of configs/models/MODEL-bench.toml:
same sizes, batch, optimizer and clipping, random data. A round trains with the suite, then with each PyTorch (speed_pytorch.py); what
counts is the median over rounds of each round's median step, and the ratio to the fastest peer. A peer is a Python that has PyTorch:
the one that runs this, with Debian's, where none is named; python3 -m venv v && v/bin/pip install torch makes one with the current release,
v/bin/python3. PyTorch gets the OpenMP build of OpenBLAS and a malloc that keeps its pages, which make Debian's two to three times faster than
it is as installed. Several ranks share the batch, each on its part of the threads: plans of data parallelism under mpiexec,
DistributedDataParallel over gloo.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import tomllib

SOURCE = pathlib.Path(__file__).resolve().parents[2]
MODELS = ("gpt", "wide-resnet", "moe")
TUNED_MALLOC = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "100000000000", "MALLOC_TOP_PAD_": "268435456"}


def file_of(model):
    return SOURCE / f"configs/models/{model}-bench.toml"


def sizes_of(model):
    """The dimensions and the training options of a model's file over those of its bases."""
    chain = [file_of(model)]
    while base := tomllib.loads(chain[0].read_text()).get("base"):
        chain.insert(0, chain[0].parent / base)
    tables = [tomllib.loads(file.read_text()) for file in chain]
    return {key: value for table in tables for part in ("dimensions", "training") for key, value in table.get(part, {}).items()}


class Peer:
    """A Python with PyTorch. Wheels of the current release want CUDA's libraries even where there is no GPU."""

    def __init__(self, python):
        self.python = python
        prefix = subprocess.run([python, "-c", "import sys; print(sys.prefix)"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        wheels = sorted(str(path) for path in pathlib.Path(prefix).glob("lib/python3*/site-packages/nvidia/*/lib"))
        cuda = pathlib.Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
        paths = wheels + [str(cuda / "lib64"), str(cuda / "extras/CUPTI/lib64")] if wheels else []
        self.libraries = {"LD_LIBRARY_PATH": ":".join(paths + [os.environ.get("LD_LIBRARY_PATH", "")])} if paths else {}
        found = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], env=os.environ | self.libraries, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if found.returncode != 0:
            sys.exit(f"{python} has no PyTorch: {found.stderr.strip().splitlines()[-1]}\n"
                     "apt-get install python3-torch libopenblas0-openmp, or give --peer a Python that has it")
        self.name = f"PyTorch {found.stdout.strip()}"

    def step_seconds(self, case, folder):
        threads = case.threads // case.ranks
        environment = os.environ | self.libraries | TUNED_MALLOC | {"OMP_NUM_THREADS": str(threads)}
        store = pathlib.Path(folder, "store")
        store.unlink(missing_ok=True)
        command = [self.python, pathlib.Path(__file__).with_name("speed_pytorch.py"), case.model, "--precision", case.precision, "--threads",
                   str(threads), "--steps", str(case.steps), "--ranks", str(case.ranks), "--store", store, "--rank"]
        ranks = [subprocess.Popen([*command, str(rank)], env=environment, stdout=subprocess.PIPE, text=True) for rank in range(case.ranks)]
        outputs = [rank.communicate()[0] for rank in ranks]
        if any(rank.returncode for rank in ranks):
            sys.exit(f"{self.name} failed")
        return json.loads(outputs[0])


class Suite:
    name = "suite"

    def __init__(self, binaries):
        self.binaries = binaries

    def step_seconds(self, case, folder):
        plan, run = folder / "plan.h5", pathlib.Path(tempfile.mkdtemp(dir=folder))
        if not plan.exists():
            model = folder / "model.toml"
            model.write_text(f'base = "{file_of(case.model)}"\nname = "speed"\n[training]\nprecision = "{case.precision}"\n')
            subprocess.run([self.binaries / "alpa-plan", model, "--cluster", SOURCE / "configs/clusters/local-2.toml", "--devices",
                            str(case.ranks), "--method", "serial" if case.ranks == 1 else "data-parallel", "--out", plan, "--log-level",
                            "error"], check=True, stdout=subprocess.DEVNULL)
        size = sizes_of(case.model)
        launch = [] if case.ranks == 1 else ["mpiexec", "-n", str(case.ranks)]
        subprocess.run([*launch, self.binaries / "alpa-train", plan, "--data",
                        f"synthetic:{size['vocabulary']}" if "sequence" in size else "synthetic", "--run-dir", run, "--steps",
                        str(case.steps), "--threads", str(case.threads // case.ranks), "--log-level", "error"], check=True,
                       stdout=subprocess.DEVNULL)
        return [json.loads(line)["step_s"] for line in (run / "metrics.jsonl").read_text().splitlines()]


class Case(argparse.Namespace):
    def __str__(self):
        return f"{self.model}, {self.precision}, " + (f"{self.ranks} ranks, " if self.ranks > 1 else "") + f"{self.threads} threads"


def rates(case, contenders):
    """Of each contender, in tokens or images per second."""
    size = sizes_of(case.model)
    unit, of_step = ("tokens", size["batch"] * size["sequence"]) if "sequence" in size else ("images", size["batch"])
    of = {contender.name: [] for contender in contenders}
    with tempfile.TemporaryDirectory() as name:
        for round_ in range(case.rounds):
            for contender in contenders:
                seconds = contender.step_seconds(case, pathlib.Path(name))
                of[contender.name].append(of_step / statistics.median(seconds[2:]))  # the first steps take pages
            print(f"  round {round_}: " + ", ".join(f"{who} {values[-1]:.4g}" for who, values in of.items()) + f" {unit}/s", flush=True)
    return {who: statistics.median(values) for who, values in of.items()}, unit


def compare(case, contenders):
    """How many times as fast as the fastest peer the suite is, and its rate."""
    print(f"{case}:")
    medians, unit = rates(case, contenders)
    ours = medians.pop(Suite.name)
    who, theirs = max(medians.items(), key=lambda each: each[1])
    print(f"{case}: suite {ours:.4g}, {who} {theirs:.4g} {unit}/s, ratio {ours / theirs:.2f}", flush=True)
    return ours / theirs, ours


def instructions():
    """The widest that oneDNN may use here: amx, avx512 or less."""
    flags, most = pathlib.Path("/proc/cpuinfo").read_text(), os.environ.get("ONEDNN_MAX_CPU_ISA", "ALL").upper()
    if re.search(r"\bamx_bf16\b", flags) and most in ("ALL", "DEFAULT", "AVX512_CORE_AMX"):
        return "amx"
    return "avx512" if re.search(r"\bavx512f\b", flags) and not most.startswith(("SSE", "AVX2")) and most != "AVX" else "less"


def products_rate(binaries, case):
    command = [binaries / "bench_kernels", file_of(case.model), case.precision, str(case.threads)]
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return float(re.search(r"of products alone, (\d+) tokens/s", text)[1])


def check(options, contenders):
    reached = wanted = 0
    here = instructions()
    print(f"processor: {here}, {os.cpu_count()} cores")
    for target in tomllib.loads(pathlib.Path(__file__).with_name("speed_targets.toml").read_text())["case"]:
        if target.get("needs", here) != here:
            print(f"{target['model']}, {target['precision']}: left out, as it is of processors with {target['needs']}")
            continue
        case = Case(**{**vars(options), "model": target["model"], "precision": target["precision"], "ranks": target.get("ranks", 1)})
        ratio, ours = compare(case, contenders)
        outcomes = [("of the fastest peer", ratio, target["faster"])]
        if "of_products" in target:
            outcomes.append(("of products alone", ours / products_rate(options.bin, case), target["of_products"]))
        for what, value, least in outcomes:
            wanted += 1
            reached += value >= least
            print(f"{case}: {value:.2f} {what}, wanted at least {least}: {'reached' if value >= least else 'MISSED'}")
    print(f"{reached} of {wanted} targets reached")
    return 0 if reached == wanted else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--model", default="gpt", choices=MODELS)
    parser.add_argument("--precision", default="f32", choices=["f32", "bf16"])
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2, help="of all ranks together")
    parser.add_argument("--peer", action="append", help="a Python that has PyTorch; may be given several times")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--check", action="store_true", help="all cases of speed_targets.toml")
    options = parser.parse_args()
    options.bin = options.bin.resolve()
    contenders = [Suite(options.bin), *(Peer(python) for python in options.peer or [sys.executable])]
    if options.check:
        sys.exit(check(options, contenders))
    compare(Case(**vars(options)), contenders)
