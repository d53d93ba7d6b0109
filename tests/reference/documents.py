#!/usr/bin/python3
"""Trains a Llama on sequences of several documents, which attention keeps apart, as reference.py does on others."""
import math

import torch

import reference

END = 3


def inputs(random):
    """One token in five ends a document."""
    drawn = reference.language_inputs(random)
    drawn["tokens"][random.random(drawn["tokens"].shape) < 0.2] = END
    return drawn


def attention_within(tokens):
    """Attention to what comes before in the same document, by the number of ends before each token."""
    ends = (tokens == END).long()
    document = ends.cumsum(1) - ends
    seen = (document[:, :, None] == document[:, None, :]).tril()

    def attend(q, k, v):
        q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        scores = (q @ k.transpose(-2, -1) / math.sqrt(reference.HEAD)).masked_fill(~seen[:, None], -math.inf)
        return (scores.softmax(-1) @ v).transpose(1, 2)

    return attend


def loss(w, tokens, targets):
    reference.causal_attention = attention_within(tokens)
    return reference.token_loss(reference.llama_logits(w, tokens), targets)


if __name__ == "__main__":
    reference.train("documents", reference.llama_shapes(), inputs, loss, 23)
