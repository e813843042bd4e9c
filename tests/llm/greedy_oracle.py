#!/usr/bin/env python3
"""What a qwen2 model of a GGUF file says, greedily, in float64: models/fable-1m.greedy.txt.

    tests/llm/greedy_oracle.py models/fable-1m-f16.gguf > models/fable-1m.greedy.txt

Nothing of heddle is used. Weights are f16 or f32. The least gap between the two best logits goes
to standard error: a test that compares texts needs one well above the rounding of what it tests.
"""
import re
import struct
import sys

import numpy as np

PROMPT = "Once upon a time"
FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
WEIGHTS = {0: np.float32, 1: np.float16}


class Reader:
    """The file format: github.com/ggml-org/ggml, docs/gguf.md."""

    def __init__(self, data):
        self.data, self.at = data, 4

    def number(self, format):
        (value,) = struct.unpack_from("<" + format, self.data, self.at)
        self.at += struct.calcsize(format)
        return value

    def text(self):
        size = self.number("Q")
        self.at += size
        return self.data[self.at - size : self.at].decode()

    def value(self, kind):
        if kind == STRING:
            return self.text()
        if kind == ARRAY:
            kind, count = self.number("I"), self.number("Q")
            return [self.value(kind) for _ in range(count)]
        return self.number(FORMATS[kind])

    def file(self):
        _, tensors, keys = self.number("I"), self.number("Q"), self.number("Q")
        meta = {}
        for _ in range(keys):
            key = self.text()
            meta[key] = self.value(self.number("I"))
        infos = []
        for _ in range(tensors):
            name, rank = self.text(), self.number("I")
            extents = [self.number("Q") for _ in range(rank)]
            infos.append((name, extents[::-1], WEIGHTS[self.number("I")], self.number("Q")))
        alignment = meta.get("general.alignment", 32)
        begin = -(-self.at // alignment) * alignment
        read = lambda shape, dtype, offset: np.frombuffer(
            self.data, dtype, int(np.prod(shape)), begin + offset
        ).reshape(shape)
        return meta, {name: read(*info).astype(np.float64) for name, *info in infos}


class Model:
    def __init__(self, meta, weights):
        get = lambda key: meta["qwen2." + key]
        self.weights = weights
        self.layers, self.heads = get("block_count"), get("attention.head_count")
        self.kv_heads = get("attention.head_count_kv")
        self.width = get("embedding_length") // self.heads
        self.eps = get("attention.layer_norm_rms_epsilon")
        self.base = meta.get("qwen2.rope.freq_base", 10000.0)

    def norm(self, x, name):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.eps) * self.weights[name]

    def turned(self, x):
        half = self.width // 2
        angles = np.arange(len(x))[:, None] * self.base ** (-np.arange(half) / half)
        cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
        a, b = x[..., :half], x[..., half:]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    def attention(self, x, block):
        def heads(name, count):
            y = x @ self.weights[f"{block}attn_{name}.weight"].T
            return (y + self.weights[f"{block}attn_{name}.bias"]).reshape(len(x), count, self.width)

        q, k = self.turned(heads("q", self.heads)), self.turned(heads("k", self.kv_heads))
        each = self.heads // self.kv_heads
        k, v = np.repeat(k, each, 1), np.repeat(heads("v", self.kv_heads), each, 1)
        scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(self.width)
        scores[:, np.triu(np.ones((len(x), len(x)), bool), 1)] = -np.inf
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        y = np.einsum("hqk,khd->qhd", shares, v).reshape(len(x), -1)
        return y @ self.weights[block + "attn_output.weight"].T

    def last_logits(self, ids):
        w = self.weights
        x = w["token_embd.weight"][ids]
        for layer in range(self.layers):
            block = f"blk.{layer}."
            x = x + self.attention(self.norm(x, block + "attn_norm.weight"), block)
            y = self.norm(x, block + "ffn_norm.weight")
            gate = y @ w[block + "ffn_gate.weight"].T
            up = y @ w[block + "ffn_up.weight"].T
            x = x + (gate / (1 + np.exp(-gate)) * up) @ w[block + "ffn_down.weight"].T
        x = self.norm(x[-1], "output_norm.weight")
        return w.get("output.weight", w["token_embd.weight"]) @ x


class Vocabulary:
    """Byte-level BPE, for the plain words of the prompt."""

    def __init__(self, meta):
        self.tokens = meta["tokenizer.ggml.tokens"]
        self.ids = {token: i for i, token in enumerate(self.tokens)}
        self.ranks = {tuple(m.split(" ", 1)): i for i, m in enumerate(meta["tokenizer.ggml.merges"])}
        shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
        hidden = [b for b in range(256) if b not in shown]
        self.letters = {b: chr(b) for b in shown} | {b: chr(256 + i) for i, b in enumerate(hidden)}

    def encode(self, text):
        ids = []
        for word in re.findall(r" ?\w+", text):
            parts = [self.letters[b] for b in word.encode()]
            rank = lambda i: self.ranks.get((parts[i], parts[i + 1]), np.inf)
            while len(parts) > 1 and rank(best := min(range(len(parts) - 1), key=rank)) < np.inf:
                parts[best : best + 2] = [parts[best] + parts[best + 1]]
            ids += [self.ids[part] for part in parts]
        return ids

    def decode(self, ids):
        bytes_of = {letter: b for b, letter in self.letters.items()}
        return bytes(bytes_of[letter] for i in ids for letter in self.tokens[i])


def main(path):
    with open(path, "rb") as file:
        meta, weights = Reader(file.read()).file()
    model, vocabulary = Model(meta, weights), Vocabulary(meta)
    controls = {i for i, kind in enumerate(meta["tokenizer.ggml.token_type"]) if kind == 3}
    ids, gap = vocabulary.encode(PROMPT), np.inf
    while len(ids) < meta["qwen2.context_length"]:
        logits = model.last_logits(ids)
        second, first = np.partition(logits, -2)[-2:]
        gap = min(gap, first - second)
        if int(logits.argmax()) in controls:
            break
        ids.append(int(logits.argmax()))
    sys.stdout.buffer.write(vocabulary.decode(ids) + b"\n")
    print(f"{len(ids)} tokens, least gap {gap:.1e}", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1])
