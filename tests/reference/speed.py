#!/usr/bin/python3
"""Training speed of one rank beside PyTorch, in turn on the same machine.

    apt-get install python3-torch libopenblas0-openmp
    tests/reference/speed.py BIN_DIR [--model gpt|wide-resnet|moe] [--precision f32|bf16] [--threads 2] [--rounds 5] [--steps 12]

BIN_DIR holds alpa-plan and alpa-train. Both train the model of configs/models/MODEL-bench.toml: same sizes, batch,
optimizer and clipping, random data. A round trains with the suite, then with PyTorch (speed_pytorch.py); what counts is the
median over rounds of each round's median step. PyTorch gets the OpenMP build of OpenBLAS and a malloc that keeps its pages,
which make it two to three times faster than it is as installed.
"""
import argparse
import importlib.util
import json
import os
import pathlib
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


def run_pytorch(options):
    command = [sys.executable, pathlib.Path(__file__).with_name("speed_pytorch.py"), options.model, "--precision",
               options.precision, "--threads", str(options.threads), "--steps", str(options.steps)]
    environment = os.environ | TUNED_MALLOC | {"OMP_NUM_THREADS": str(options.threads)}
    return json.loads(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout)


def plan(options, folder):
    model = folder / "model.toml"
    model.write_text(f'base = "{file_of(options.model)}"\nname = "speed"\n[training]\nprecision = "{options.precision}"\n')
    subprocess.run([options.bin / "alpa-plan", model, "--cluster", SOURCE / "configs/clusters/local-2.toml", "--devices", "1",
                    "--method", "serial", "--out", folder / "plan.h5", "--log-level", "error"], check=True, stdout=subprocess.DEVNULL)


def run_suite(options, folder, name, data):
    run = folder / name
    subprocess.run([options.bin / "alpa-train", folder / "plan.h5", "--data", data, "--run-dir", run, "--steps",
                    str(options.steps), "--threads", str(options.threads), "--log-level", "error"], check=True,
                   stdout=subprocess.DEVNULL)
    return [json.loads(line)["step_s"] for line in (run / "metrics.jsonl").read_text().splitlines()]


def compare(options):
    if importlib.util.find_spec("torch") is None:
        sys.exit(f"{sys.executable} has no PyTorch: apt-get install python3-torch libopenblas0-openmp, and run this with /usr/bin/python3")
    size = sizes_of(options.model)
    unit, of_step = ("tokens", size["batch"] * size["sequence"]) if "sequence" in size else ("images", size["batch"])
    data = f"synthetic:{size['vocabulary']}" if "sequence" in size else "synthetic"
    rates = {"suite": [], "PyTorch": []}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        plan(options, folder)
        for round_ in range(options.rounds):
            for who, seconds in (("suite", run_suite(options, folder, f"run{round_}", data)), ("PyTorch", run_pytorch(options))):
                rates[who].append(of_step / statistics.median(seconds[2:]))  # the first steps take pages
            print(f"round {round_}: suite {rates['suite'][-1]:.4g}, PyTorch {rates['PyTorch'][-1]:.4g} {unit}/s", flush=True)
    ours, theirs = (statistics.median(rates[who]) for who in ("suite", "PyTorch"))
    print(f"{options.model}, {options.precision}, {options.threads} threads: suite {ours:.4g}, PyTorch {theirs:.4g} {unit}/s, "
          f"ratio {ours / theirs:.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--model", default="gpt", choices=MODELS)
    parser.add_argument("--precision", default="f32", choices=["f32", "bf16"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=12)
    options = parser.parse_args()
    options.bin = options.bin.resolve()
    compare(options)
