#!/usr/bin/python3
"""Trains the tiny networks of other systems' evaluations in tests/data as reference.py says: writes vgg.h5, densenet.h5,
inception.h5, googlenet.h5, ncf.h5 and lm1b.h5. Networks are written from their papers, with PyTorch's own LSTM with a projection."""
import torch
import torch.nn.functional as F
from reference import BATCH, EPSILON, STEPS, train
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from vision import filters

CLASSES = 8
GROUPS = {"densenet": 2, "googlenet": 2, "inception": 4}  # samples that a batch norm takes together


# Seeds are of runs in which no ReLU is so close to its bend that a rounding in float32 could turn it: batch norms carry what that
# changes into all gradients.
def image_inputs(size, colors):
    def draw(random):
        images = random.normal(0, 1, (STEPS, BATCH, size, size, colors)).astype("f4").astype("f8")
        return {"images": images, "labels": random.integers(0, CLASSES, (STEPS, BATCH))}

    return draw


class Weights:
    """Hands out weights by name and notes their shapes: a network that runs on it once, on no weights, has said what it takes."""

    def __init__(self, network, weights=None):
        self.weights, self.shapes, self.group = weights, {}, GROUPS.get(network.__name__)

    def __call__(self, name, *shape):
        self.shapes[name] = shape
        return self.weights[name] if self.weights else torch.zeros(shape)


def shapes_of(network, **inputs):
    weights = Weights(network)
    network(weights, **inputs)
    return weights.shapes


def loss_of(network):
    return lambda w, **inputs: network(Weights(network, w), **inputs)


def batch_norm(w, name, x, epsilon):
    gain, bias = w(f"{name}.gain", x.shape[1]), w(f"{name}.bias", x.shape[1])
    return torch.cat([F.batch_norm(group, None, None, gain, bias, True, eps=epsilon) for group in x.split(w.group)])


def convolution(w, name, x, out, window, stride=1, padding=None):
    """Of `window` = (height, width), or of a square; keeps the size at stride 1 unless padding says otherwise."""
    height, width = window if isinstance(window, tuple) else (window, window)
    kernel = filters(w(f"{name}.filters", height, width, x.shape[1], out))
    return F.conv2d(x, kernel, stride=stride, padding=(height // 2, width // 2) if padding is None else padding)


def linear(w, name, x, out, shift="shift"):
    return F.linear(x, w(f"{name}.weight", x.shape[-1], out).T, w(f"{name}.{shift}", out))


def classes(w, name, x):
    return linear(w, name, x, CLASSES, "class_bias")


def vgg(w, images, labels):
    x = images.permute(0, 3, 1, 2)
    for group, (out, count) in enumerate([(2, 2), (4, 2), (8, 3), (16, 2), (16, 2)], 1):
        for name in ["first"] + [f"further.{i}" for i in range(count - 1)]:
            name = f"group{group}.{name}.convolution"
            x = F.relu(convolution(w, name, x, out, 3) + w(f"{name}.bias", out)[:, None, None])
        x = F.max_pool2d(x, 2)
    image = x.permute(0, 2, 3, 1)
    weight = w("full6.weight", *image.shape[1:], 16)
    x = F.relu(F.linear(image.flatten(1), weight.flatten(0, 2).T, w("full6.shift", 16)))
    return F.cross_entropy(classes(w, "head", F.relu(linear(w, "full7", x, 16))), labels)


def densenet(w, images, labels):
    growth = 4

    def norm_convolution(name, x, out, window):
        return convolution(w, name, F.relu(batch_norm(w, f"{name}.norm", x, EPSILON)), out, window)

    def block(name, x):
        for layer in range(2):
            y = norm_convolution(f"{name}.{layer}.narrow", x, 4 * growth, 1)
            x = torch.cat([x, norm_convolution(f"{name}.{layer}.grow", y, growth, 3)], 1)
        return x

    x = convolution(w, "stem.first", images.permute(0, 3, 1, 2), 2 * growth, 7)
    x = block("block1", F.max_pool2d(F.relu(batch_norm(w, "stem.first.norm", x, EPSILON)), 3, 2, 1))
    x = block("block2", F.avg_pool2d(norm_convolution("transition1.narrow", x, x.shape[1] // 2, 1), 2))
    x = F.relu(batch_norm(w, "head.norm", x, EPSILON)).mean((2, 3))
    return F.cross_entropy(classes(w, "head.class", x), labels)


def inception_convolution(w, name, x, out, window=1, stride=1, padding=None):
    return F.relu(batch_norm(w, f"{name}.norm", convolution(w, name, x, out, window, stride, padding), 1e-3))


def branch(w, layer, x, *convolutions):
    for name, out, window, *options in convolutions:
        x = inception_convolution(w, f"{layer}.{name}", x, out, window, *options)
    return x


def inception(w, images, labels):
    def mean(x):
        return F.avg_pool2d(x, 3, 1, 1)

    def half(x):
        return F.max_pool2d(x, 3, 2)

    across, down = (1, 7), (7, 1)
    x = convolution(w, "stem.first", images.permute(0, 3, 1, 2), 4, 7)
    x = F.max_pool2d(F.relu(batch_norm(w, "stem.first.norm", x, EPSILON)), 3, 2, 1)
    x = torch.cat([branch(w, "mixed0", x, ("one", 4, 1)),
                   branch(w, "mixed0", x, ("reduce5", 3, 1), ("five", 4, 5)),
                   branch(w, "mixed0", x, ("reduce3", 4, 1), ("three", 6, 3), ("three_again", 6, 3)),
                   branch(w, "mixed0", mean(x), ("projected", 4, 1))], 1)
    x = torch.cat([branch(w, "mixed1", x, ("three", 24, 3, 2, 0)),
                   branch(w, "mixed1", x, ("reduce", 4, 1), ("wide", 6, 3), ("halve", 6, 3, 2, 0)), half(x)], 1)
    x = torch.cat([branch(w, "mixed2", x, ("one", 12, 1)),
                   branch(w, "mixed2", x, ("reduce", 4, 1), ("across", 4, across), ("down", 12, down)),
                   branch(w, "mixed2", x, ("reduce_twice", 4, 1), ("down_1", 4, down), ("across_1", 4, across),
                          ("down_2", 4, down), ("across_2", 12, across)),
                   branch(w, "mixed2", mean(x), ("projected", 12, 1))], 1)
    side = branch(w, "auxiliary", F.avg_pool2d(x, 3, 2), ("narrow", 8, 1), ("whole", 48, 2, 1, 0)).flatten(1)
    side = F.cross_entropy(classes(w, "auxiliary.class", side), labels)
    x = torch.cat([branch(w, "mixed3", x, ("reduce3", 12, 1), ("three", 20, 3, 2, 0)),
                   branch(w, "mixed3", x, ("reduce7", 12, 1), ("across", 12, across), ("down", 12, down),
                          ("halve", 12, 3, 2, 0)), half(x)], 1)
    b = branch(w, "mixed4", x, ("reduce", 24, 1))
    c = branch(w, "mixed4", x, ("reduce_twice", 28, 1), ("three", 24, 3))
    x = torch.cat([branch(w, "mixed4", x, ("one", 20, 1)),
                   branch(w, "mixed4", b, ("across", 24, (1, 3))), branch(w, "mixed4", b, ("down", 24, (3, 1))),
                   branch(w, "mixed4", c, ("across_twice", 24, (1, 3))), branch(w, "mixed4", c, ("down_twice", 24, (3, 1))),
                   branch(w, "mixed4", mean(x), ("projected", 12, 1))], 1)
    return F.cross_entropy(classes(w, "head", x.mean((2, 3))), labels) + 0.4 * side


def googlenet(w, images, labels):
    def module(name, x, one, reduce3, three, reduce5, five, projected):
        return torch.cat([branch(w, name, x, ("one", one, 1)),
                          branch(w, name, x, ("reduce3", reduce3, 1), ("three", three, 3)),
                          branch(w, name, x, ("reduce5", reduce5, 1), ("five", five, 5)),
                          branch(w, name, F.max_pool2d(x, 3, 1, 1), ("projected", projected, 1))], 1)

    def side(name, x):
        x = branch(w, name, F.avg_pool2d(x, 2, 1), ("narrow", 4, 1)).permute(0, 2, 3, 1)
        weight = w(f"{name}.inner.weight", *x.shape[1:], 8)
        x = F.relu(F.linear(x.flatten(1), weight.flatten(0, 2).T, w(f"{name}.inner.shift", 8)))
        return 0.3 * F.cross_entropy(classes(w, f"{name}.class", x), labels)

    x = branch(w, "stem", images.permute(0, 3, 1, 2), ("first", 4, 7, 2))
    x = F.max_pool2d(branch(w, "stem", F.max_pool2d(x, 3, 2, 1), ("second", 4, 1), ("third", 8, 3)), 3, 2, 1)
    x = module("inception1", x, 4, 4, 8, 2, 4, 4)
    sides = side("auxiliary1", x) + side("auxiliary2.side", x)
    x = F.max_pool2d(module("inception2", x, 8, 4, 8, 4, 8, 8), 3, 2, 1)
    return F.cross_entropy(classes(w, "head", x.mean((2, 3))), labels) + sides


USERS, ITEMS, FACTORS, WIDTH = 32, 16, 4, 8


def ncf_inputs(random):
    return {"user": random.integers(0, USERS, (STEPS, BATCH, 1)), "item": random.integers(0, ITEMS, (STEPS, BATCH, 1)),
            "labels": random.integers(0, 2, (STEPS, BATCH, 1))}


def ncf(w, user, item, labels):
    def row(name, ids, rows, width):
        return F.embedding(ids.flatten(), w(f"embedding.{name}", rows, width))

    product = row("user_factors", user, USERS, FACTORS) * row("item_factors", item, ITEMS, FACTORS)
    x = torch.cat([row("user_table", user, USERS, WIDTH), row("item_table", item, ITEMS, WIDTH)], 1)
    for layer, out in enumerate([2 * WIDTH, WIDTH, WIDTH // 2], 1):
        x = F.relu(linear(w, f"perceptron{layer}.linear", x, out))
    score = linear(w, "head.score", torch.cat([product, x], 1), 1)
    return F.binary_cross_entropy_with_logits(score, labels.to(score.dtype))


WORDS, POSITIONS, MODEL, HIDDEN = 16, 8, 8, 16


def lm1b_inputs(random):
    words, following = (random.integers(0, WORDS, (STEPS, BATCH, POSITIONS)) for _ in range(2))
    return {"words": words, "following": following, "lengths": random.integers(1, POSITIONS + 1, (STEPS, BATCH))}


def lm1b(w, words, following, lengths):
    x = F.embedding(words, w("embedding.table", WORDS, MODEL))
    lstm = torch.nn.LSTM(MODEL, HIDDEN, batch_first=True, proj_size=MODEL)
    bias = w("lstm.bias", 4, HIDDEN).flatten()
    for name, value in {"weight_ih_l0": w("lstm.input", MODEL, 4, HIDDEN).flatten(1).T,
                        "weight_hh_l0": w("lstm.recurrent", MODEL, 4, HIDDEN).flatten(1).T,
                        "bias_ih_l0": bias, "bias_hh_l0": 0 * bias,  # which are only ever summed
                        "weight_hr_l0": w("lstm.projection", HIDDEN, MODEL).T}.items():
        delattr(lstm, name)  # a parameter of its own, which no gradient would pass
        setattr(lstm, name, value)
    x, _ = lstm(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))
    x, _ = pad_packed_sequence(x, batch_first=True)
    logits = F.linear(x, w("head.table", WORDS, MODEL), w("head.bias", WORDS))
    return torch.stack([F.cross_entropy(sample[:length], row[:length])
                        for sample, row, length in zip(logits, following, lengths)]).mean()


def sgd(weight_decay, nesterov, rate=1e-3, momentum=0.5):
    return lambda decayed, others: torch.optim.SGD(
        [{"params": decayed, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}], lr=rate,
        momentum=momentum, nesterov=nesterov)


def train_images(network, size, colors, seed, optimizer):
    some = {"images": torch.zeros(BATCH, size, size, colors), "labels": torch.zeros(BATCH, dtype=torch.int64)}
    train(network.__name__, shapes_of(network, **some), image_inputs(size, colors), loss_of(network), seed, optimizer)


if __name__ == "__main__":
    train_images(vgg, 32, 1, 31, sgd(5e-4, False))
    train_images(densenet, 16, 2, 35, sgd(1e-4, True, momentum=0.8))
    train_images(inception, 22, 1, 39, sgd(4e-5, True, 1e-4))
    train_images(googlenet, 32, 1, 38, sgd(4e-5, True))
    some = torch.zeros(BATCH, 1, dtype=torch.int64)
    train("ncf", shapes_of(ncf, user=some, item=some, labels=some), ncf_inputs, loss_of(ncf), 35)
    some = torch.zeros(BATCH, POSITIONS, dtype=torch.int64)
    train("lm1b", shapes_of(lm1b, words=some, following=some, lengths=torch.full((BATCH,), POSITIONS)), lm1b_inputs,
          loss_of(lm1b), 36)
