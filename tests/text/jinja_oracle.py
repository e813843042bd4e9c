#!/usr/bin/env python3
"""What Hugging Face's apply_chat_template makes of templates: the oracle of the chat template tests.

    jinja_oracle.py render < CASES > RESULTS   a list of {template, context, now} to {output} or {error}
    jinja_oracle.py update FILE...             writes "output" or "error" into each case of the files,
                                               which are {context, cases: [{template, context}]}

Needs Jinja2 (Debian: python3-jinja2)."""
import json
import sys
from datetime import datetime

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = "2026-03-14T15:09:26"


class Generation(Extension):
    """{% generation %}: the assistant's words, rendered as they are."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.CallBlock(self.call_method("_render"), [], [], body).set_lineno(line)

    def _render(self, caller):
        return caller()


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def render(case):
    now = datetime.fromisoformat(case.get("now", NOW))
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    environment.filters["tojson"] = to_json
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = now.strftime
    try:
        return {"output": environment.from_string(case["template"]).render(**case.get("context", {}))}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def write(path, file):
    """One line a case, so that differences can be read."""
    def text(value):
        return json.dumps(value, ensure_ascii=False)

    with open(path, "w", encoding="utf-8") as out:
        cases = ",\n".join(text(case) for case in file["cases"])
        out.write(f'{{"context": {text(file["context"])},\n"cases": [\n{cases}\n]}}\n')


def update(path):
    with open(path, encoding="utf-8") as source:
        file = json.load(source)
    for case in file["cases"]:
        case.pop("output", None)
        case.pop("error", None)
        case.update(render({"context": file["context"], **case}))
    write(path, file)


if __name__ == "__main__":
    if sys.argv[1:] == ["render"]:
        json.dump([render(case) for case in json.load(sys.stdin)], sys.stdout)
    elif sys.argv[1:2] == ["update"]:
        for path in sys.argv[2:]:
            update(path)
    else:
        sys.exit(__doc__)
