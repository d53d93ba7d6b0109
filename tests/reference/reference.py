#!/usr/bin/python3
"""Trains tiny models of tests/data in PyTorch and writes what came out.

    apt-get install python3-torch python3-h5py
    tests/reference/reference.py            # writes gpt.h5 and llama.h5 beside itself
    tests/reference/conformer.py            # and so on: another family, by train() below

Written from the papers and from PyTorch's own modules, not from this suite: weights are drawn here, everything is
computed in float64, and the numbers are stored as float32. tests/model/reference_test.cpp trains from the same weights
on the same samples and compares; tests/trainer/reference_test.cpp does so with the trainer, under two plans.

    /weights/<name>             at the start, under the names that the suite gives them
    /<input>                    [step][sample]...: tokens and targets, or the inputs that the model names
    /losses, /gradient_norms    per step: mean over tokens, or over samples; global norm before clipping
    /gradients/<step>/<name>    of the mean loss, before clipping: at every step of the GPT and the Llama, at the first and
                                at the last of the others
"""
import math
import pathlib

import h5py
import numpy
import torch
import torch.nn.functional as F

STEPS, BATCH, SEQUENCE, VOCABULARY = 10, 8, 16, 64
MODEL, LAYERS, HEADS = 32, 4, 4
GROUPS, LLAMA_INNER, THETA = 2, 64, 10000.0
HEAD = MODEL // HEADS
EPSILON = 1e-5


def causal_attention(q, k, v):
    """[batch, sequence, heads, head] each -> the same."""
    q, k, v = (t.transpose(1, 2) for t in (q, k, v))
    scores = q @ k.transpose(-2, -1) / math.sqrt(HEAD)
    hidden = torch.ones(SEQUENCE, SEQUENCE).triu(1).bool()
    return (scores.masked_fill(hidden, -math.inf).softmax(-1) @ v).transpose(1, 2)


def heads_of(x, weight, bias=None):
    """A projection onto heads, as one matrix product."""
    heads = weight.shape[1]
    y = F.linear(x, weight.reshape(MODEL, -1).T, None if bias is None else bias.reshape(-1))
    return y.reshape(BATCH, SEQUENCE, heads, HEAD)


def gpt_block_shapes(block, inner=4 * MODEL):
    shapes = {}
    for norm in ("attention_norm", "mlp_norm"):
        shapes |= {f"{block}.{norm}.gain": (MODEL,), f"{block}.{norm}.bias": (MODEL,)}
    for name in ("query", "key", "value"):
        shapes[f"{block}.attention.{name}"] = (MODEL, HEADS, HEAD)
        shapes[f"{block}.attention.{name}_bias"] = (HEADS, HEAD)
    return shapes | {f"{block}.attention.output": (HEADS, HEAD, MODEL), f"{block}.attention.output_bias": (MODEL,),
                     f"{block}.mlp.up": (MODEL, inner), f"{block}.mlp.up_bias": (inner,),
                     f"{block}.mlp.down": (inner, MODEL), f"{block}.mlp.down_bias": (MODEL,)}


def gpt_shapes():
    shapes = {"embedding.table": (VOCABULARY, MODEL), "embedding.positions": (SEQUENCE, MODEL)}
    for i in range(LAYERS):
        shapes |= gpt_block_shapes(f"block.{i}")
    return shapes | {"head.norm.gain": (MODEL,), "head.norm.bias": (MODEL,)}


def layer_norm(w, name, x):
    return F.layer_norm(x, (MODEL,), w[f"{name}.gain"], w[f"{name}.bias"], EPSILON)


def gpt_attention(w, block, x):
    def part(name):
        return w[f"{block}.attention.{name}"]

    y = layer_norm(w, f"{block}.attention_norm", x)
    q, k, v = (heads_of(y, part(n), part(f"{n}_bias")) for n in ("query", "key", "value"))
    mixed = causal_attention(q, k, v).reshape(BATCH, SEQUENCE, MODEL)
    return x + F.linear(mixed, part("output").reshape(MODEL, MODEL).T, part("output_bias"))


def gpt_block(w, block, x):
    x = gpt_attention(w, block, x)
    y = layer_norm(w, f"{block}.mlp_norm", x)
    y = F.gelu(F.linear(y, w[f"{block}.mlp.up"].T, w[f"{block}.mlp.up_bias"]), approximate="tanh")
    return x + F.linear(y, w[f"{block}.mlp.down"].T, w[f"{block}.mlp.down_bias"])


def gpt_logits(w, tokens):
    x = F.embedding(tokens, w["embedding.table"]) + w["embedding.positions"]
    for i in range(LAYERS):
        x = gpt_block(w, f"block.{i}", x)
    return F.linear(layer_norm(w, "head.norm", x), w["embedding.table"])


def llama_block_shapes(block, groups=GROUPS, inner=LLAMA_INNER):
    return {f"{block}.attention_norm.gain": (MODEL,), f"{block}.mlp_norm.gain": (MODEL,),
            f"{block}.attention.query": (MODEL, HEADS, HEAD), f"{block}.attention.key": (MODEL, groups, HEAD),
            f"{block}.attention.value": (MODEL, groups, HEAD), f"{block}.attention.output": (HEADS, HEAD, MODEL),
            f"{block}.mlp.gate": (MODEL, inner), f"{block}.mlp.up": (MODEL, inner), f"{block}.mlp.down": (inner, MODEL)}


def llama_shapes():
    shapes = {"embedding.table": (VOCABULARY, MODEL)}
    for i in range(LAYERS):
        shapes |= llama_block_shapes(f"block.{i}")
    return shapes | {"head.norm.gain": (MODEL,), "head.table": (VOCABULARY, MODEL)}


def rms_norm(x, gain):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPSILON) * gain


def rotated(x):
    """Elements i and i + head / 2 as a complex number, turned by position / theta^(2 i / head)."""
    half = HEAD // 2
    angle = torch.outer(torch.arange(SEQUENCE), THETA ** (-2 * torch.arange(half) / HEAD))[None, :, None, :]
    turned = torch.complex(x[..., :half], x[..., half:]) * torch.polar(torch.ones_like(angle), angle)
    return torch.cat((turned.real, turned.imag), -1)


def llama_attention(w, block, x):
    y = rms_norm(x, w[f"{block}.attention_norm.gain"])
    q, k, v = (heads_of(y, w[f"{block}.attention.{n}"]) for n in ("query", "key", "value"))
    k, v = (t.repeat_interleave(HEADS // t.shape[2], 2) for t in (rotated(k), v))
    mixed = causal_attention(rotated(q), k, v).reshape(BATCH, SEQUENCE, MODEL)
    return x + mixed @ w[f"{block}.attention.output"].reshape(MODEL, MODEL)


def gated_mlp(w, name, x):
    return (F.silu(x @ w[f"{name}.gate"]) * (x @ w[f"{name}.up"])) @ w[f"{name}.down"]


def llama_block(w, block, x):
    x = llama_attention(w, block, x)
    return x + gated_mlp(w, f"{block}.mlp", rms_norm(x, w[f"{block}.mlp_norm.gain"]))


def llama_logits(w, tokens):
    x = F.embedding(tokens, w["embedding.table"])
    for i in range(LAYERS):
        x = llama_block(w, f"block.{i}", x)
    return rms_norm(x, w["head.norm.gain"]) @ w["head.table"].T


def drawn(shapes, random):
    """Larger than a usual start, so that every path has gradients well above rounding."""
    weights = {}
    for name, shape in shapes.items():
        spread = 0.1 if name.endswith(("gain", "bias", "shift")) else 0.15
        value = random.normal(0, spread, shape) + (1 if name.endswith("gain") else 0)
        weights[name] = torch.tensor(value.astype("f4"), dtype=torch.float64, requires_grad=True)
    return weights


def language_inputs(random):
    tokens, targets = (random.integers(0, VOCABULARY, (STEPS, BATCH, SEQUENCE)) for _ in range(2))
    return {"tokens": tokens, "targets": targets}


def token_loss(logits, targets):
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def language_loss(logits_of):
    return lambda w, tokens, targets: token_loss(logits_of(w, tokens), targets)


def adamw(decayed, others, beta2=0.95, weight_decay=0.1):
    return torch.optim.AdamW([{"params": decayed, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}],
                             lr=1e-3, betas=(0.9, beta2), eps=1e-8)


def train(name, shapes, draw_inputs, loss_of, seed, optimizer_of=adamw, observed={},
          gradient_steps=(0, STEPS - 1)):
    """Writes <name>.h5; loss_of(weights, **inputs of a step) is the mean loss.

    `observed` are further datasets: lists to which loss_of appends tensors, equally many in each step."""
    with h5py.File(pathlib.Path(__file__).parent / f"{name}.h5", "w", libver=("earliest", "v110")) as file:
        file.attrs["format"] = numpy.bytes_("alpa-reference")
        file.attrs["format_version"] = numpy.bytes_("1.0")
        train_into(file, shapes, draw_inputs, loss_of, numpy.random.default_rng(seed), optimizer_of, observed, gradient_steps)


def train_into(file, shapes, draw_inputs, loss_of, random, optimizer_of, observed, gradient_steps):
    weights = drawn(shapes, random)
    inputs = draw_inputs(random)
    vectors = ("gain", "bias", "shift")  # which weight decay leaves alone
    optimizer = optimizer_of([t for n, t in weights.items() if not n.endswith(vectors)],
                             [t for n, t in weights.items() if n.endswith(vectors)])

    def save(path, value):
        value = value.detach().numpy() if isinstance(value, torch.Tensor) else numpy.asarray(value)
        file.create_dataset(path, data=value.astype("i4" if value.dtype.kind == "i" else "f4"))

    for name, value in weights.items():
        save(f"weights/{name}", value)
    for name, value in inputs.items():
        save(name, value)
    losses, norms = [], []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(weights, **{name: torch.tensor(value[step]) for name, value in inputs.items()})
        loss.backward()
        if step in gradient_steps:
            for name, value in weights.items():
                save(f"gradients/{step}/{name}", value.grad)
        losses.append(loss.item())
        norms.append(torch.nn.utils.clip_grad_norm_(weights.values(), 1.0).item())
        optimizer.step()
    save("losses", losses)
    save("gradient_norms", norms)
    for name, values in observed.items():
        save(name, torch.stack(values).unflatten(0, (STEPS, -1)))
    print(file.filename, "losses", *(f"{loss:.5f}" for loss in losses), "norms", *(f"{norm:.3f}" for norm in norms))


torch.set_default_dtype(torch.float64)

if __name__ == "__main__":
    train("gpt", gpt_shapes(), language_inputs, language_loss(gpt_logits), 1, gradient_steps=range(STEPS))
    train("llama", llama_shapes(), language_inputs, language_loss(llama_logits), 2, gradient_steps=range(STEPS))
