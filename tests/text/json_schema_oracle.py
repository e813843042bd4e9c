#!/usr/bin/env python3
"""Says which documents are valid JSON and valid under their schemas.

Reads [{"schema": ..., "text": "..."}] from standard input; writes a JSON list with null for what is
valid, and what is wrong for the others."""
import json
import sys

import jsonschema


def refuse_constant(name):
    raise ValueError(f"{name} is no JSON")


def wrong(case):
    try:
        value = json.loads(case["text"], parse_constant=refuse_constant)
        json.dumps(value, ensure_ascii=False).encode("utf-8")  # no half surrogate pairs
    except ValueError as error:
        return f"no JSON: {error}"
    validator = jsonschema.Draft202012Validator(
        case["schema"], format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
    errors = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]
    return "; ".join(errors) if errors else None


sys.setrecursionlimit(10000)
json.dump([wrong(case) for case in json.load(sys.stdin)], sys.stdout)
