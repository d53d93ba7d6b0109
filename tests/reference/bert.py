#!/usr/bin/python3
"""Trains the tiny BERT of tests/data as reference.py says, and writes bert.h5."""
import functools

import numpy
import torch
import torch.nn.functional as F
from reference import BATCH, HEAD, HEADS, MODEL, SEQUENCE, STEPS, VOCABULARY, adamw, train
from torch.nn.utils.stateless import functional_call

LAYERS, BERT_EPSILON, MASKED = 2, 1e-12, 0.3


def shapes():
    def norm(name):
        return {f"{name}.gain": (MODEL,), f"{name}.bias": (MODEL,)}

    all = {"embedding.table": (VOCABULARY, MODEL), "embedding.positions": (SEQUENCE, MODEL)} | norm("embedding.norm")
    for i in range(LAYERS):
        block = f"block.{i}."
        for name in ("query", "key", "value"):
            all[f"{block}attention.{name}"] = (MODEL, HEADS, HEAD)
            all[f"{block}attention.{name}_bias"] = (HEADS, HEAD)
        all |= {f"{block}attention.output": (HEADS, HEAD, MODEL), f"{block}attention.output_bias": (MODEL,),
                f"{block}mlp.up": (MODEL, 4 * MODEL), f"{block}mlp.up_bias": (4 * MODEL,),
                f"{block}mlp.down": (4 * MODEL, MODEL), f"{block}mlp.down_bias": (MODEL,)}
        all |= norm(f"{block}attention_norm") | norm(f"{block}mlp_norm")
    return all | {"head.dense.weight": (MODEL, MODEL), "head.dense.shift": (MODEL,)} | norm("head.norm") | {
        "head.word_bias": (VOCABULARY,)}


def draw_inputs(random):
    """As many tokens as chance has it are to be predicted in a step; the others have no target."""
    tokens, targets = (random.integers(0, VOCABULARY, (STEPS, BATCH, SEQUENCE)) for _ in range(2))
    return {"tokens": tokens, "targets": numpy.where(random.random(targets.shape) < MASKED, targets, -1)}


# PyTorch's own encoder layer, whose norms come after the sums.
gelu = functools.partial(F.gelu, approximate="tanh")
layer = torch.nn.TransformerEncoderLayer(MODEL, HEADS, 4 * MODEL, 0.0, gelu, BERT_EPSILON, batch_first=True)


def encoded(w, block, x):
    def part(name):
        return w[f"{block}.{name}"]

    into = torch.cat([part(f"attention.{n}").reshape(MODEL, MODEL).T for n in ("query", "key", "value")])
    bias = torch.cat([part(f"attention.{n}_bias").reshape(MODEL) for n in ("query", "key", "value")])
    output = part("attention.output").reshape(MODEL, MODEL).T
    weights = {"self_attn.in_proj_weight": into, "self_attn.in_proj_bias": bias, "self_attn.out_proj.weight": output,
               "self_attn.out_proj.bias": part("attention.output_bias"),
               "linear1.weight": part("mlp.up").T, "linear1.bias": part("mlp.up_bias"),
               "linear2.weight": part("mlp.down").T, "linear2.bias": part("mlp.down_bias"),
               "norm1.weight": part("attention_norm.gain"), "norm1.bias": part("attention_norm.bias"),
               "norm2.weight": part("mlp_norm.gain"), "norm2.bias": part("mlp_norm.bias")}
    return functional_call(layer, weights, x)


def loss(w, tokens, targets):
    def norm(name, x):
        return F.layer_norm(x, (MODEL,), w[f"{name}.gain"], w[f"{name}.bias"], BERT_EPSILON)

    x = norm("embedding.norm", F.embedding(tokens, w["embedding.table"]) + w["embedding.positions"])
    for i in range(LAYERS):
        x = encoded(w, f"block.{i}", x)
    x = norm("head.norm", gelu(F.linear(x, w["head.dense.weight"].T, w["head.dense.shift"])))
    logits = F.linear(x, w["embedding.table"], w["head.word_bias"])
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)


if __name__ == "__main__":
    train("bert", shapes(), draw_inputs, loss, 6, functools.partial(adamw, beta2=0.999, weight_decay=0.01))
