#!/usr/bin/python3
"""Trains the tiny U-Net of tests/data as reference.py says, and writes unet.h5."""
import torch
import torch.nn.functional as F
from reference import BATCH, EPSILON, STEPS, train

SIZE, IMAGE, NOISE, CHANNELS, TIMES, CONTEXT, CONTEXT_MODEL, HEADS, GROUPS = 8, 3, 4, 4, 8, 4, 8, 4, 4
TIME = 4 * CHANNELS
C1, C2, C4 = CHANNELS, 2 * CHANNELS, 4 * CHANNELS


class Shapes(dict):
    def norm(self, name, channels):
        self[f"{name}.gain"], self[f"{name}.bias"] = (channels,), (channels,)

    def linear(self, name, inputs, outputs):
        self[f"{name}.weight"], self[f"{name}.shift"] = (inputs, outputs), (outputs,)

    def convolution(self, name, inputs, outputs, window=3):
        self[f"{name}.filters"], self[f"{name}.bias"] = (window, window, inputs, outputs), (outputs,)

    def residual(self, name, inputs, outputs):
        self.norm(f"{name}.norm_1", inputs)
        self.convolution(f"{name}.convolution_1", inputs, outputs)
        self.linear(f"{name}.time", TIME, outputs)
        self.norm(f"{name}.norm_2", outputs)
        self.convolution(f"{name}.convolution_2", outputs, outputs)
        if inputs != outputs:
            self.convolution(f"{name}.fit", inputs, outputs, 1)

    def attention(self, name, model, context):
        self[f"{name}.query"] = (model, HEADS, model // HEADS)
        self[f"{name}.key"] = self[f"{name}.value"] = (context, HEADS, model // HEADS)
        self[f"{name}.output"], self[f"{name}.output_bias"] = (HEADS, model // HEADS, model), (model,)

    def transformer(self, name, channels):
        for norm in ("norm", "self_norm", "cross_norm", "mlp_norm"):
            self.norm(f"{name}.{norm}", channels)
        self.linear(f"{name}.in", channels, channels)
        self.attention(f"{name}.self", channels, channels)
        self.attention(f"{name}.cross", channels, CONTEXT_MODEL)
        for part in ("gate", "up"):
            self.linear(f"{name}.mlp.{part}", channels, 4 * channels)
        self.linear(f"{name}.mlp.down", 4 * channels, channels)
        self.linear(f"{name}.out", channels, channels)


def shapes():
    all = Shapes({"embedding.table": (TIMES, CHANNELS)})
    all.convolution("embedding.in", IMAGE, C1)
    all.linear("embedding.time_1", CHANNELS, TIME)
    all.linear("embedding.time_2", TIME, TIME)
    for i, (inputs, outputs) in enumerate(((C1, C1), (C1, C2), (C2, C4))):
        all.residual(f"down{i}.residual", inputs, outputs)
        all.transformer(f"down{i}.transformer", outputs)
        all.convolution(f"down{i}.smaller", outputs, outputs)
    all.residual("down3", C4, C4)
    all.residual("middle.residual_1", C4, C4)
    all.transformer("middle.transformer", C4)
    all.residual("middle.residual_2", C4, C4)
    for i, inputs, outputs in ((3, 2 * C4, C4), (2, 2 * C4, C4), (1, C4 + C2, C2)):
        all.residual(f"up{i}.residual", inputs, outputs)
        all.transformer(f"up{i}.transformer", outputs)
        all.convolution(f"up{i}.larger", outputs, outputs)
    all.residual("head.residual_1", C2 + C1, C1)
    all.residual("head.residual_2", 2 * C1, C1)
    all.norm("head.norm", C1)
    all.convolution("head.out", C1, NOISE)
    return dict(all)


def draw_inputs(random):
    def numbers(*shape):
        return random.normal(0, 1, (STEPS, BATCH, *shape)).astype("f4").astype("f8")

    return {"images": numbers(SIZE, SIZE, IMAGE), "times": random.integers(0, TIMES, (STEPS, BATCH, 1)),
            "context": numbers(CONTEXT, CONTEXT_MODEL), "noise": numbers(SIZE, SIZE, NOISE)}


class Network:
    """Images are [sample, channel, height, width] here."""

    def __init__(self, w, time, context):
        self.w, self.context = w, context
        row = F.embedding(time.flatten(), w["embedding.table"])
        self.step = self.linear("embedding.time_2", F.silu(self.linear("embedding.time_1", row)))

    def linear(self, name, x):
        return F.linear(x, self.w[f"{name}.weight"].T, self.w[f"{name}.shift"])

    def layer_norm(self, name, x):
        return F.layer_norm(x, x.shape[-1:], self.w[f"{name}.gain"], self.w[f"{name}.bias"], EPSILON)

    def group_norm(self, name, x):
        return F.group_norm(x, GROUPS, self.w[f"{name}.gain"], self.w[f"{name}.bias"], EPSILON)

    def convolution(self, name, x, stride=1):
        filters = self.w[f"{name}.filters"].permute(3, 2, 0, 1)
        return F.conv2d(x, filters, self.w[f"{name}.bias"], stride, padding=filters.shape[-1] // 2)

    def residual(self, name, x):
        y = self.convolution(f"{name}.convolution_1", F.silu(self.group_norm(f"{name}.norm_1", x)))
        y = y + self.linear(f"{name}.time", F.silu(self.step))[:, :, None, None]
        y = self.convolution(f"{name}.convolution_2", F.silu(self.group_norm(f"{name}.norm_2", y)))
        return y + (self.convolution(f"{name}.fit", x) if f"{name}.fit.filters" in self.w else x)

    def attention(self, name, x, context):
        def heads(part, of):
            return torch.einsum("btd,dhk->bhtk", of, self.w[f"{name}.{part}"])

        query, key = heads("query", x), heads("key", context)
        mixed = (query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5).softmax(-1) @ heads("value", context)
        output = self.w[f"{name}.output"].flatten(0, 1)
        return F.linear(mixed.transpose(1, 2).flatten(2), output.T, self.w[f"{name}.output_bias"])

    def transformer(self, name, image):
        x = self.linear(f"{name}.in", self.group_norm(f"{name}.norm", image).flatten(2).transpose(1, 2))
        y = self.layer_norm(f"{name}.self_norm", x)
        x = x + self.attention(f"{name}.self", y, y)
        x = x + self.attention(f"{name}.cross", self.layer_norm(f"{name}.cross_norm", x), self.context)
        y = self.layer_norm(f"{name}.mlp_norm", x)
        y = F.gelu(self.linear(f"{name}.mlp.gate", y), approximate="tanh") * self.linear(f"{name}.mlp.up", y)
        x = self.linear(f"{name}.out", x + self.linear(f"{name}.mlp.down", y))
        return image + x.transpose(1, 2).reshape(image.shape)

    def predicted_noise(self, images):
        x = self.convolution("embedding.in", images)
        skips = [x]
        for i in range(3):
            skips.append(self.transformer(f"down{i}.transformer", self.residual(f"down{i}.residual", x)))
            x = self.convolution(f"down{i}.smaller", skips[-1], stride=2)
        x = self.residual("down3", x)
        skips.append(x)
        x = self.transformer("middle.transformer", self.residual("middle.residual_1", x))
        x = self.residual("middle.residual_2", x)
        for i in (3, 2, 1):
            x = self.residual(f"up{i}.residual", torch.cat((x, skips.pop()), 1))
            x = F.interpolate(self.transformer(f"up{i}.transformer", x), scale_factor=2, mode="nearest")
            x = self.convolution(f"up{i}.larger", x)
        x = self.residual("head.residual_1", torch.cat((x, skips.pop()), 1))
        x = self.residual("head.residual_2", torch.cat((x, skips.pop()), 1))
        return self.convolution("head.out", F.silu(self.group_norm("head.norm", x)))


def loss(w, images, times, context, noise):
    predicted = Network(w, times, context).predicted_noise(images.permute(0, 3, 1, 2))
    return F.mse_loss(predicted, noise.permute(0, 3, 1, 2))


if __name__ == "__main__":
    train("unet", shapes(), draw_inputs, loss, 4)
