# SPDX-License-Identifier: Apache-2.0
"""The house rules. Each rule takes the files and yields (path, line, what and the repair)."""

import re

import source

MAX_FUNCTION_LINES = 69
MAX_PARAMETERS = 6
MAX_NESTING = 4
MAX_FILE_LINES = 500

BANNED = {
    "strcpy": "use struct buf",
    "strcat": "use struct buf",
    "sprintf": "use struct buf or snprintf",
    "strncpy": "use struct buf",
    "strncat": "use struct buf",
    "strtok": "use broker/base/parse",
    "atoi": "use broker/base/parse",
    "atol": "use broker/base/parse",
    "sscanf": "use broker/base/parse",
    "system": "start the program with an argument vector",
    "popen": "start the program with an argument vector",
    "tmpnam": "use mkostemp",
    "mktemp": "use mkostemp",
    "gmtime": "use gmtime_r",
    "localtime": "use localtime_r",
    "ctime": "use strftime",
    "rand": "use getrandom",
    "alloca": "use the heap",
}
ENVIRONMENT_CALLS = ["getenv", "secure_getenv", "setenv"]
ENVIRONMENT_FILES = [
    "broker/main.c",
    "broker/options.c",
    "broker/credential/adc.c",
    "sandbox/plan/environment.c",
]

# What each layer may include.
LAYERS = {
    "base": {"base"},
    "net": {"base", "net"},
    "emulator": {"base", "emulator"},
    "google": {"base", "net", "google"},
    "credential": {"base", "net", "google", "credential"},
    "recipe": {"base", "net", "emulator", "recipe"},
    "broker": {"base", "net", "emulator", "google", "credential", "recipe", "broker"},
    "plan": {"base", "net", "plan"},
    "kubeconfig": {"base", "net", "kubeconfig"},
    "client": {"base", "net", "plan", "client"},
    "run": {"base", "net", "plan", "kubeconfig", "client", "run", "door"},
    "sandbox": {"base", "net", "plan", "kubeconfig", "client", "run", "sandbox"},
    "door": {"base", "door"},
}
LAYERS["tests"] = {*LAYERS, "tests"}
TOP_FOLDERS = ("broker", "emulator", "sandbox", "tests")
# The folders below them that are layers of their own.
INNER_FOLDERS = {
    "broker": ("base", "net", "google", "credential", "recipe"),
    "sandbox": ("plan", "kubeconfig", "client", "run", "door"),
}

# Library headers, the files that may include them, and how many of those may.
LIBRARIES = [
    (re.compile(r"microhttpd\.h$"), re.compile(r"broker/net/[^/]+$"), "broker/net/", 2),
    (re.compile(r"curl/"), re.compile(r"broker/net/[^/]+$"), "broker/net/", 2),
    (re.compile(r"systemd/"), re.compile(r"broker/net/[^/]+$"), "broker/net/", 2),
    (re.compile(r"openssl/"), re.compile(r"broker/(google/jwt|base/secret)\.c$"),
     "broker/google/jwt.c and broker/base/secret.c", 2),
    (re.compile(r"yaml\.h$"), re.compile(r"sandbox/kubeconfig/kubeconfig_yaml\.c$"),
     "sandbox/kubeconfig/kubeconfig_yaml.c", 1),
]

VAGUE = re.compile(r"(?:.*_)?(?:utils?|misc|common|helpers?)$")

# Put together from halves, so that this file does not hold what it looks for.
PRIVATE_PATHS = ["/" + name + "/" for name in ("work", "root")] + ["/tmp" + "/bash_jobs"]
REGISTRIES = [
    ".".join(parts)
    for parts in (
        ("registry", "npmjs", "org"),
        ("registry", "yarnpkg", "com"),
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("crates", "io"),
        ("deb", "debian", "org"),
        ("security", "debian", "org"),
        ("archive", "ubuntu", "com"),
        ("proxy", "golang", "org"),
    )
]

SPDX = "SPDX-License-Identifier: Apache-2.0"


def c_files(files):
    return [f for f in files if f.is_c]


def layer_of(path):
    """The layer of a path from the root, or None where there is none."""
    parts = path.split("/")
    if len(parts) < 2 or parts[0] not in TOP_FOLDERS:
        return None
    if parts[0] in INNER_FOLDERS and len(parts) > 2:
        return parts[1] if parts[1] in INNER_FOLDERS[parts[0]] else None
    return parts[0]


def banned_functions(files):
    for f in c_files(files):
        for line, name in source.calls(f.text, BANNED):
            yield f.path, line, f"{name}() is banned; {BANNED[name]}"
        if f.in_tests or f.path in ENVIRONMENT_FILES:
            continue
        for line, name in source.calls(f.text, ENVIRONMENT_CALLS):
            yield f.path, line, f"{name}() belongs in {', '.join(ENVIRONMENT_FILES)}; pass the value"


def dependency_direction(files):
    here = {f.path for f in files}
    for f in c_files(files):
        layer = layer_of(f.path)
        if layer is None:
            yield f.path, 1, "in no layer; move it to a folder that CONTRIBUTING.md lists"
            continue
        for include in source.includes(f.text):
            beside = "/".join([*f.parts[:-1], include.path])
            target = layer_of(include.path)
            if include.quoted and include.path not in here and (
                beside in here or include.path.startswith(".")
            ):
                yield f.path, include.line, f'"{include.path}" is not a path from the root; write it so'
            elif target is None and include.path.startswith(TOP_FOLDERS[0] + "/"):
                yield f.path, include.line, f'"{include.path}" is in no layer'
            elif target is not None and target not in LAYERS[layer]:
                allowed = ", ".join(sorted(LAYERS[layer]))
                yield (f.path, include.line,
                       f"{layer} may not include {include.path}; it may include {allowed}: turn the "
                       "dependency round or move the code")


def library_headers(files):
    for headers, allowed, where, most in LIBRARIES:
        users = []
        for f in c_files(files):
            lines = [i.line for i in source.includes(f.text) if headers.match(i.path)]
            if not lines or f.in_tests:
                continue
            if not allowed.match(f.path):
                yield f.path, lines[0], f"this library's header belongs in {where}; go through its module"
            else:
                users.append((f.path, lines[0]))
        for path, line in users[most:]:
            names = ", ".join(p for p, _ in users[:most])
            yield path, line, f"at most {most} files include this library's header: {names}; use theirs"


def file_heads(files):
    here = {f.path for f in files}
    for f in files:
        if f.is_c:
            if SPDX not in f.lines[0]:
                yield f.path, 1, f"the first line has no SPDX; write /* {SPDX} */"
            yield from _own_header(f, here)
            if f.suffix == ".h" and not re.search(r"^#pragma once$", f.text, re.M):
                yield f.path, 1, "no include guard; write #pragma once"
        elif (f.is_shell or f.is_python) and f.text and not any(SPDX in x for x in f.lines[:2]):
            yield f.path, 1, f"no SPDX in the first two lines; write # {SPDX}"


def _own_header(f, here):
    own = "/".join([*f.parts[:-1], f.stem + ".h"])
    if f.suffix != ".c" or f.in_tests or own not in here:
        return
    first = next(iter(source.includes(f.text)), None)
    if first is None or first.path != own:
        yield f.path, first.line if first else 1, f'the first include is not its own header; put #include "{own}" first'


def sizes(files):
    for f in c_files(files):
        count = len(f.text.splitlines())
        if count > MAX_FILE_LINES and not f.in_tests:
            yield f.path, count, f"{count} lines, at most {MAX_FILE_LINES}; split the file by concept"
        for fn in source.functions(f.text):
            if fn.lines > MAX_FUNCTION_LINES:
                yield (f.path, fn.line,
                       f"{fn.name}() has {fn.lines} lines, at most {MAX_FUNCTION_LINES}; split it")
            if fn.parameters > MAX_PARAMETERS:
                yield (f.path, fn.line,
                       f"{fn.name}() takes {fn.parameters} parameters, at most {MAX_PARAMETERS}; "
                       "pass a struct")
            if fn.nesting > MAX_NESTING:
                yield (f.path, fn.deepest_line,
                       f"{fn.name}() nests {fn.nesting} deep, at most {MAX_NESTING}; return early or "
                       "split it")


def vague_names(files):
    for f in files:
        if (f.is_c or f.is_python or f.is_shell) and VAGUE.match(f.stem):
            yield f.path, 1, f"'{f.stem}' says nothing; name the file after its concept"


def private_text(files):
    for f in files:
        for number, line in enumerate(f.lines, 1):
            for path in PRIVATE_PATHS:
                if path in line:
                    yield f.path, number, f"holds the machine path {path}; use a path of the repository"
            for name in REGISTRIES:
                if name in line:
                    yield f.path, number, f"holds the registry address {name}; leave it to the client's settings"


RULES = [
    banned_functions,
    dependency_direction,
    library_headers,
    file_heads,
    sizes,
    vague_names,
    private_text,
]
