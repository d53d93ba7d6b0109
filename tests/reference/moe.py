#!/usr/bin/python3
"""Trains the tiny mixtures of experts of tests/data as reference.py says; writes moe.h5 and deepseek_moe.h5.

Routing is GShard's (Lepikhin et al., 2021) as its paper has it, in masks and products with them. Beside what reference.py
describes, the files have for each layer with experts:

    /slots             [step][layer][group][token][choice]: expert * capacity + place, -1 of what is dropped
    /router_logits     [step][layer][group][token][expert]
    /margins           [step][layer]: the least distance of logits between a token's choices, or to the best of the others
    /balance_losses    [step][layer]: mean over groups
"""
import functools
import math

import torch
import torch.nn.functional as F
from reference import (MODEL, SEQUENCE, VOCABULARY, gated_mlp, gpt_attention, gpt_block, gpt_block_shapes, language_inputs,
                       layer_norm, llama_attention, llama_block, llama_block_shapes, rms_norm, token_loss, train)

BALANCE_WEIGHT, GPT_INNER = 0.1, 2 * MODEL
HEADS, INNER, DENSE_INNER, SHARED = 4, 8, 32, 2  # of the fine-grained one
MARGIN = 1e-4  # some 25 times what ten steps in float32 move logits by


def expert(w, name, i, rows):
    wide = rows @ w[f"{name}.up"][i]
    if f"{name}.expert_gate" in w:
        wide = F.silu(rows @ w[f"{name}.expert_gate"][i]) * wide
    else:
        wide = F.gelu(wide, approximate="tanh")
    return wide @ w[f"{name}.down"][i]


class Mixture:
    """A group is so many tokens, of one sample or several; an expert has room for its equal share of a group's choices."""

    def __init__(self, experts, choices, group):
        self.experts, self.choices, self.group = experts, choices, group
        self.capacity = math.ceil(choices * group / experts)
        self.observed = {"slots": [], "router_logits": [], "margins": [], "balance_losses": []}

    def __call__(self, w, name, x):
        """x [sample, token, element] -> the same, and the balancing loss."""
        y, balance = self.mixed(w, name, x.reshape(-1, self.group, MODEL))
        return y.reshape(x.shape), balance

    def mixed(self, w, name, x):
        logits = x @ w[f"{name}.gate"]
        gates, chosen = logits.softmax(-1).topk(self.choices)
        mask = F.one_hot(chosen, self.experts)  # [group, token, choice, expert]
        queue = mask.transpose(1, 2).flatten(1, 2)  # all first choices, then all second ones
        before = ((queue.cumsum(1) - queue) * queue).sum(-1).unflatten(1, (self.choices, self.group)).transpose(1, 2)
        slots = torch.where(before < self.capacity, chosen * self.capacity + before, -1)

        taken = F.one_hot(slots + 1, 1 + self.experts * self.capacity)[..., 1:].to(x.dtype)
        rows = torch.einsum("gskr,gsd->grd", taken, x).unflatten(1, (self.experts, self.capacity))
        rows = torch.stack([expert(w, name, i, rows[:, i]) for i in range(self.experts)], 1).flatten(1, 2)
        y = torch.einsum("gskr,gsk,grd->gsd", taken, gates / gates.sum(-1, keepdim=True), rows)

        first = mask[:, :, 0].to(x.dtype).mean(1)
        balance = self.experts * (logits.softmax(-1).mean(1) * first).sum(-1).mean()
        self.observe(slots, logits, balance)
        return y, balance

    def observe(self, slots, logits, balance):
        best = logits.topk(self.choices + 1).values
        margin = (best[..., :-1] - best[..., 1:]).min()
        assert margin > MARGIN, f"two choices are but {margin} apart: take another seed"
        for values, value in zip(self.observed.values(), (slots, logits, margin, balance)):
            values.append(value.detach())

    def shapes(self, block, dense, expert):
        """A dense block's, with experts in the place of its mlp."""
        all = {name.replace("mlp_norm", "moe_norm"): shape for name, shape in dense.items() if ".mlp." not in name}
        all[f"{block}.moe.gate"] = (MODEL, self.experts)
        return all | {f"{block}.moe.{name}": (self.experts, *shape) for name, shape in expert.items()}


def gpt_shapes(mixture):
    def dense(block):
        return gpt_block_shapes(block, GPT_INNER)

    def with_experts(block):
        return mixture.shapes(block, dense(block), {"up": (MODEL, GPT_INNER), "down": (GPT_INNER, MODEL)})

    return {"embedding.table": (VOCABULARY, MODEL), "embedding.positions": (SEQUENCE, MODEL),
            **with_experts("first.experts"), **dense("first.dense"), **with_experts("next.0.pair.experts"),
            **dense("next.0.pair.dense"),
            "head.norm.gain": (MODEL,), "head.norm.bias": (MODEL,)}


def gpt_loss(mixture, w, tokens, targets):
    def with_experts(block, x):
        x = gpt_attention(w, block, x)
        y, balance = mixture(w, f"{block}.moe", layer_norm(w, f"{block}.moe_norm", x))
        return x + y, balance

    x = F.embedding(tokens, w["embedding.table"]) + w["embedding.positions"]
    x, balance = with_experts("first.experts", x)
    x, more = with_experts("next.0.pair.experts", gpt_block(w, "first.dense", x))
    x = layer_norm(w, "head.norm", gpt_block(w, "next.0.pair.dense", x))
    return token_loss(F.linear(x, w["embedding.table"]), targets) + BALANCE_WEIGHT * (balance + more)


FINE_LAYERS = ("first", "next.0.experts", "next.1.experts")


def fine_shapes(mixture):
    def with_experts(block):
        expert = {"expert_gate": (MODEL, INNER), "up": (MODEL, INNER), "down": (INNER, MODEL)}
        shared = {"gate": (MODEL, SHARED * INNER), "up": (MODEL, SHARED * INNER), "down": (SHARED * INNER, MODEL)}
        return (mixture.shapes(block, llama_block_shapes(block, HEADS), expert)
                | {f"{block}.shared.{name}": shape for name, shape in shared.items()})

    all = {"embedding.table": (VOCABULARY, MODEL)} | llama_block_shapes("dense", HEADS, DENSE_INNER)
    for block in FINE_LAYERS:
        all |= with_experts(block)
    return all | {"head.norm.gain": (MODEL,), "head.table": (VOCABULARY, MODEL)}


def fine_loss(mixture, w, tokens, targets):
    x, balances = llama_block(w, "dense", F.embedding(tokens, w["embedding.table"])), 0
    for block in FINE_LAYERS:
        x = llama_attention(w, block, x)
        y = rms_norm(x, w[f"{block}.moe_norm.gain"])
        routed, balance = mixture(w, f"{block}.moe", y)
        x, balances = x + gated_mlp(w, f"{block}.shared", y) + routed, balances + balance
    logits = rms_norm(x, w["head.norm.gain"]) @ w["head.table"].T
    return token_loss(logits, targets) + BALANCE_WEIGHT * balances


def train_mixture(name, mixture, shapes, loss, seed):
    train(name, shapes(mixture), language_inputs, functools.partial(loss, mixture), seed, observed=mixture.observed)


if __name__ == "__main__":
    train_mixture("moe", Mixture(4, 2, 2 * SEQUENCE), gpt_shapes, gpt_loss, 8)
    train_mixture("deepseek_moe", Mixture(8, 3, SEQUENCE // 2), fine_shapes, fine_loss, 9)
