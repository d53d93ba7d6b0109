#!/usr/bin/python3
"""Trains the tiny models over graphs of tests/data as reference.py says, and writes tree_lstm.h5, nary_tree_lstm.h5, tree_fc.h5,
var_lstm.h5 and graph_gru.h5: vertex by vertex, the sequences and the gated cell with PyTorch's own cells.

    /structure    [step][sample][row] the rows of a row's children in its group of samples, -1: none; last, row by row of the
                  group, where each round ends. Graphs are drawn: vertices have children of any earlier round (trees, and
                  graphs whose vertices have several parents), sequences one of the round before.
"""
import numpy
import torch
import torch.nn.functional as F
from reference import BATCH, STEPS, train

GROUP, VERTICES, VOCABULARY, EMBEDDING, HIDDEN, CLASSES = 2, 7, 16, 6, 5, 4
CHILDREN = {"tree_lstm": 2, "nary_tree_lstm": 2, "tree_fc": 2, "var_lstm": 1, "graph_gru": 3}
GATES = {"tree_lstm": 4, "nary_tree_lstm": 4, "tree_fc": 1, "var_lstm": 4, "graph_gru": 3}
CELLS = {"tree_lstm": "tree_lstm", "nary_tree_lstm": "nary_tree_lstm", "tree_fc": "tree_fc", "var_lstm": "nary_tree_lstm",
         "graph_gru": "tree_gru"}


def shapes(kind):
    cell, wide, k = CELLS[kind], GATES[kind] * HIDDEN, CHILDREN[kind]
    recurrent = {"tree_lstm": (HIDDEN, 3 * HIDDEN), "nary_tree_lstm": (k * HIDDEN, (3 + k) * HIDDEN),
                 "tree_fc": (k * HIDDEN, HIDDEN), "var_lstm": (HIDDEN, 4 * HIDDEN), "graph_gru": (HIDDEN, 3 * HIDDEN)}[kind]
    all = {"vertex_embedding.table": (VOCABULARY, EMBEDDING), f"{cell}.input": (EMBEDDING, wide), f"{cell}.bias": (wide,),
           f"{cell}.recurrent": recurrent}
    if kind == "tree_lstm":
        all[f"{cell}.forget"] = (HIDDEN, HIDDEN)
    if kind == "graph_gru":
        all[f"{cell}.recurrent_bias"] = (3 * HIDDEN,)
    return all | {"vertex_head.classes.weight": (HIDDEN, CLASSES), "vertex_head.classes.shift": (CLASSES,)}


def draw_group(kind, random):
    """[GROUP * VERTICES, children + 1]; some rows at the end have no vertex."""
    rows, children = GROUP * VERTICES, CHILDREN[kind]
    table = numpy.full((rows, children + 1), -1)
    used, ends = random.integers(rows * 3 // 4, rows + 1), [0]
    while ends[-1] < used:
        most = used - ends[-1] if len(ends) < 2 or kind != "var_lstm" else min(used - ends[-1], ends[-1] - ends[-2])
        ends.append(ends[-1] + random.integers(1, max(2, most // 2 + 1)))
    for before, begin, end in zip(ends, ends[1:], ends[2:]):
        for row in range(begin, end):
            if kind == "var_lstm":
                table[row, 0] = before + row - begin
                continue
            count = random.integers(1, children + 1)
            table[row, :count] = random.integers(0, begin, count)
    table[:, children] = 0
    table[: len(ends) - 1, children] = ends[1:]
    return table, used


def draw_inputs(kind):
    def draw(random):
        tokens = random.integers(-1, VOCABULARY, (STEPS, BATCH, VERTICES))
        labels = random.integers(-1, CLASSES, (STEPS, BATCH, VERTICES))
        structure = numpy.empty((STEPS, BATCH, VERTICES, CHILDREN[kind] + 1), "i8")
        for step in range(STEPS):
            for first in range(0, BATCH, GROUP):
                table, used = draw_group(kind, random)
                structure[step, first : first + GROUP] = table.reshape(GROUP, VERTICES, -1)
                tokens[step, first : first + GROUP].reshape(-1)[used:] = 0
                labels[step, first : first + GROUP].reshape(-1)[used:] = -1
        return {"tokens": tokens, "labels": labels, "structure": structure}

    return draw


def tree_lstm(w, x, children):
    """Tai et al. (ACL'15), equations 2 to 8; i, o and u see the sum of the children's states."""
    gates = x @ w["tree_lstm.input"] + w["tree_lstm.bias"]
    total = sum((h for h, _ in children), torch.zeros(HIDDEN, dtype=x.dtype))
    i, o, u = (gates[: 3 * HIDDEN] + total @ w["tree_lstm.recurrent"]).split(HIDDEN)
    cell = i.sigmoid() * u.tanh()
    for h, c in children:
        cell = cell + (gates[3 * HIDDEN :] + h @ w["tree_lstm.forget"]).sigmoid() * c
    return o.sigmoid() * cell.tanh(), cell


def nary_tree_lstm(w, x, children):
    """Tai et al. (ACL'15), equations 9 to 14, with a matrix of each gate for each place of a child; the forget gate of a
    child sees all of them."""
    zeros = torch.zeros(HIDDEN, dtype=x.dtype)
    below = torch.cat([h for h, _ in children] + [zeros] * (CHILDREN["nary_tree_lstm"] - len(children)))
    of_x = (x @ w["nary_tree_lstm.input"] + w["nary_tree_lstm.bias"]).split(HIDDEN)
    of_below = (below @ w["nary_tree_lstm.recurrent"]).split(HIDDEN)
    i, o, u = (of_x[gate] + of_below[gate] for gate in range(3))
    cell = i.sigmoid() * u.tanh()
    for place, (_, c) in enumerate(children):
        cell = cell + (of_x[3] + of_below[3 + place]).sigmoid() * c
    return o.sigmoid() * cell.tanh(), cell


def tree_fc(w, x, children):
    below = [h for h, in children] + [torch.zeros(HIDDEN, dtype=x.dtype)] * (CHILDREN["tree_fc"] - len(children))
    of_x = x @ w["tree_fc.input"] + w["tree_fc.bias"]
    return ((of_x + torch.cat(below) @ w["tree_fc.recurrent"]).relu(),)


def var_lstm(w, x, children):
    """PyTorch's gates stand as input, forget, cell, output; ours as input, output, update, forget."""
    def gates(name):
        i, o, u, f = w[f"nary_tree_lstm.{name}"].split(HIDDEN, -1)
        return torch.cat((i, f, u, o), -1)

    bias = gates("bias")
    zeros = torch.zeros(HIDDEN, dtype=x.dtype)
    h, c = children[0] if children else (zeros, zeros)
    h, c = torch._VF.lstm_cell(x[None], (h[None], c[None]), gates("input").T, gates("recurrent").T, bias, 0 * bias)
    return h[0], c[0]


def graph_gru(w, x, children):
    total = sum((h for h, in children), torch.zeros(HIDDEN, dtype=x.dtype))
    parts = (w[f"tree_gru.{name}"] for name in ("input", "recurrent", "bias", "recurrent_bias"))
    input, recurrent, bias, recurrent_bias = parts
    return (torch._VF.gru_cell(x[None], total[None], input.T, recurrent.T, bias, recurrent_bias)[0],)


CELL = {"tree_lstm": tree_lstm, "nary_tree_lstm": nary_tree_lstm, "tree_fc": tree_fc, "var_lstm": var_lstm,
        "graph_gru": graph_gru}


def loss_of(kind):
    def loss(w, tokens, labels, structure):
        losses = []
        for first in range(0, BATCH, GROUP):
            group = slice(first, first + GROUP)
            table = structure[group].reshape(-1, CHILDREN[kind] + 1)
            states = []
            for row, token in enumerate(tokens[group].flatten()[: table[:, -1].max()]):
                x = w["vertex_embedding.table"][token] if token >= 0 else torch.zeros(EMBEDDING, dtype=torch.float64)
                states.append(CELL[kind](w, x, [states[child] for child in table[row, :-1] if child >= 0]))
                if labels[group].flatten()[row] >= 0:
                    logits = states[row][0] @ w["vertex_head.classes.weight"] + w["vertex_head.classes.shift"]
                    losses.append(F.cross_entropy(logits, labels[group].flatten()[row]))
        return torch.stack(losses).mean()

    return loss


if __name__ == "__main__":
    for kind, seed in (("tree_lstm", 31), ("tree_fc", 32), ("var_lstm", 33), ("graph_gru", 34), ("nary_tree_lstm", 35)):
        train(kind, shapes(kind), draw_inputs(kind), loss_of(kind), seed)
