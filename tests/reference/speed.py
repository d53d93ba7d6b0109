#!/usr/bin/python3
"""Training speed of one rank beside PyTorch, in turn on the same machine.

    apt-get install python3-torch libopenblas0-openmp
    tests/reference/speed.py BIN_DIR [--precision f32|bf16] [--threads 2] [--rounds 5] [--steps 12]

BIN_DIR holds alpa-plan and alpa-train. Both train the GPT of configs/models/gpt-bench.toml: same sizes, batch, AdamW and
clipping, random tokens. A round trains with the suite, then with PyTorch; what counts is the median over rounds of each
round's median step. PyTorch gets the OpenMP build of OpenBLAS and a malloc that keeps its pages, which make it two to
three times faster than it is as installed.
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
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
VOCABULARY, MODEL, LAYERS, HEADS, BATCH, SEQUENCE = 256, 384, 6, 6, 8, 256
TUNED_MALLOC = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "100000000000", "MALLOC_TOP_PAD_": "268435456"}


def pytorch_step_seconds(precision, threads, steps):
    """Runs in a process of its own."""
    import torch
    import torch.nn.functional as F
    from torch import nn

    torch.set_num_threads(threads)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norms = nn.ModuleList([nn.LayerNorm(MODEL), nn.LayerNorm(MODEL)])
            self.qkv, self.out = nn.Linear(MODEL, 3 * MODEL), nn.Linear(MODEL, MODEL)
            self.up, self.down = nn.Linear(MODEL, 4 * MODEL), nn.Linear(4 * MODEL, MODEL)
            self.register_buffer("hidden", torch.ones(SEQUENCE, SEQUENCE, dtype=torch.bool).triu(1))

        def forward(self, x):
            q, k, v = (t.view(BATCH, SEQUENCE, HEADS, -1).transpose(1, 2) for t in self.qkv(self.norms[0](x)).split(MODEL, 2))
            scores = (q @ k.transpose(-2, -1)) * (MODEL // HEADS) ** -0.5
            mixed = scores.masked_fill(self.hidden, float("-inf")).softmax(-1) @ v
            x = x + self.out(mixed.transpose(1, 2).reshape(BATCH, SEQUENCE, MODEL))
            return x + self.down(F.gelu(self.up(self.norms[1](x)), approximate="tanh"))

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.positions = nn.Embedding(VOCABULARY, MODEL), nn.Embedding(SEQUENCE, MODEL)
            self.blocks, self.norm = nn.Sequential(*[Block() for _ in range(LAYERS)]), nn.LayerNorm(MODEL)

        def forward(self, tokens):
            x = self.norm(self.blocks(self.tokens(tokens) + self.positions.weight))
            return x @ self.tokens.weight.T

    torch.manual_seed(1)
    model = Gpt()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, foreach=True)
    seconds = []
    for _ in range(steps):
        batch = torch.randint(VOCABULARY, (BATCH, SEQUENCE + 1))
        start = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            logits = model(batch[:, :-1])
        loss = F.cross_entropy(logits.float().reshape(-1, VOCABULARY), batch[:, 1:].reshape(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss.item()
        seconds.append(time.perf_counter() - start)
    print(json.dumps(seconds))


def run_pytorch(options):
    command = [sys.executable, __file__, "--pytorch", "--precision", options.precision, "--threads", str(options.threads),
               "--steps", str(options.steps)]
    environment = os.environ | TUNED_MALLOC | {"OMP_NUM_THREADS": str(options.threads)}
    return json.loads(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout)


def plan(options, folder):
    model = folder / "model.toml"
    model.write_text(f'base = "{SOURCE}/configs/models/gpt-bench.toml"\nname = "speed"\n[training]\n'
                     f'precision = "{options.precision}"\n')
    subprocess.run([options.bin / "alpa-plan", model, "--cluster", SOURCE / "configs/clusters/local-2.toml", "--devices", "1",
                    "--method", "serial", "--out", folder / "plan.h5", "--log-level", "error"], check=True, stdout=subprocess.DEVNULL)


def run_suite(options, folder, name):
    run = folder / name
    subprocess.run([options.bin / "alpa-train", folder / "plan.h5", "--data", f"synthetic:{VOCABULARY}", "--run-dir", run,
                    "--steps", str(options.steps), "--threads", str(options.threads), "--log-level", "error"], check=True,
                   stdout=subprocess.DEVNULL)
    return [json.loads(line)["step_s"] for line in (run / "metrics.jsonl").read_text().splitlines()]


def compare(options):
    if importlib.util.find_spec("torch") is None:
        sys.exit(f"{sys.executable} has no PyTorch: apt-get install python3-torch libopenblas0-openmp, and run this with /usr/bin/python3")
    rates = {"suite": [], "PyTorch": []}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        plan(options, folder)
        for round_ in range(options.rounds):
            for who, seconds in (("suite", run_suite(options, folder, f"run{round_}")), ("PyTorch", run_pytorch(options))):
                rates[who].append(BATCH * SEQUENCE / statistics.median(seconds[2:]))  # the first steps take pages
            print(f"round {round_}: suite {rates['suite'][-1]:.0f}, PyTorch {rates['PyTorch'][-1]:.0f} tokens/s", flush=True)
    ours, theirs = (statistics.median(rates[who]) for who in ("suite", "PyTorch"))
    print(f"{options.precision}, {options.threads} threads: suite {ours:.0f}, PyTorch {theirs:.0f} tokens/s, ratio {ours / theirs:.2f}")


parser = argparse.ArgumentParser()
parser.add_argument("bin", nargs="?", type=pathlib.Path)
parser.add_argument("--precision", default="f32", choices=["f32", "bf16"])
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--steps", type=int, default=12)
parser.add_argument("--pytorch", action="store_true", help=argparse.SUPPRESS)
options = parser.parse_args()
if options.pytorch:
    pytorch_step_seconds(options.precision, options.threads, options.steps)
elif options.bin:
    options.bin = options.bin.resolve()
    compare(options)
else:
    parser.error("BIN_DIR is missing")
