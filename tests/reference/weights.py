#!/usr/bin/python3
"""Writes small models as safetensors files, as people exchange them, and what PyTorch makes of them.

    apt-get install python3-torch python3-h5py
    tests/reference/weights.py    # writes gpt2, llama and bert .safetensors, and logits.h5, beside itself
    tests/reference/weights.py FOLDER    # the same of a GPT-2 of 124 million parameters into that folder: 550 MB

Names and layouts are those of the library `transformers`; modules are PyTorch's own, so that a state_dict is such a
file. Nothing here knows the suite: the format of the file is written by hand, models come from their papers. Weights
are f32, everything is computed in float64. tests/trainer/exchange_weights_test.cpp imports the files and compares.

    /<family>/tokens    [sample][position]
    /<family>/logits    [sample][position][vocabulary]
    /<family>/greedy    [sample][position]: the first four tokens and what is likeliest after them, token by token
"""
import json
import math
import pathlib
import struct
import sys

import h5py
import numpy
import torch
from torch import nn
import torch.nn.functional as F

SAMPLES, SEQUENCE, VOCABULARY, MODEL, LAYERS, HEADS = 2, 12, 64, 24, 2, 4
POSITIONS = SEQUENCE  # rows of the table; tokens take the first
DEVIATION = 0.15  # larger than a usual start, so that every weight has a say in the logits
OF_GPT2_SMALL = sys.argv[1:]
if OF_GPT2_SMALL:
    SAMPLES, SEQUENCE, VOCABULARY, MODEL, LAYERS, HEADS = 1, 16, 50257, 768, 12, 12
    POSITIONS, DEVIATION = 1024, 0.04
GROUPS, LLAMA_INNER, THETA = 2, 40, 10000.0
HEAD = MODEL // HEADS


class Conv1D(nn.Module):
    """GPT-2's linear map: weight is [in, out]."""

    def __init__(self, width_in, width_out):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width_in, width_out))
        self.bias = nn.Parameter(torch.empty(width_out))

    def forward(self, x):
        return x @ self.weight + self.bias


def split_heads(x, heads):
    return x.view(SAMPLES, SEQUENCE, heads, HEAD).transpose(1, 2)


def mix(q, k, v, causal):
    """[sample, head, position, element] each -> [sample, position, model]."""
    scores = q @ k.transpose(2, 3) / math.sqrt(HEAD)
    if causal:
        scores = scores.masked_fill(torch.ones(SEQUENCE, SEQUENCE).triu(1).bool(), -math.inf)
    return (scores.softmax(-1) @ v).transpose(1, 2).reshape(SAMPLES, SEQUENCE, MODEL)


class GPT2Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn, self.c_proj = Conv1D(MODEL, 3 * MODEL), Conv1D(MODEL, MODEL)
        self.register_buffer("bias", torch.ones(POSITIONS, POSITIONS).tril()[None, None])  # the mask, as files have it

    def forward(self, x):
        q, k, v = (split_heads(t, HEADS) for t in self.c_attn(x).split(MODEL, 2))
        return self.c_proj(mix(q, k, v, True))


class GPT2Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_fc, self.c_proj = Conv1D(MODEL, 4 * MODEL), Conv1D(4 * MODEL, MODEL)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class GPT2Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.attn, self.ln_2, self.mlp = nn.LayerNorm(MODEL), GPT2Attention(), nn.LayerNorm(MODEL), GPT2Mlp()

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT2(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(VOCABULARY, MODEL), nn.Embedding(POSITIONS, MODEL)
        self.h = nn.ModuleList(GPT2Block() for _ in range(LAYERS))
        self.ln_f = nn.LayerNorm(MODEL)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(SEQUENCE))
        for block in self.h:
            x = block(x)
        return self.ln_f(x) @ self.wte.weight.T


class RMSNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(MODEL))

    def forward(self, x):
        return x / (x.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt() * self.weight


def linear(width_in, width_out):
    return nn.Linear(width_in, width_out, bias=False)


def rotate(x):
    """x cos + (-second half, first half) sin."""
    frequencies = 1.0 / THETA ** (torch.arange(0, HEAD, 2) / HEAD)
    angles = torch.outer(torch.arange(SEQUENCE), frequencies).repeat(1, 2)
    first, second = x.chunk(2, -1)
    return x * angles.cos() + torch.cat((-second, first), -1) * angles.sin()


class LlamaAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q_proj, self.o_proj = linear(MODEL, HEADS * HEAD), linear(HEADS * HEAD, MODEL)
        self.k_proj, self.v_proj = linear(MODEL, GROUPS * HEAD), linear(MODEL, GROUPS * HEAD)

    def forward(self, x):
        q, k, v = split_heads(self.q_proj(x), HEADS), split_heads(self.k_proj(x), GROUPS), split_heads(self.v_proj(x), GROUPS)
        k, v = (t.repeat_interleave(HEADS // GROUPS, 1) for t in (rotate(k), v))
        return self.o_proj(mix(rotate(q), k, v, True))


class LlamaMlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate_proj, self.up_proj = linear(MODEL, LLAMA_INNER), linear(MODEL, LLAMA_INNER)
        self.down_proj = linear(LLAMA_INNER, MODEL)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class LlamaLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.input_layernorm, self.self_attn = RMSNorm(), LlamaAttention()
        self.post_attention_layernorm, self.mlp = RMSNorm(), LlamaMlp()

    def forward(self, x):
        x = x + self.self_attn(self.input_layernorm(x))
        return x + self.mlp(self.post_attention_layernorm(x))


class LlamaModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed_tokens = nn.Embedding(VOCABULARY, MODEL)
        self.layers = nn.ModuleList(LlamaLayer() for _ in range(LAYERS))
        self.norm = RMSNorm()

    def forward(self, tokens):
        x = self.embed_tokens(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.model, self.lm_head = LlamaModel(), linear(MODEL, VOCABULARY)

    def forward(self, tokens):
        return self.lm_head(self.model(tokens))


def parts(**modules):
    """Modules under names, for the depths of BERT's."""
    return nn.ModuleDict(modules)


def bert_norm():
    return nn.LayerNorm(MODEL, eps=1e-12)


class BertLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = parts(
            self=parts(**{name: nn.Linear(MODEL, MODEL) for name in ("query", "key", "value")}),
            output=parts(dense=nn.Linear(MODEL, MODEL), LayerNorm=bert_norm()))
        self.intermediate = parts(dense=nn.Linear(MODEL, 4 * MODEL))
        self.output = parts(dense=nn.Linear(4 * MODEL, MODEL), LayerNorm=bert_norm())

    def forward(self, x):
        maps, out = self.attention["self"], self.attention["output"]
        q, k, v = (split_heads(maps[name](x), HEADS) for name in ("query", "key", "value"))
        x = out["LayerNorm"](x + out["dense"](mix(q, k, v, False)))
        wide = F.gelu(self.intermediate["dense"](x), approximate="tanh")  # as in BERT's first code
        return self.output["LayerNorm"](x + self.output["dense"](wide))


class BertEmbeddings(nn.Module):
    def __init__(self):
        super().__init__()
        self.word_embeddings, self.position_embeddings = nn.Embedding(VOCABULARY, MODEL), nn.Embedding(SEQUENCE, MODEL)
        self.token_type_embeddings, self.LayerNorm = nn.Embedding(2, MODEL), bert_norm()
        self.register_buffer("position_ids", torch.arange(SEQUENCE)[None])

    def forward(self, tokens):
        x = self.word_embeddings(tokens) + self.position_embeddings(self.position_ids)
        return self.LayerNorm(x + self.token_type_embeddings(torch.zeros_like(tokens)))


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.bert = parts(embeddings=BertEmbeddings(),
                          encoder=parts(layer=nn.ModuleList(BertLayer() for _ in range(LAYERS))),
                          pooler=parts(dense=nn.Linear(MODEL, MODEL)))
        self.cls = parts(predictions=parts(transform=parts(dense=nn.Linear(MODEL, MODEL), LayerNorm=bert_norm()),
                                           decoder=linear(MODEL, VOCABULARY)))
        self.cls["predictions"].register_parameter("bias", nn.Parameter(torch.empty(VOCABULARY)))
        self.cls["predictions"]["decoder"].weight = self.bert["embeddings"].word_embeddings.weight

    def forward(self, tokens):
        x = self.bert["embeddings"](tokens)
        for layer in self.bert["encoder"]["layer"]:
            x = layer(x)
        head = self.cls["predictions"]
        x = head["transform"]["LayerNorm"](F.gelu(head["transform"]["dense"](x), approximate="tanh"))
        return head["decoder"](x) + head.bias


def draw(model, random):
    with torch.no_grad():
        for name, weight in model.named_parameters():
            around = 1 if weight.dim() == 1 and "weight" in name else 0
            value = around + random.normal(0, DEVIATION, tuple(weight.shape))
            weight.copy_(torch.tensor(value.astype("f4")))


def write_safetensors(path, tensors):
    """Length of the header (8 bytes, little endian), header (JSON, padded with blanks), data."""
    header, data, end = {"__metadata__": {"format": "pt"}}, [], 0
    for name, tensor in sorted(tensors.items()):
        is_integer = tensor.dtype == torch.int64
        data.append(tensor.detach().numpy().astype("<i8" if is_integer else "<f4").tobytes())
        header[name] = {"dtype": "I64" if is_integer else "F32", "shape": list(tensor.shape),
                        "data_offsets": [end, end + len(data[-1])]}
        end += len(data[-1])
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(b"".join([struct.pack("<Q", len(text)), text, *data]))


def continued(model, tokens, first=4):
    """Each further token is the likeliest after those before it; later ones are not seen by the model."""
    tokens = tokens.clone()
    for place in range(first, SEQUENCE):
        scores = model(tokens)[:, place - 1]
        best = scores.topk(2).values
        assert (best[:, 0] - best[:, 1]).min() > 1e-3, "f32 could choose otherwise"
        tokens[:, place] = scores.argmax(-1)
    return tokens


def main():
    torch.set_default_dtype(torch.float64)
    folder = pathlib.Path(OF_GPT2_SMALL[0]) if OF_GPT2_SMALL else pathlib.Path(__file__).parent
    families = {"gpt2": GPT2} if OF_GPT2_SMALL else {"gpt2": GPT2, "llama": Llama, "bert": Bert}
    with h5py.File(folder / "logits.h5", "w", libver=("earliest", "v110")) as file:
        file.attrs["format"] = numpy.bytes_("alpa-reference")
        file.attrs["format_version"] = numpy.bytes_("1.0")
        for seed, (name, make) in enumerate(families.items()):
            model, random = make(), numpy.random.default_rng(seed)
            draw(model, random)
            tokens = random.integers(0, VOCABULARY, (SAMPLES, SEQUENCE))
            logits = model(torch.tensor(tokens)).detach().numpy()
            file[f"{name}/tokens"], file[f"{name}/logits"] = tokens.astype("i4"), logits.astype("f4")
            if name != "bert":
                file[f"{name}/greedy"] = continued(model, torch.tensor(tokens)).numpy().astype("i4")
            write_safetensors(folder / f"{name}.safetensors", model.state_dict())
            print(name, "logits", f"{logits.mean():.5f} +- {logits.std():.5f}")


if __name__ == "__main__":
    main()
