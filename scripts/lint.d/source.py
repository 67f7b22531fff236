# SPDX-License-Identifier: Apache-2.0
"""Reads C text lightly: comments, strings, includes, functions."""

import re
from typing import NamedTuple

_TOKEN = re.compile(
    r"//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z)|\"(?:\\.|[^\"\\\n])*\"?|'(?:\\.|[^'\\\n])*'?", re.S
)
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*([\"<])([^\">\n]+)[\">]", re.M)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.M)
_CALL = re.compile(r"([A-Za-z_]\w*)\s*\(")


class Include(NamedTuple):
    line: int
    quoted: bool
    path: str


class Function(NamedTuple):
    name: str
    line: int
    lines: int
    parameters: int
    nesting: int
    deepest_line: int


def blank(text):
    """The text with everything but its line breaks replaced by spaces."""
    return re.sub(r"[^\n]", " ", text)


def strip(text, keep_strings=False):
    """The text without comments, and without strings unless they are kept. Lines and columns stay."""

    def put(match):
        token = match.group()
        if token[0] == "/":
            return blank(token)
        if keep_strings or len(token) < 2:
            return token
        return token[0] + blank(token[1:-1]) + token[-1]

    return _TOKEN.sub(put, text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def includes(text):
    plain = strip(text, keep_strings=True)
    return [
        Include(line_of(plain, m.start()), m.group(1) == '"', m.group(2).strip())
        for m in _INCLUDE.finditer(plain)
    ]


def calls(text, names):
    """(line, name) of each call of one of the names; members of structs do not count."""
    plain = strip(text)
    pattern = re.compile(r"(?<![\w.])(?<!->)(" + "|".join(names) + r")\s*\(")
    return [(line_of(plain, m.start(1)), m.group(1)) for m in pattern.finditer(plain)]


def functions(text):
    """Each function whose body opens with a brace alone in column 0."""
    plain = _DIRECTIVE.sub(lambda m: blank(m.group()), strip(text))
    lines = plain.split("\n")
    found = []
    start = 0
    while start < len(lines):
        if lines[start].rstrip() != "{":
            start += 1
            continue
        end = start + 1
        while end < len(lines) and not lines[end].startswith("}"):
            end += 1
        first = _signature_start(lines, start)
        named = _name_and_parameters("\n".join(lines[first:start]))
        if named:
            nesting, deepest = _nesting(lines[start : end + 1])
            found.append(
                Function(named[0], first + 1, end - first + 1, named[1], nesting,
                         start + deepest + 1)
            )
        start = end + 1
    return found


def _signature_start(lines, brace):
    first = brace
    depth = 0
    while first > 0:
        above = lines[first - 1].rstrip()
        if depth == 0 and (not above or above.endswith((";", "}"))):
            break
        depth += above.count(")") - above.count("(")
        first -= 1
    return first


def _name_and_parameters(signature):
    offset = 0
    while match := _CALL.search(signature, offset):
        inside, end = _group(signature, match.end() - 1)
        name = match.group(1)
        if name != "__attribute__" and not name.isupper():
            # libmicrohttpd sets the signature of its handler.
            return name, 0 if "struct MHD_Connection *" in inside else _count(inside)
        if name.isupper() and not signature[end:].strip() and not signature[: match.start()].strip():
            return name, 0
        offset = end
    return None


def _group(text, opening):
    depth = 0
    for i in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return text[opening + 1 : i], i + 1
    return text[opening + 1 :], len(text)


def _count(parameters):
    parts = [""]
    depth = 0
    for char in parameters:
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(char, 0)
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return len([p for p in parts if p.strip() not in ("", "void", "...")])


def _nesting(lines):
    """The deepest control block of a body (its own braces not counted) and the line where it opens."""
    text = "\n".join(lines)
    stack = []
    deepest = (0, 0)
    for match in re.finditer(r"[{}]", text):
        if match.group() == "}":
            if stack:
                stack.pop()
            continue
        stack.append(all(stack) and _is_control(text[: match.start()].rstrip()))
        depth = sum(stack) - 1
        if stack[-1] and depth > deepest[0]:
            deepest = (depth, text.count("\n", 0, match.start()))
    return deepest


def _is_control(before):
    """Whether the brace after this text opens a block, not an initialiser or a type."""
    if not before or before[-1] in ";{}:":
        return True
    if before[-1] != ")":
        return bool(re.search(r"\b(do|else)$", before))
    depth = 0
    for i in range(len(before) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(before[i], 0)
        if depth == 0:
            word = re.search(r"(\w+)\s*$", before[:i])
            return bool(word) and word.group(1) not in ("return", "sizeof")
    return False
