#!/usr/bin/python3
"""A training step of the bundled model beside PyTorch's: the same weights, batch and optimiser, two
threads each, in turns. Prints medians, the ratio and peak memory, and how far gradients are apart.

    bench/train_step.py BUILD_FOLDER [--steps N]

Skips where there is no PyTorch (Debian: python3-torch, which libopenblas0-openmp makes ten times as
fast). What is more than 1e-4 apart ends it with an error."""
import argparse
import json
import math
import os
import pathlib
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import time

THREADS = 2
LARGEST_ERROR = 1e-4
REST = 0.1  # seconds, in which the threads of the one that had its turn stop spinning


def set_up_threads():
    os.environ["OMP_NUM_THREADS"] = os.environ["HEDDLE_THREADS"] = str(THREADS)
    if "avx512f" in pathlib.Path("/proc/cpuinfo").read_text():
        os.environ["OPENBLAS_CORETYPE"] = "SkylakeX"  # old releases take Zen 4 for less than it is


def read_tensors(path):
    data = bytearray(path.read_bytes())
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    about = header.pop("__metadata__")
    dtypes = {"F32": torch.float32, "I32": torch.int32}
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + length + at for at in entry["data_offsets"])
        flat = torch.frombuffer(data, dtype=dtypes[entry["dtype"]], offset=begin, count=(end - begin) // 4)
        tensors[name] = flat.reshape(entry["shape"]).clone()
    return tensors, about


def rms_norm(x, weight, eps):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight


class Rope:
    def __init__(self, tokens, features, base):
        places = torch.arange(tokens)[:, None]
        angles = places * base ** (-torch.arange(0, features, 2) / features)
        self.cos, self.sin = angles.cos(), angles.sin()

    def __call__(self, x):
        a, b = x.chunk(2, -1)
        return torch.cat((a * self.cos - b * self.sin, a * self.sin + b * self.cos), -1)


class Fable:
    def __init__(self, weights, about, tokens):
        self.w = weights
        self.layers = int(about["layers"])
        self.heads, self.kv_heads = int(about["heads"]), int(about["kv_heads"])
        self.eps = float(about["eps"])
        self.features = weights["blk.0.attn_q.weight"].shape[0] // self.heads
        self.rope = Rope(tokens, self.features, float(about["rope_base"]))
        self.unseen = torch.full((tokens, tokens), -math.inf).triu(1)

    def linear(self, name, x):
        return torch.nn.functional.linear(x, self.w[name + ".weight"], self.w.get(name + ".bias"))

    def split(self, x, heads):
        return x.reshape(*x.shape[:2], heads, self.features).transpose(1, 2)

    def attention(self, block, x):
        q = self.rope(self.split(self.linear(block + "attn_q", x), self.heads))
        k = self.rope(self.split(self.linear(block + "attn_k", x), self.kv_heads))
        v = self.split(self.linear(block + "attn_v", x), self.kv_heads)
        times = self.heads // self.kv_heads
        k, v = k.repeat_interleave(times, 1), v.repeat_interleave(times, 1)
        scores = q @ k.transpose(-1, -2) * self.features**-0.5 + self.unseen
        out = torch.softmax(scores, -1) @ v
        return self.linear(block + "attn_output", out.transpose(1, 2).reshape(x.shape))

    def mlp(self, block, x):
        gate = torch.nn.functional.silu(self.linear(block + "ffn_gate", x))
        return self.linear(block + "ffn_down", gate * self.linear(block + "ffn_up", x))

    def loss(self, tokens, targets):
        embedding = self.w["token_embd.weight"]
        x = torch.nn.functional.embedding(tokens, embedding)
        for layer in range(self.layers):
            block = f"blk.{layer}."
            x = x + self.attention(block, rms_norm(x, self.w[block + "attn_norm.weight"], self.eps))
            x = x + self.mlp(block, rms_norm(x, self.w[block + "ffn_norm.weight"], self.eps))
        x = rms_norm(x, self.w["output_norm.weight"], self.eps)
        scores = (x @ embedding.t()).flatten(0, 1)
        return torch.nn.functional.cross_entropy(scores, targets.flatten())


class Theirs:
    """PyTorch's step."""

    def __init__(self, path):
        tensors, about = read_tensors(path)
        self.expected = {n.removeprefix("gradient."): t for n, t in tensors.items() if n.startswith("gradient.")}
        weights = {name: tensors[name].requires_grad_() for name in self.expected}
        self.expected_loss = tensors["loss"].item()
        tokens = tensors["tokens"].long()
        self.batch = tokens[:, :-1], tokens[:, 1:]
        self.model = Fable(weights, about, self.batch[0].shape[1])
        self.weights = list(weights.values())
        self.optimiser = torch.optim.AdamW(self.weights, lr=1e-3, weight_decay=0.01)

    def errors(self):
        """Of the loss, and of each gradient by name: |a - b| / |b| as vectors."""
        loss = self.model.loss(*self.batch)
        loss.backward()
        found = {"loss": abs(loss.item() - self.expected_loss) / abs(loss.item())}
        for name, weight in self.model.w.items():
            found[name] = ((weight.grad - self.expected[name]).norm() / weight.grad.norm()).item()
        return found

    def step(self):
        start = time.perf_counter()
        self.optimiser.zero_grad(set_to_none=True)
        loss = self.model.loss(*self.batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.weights, 1.0)
        self.optimiser.step()
        value = loss.item()
        return time.perf_counter() - start, value


class Ours:
    """heddle's step, in a process of its own."""

    def __init__(self, program, model, path):
        self.process = subprocess.Popen([program, model, path], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.step()  # once it has answered, the file is there

    def step(self):
        print(flush=True, file=self.process.stdin)
        return tuple(float(word) for word in self.process.stdout.readline().split())

    def end(self):
        """Its peak of memory in MiB."""
        return float(self.process.communicate()[0])


def blas():
    """The libraries that PyTorch multiplies with, as far as they can be told by their names."""
    maps = pathlib.Path("/proc/self/maps").read_text().splitlines()
    paths = {line.split()[-1] for line in maps if re.search("blas|mkl", line)}
    return ", ".join(sorted(paths)) or "no BLAS that is known by name"


def peak_mib():
    status = pathlib.Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("build", type=pathlib.Path)
    arguments.add_argument("--steps", type=int, default=15)
    options = arguments.parse_args()
    torch.set_num_threads(THREADS)
    model = pathlib.Path(__file__).parent.parent / "models" / "fable-1m-f16.gguf"
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "step.safetensors"
        ours = Ours(options.build / "bench" / "train_step", model, path)
        theirs = Theirs(path)
    errors = theirs.errors()
    print(f"PyTorch {torch.__version__} with {blas()}")
    worst = max(errors, key=errors.get)
    print(f"gradients: relative error at most {errors[worst]:.2e} ({worst}), of the loss {errors['loss']:.2e}")
    theirs.step()  # so that each has taken one
    times = {"heddle": [], "PyTorch": []}
    for _ in range(options.steps):
        time.sleep(REST)
        took, our_loss = ours.step()
        times["heddle"].append(took)
        time.sleep(REST)
        took, their_loss = theirs.step()
        times["PyTorch"].append(took)
    print(f"loss after {options.steps + 1} steps: heddle {our_loss:.5f}, PyTorch {their_loss:.5f}")
    peaks = {"heddle": ours.end(), "PyTorch": peak_mib()}
    for name, each in times.items():
        print(f"{name:8} {1e3 * statistics.median(each):8.2f} ms a step, peak memory {peaks[name]:.1f} MiB")
    ratio = statistics.median(times["PyTorch"]) / statistics.median(times["heddle"])
    print(f"heddle is {ratio:.2f} times as fast")
    return 0 if errors[worst] < LARGEST_ERROR else f"gradients are {errors[worst]:.2e} apart at {worst}"


if __name__ == "__main__":
    set_up_threads()
    try:
        import torch
    except ImportError:
        print("skipped: there is no PyTorch (Debian: python3-torch)")
        sys.exit(0)
    sys.exit(main())
