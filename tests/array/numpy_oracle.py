#!/usr/bin/env python3
"""What NumPy makes of expressions: the oracle of tests/array/numpy_*_test.cpp.

    numpy_oracle.py FOLDER    reads FOLDER/cases.json, a list of {operands: [.npy...], numpy: expression},
                              and writes FOLDER/answers.json, for each {results: [.npy...]} or {error},
                              where a result has a "kind": float, complex (parts along a new last axis),
                              integer (as int64) or bool.

Needs NumPy (Debian: python3-numpy), and PyTorch (python3-torch) for expressions that name torch."""
import json
import math
import os
import sys
import warnings

import numpy as np

NAMES = "abcd"


def widened(x):
    if x.dtype.kind == "f":
        return x.astype(np.float64)
    return x.astype(np.complex128) if x.dtype.kind == "c" else x


def narrowed(x):
    """An array as it is written, and its kind."""
    x = np.asarray(x)
    if x.dtype.kind == "c":
        return np.stack([x.real, x.imag], axis=-1).astype(np.float64), "complex"
    if x.dtype.kind == "f":
        return x.astype(np.float64), "float"
    return (x, "bool") if x.dtype.kind == "b" else (x.astype(np.int64), "integer")


def answer(folder, number, case):
    names = {"np": np, "math": math, "erf": np.vectorize(math.erf, otypes=[np.float64])}
    if "torch" in case["numpy"]:
        import torch

        names |= {"torch": torch, "T": torch.from_numpy}
    for name, path in zip(NAMES, case["operands"]):
        names[name] = widened(np.load(os.path.join(folder, path)))
    try:
        results = eval(case["numpy"], names)
        results = list(results) if isinstance(results, (tuple, list)) else [results]
        written = []
        for i, result in enumerate(results):
            array, kind = narrowed(result)
            path = f"{number}-result-{i}.npy"
            np.save(os.path.join(folder, path), np.ascontiguousarray(array).reshape(array.shape))
            written.append({"path": path, "kind": kind})
        return {"results": written}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def main(folder):
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    with open(os.path.join(folder, "cases.json"), encoding="utf-8") as file:
        cases = json.load(file)
    answers = [answer(folder, number, case) for number, case in enumerate(cases)]
    with open(os.path.join(folder, "answers.json"), "w", encoding="utf-8") as file:
        json.dump(answers, file)


if __name__ == "__main__":
    main(sys.argv[1])
