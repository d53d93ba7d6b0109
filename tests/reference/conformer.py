#!/usr/bin/python3
"""Trains the tiny Conformer of tests/data as reference.py says, and writes conformer.h5."""
import torch
import torch.nn.functional as F
from reference import BATCH, EPSILON, STEPS, train

POSITIONS, FEATURES, CLASSES, MODEL, LAYERS, HEADS, INNER, SUBSAMPLING, KERNEL = 4, 8, 8, 16, 2, 4, 32, 4, 3
HEAD, THETA = MODEL // HEADS, 10000.0


def norm_shapes(name):
    return {f"{name}.gain": (MODEL,), f"{name}.bias": (MODEL,)}


def linear_shapes(name, inputs=MODEL, outputs=MODEL):
    return {f"{name}.weight": (inputs, outputs), f"{name}.shift": (outputs,)}


def shapes():
    all = {"embedding.first": (3, 3, 1, SUBSAMPLING), "embedding.first_bias": (SUBSAMPLING,),
           "embedding.second": (3, 3, SUBSAMPLING, SUBSAMPLING), "embedding.second_bias": (SUBSAMPLING,),
           "embedding.dense": (FEATURES // 4, SUBSAMPLING, MODEL), "embedding.dense_bias": (MODEL,)}
    for i in range(LAYERS):
        block = f"block.{i}."
        for half in ("feed_forward_1", "feed_forward_2"):
            all |= norm_shapes(f"{block}{half}.norm") | linear_shapes(f"{block}{half}.up", MODEL, INNER)
            all |= linear_shapes(f"{block}{half}.down", INNER, MODEL)
        all |= norm_shapes(f"{block}attention_norm")
        for name in ("query", "key", "value"):
            all[f"{block}attention.{name}"] = (MODEL, HEADS, HEAD)
            all[f"{block}attention.{name}_bias"] = (HEADS, HEAD)
        all |= {f"{block}attention.output": (HEADS, HEAD, MODEL), f"{block}attention.output_bias": (MODEL,)}
        all |= norm_shapes(f"{block}convolution.norm") | norm_shapes(f"{block}convolution")
        for name in ("gate", "value", "out"):
            all |= linear_shapes(f"{block}convolution.{name}")
        all |= {f"{block}convolution.depthwise": (KERNEL, 1, 1, MODEL), f"{block}convolution.depthwise_bias": (MODEL,)}
        all |= norm_shapes(f"{block}norm")
    return all | linear_shapes("head.classes", MODEL, CLASSES)


def draw_inputs(random):
    frames = random.normal(0, 1, (STEPS, BATCH, 4 * POSITIONS, FEATURES, 1)).astype("f4").astype("f8")
    return {"frames": frames, "labels": random.integers(0, CLASSES, (STEPS, BATCH, POSITIONS))}


def filters(weight):
    """As PyTorch has them: [filter, channel, height, width]."""
    return weight.permute(3, 2, 0, 1)


def linear(w, name, x):
    return F.linear(x, w[f"{name}.weight"].T, w[f"{name}.shift"])


def layer_norm(w, name, x):
    return F.layer_norm(x, (MODEL,), w[f"{name}.gain"], w[f"{name}.bias"], EPSILON)


def feed_forward(w, name, x):
    return x + 0.5 * linear(w, f"{name}.down", F.silu(linear(w, f"{name}.up", layer_norm(w, f"{name}.norm", x))))


def rotated(x):
    """[batch, head, position, element]: elements i and i + head / 2 as a complex number, turned by the position."""
    half = HEAD // 2
    angle = torch.outer(torch.arange(POSITIONS), THETA ** (-2 * torch.arange(half) / HEAD))
    turned = torch.complex(x[..., :half], x[..., half:]) * torch.polar(torch.ones_like(angle), angle)
    return torch.cat((turned.real, turned.imag), -1)


def attention(w, name, x):
    def heads(part):
        y = F.linear(x, w[f"{name}.{part}"].reshape(MODEL, MODEL).T, w[f"{name}.{part}_bias"].reshape(MODEL))
        return y.reshape(BATCH, POSITIONS, HEADS, HEAD).transpose(1, 2)

    scores = rotated(heads("query")) @ rotated(heads("key")).transpose(-2, -1) / HEAD**0.5
    mixed = (scores.softmax(-1) @ heads("value")).transpose(1, 2).reshape(BATCH, POSITIONS, MODEL)
    return F.linear(mixed, w[f"{name}.output"].reshape(MODEL, MODEL).T, w[f"{name}.output_bias"])


def convolution(w, name, x):
    y = layer_norm(w, f"{name}.norm", x)
    y = F.glu(torch.cat((linear(w, f"{name}.value", y), linear(w, f"{name}.gate", y)), -1), -1)
    y = F.conv1d(y.transpose(1, 2), w[f"{name}.depthwise"][:, 0].permute(2, 1, 0), w[f"{name}.depthwise_bias"],
                 padding="same", groups=MODEL)
    y = F.silu(F.group_norm(y, HEADS, w[f"{name}.gain"], w[f"{name}.bias"], EPSILON)).transpose(1, 2)
    return x + linear(w, f"{name}.out", y)


def loss(w, frames, labels):
    x = frames.permute(0, 3, 1, 2)
    for name in ("first", "second"):
        x = F.relu(F.conv2d(x, filters(w[f"embedding.{name}"]), w[f"embedding.{name}_bias"], stride=2, padding=1))
    x = F.linear(x.permute(0, 2, 3, 1).flatten(2), w["embedding.dense"].flatten(0, 1).T, w["embedding.dense_bias"])
    for i in range(LAYERS):
        x = feed_forward(w, f"block.{i}.feed_forward_1", x)
        x = x + attention(w, f"block.{i}.attention", layer_norm(w, f"block.{i}.attention_norm", x))
        x = convolution(w, f"block.{i}.convolution", x)
        x = feed_forward(w, f"block.{i}.feed_forward_2", x)
        x = layer_norm(w, f"block.{i}.norm", x)
    return F.cross_entropy(linear(w, "head.classes", x).flatten(0, 1), labels.flatten())


if __name__ == "__main__":
    train("conformer", shapes(), draw_inputs, loss, 3)
