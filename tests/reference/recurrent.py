#!/usr/bin/python3
"""Trains the tiny bidirectional LSTM and GRU of tests/data as reference.py says, and writes lstm.h5 and gru.h5: with
PyTorch's own layers on packed sequences, which know no padding. The LSTM names the class of each step, the GRU that of each
sequence."""
import torch
import torch.nn.functional as F
from reference import BATCH, STEPS, train
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

POSITIONS, FEATURES, CLASSES, HIDDEN, LAYERS = 8, 4, 8, 8, 2
GATES = {"lstm": 4, "gru": 3}
HEADS = {"lstm": "head.classes.", "gru": "head."}  # a class for each step; for each sequence
MODULES = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}


def layer_names():
    return ["first"] + [f"block.{i}" for i in range(LAYERS - 1)]


def shapes(kind):
    all, inputs = {}, FEATURES
    for layer in layer_names():
        for direction in ("forward", "backward"):
            name = f"{layer}.{direction}."
            all |= {f"{name}input": (inputs, GATES[kind], HIDDEN), f"{name}recurrent": (HIDDEN, GATES[kind], HIDDEN),
                    f"{name}bias": (GATES[kind], HIDDEN)}
            if kind == "gru":
                all[f"{name}recurrent_bias"] = (GATES[kind], HIDDEN)
        inputs = 2 * HIDDEN
    return all | {f"{HEADS[kind]}weight": (inputs, CLASSES), f"{HEADS[kind]}shift": (CLASSES,)}


def draw_inputs(kind):
    def draw(random):
        frames = random.normal(0, 1, (STEPS, BATCH, POSITIONS, FEATURES)).astype("f4").astype("f8")
        labels = random.integers(0, CLASSES, (STEPS, BATCH, POSITIONS) if kind == "lstm" else (STEPS, BATCH))
        return {"frames": frames, "labels": labels, "lengths": random.integers(1, POSITIONS + 1, (STEPS, BATCH))}

    return draw


def module_weights(kind, w, layer):
    """Under PyTorch's names. The two biases of its LSTM are only ever summed: one of them is zero here."""
    parts = {}
    for direction, suffix in (("forward", "l0"), ("backward", "l0_reverse")):
        name = f"{layer}.{direction}."
        bias = w[f"{name}bias"].flatten()
        parts |= {f"weight_ih_{suffix}": w[f"{name}input"].flatten(1).T,
                  f"weight_hh_{suffix}": w[f"{name}recurrent"].flatten(1).T, f"bias_ih_{suffix}": bias,
                  f"bias_hh_{suffix}": w[f"{name}recurrent_bias"].flatten() if kind == "gru" else 0 * bias}
    return parts


def loss_of(kind):
    def loss(w, frames, labels, lengths):
        x = pack_padded_sequence(frames, lengths, batch_first=True, enforce_sorted=False)
        inputs = FEATURES
        for layer in layer_names():
            module = MODULES[kind](inputs, HIDDEN, batch_first=True, bidirectional=True)
            for name, value in module_weights(kind, w, layer).items():
                delattr(module, name)  # a parameter of its own, which no gradient would pass
                setattr(module, name, value)
            x, _ = module(x)
            inputs = 2 * HIDDEN
        x, _ = pad_packed_sequence(x, batch_first=True)
        losses = []
        for sample, row, length in zip(x, labels, lengths):
            seen = sample[:length] if kind == "lstm" else sample[:length].mean(0)
            logits = F.linear(seen, w[f"{HEADS[kind]}weight"].T, w[f"{HEADS[kind]}shift"])
            losses.append(F.cross_entropy(logits, row[:length] if kind == "lstm" else row))
        return torch.stack(losses).mean()

    return loss


if __name__ == "__main__":
    for kind, seed in (("lstm", 21), ("gru", 22)):
        train(kind, shapes(kind), draw_inputs(kind), loss_of(kind), seed)
