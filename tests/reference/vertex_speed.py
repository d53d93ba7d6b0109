#!/usr/bin/python3
"""A training step of the Tree-LSTM of configs/models/tree-lstm.toml, without its update, as others take it, on one thread.

    vertex_speed.py pytorch|dynet TREES HIDDEN [--rounds 3]

TREES has a line for each tree, a word for each vertex, children before their parents: token:label:children, which are numbers
within the tree, joined by commas; -1: no token, no label. PyTorch recurses over each tree, vertex by vertex; DyNet (the wheel
dyNET38) batches by itself, by its agenda. Prints the median seconds of forward and backward of all trees, without the gradient
of the table of words, which bench_vertex leaves out too.
"""
import argparse
import statistics
import time

EMBEDDING, CLASSES, VOCABULARY = 300, 5, 21702


def read_trees(path):
    trees = []
    with open(path) as file:
        for line in file:
            vertices = []
            for word in line.split():
                token, label, children = word.split(":")
                vertices.append((int(token), int(label), [int(child) for child in children.split(",") if child]))
            trees.append(vertices)
    return trees


class OfPyTorch:
    def __init__(self, hidden):
        import torch
        torch.set_num_threads(1)
        self.torch, self.hidden = torch, hidden
        torch.manual_seed(1)

        def weight(*shape):
            return torch.empty(*shape).uniform_(-0.05, 0.05).requires_grad_()
        self.table = torch.empty(VOCABULARY, EMBEDDING).uniform_(-0.05, 0.05)
        self.weights = {"input": weight(EMBEDDING, 4 * hidden), "bias": weight(4 * hidden),
                        "recurrent": weight(hidden, 3 * hidden), "forget": weight(hidden, hidden), "classes": weight(hidden, CLASSES),
                        "shift": weight(CLASSES)}

    def step(self, trees):
        torch, hidden, w = self.torch, self.hidden, self.weights
        for each in w.values():
            each.grad = None
        loss, nothing = 0, torch.zeros(1, hidden)
        for tree in trees:
            h, c, labels = [], [], []
            for token, label, children in tree:
                gates = w["bias"] if token < 0 else self.table[token:token + 1] @ w["input"] + w["bias"]
                of_sum = sum((h[child] for child in children), nothing) @ w["recurrent"]
                i = torch.sigmoid(gates[..., :hidden] + of_sum[:, :hidden])
                o = torch.sigmoid(gates[..., hidden:2 * hidden] + of_sum[:, hidden:2 * hidden])
                cell = i * torch.tanh(gates[..., 2 * hidden:3 * hidden] + of_sum[:, 2 * hidden:])
                for child in children:
                    cell = cell + torch.sigmoid(gates[..., 3 * hidden:] + h[child] @ w["forget"]) * c[child]
                h.append(o * torch.tanh(cell))
                c.append(cell)
                labels.append(label)
            loss = loss + torch.nn.functional.cross_entropy(torch.cat(h) @ w["classes"] + w["shift"], torch.tensor(labels),
                                                            ignore_index=-1, reduction="sum")
        loss.backward()
        return float(loss)


class OfDyNet:
    def __init__(self, hidden):
        import dynet_config
        dynet_config.set(mem=6144, autobatch=1, random_seed=1)
        import dynet
        self.dy, self.hidden = dynet, hidden
        self.all = dynet.ParameterCollection()
        add, bound = self.all.add_parameters, dynet.UniformInitializer(0.05)
        self.table = self.all.add_lookup_parameters((VOCABULARY, EMBEDDING), init=bound)
        self.weights = {"input": add((4 * hidden, EMBEDDING), init=bound), "bias": add(4 * hidden, init=bound),
                        "recurrent": add((3 * hidden, hidden), init=bound), "forget": add((hidden, hidden), init=bound),
                        "classes": add((CLASSES, hidden), init=bound), "shift": add(CLASSES, init=bound)}

    def step(self, trees):
        dy, n, w = self.dy, self.hidden, self.weights
        dy.renew_cg()
        losses = []
        for tree in trees:
            h, c = [], []
            for token, label, children in tree:
                gates = w["bias"] if token < 0 else dy.affine_transform([w["bias"], w["input"], dy.lookup(self.table, token, update=False)])
                three = gates[:3 * n]
                if children:
                    three = dy.affine_transform([three, w["recurrent"], dy.esum([h[child] for child in children])])
                cell = dy.cmult(dy.logistic(three[:n]), dy.tanh(three[2 * n:]))
                for child in children:
                    forget = dy.logistic(dy.affine_transform([gates[3 * n:], w["forget"], h[child]]))
                    cell = cell + dy.cmult(forget, c[child])
                h.append(dy.cmult(dy.logistic(three[n:2 * n]), dy.tanh(cell)))
                c.append(cell)
                if label >= 0:
                    losses.append(dy.pickneglogsoftmax(dy.affine_transform([w["shift"], w["classes"], h[-1]]), label))
        loss = dy.esum(losses)
        value = loss.value()
        loss.backward()
        return value


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=("pytorch", "dynet"))
    parser.add_argument("trees")
    parser.add_argument("hidden", type=int)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    trees = read_trees(options.trees)
    peer = {"pytorch": OfPyTorch, "dynet": OfDyNet}[options.peer](options.hidden)
    peer.step(trees[:8])
    seconds = []
    for _ in range(options.rounds):
        begin = time.monotonic()
        peer.step(trees)
        seconds.append(time.monotonic() - begin)
    print(statistics.median(seconds))


if __name__ == "__main__":
    main()
