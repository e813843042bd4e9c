# Writes the array files that heddle is to read, with NumPy, and checks those that heddle wrote. Of
# .safetensors this has a reader and a writer of its own, from the format's description alone.
#
#   array_files_oracle.py write DIRECTORY
#   array_files_oracle.py check DIRECTORY
import json
import pathlib
import struct
import sys

import numpy

TYPES = {
    "bool": "?", "u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8", "i8": "i1", "i16": "i2",
    "i32": "i4", "i64": "i8", "f16": "f2", "f32": "f4", "f64": "f8", "complex64": "c8",
}
SAFETENSORS = {
    "bool": "BOOL", "u8": "U8", "u16": "U16", "u32": "U32", "u64": "U64", "i8": "I8", "i16": "I16",
    "i32": "I32", "i64": "I64", "f16": "F16", "bf16": "BF16", "f32": "F32", "f64": "F64",
    "complex64": "C64",
}
SHAPES = {"scalar": (), "empty": (0, 3), "row": (5,), "matrix": (3, 4), "cube": (2, 3, 4)}


def values(name, shape):
    """Element i is (7 i + 3) % 100, of complex64 with a negative imaginary part."""
    count = int(numpy.prod(shape))
    numbers = (numpy.arange(count) * 7 + 3) % 100
    if name == "bool":
        numbers = numbers % 2
    if name == "complex64":
        numbers = numbers - 1j * numbers
    if name == "bf16":  # the upper half of f32: these numbers are exact
        bits = numbers.astype("<f4").view("<u4") >> 16
        return bits.astype("<u2").view("V2").reshape(shape)
    return numbers.astype(TYPES[name]).reshape(shape)


def everything(types):
    return {f"{t}_{s}": values(t, shape) for t in types for s, shape in SHAPES.items()}


def write_safetensors(path, arrays, metadata):
    header, data = {"__metadata__": metadata}, b""
    for name, array in arrays.items():
        raw = array.tobytes()
        header[name] = {
            "dtype": SAFETENSORS[name.split("_")[0]],
            "shape": list(array.shape),
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(path):
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header, data = json.loads(raw[8 : 8 + length]), raw[8 + length :]
    metadata = header.pop("__metadata__", {})
    used = sorted(entry["data_offsets"] for entry in header.values())
    assert [end for _, end in used][-1] == len(data), "data behind the last tensor"
    assert all(a[1] == b[0] for a, b in zip(used, used[1:])), "gaps or overlaps"
    return {name: (e["dtype"], tuple(e["shape"]), data[slice(*e["data_offsets"])])
            for name, e in header.items()}, metadata


def write(directory):
    for name, array in everything([*TYPES, "bf16"]).items():
        numpy.save(directory / f"{name}.npy", array)
        numpy.save(directory / f"{name}.columns.npy", numpy.array(array, order="F"))
        if name.split("_")[0] in ("f32", "i16", "complex64", "f64"):
            numpy.save(directory / f"{name}.big.npy", array.astype(array.dtype.newbyteorder(">")))
    numpy.savez(directory / "stored.npz", **everything(TYPES))
    numpy.savez_compressed(directory / "deflated.npz", **everything(TYPES))
    write_safetensors(directory / "all.safetensors", everything(SAFETENSORS), {"a": "ä\n", "": ""})


def same(name, got, wanted):
    assert got.dtype == wanted.dtype, (name, got.dtype, wanted.dtype)
    assert got.shape == wanted.shape, (name, got.shape, wanted.shape)
    assert got.tobytes() == wanted.tobytes(), name


def check(directory):
    for name, wanted in everything([*TYPES, "bf16"]).items():
        same(name, numpy.load(directory / f"{name}.npy"), wanted)
        columns = numpy.load(directory / f"{name}.columns.npy")
        same(name + " by columns", columns, wanted.T)
        assert columns.flags.f_contiguous, name
    for file in ("stored.npz", "deflated.npz"):
        with numpy.load(directory / file) as archive:  # which verifies checksums
            assert archive.zip.testzip() is None
            assert sorted(archive.files) == sorted(everything(TYPES)), file
            for name, wanted in everything(TYPES).items():
                same(name, archive[name], wanted)
    arrays, metadata = read_safetensors(directory / "all.safetensors")
    assert metadata == {"a": "ä\n", "": ""}, metadata
    assert sorted(arrays) == sorted(everything(SAFETENSORS))
    for name, wanted in everything(SAFETENSORS).items():
        got = arrays[name]
        assert got == (SAFETENSORS[name.split("_")[0]], wanted.shape, wanted.tobytes()), name


{"write": write, "check": check}[sys.argv[1]](pathlib.Path(sys.argv[2]))
