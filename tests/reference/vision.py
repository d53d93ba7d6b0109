#!/usr/bin/python3
"""Trains the tiny vision transformer and the tiny Wide-ResNet of tests/data as reference.py says; writes vit.h5 and wrn.h5."""
import torch
import torch.nn.functional as F
from reference import BATCH, EPSILON, STEPS, train

SIZE, CLASSES = 16, 8
PATCH, MODEL, LAYERS, HEADS, VIT_EPSILON = 4, 32, 2, 4, 1e-6
TOKENS, HEAD = (SIZE // PATCH) ** 2, MODEL // HEADS
BASE, WIDTH_FACTOR, GROUP = 4, 2, 2


def draw_inputs(colors):
    def draw(random):
        images = random.normal(0, 1, (STEPS, BATCH, SIZE, SIZE, colors)).astype("f4").astype("f8")
        return {"images": images, "labels": random.integers(0, CLASSES, (STEPS, BATCH))}

    return draw


def filters(weight):
    """As PyTorch has them: [filter, channel, height, width]."""
    return weight.permute(3, 2, 0, 1)


def vit_shapes():
    def norm(name):
        return {f"{name}.gain": (MODEL,), f"{name}.bias": (MODEL,)}

    all = {"embedding.filters": (PATCH, PATCH, 4, MODEL), "embedding.bias": (MODEL,), "embedding.positions": (TOKENS, MODEL)}
    for i in range(LAYERS):
        block = f"block.{i}."
        all |= norm(f"{block}attention_norm") | norm(f"{block}mlp_norm")
        for name in ("query", "key", "value"):
            all[f"{block}attention.{name}"] = (MODEL, HEADS, HEAD)
            all[f"{block}attention.{name}_bias"] = (HEADS, HEAD)
        all |= {f"{block}attention.output": (HEADS, HEAD, MODEL), f"{block}attention.output_bias": (MODEL,),
                f"{block}mlp.up": (MODEL, 4 * MODEL), f"{block}mlp.up_bias": (4 * MODEL,),
                f"{block}mlp.down": (4 * MODEL, MODEL), f"{block}mlp.down_bias": (MODEL,)}
    return all | norm("head.norm") | {"head.class.weight": (MODEL, CLASSES), "head.class.class_bias": (CLASSES,)}


def vit_loss(w, images, labels):
    x = F.conv2d(images.permute(0, 3, 1, 2), filters(w["embedding.filters"]), w["embedding.bias"], stride=PATCH)
    x = x.flatten(2).transpose(1, 2) + w["embedding.positions"]
    for i in range(LAYERS):
        def part(name):
            return w[f"block.{i}.{name}"]

        # PyTorch's own multi-head attention, [token, sample, element], its three projections in one matrix.
        y = F.layer_norm(x, (MODEL,), part("attention_norm.gain"), part("attention_norm.bias"), VIT_EPSILON).transpose(0, 1)
        into = torch.cat([part(f"attention.{n}").reshape(MODEL, MODEL).T for n in ("query", "key", "value")])
        bias = torch.cat([part(f"attention.{n}_bias").reshape(MODEL) for n in ("query", "key", "value")])
        y, _ = F.multi_head_attention_forward(
            y, y, y, MODEL, HEADS, into, bias, None, None, False, 0.0, part("attention.output").reshape(MODEL, MODEL).T,
            part("attention.output_bias"), need_weights=False)
        x = x + y.transpose(0, 1)
        y = F.layer_norm(x, (MODEL,), part("mlp_norm.gain"), part("mlp_norm.bias"), VIT_EPSILON)
        y = F.gelu(F.linear(y, part("mlp.up").T, part("mlp.up_bias")), approximate="tanh")
        x = x + F.linear(y, part("mlp.down").T, part("mlp.down_bias"))
    x = F.layer_norm(x, (MODEL,), w["head.norm.gain"], w["head.norm.bias"], VIT_EPSILON).mean(1)
    return F.cross_entropy(F.linear(x, w["head.class.weight"].T, w["head.class.class_bias"]), labels)


# Name, channels that come in, channels, stride of each residual unit.
UNITS = [("stage1", BASE, BASE, 1), ("stage1_unit.0", 4 * BASE, BASE, 1),
         ("stage2", 4 * BASE, 2 * BASE, 2), ("stage2_unit.0", 8 * BASE, 2 * BASE, 1)]


def wrn_shapes():
    def conv_norm(name, window, inputs, outputs):
        return {f"{name}.filters": (window, window, inputs, outputs),
                f"{name}.norm.gain": (outputs,), f"{name}.norm.bias": (outputs,)}

    all = conv_norm("stem.first", 7, 2, BASE)
    for name, inputs, channels, _ in UNITS:
        wide = WIDTH_FACTOR * channels
        all |= conv_norm(f"{name}.first", 1, inputs, channels) | conv_norm(f"{name}.wide", 3, channels, wide)
        all |= conv_norm(f"{name}.last", 1, wide, 4 * channels)
        if "unit" not in name:
            all |= conv_norm(f"{name}.shortcut", 1, inputs, 4 * channels)
    return all | {"head.weight": (8 * BASE, CLASSES), "head.class_bias": (CLASSES,)}


def wrn_loss(w, images, labels):
    def conv_norm(name, x, stride=1):
        kernel = filters(w[f"{name}.filters"])
        y = F.conv2d(x, kernel, stride=stride, padding=kernel.shape[-1] // 2)
        return torch.cat([F.batch_norm(group, None, None, w[f"{name}.norm.gain"], w[f"{name}.norm.bias"], True, eps=EPSILON)
                          for group in y.split(GROUP)])

    x = F.max_pool2d(F.relu(conv_norm("stem.first", images.permute(0, 3, 1, 2))), 3, 2, 1)
    for name, _, _, stride in UNITS:
        y = F.relu(conv_norm(f"{name}.first", x))
        y = conv_norm(f"{name}.last", F.relu(conv_norm(f"{name}.wide", y, stride)))
        x = F.relu(y + (x if "unit" in name else conv_norm(f"{name}.shortcut", x, stride)))
    return F.cross_entropy(F.linear(x.mean((2, 3)), w["head.weight"].T, w["head.class_bias"]), labels)


def nesterov(decayed, others):
    return torch.optim.SGD([{"params": decayed, "weight_decay": 5e-4}, {"params": others, "weight_decay": 0.0}],
                           lr=1e-3, momentum=0.5, nesterov=True)


if __name__ == "__main__":
    train("vit", vit_shapes(), draw_inputs(4), vit_loss, 4)
    train("wrn", wrn_shapes(), draw_inputs(2), wrn_loss, 7, nesterov)
