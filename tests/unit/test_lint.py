# SPDX-License-Identifier: Apache-2.0
"""scripts/lint on small trees: each check bites, and a clean tree passes."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
SPDX = "SPDX-License-Identifier: Apache-2.0"
C_HEAD = f"/* {SPDX} */\n"
H_HEAD = f"/* {SPDX} */\n#pragma once\n"

CLEAN = {
    "broker/base/buf.h": H_HEAD + "\nvoid buf_init(int *buf);\n",
    "broker/base/buf.c": C_HEAD
    + '#include "broker/base/buf.h"\n\n#include <string.h>\n\n'
    "/* strcpy(a, b) in a comment is no call. */\n"
    "void buf_init(int *buf)\n{\n\tstatic const char text[] = \"system(x)\";\n\n"
    "\tif (strlen(text) > 1) {\n\t\t*buf = 0;\n\t}\n}\n",
    "broker/net/http_server.c": C_HEAD + '#include "broker/base/buf.h"\n\n#include <microhttpd.h>\n',
    "emulator/routes.c": C_HEAD + '#include "broker/base/buf.h"\n',
    "scripts/go": f"#!/bin/sh\n# {SPDX}\necho hello\n",
    "README.md": "# A tree\n",
}


class Tree:
    """A tree in a temporary folder that starts clean."""

    def __init__(self, root):
        self.root = root
        shutil.copy(REPOSITORY / ".clang-format", root)
        shutil.copy(REPOSITORY / ".clang-tidy", root)
        for path, text in CLEAN.items():
            self.put(path, text)

    def put(self, path, text):
        full = self.root / path
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_text(text)

    def lint(self, *arguments):
        done = subprocess.run(
            [REPOSITORY / "scripts/lint", "--root", self.root, *arguments],
            capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout.splitlines(), done.stderr

    def only_finding(self, *arguments):
        status, lines, stderr = self.lint(*arguments)
        assert status == 1, (lines, stderr)
        assert len(lines) == 1, lines
        return lines[0]


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


def function(name="f", parameters="void", body="", attributes=""):
    return f"{attributes}static int {name}({parameters})\n{{\n{body}\treturn 0;\n}}\n"


def nested(depth):
    opens = "".join("\t" * i + "if (f()) {\n" for i in range(1, depth + 1))
    closes = "".join("\t" * i + "}\n" for i in range(depth, 0, -1))
    return opens + "\t" * (depth + 1) + "return 1;\n" + closes


def test_a_clean_tree_passes(tree):
    status, lines, stderr = tree.lint()
    assert (status, lines) == (0, ["lint: clean"]), stderr


def test_unformatted_code_is_named_with_the_command(tree):
    tree.put("broker/base/x.c", C_HEAD + "int  x;\n")
    assert tree.only_finding() == (
        "broker/base/x.c:2: is not formatted; run clang-format-19 -i broker/base/x.c")


def test_a_tree_without_a_format_is_refused(tree):
    (tree.root / ".clang-format").unlink()
    assert tree.only_finding().startswith(".clang-format:1: missing")


def test_the_own_header_stays_first_under_the_formatter(tree):
    tree.put("broker/base/z.h", H_HEAD)
    tree.put("broker/base/z.c", C_HEAD + '#include "broker/base/z.h"\n#include "broker/base/buf.h"\n')
    assert tree.lint()[0] == 0


@pytest.mark.parametrize("name", [
    "strcpy", "strcat", "sprintf", "strncpy", "strncat", "strtok", "atoi", "atol", "sscanf", "system",
    "popen", "tmpnam", "mktemp", "gmtime", "localtime", "ctime", "rand", "alloca"])
def test_a_banned_call_is_refused(tree, name):
    tree.put("broker/base/x.c", C_HEAD + function(body=f"\t{name}(0);\n"))
    assert tree.only_finding().startswith(f"broker/base/x.c:4: {name}() is banned; ")


@pytest.mark.parametrize("line", [
    "localtime_r(0, 0);", "my_system(0);", "f->system(0);", "f.rand(0);", 'puts("rand()");',
    "f(0); /* rand() */", "f(0); // rand()", "char c = '\"', d = f(\"rand()\");"])
def test_what_only_looks_like_a_banned_call_passes(tree, line):
    tree.put("broker/base/x.c", C_HEAD + function(body=f"\t{line}\n"))
    assert tree.lint()[:2] == (0, ["lint: clean"])


@pytest.mark.parametrize("name", ["getenv", "secure_getenv", "setenv"])
def test_the_environment_is_read_in_its_files_only(tree, name):
    text = C_HEAD + function(body=f"\t{name}(0);\n")
    for path in ("broker/main.c", "broker/options.c", "broker/credential/adc.c",
                 "sandbox/plan/environment.c", "tests/unit/test_x.c"):
        tree.put(path, text)
    assert tree.lint()[0] == 0
    tree.put("broker/session.c", text)
    assert tree.only_finding().startswith(f"broker/session.c:4: {name}() belongs in ")


LAYER_FILES = {
    "base": "broker/base/a.c", "net": "broker/net/a.c", "emulator": "emulator/a.c",
    "google": "broker/google/a.c", "credential": "broker/credential/a.c",
    "recipe": "broker/recipe/a.c", "broker": "broker/a.c", "plan": "sandbox/plan/a.c",
    "kubeconfig": "sandbox/kubeconfig/a.c", "client": "sandbox/client/a.c", "run": "sandbox/run/a.c",
    "sandbox": "sandbox/a.c", "door": "sandbox/door/a.c", "tests": "tests/unit/a.c",
}
ALLOWED = {
    "base": ["base"],
    "net": ["base", "net"],
    "emulator": ["base", "emulator"],
    "google": ["base", "net", "google"],
    "credential": ["base", "net", "google", "credential"],
    "recipe": ["base", "net", "emulator", "recipe"],
    "broker": ["base", "net", "emulator", "google", "credential", "recipe", "broker"],
    "plan": ["base", "net", "plan"],
    "kubeconfig": ["base", "net", "kubeconfig"],
    "client": ["base", "net", "plan", "client"],
    "run": ["base", "net", "plan", "kubeconfig", "client", "run", "door"],
    "sandbox": ["base", "net", "plan", "kubeconfig", "client", "run", "sandbox"],
    "door": ["base", "door"],
    "tests": list(LAYER_FILES),
}


@pytest.mark.parametrize("layer", LAYER_FILES)
def test_dependencies_point_one_way(tree, layer):
    headers = {other: path.replace("a.c", "b.h") for other, path in LAYER_FILES.items()}
    for header in headers.values():
        tree.put(header, H_HEAD)
    source = LAYER_FILES[layer]
    tree.put(source, C_HEAD + "\n".join(f'#include "{h}"\n' for h in headers.values()))
    refused = [h for other, h in headers.items() if other not in ALLOWED[layer]]
    status, lines, _ = tree.lint()
    assert status == (1 if refused else 0)
    if refused:
        assert len(lines) == len(refused)
        for line, header in zip(lines, refused):
            assert line.startswith(f"{source}:") and f"{layer} may not include {header};" in line


@pytest.mark.parametrize("include", ["buf.h", "../base/buf.h"])
def test_an_include_that_is_no_path_from_the_root_is_refused(tree, include):
    tree.put("broker/base/x.c", C_HEAD + f'#include "{include}"\n')
    assert tree.only_finding() == (
        f'broker/base/x.c:2: "{include}" is not a path from the root; write it so')


@pytest.mark.parametrize("path", ["broker/extra/x.c", "broker/plan/x.c", "sandbox/base/x.c"])
def test_a_folder_that_is_no_layer_is_refused(tree, path):
    tree.put(path, C_HEAD)
    assert tree.only_finding().startswith(f"{path}:1: in no layer")


@pytest.mark.parametrize("header, home, other", [
    ("microhttpd.h", "broker/net/b.c", "broker/endpoint.c"),
    ("curl/curl.h", "broker/net/b.c", "broker/google/oauth2.c"),
    ("systemd/sd-event.h", "broker/net/b.c", "broker/main.c"),
    ("openssl/evp.h", "broker/google/jwt.c", "broker/net/b.c"),
    ("openssl/crypto.h", "broker/base/secret.c", "broker/google/oauth2.c"),
    ("yaml.h", "sandbox/kubeconfig/kubeconfig_yaml.c", "sandbox/kubeconfig/kubeconfig_check.c")])
def test_a_library_header_stays_at_home(tree, header, home, other):
    text = C_HEAD + f"#include <{header}>\n"
    tree.put(home, text)
    tree.put("tests/unit/test_x.c", text)
    assert tree.lint()[0] == 0
    tree.put(other, text)
    assert tree.only_finding().startswith(f"{other}:2: this library's header belongs in ")


def test_a_third_user_of_a_library_header_is_refused(tree):
    for name in ("http_server", "loop", "router"):
        tree.put(f"broker/net/{name}.c", C_HEAD + "#include <microhttpd.h>\n")
    assert tree.only_finding() == (
        "broker/net/router.c:2: at most 2 files include this library's header: "
        "broker/net/http_server.c, broker/net/loop.c; use theirs")


def test_the_own_header_comes_first(tree):
    tree.put("broker/base/x.h", H_HEAD)
    tree.put("broker/base/x.c", C_HEAD + '#include <stdio.h>\n\n#include "broker/base/x.h"\n')
    assert tree.only_finding() == (
        "broker/base/x.c:2: the first include is not its own header; "
        'put #include "broker/base/x.h" first')


def test_a_header_without_pragma_once_is_refused(tree):
    tree.put("broker/base/x.h", C_HEAD)
    assert tree.only_finding() == "broker/base/x.h:1: no include guard; write #pragma once"


@pytest.mark.parametrize("path, text", [
    ("broker/base/x.c", "int x;\n"), ("tests/x.py", "X = 1\n"), ("scripts/x", "#!/bin/sh\necho\n"),
    ("scripts/y", "#!/usr/bin/env bash\necho\n")])
def test_a_file_without_spdx_is_refused(tree, path, text):
    tree.put(path, text)
    finding = tree.only_finding()
    assert finding.startswith(f"{path}:1: ") and SPDX in finding


def test_a_function_of_69_lines_passes_and_one_of_70_does_not(tree):
    tree.put("broker/base/x.c", C_HEAD + function(body="\tf();\n" * 65))
    assert tree.lint()[0] == 0
    tree.put("broker/base/x.c", C_HEAD + function(body="\tf();\n" * 66))
    assert tree.only_finding() == "broker/base/x.c:2: f() has 70 lines, at most 69; split it"


def test_six_parameters_pass_and_seven_do_not(tree):
    six = "int a, int b, int c, void (*cb)(void *ctx, int x), int e, int g"
    put = "__attribute__((format(printf, 1, 2))) "
    tree.put("broker/base/x.c", C_HEAD + function(parameters=six))
    assert tree.lint()[0] == 0
    tree.put("broker/base/x.c", C_HEAD + function(parameters="int a, int b, int c, int d, int e, int g, int h",
                                                  attributes=put.strip() + "\n"))
    status, lines, _ = tree.lint()
    assert status == 1
    assert any("f() takes 7 parameters, at most 6; pass a struct" in line for line in lines)


def test_a_nesting_of_four_passes_and_of_five_does_not(tree):
    tree.put("broker/base/x.c", C_HEAD + function(body=nested(4)))
    assert tree.lint()[0] == 0
    tree.put("broker/base/x.c", C_HEAD + function(body=nested(5)))
    assert tree.only_finding() == (
        "broker/base/x.c:8: f() nests 5 deep, at most 4; return early or split it")


def test_initialisers_are_no_nesting(tree):
    body = "\tstruct a x = {{{{{{0}}}}}};\n\n\tx = (struct a){{{{{{0}}}}}};\n"
    tree.put("broker/base/x.c", C_HEAD + function(body=body))
    assert tree.lint()[:2] == (0, ["lint: clean"])


def test_a_file_of_500_lines_passes_and_one_of_501_does_not(tree):
    tree.put("broker/base/x.c", C_HEAD + "int a;\n" * 499)
    tree.put("tests/unit/test_x.c", C_HEAD + "int a;\n" * 600)
    assert tree.lint()[0] == 0
    tree.put("broker/base/x.c", C_HEAD + "int a;\n" * 500)
    assert tree.only_finding() == (
        "broker/base/x.c:501: 501 lines, at most 500; split the file by concept")


@pytest.mark.parametrize("path", [
    "broker/base/util.c", "broker/base/misc.c", "sandbox/common.c", "tests/helpers.py", "scripts/common.sh",
    "emulator/str_util.c"])
def test_a_vague_name_is_refused(tree, path):
    tree.put(path, C_HEAD if path.endswith("c") else f"#!/bin/sh\n# {SPDX}\n")
    assert "says nothing; name the file after its concept" in tree.only_finding()


@pytest.mark.parametrize("text", [
    "/" + "work/main", "/" + "root/.config", "/tmp" + "/bash_jobs.0/x", "https://pypi" + ".org/simple",
    "https://registry" + ".npmjs.org/a", "crates" + ".io", "deb" + ".debian.org", "proxy" + ".golang.org"])
def test_a_machine_path_or_registry_address_is_refused(tree, text):
    tree.put("README.md", f"# A tree\n\nSee {text} for it.\n")
    assert tree.only_finding().startswith("README.md:3: holds the ")


def test_binary_files_are_not_read_as_text(tree):
    (tree.root / "corpus.bin").write_bytes(b"\0/" + b"work/")
    assert tree.lint()[0] == 0


def test_shellcheck_reads_every_shell_script(tree):
    tree.put("scripts/bad", f"#!/usr/bin/env bash\n# {SPDX}\ncd $1\n")
    finding = tree.only_finding()
    assert finding.startswith("scripts/bad:3: ") and "SC2164" in finding


def test_ignored_files_are_not_checked_and_untracked_ones_are(tree):
    subprocess.run(["git", "init", "-q", tree.root], check=True)
    tree.put(".gitignore", "/build/\n")
    tree.put("build/x.c", "int  x;\n")
    assert tree.lint()[0] == 0
    tree.put("broker/base/x.h", C_HEAD)
    assert tree.only_finding().startswith("broker/base/x.h:1: ")


def compile_database(tree, path):
    build = tree.root / "build"
    build.mkdir()
    entry = {"directory": str(build), "file": f"../{path}",
             "command": f"clang-19 -std=gnu17 -I.. -c ../{path}"}
    (build / "compile_commands.json").write_text(json.dumps([entry]))
    return build


def test_tidy_passes_clean_code(tree):
    assert tree.lint("--tidy", compile_database(tree, "broker/base/buf.c"))[:2] == (0, ["lint: clean"])


def test_tidy_runs_both_analysers(tree):
    tree.put("broker/base/x.c", C_HEAD + "#include <stdlib.h>\n\nint *x_new(void);\nint *x_new(void)\n{\n"
             "\tint *p = malloc(sizeof(*p));\n\n\tif (p)\n\t\tfree(p);\n\treturn p;\n}\n")
    status, lines, _ = tree.lint("--tidy", compile_database(tree, "broker/base/x.c"))
    assert status == 1
    assert any("clang-analyzer-unix.Malloc" in line for line in lines), lines
    assert any("(deallocuse)" in line or "(deallocret)" in line for line in lines), lines


def test_tidy_does_not_pass_code_that_does_not_compile(tree):
    tree.put("broker/base/x.c", C_HEAD + "int x = missing;\n")
    assert tree.lint("--tidy", compile_database(tree, "broker/base/x.c"))[0] == 1


def test_tidy_without_a_compile_database_is_usage(tree):
    status, _, stderr = tree.lint("--tidy", tree.root / "build")
    assert status == 2 and "compile_commands.json" in stderr and "meson setup" in stderr
