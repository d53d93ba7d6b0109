#!/usr/bin/python3
"""PyTorch's side of speed.py: trains one of its models on random data, prints the seconds of each step as JSON.

    tests/reference/speed_pytorch.py gpt|wide-resnet|moe [--precision f32|bf16] [--threads 2] [--steps 12]
        [--rank 0 --ranks 2 --store FILE]

With several ranks each has its part of the batch under DistributedDataParallel over gloo; they meet at FILE, and the first prints.

Each model is written the way that PyTorch 1.13 runs fastest of those tried: images in oneDNN's order (channels_last, the
fastest for bf16, is 10 % slower, PyTorch's own order 30 %), tokens brought to their experts and back as permutations of rows.
"""
import argparse
import json
import time

import torch
import torch.nn.functional as F
from speed import MODELS, sizes_of
from torch import nn


class Block(nn.Module):
    """A transformer block; what follows attention is `inner`, of which the second result is the balancing loss."""

    def __init__(self, size, inner):
        super().__init__()
        model = size["model"]
        self.heads, self.inner = size["heads"], inner
        self.norms = nn.ModuleList([nn.LayerNorm(model), nn.LayerNorm(model)])
        self.qkv, self.out = nn.Linear(model, 3 * model), nn.Linear(model, model)
        self.register_buffer("hidden", torch.ones(size["sequence"], size["sequence"], dtype=torch.bool).triu(1))

    def forward(self, x):
        batch, sequence, model = x.shape
        q, k, v = (t.view(batch, sequence, self.heads, -1).transpose(1, 2) for t in self.qkv(self.norms[0](x)).split(model, 2))
        scores = (q @ k.transpose(-2, -1)) * (model // self.heads) ** -0.5
        mixed = scores.masked_fill(self.hidden, float("-inf")).softmax(-1) @ v
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, sequence, model))
        y, balance = self.inner(self.norms[1](x))
        return x + y, balance


class Mlp(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.up, self.down = nn.Linear(size["model"], 4 * size["model"]), nn.Linear(4 * size["model"], size["model"])

    def forward(self, x):
        return self.down(F.gelu(self.up(x), approximate="tanh")), 0.0


class Permute(torch.autograd.Function):
    """Rows in another order, whose gradient is a gather as well."""

    @staticmethod
    def forward(context, rows, order, inverse):
        context.save_for_backward(order, inverse)
        return rows.index_select(0, order)

    @staticmethod
    def backward(context, gradient):
        order, inverse = context.saved_tensors
        return gradient.index_select(0, inverse), None, None


class Experts(nn.Module):
    """Tokens go to their best `choices` experts, first choices first, until those have `capacity` rows."""

    def __init__(self, size):
        super().__init__()
        model, self.experts, self.choices = size["model"], size["experts"], size["choices"]
        self.capacity = -(-self.choices * size["group_samples"] * size["sequence"] // self.experts)
        self.gate = nn.Parameter(0.02 * torch.randn(model, self.experts))
        self.up = nn.Parameter(0.02 * torch.randn(self.experts, model, 4 * model))
        self.down = nn.Parameter(0.02 * torch.randn(self.experts, 4 * model, model))

    def forward(self, x):
        tokens = x.reshape(-1, x.shape[-1])
        logits = tokens @ self.gate
        best, chosen = logits.topk(self.choices)
        shares = torch.bincount(chosen[:, 0], minlength=self.experts) * (self.experts / len(tokens))
        balance = (logits.softmax(-1) @ shares).mean()

        rows = tokens.unsqueeze(0).expand(self.choices, -1, -1).reshape(-1, tokens.shape[1])  # [choice, token]
        expert, order = chosen.T.reshape(-1).sort(stable=True)
        wanted = torch.bincount(expert, minlength=self.experts)
        inverse = torch.empty_like(order).index_copy_(0, order, torch.arange(len(order)))
        outputs = []
        groups = Permute.apply(rows, order, inverse).split(wanted.tolist())
        for group, up, down in zip(groups, self.up.unbind(), self.down.unbind()):
            y = F.gelu(group[: self.capacity] @ up, approximate="tanh") @ down
            outputs.append(F.pad(y, (0, 0, 0, len(group) - len(y))))  # zeros for those dropped
        back = Permute.apply(torch.cat(outputs), inverse, order).view(self.choices, -1, tokens.shape[1])
        return (back * best.softmax(-1).T.unsqueeze(-1)).sum(0).view(x.shape), balance


class Decoder(nn.Module):
    """GPT, with the mixture in every second block from the first on where `size` has experts."""

    def __init__(self, size):
        super().__init__()
        self.size = size
        mixture = "experts" in size
        inner = [Experts(size) if mixture and layer % 2 == 0 else Mlp(size) for layer in range(size["layers"])]
        self.tokens, self.positions = nn.Embedding(size["vocabulary"], size["model"]), nn.Embedding(size["sequence"], size["model"])
        self.blocks, self.norm = nn.ModuleList([Block(size, part) for part in inner]), nn.LayerNorm(size["model"])
        self.optimizer = torch.optim.AdamW(self.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1)
        self.clip = 1.0

    def draw(self):
        tokens = torch.randint(self.size["vocabulary"], (self.size["batch"], self.size["sequence"] + 1))
        return tokens[:, :-1], tokens[:, 1:].reshape(-1)

    def forward(self, tokens):
        x, balances = self.tokens(tokens) + self.positions.weight, 0.0
        for block in self.blocks:
            x, balance = block(x)
            balances = balances + balance
        return (self.norm(x) @ self.tokens.weight.T).flatten(0, 1), 0.01 * balances


class ConvNorm(nn.Sequential):
    def __init__(self, inputs, outputs, window, stride=1, relu=True):
        super().__init__(nn.Conv2d(inputs, outputs, window, stride, window // 2, bias=False), nn.BatchNorm2d(outputs),
                         *[nn.ReLU(inplace=True)] * relu)


class Bottleneck(nn.Module):
    def __init__(self, inputs, channels, factor, stride, project):
        super().__init__()
        self.path = nn.Sequential(ConvNorm(inputs, channels, 1), ConvNorm(channels, factor * channels, 3, stride),
                                  ConvNorm(factor * channels, 4 * channels, 1, relu=False))
        self.shortcut = ConvNorm(inputs, 4 * channels, 1, stride, relu=False) if project else nn.Identity()

    def forward(self, x):
        return F.relu(self.path(x).add_(self.shortcut(x)), inplace=True)


class WideResNet(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size
        layers, inputs = [ConvNorm(size["colors"], size["base"], 7, 2), nn.MaxPool2d(3, 2, 1)], size["base"]
        for stage in range(4):
            channels = size["base"] << stage
            for unit in range(size[f"units{stage + 1}"]):
                layers.append(Bottleneck(inputs, channels, size["width_factor"], 2 if stage and not unit else 1, not unit))
                inputs = 4 * channels
        self.layers, self.classes = nn.Sequential(*layers), nn.Linear(inputs, size["classes"])
        self.optimizer = torch.optim.SGD(self.parameters(), lr=0.01, momentum=0.9, nesterov=True, weight_decay=1e-4)
        self.clip = 0.0

    def draw(self):
        images = torch.randn(self.size["batch"], self.size["colors"], self.size["height"], self.size["width"])
        return images, torch.randint(self.size["classes"], (self.size["batch"],))

    def forward(self, images):
        if torch.is_autocast_cpu_enabled():
            x = self.to(memory_format=torch.channels_last).layers(images.to(memory_format=torch.channels_last))
        else:
            x = self.layers(images.to_mkldnn()).to_dense()
        return self.classes(x.mean((2, 3))), 0.0


def step_seconds(network, precision, steps, ranks):
    model = nn.parallel.DistributedDataParallel(network) if ranks > 1 else network
    seconds = []
    for _ in range(steps):
        inputs, targets = network.draw()
        start = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            scores, balance = model(inputs)
        loss = F.cross_entropy(scores.float(), targets) + balance
        network.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if network.clip:
            nn.utils.clip_grad_norm_(network.parameters(), network.clip)
        network.optimizer.step()
        loss.item()
        seconds.append(time.perf_counter() - start)
    return seconds


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--precision", default="f32", choices=["f32", "bf16"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--store")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1 + options.rank)
    size = sizes_of(options.model)
    size["batch"] //= options.ranks
    if options.ranks > 1:
        torch.distributed.init_process_group("gloo", init_method=f"file://{options.store}", rank=options.rank, world_size=options.ranks)
    network = (WideResNet if options.model == "wide-resnet" else Decoder)(size)
    seconds = step_seconds(network, options.precision, options.steps, options.ranks)
    if options.rank == 0:
        print(json.dumps(seconds))
