#!/usr/bin/env python3
"""The loss of the fables' model and all its gradients in float64, beside those of a file.

    tests/examples/gradients_oracle.py FILE

FILE (.safetensors) has tokens, loss, the weights under a GGUF file's names, and each one's gradient as
gradient.NAME. Prints a line for each: its name, and |a - b| / |b| as vectors. Nothing of heddle is used.
"""
import json
import struct
import sys

import numpy as np


def read_tensors(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header, data = json.loads(file.read(length)), file.read()
    about = header.pop("__metadata__")
    dtypes = {"F32": np.float32, "I32": np.int32}
    return about, {
        name: np.frombuffer(data[slice(*entry["data_offsets"])], dtypes[entry["dtype"]]).reshape(entry["shape"])
        for name, entry in header.items()
    }


class Var:
    """A value, and how its gradient becomes those of what it was made from."""

    made = []

    def __init__(self, value, *inputs):
        self.value, self.inputs, self.gradient = value, inputs, 0
        Var.made.append(self)

    def spread(self):
        self.gradient = 1.0
        for var in reversed(Var.made):
            for source, pulled_back in var.inputs:
                source.gradient = source.gradient + pulled_back(var.gradient)


def rows(x):
    return x.reshape(-1, x.shape[-1])


def plus(x, y):
    return Var(x.value + y.value, (x, lambda g: g), (y, lambda g: g))


def plus_bias(x, bias):
    return Var(x.value + bias.value, (x, lambda g: g), (bias, lambda g: rows(g).sum(0)))


def linear(x, weight):
    return Var(
        x.value @ weight.value.T,
        (x, lambda g: g @ weight.value),
        (weight, lambda g: rows(g).T @ rows(x.value)),
    )


def rms_norm(x, weight, eps):
    rms = np.sqrt((x.value**2).mean(-1, keepdims=True) + eps)
    normed = x.value / rms

    def to_x(g):
        g = g * weight.value
        return (g - normed * (g * normed).mean(-1, keepdims=True)) / rms

    return Var(normed * weight.value, (x, to_x), (weight, lambda g: rows(g * normed).sum(0)))


def rope(x, base):
    """x [B, T, heads, features]: halves are turned against each other."""
    half = x.value.shape[-1] // 2
    angles = np.arange(x.value.shape[1])[:, None, None] * base ** (-np.arange(half) / half)

    def turned(y, by):
        a, b = y[..., :half], y[..., half:]
        return np.concatenate([a * np.cos(by) - b * np.sin(by), b * np.cos(by) + a * np.sin(by)], -1)

    return Var(turned(x.value, angles), (x, lambda g: turned(g, -angles)))


def reshape(x, shape):
    return Var(x.value.reshape(shape), (x, lambda g: g.reshape(x.value.shape)))


def attention(q, k, v):
    """q [B, T, kv heads, of each, features], k and v [B, T, kv heads, features]"""
    tokens, scale = q.value.shape[1], q.value.shape[-1] ** -0.5
    scores = np.einsum("bthed,bshd->bhets", q.value, k.value) * scale
    scores[..., np.triu(np.ones((tokens, tokens), bool), 1)] = -np.inf
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)

    def to_scores(g):
        to_shares = np.einsum("bthed,bshd->bhets", g, v.value)
        return shares * (to_shares - (to_shares * shares).sum(-1, keepdims=True)) * scale

    return Var(
        np.einsum("bhets,bshd->bthed", shares, v.value),
        (q, lambda g: np.einsum("bhets,bshd->bthed", to_scores(g), k.value)),
        (k, lambda g: np.einsum("bhets,bthed->bshd", to_scores(g), q.value)),
        (v, lambda g: np.einsum("bhets,bthed->bshd", shares, g)),
    )


def silu_times(gate, up):
    sigmoid = 1 / (1 + np.exp(-gate.value))
    slope = sigmoid * (1 + gate.value * (1 - sigmoid))
    return Var(
        gate.value * sigmoid * up.value,
        (gate, lambda g: g * slope * up.value),
        (up, lambda g: g * gate.value * sigmoid),
    )


def embedding(weight, ids):
    def to_weight(g):
        sums = np.zeros_like(weight.value)
        np.add.at(sums, ids, g)
        return sums

    return Var(weight.value[ids], (weight, to_weight))


def cross_entropy(logits, targets):
    shifted = rows(logits.value - logits.value.max(-1, keepdims=True))
    chances = np.exp(shifted)
    totals = chances.sum(-1, keepdims=True)
    each = np.arange(len(shifted)), targets.ravel()

    def to_logits(g):
        slopes = chances / totals
        slopes[each] -= 1
        return g * (slopes / len(shifted)).reshape(logits.value.shape)

    return Var((np.log(totals[:, 0]) - shifted[each]).mean(), (logits, to_logits))


class Model:
    def __init__(self, about, weights):
        self.weights = weights
        self.layers, self.heads, self.kv_heads = (int(about[key]) for key in ("layers", "heads", "kv_heads"))
        self.eps, self.base = float(about["eps"]), float(about["rope_base"])

    def norm(self, x, name):
        return rms_norm(x, self.weights[name], self.eps)

    def project(self, x, name):
        y = linear(x, self.weights[name + ".weight"])
        bias = self.weights.get(name + ".bias")
        return y if bias is None else plus_bias(y, bias)

    def attention(self, x, block):
        batch, tokens, _ = x.value.shape

        def heads(name, count):
            return reshape(self.project(x, f"{block}attn_{name}"), (batch, tokens, count, -1))

        q, k = rope(heads("q", self.heads), self.base), rope(heads("k", self.kv_heads), self.base)
        q = reshape(q, (batch, tokens, self.kv_heads, self.heads // self.kv_heads, -1))
        y = attention(q, k, heads("v", self.kv_heads))
        return self.project(reshape(y, (batch, tokens, -1)), block + "attn_output")

    def mlp(self, x, block):
        gate, up = self.project(x, block + "ffn_gate"), self.project(x, block + "ffn_up")
        return self.project(silu_times(gate, up), block + "ffn_down")

    def loss(self, tokens):
        x = embedding(self.weights["token_embd.weight"], tokens[:, :-1])
        for layer in range(self.layers):
            block = f"blk.{layer}."
            x = plus(x, self.attention(self.norm(x, block + "attn_norm.weight"), block))
            x = plus(x, self.mlp(self.norm(x, block + "ffn_norm.weight"), block))
        x = self.norm(x, "output_norm.weight")
        return cross_entropy(linear(x, self.weights["token_embd.weight"]), tokens[:, 1:])


def main(path):
    about, tensors = read_tensors(path)
    gradients = {name.removeprefix("gradient."): a for name, a in tensors.items() if name.startswith("gradient.")}
    weights = {name: Var(tensors[name].astype(np.float64)) for name in gradients}
    loss = Model(about, weights).loss(tensors["tokens"])
    loss.spread()
    print("loss", abs(tensors["loss"] - loss.value) / loss.value)
    for name, gradient in gradients.items():
        expected = weights[name].gradient
        print(name, np.linalg.norm(gradient - expected) / np.linalg.norm(expected))


if __name__ == "__main__":
    main(sys.argv[1])
