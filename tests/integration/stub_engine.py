# SPDX-License-Identifier: Apache-2.0
"""An engine that only records what it is started with, and answers as a real one would."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

VERSIONS = {"docker": "24.0.7", "podman": "4.3.1"}

# The kernel's own record of what the process was started with: a shell's variables are not that.
_SCRIPT = r"""#!/bin/sh
top=${0%%/*}/..
call=$(mktemp -d "$top/begun/XXXXXXXXXXXX")
cat "/proc/$$/cmdline" >"$call/argv"
cat "/proc/$$/environ" >"$call/environ"
case $1 in
%(own)s
info)
	echo '{"ServerVersion":"%(version)s","SecurityOptions":[],
		"version":{"Version":"%(version)s"},"host":{"security":{"rootless":false}}}'
	;;
image) echo '[{"Config":{"User":""}}]' ;;
network) echo '[{"subnets":[{"gateway":"10.88.0.1"}],"Driver":"bridge","driver":"bridge"}]' ;;
container)
	if [ $# = 4 ]; then
		echo "[{\"Id\":\"$3\",\"HostConfig\":{\"Runtime\":\"runc\"}},{\"HostConfig\":{\"Runtime\":\"runc\","
		echo "\"NetworkMode\":\"container:$3\",\"Privileged\":false,\"CapAdd\":null,\"PidMode\":\"\"}}]"
	else
		echo '[{"State":{"Running":false,"ExitCode":0,"StartedAt":"2026-01-02T03:04:05Z"}}]'
	fi
	;;
wait) exec sleep 60 ;;
run | create)
	for argument; do
		case $argument in
		--cidfile=*) printf %%064d 1 >"${argument#*=}" ;;
		--env-file=*) cat "${argument#*=}" >"$call/env-file" ;;
		esac
	done
	;;
esac
mv "$call" "$top/calls/"
"""


@dataclass
class Call:
    """One start of the engine's program."""

    argv: list[bytes]  # without the interpreter and the script
    environ: dict[bytes, bytes]
    env_file: bytes | None

    @property
    def word(self) -> str:
        """What it was asked for: run, inspect, …"""
        return self.argv[0].decode()


class StubEngine:
    """`bin/` for a PATH, and the calls so far. One a run: a call that the launcher did not wait for may end
    later."""

    def __init__(self, directory: Path, own: Mapping[str, str] | None = None) -> None:
        """`own` are shell lines for words of its command line; what such a call leaves in `top` is seen in the
        directory."""
        self.bin, self._calls = directory / "bin", directory / "calls"
        for folder in (directory, self.bin, self._calls, directory / "begun"):
            folder.mkdir()
        for name, version in VERSIONS.items():
            script = self.bin / name
            script.write_text(_SCRIPT % {"version": version, "own": "\n".join(
                f"{word}) {lines} ;;" for word, lines in (own or {}).items())})
            script.chmod(0o755)

    def calls(self) -> list[Call]:
        """Those that have ended by themselves."""
        return [_read(call) for call in sorted(self._calls.iterdir())]

    def started(self) -> Call:
        """The one call with which the sandbox's container begins."""
        return self._only(door=False)

    def door(self) -> Call:
        """The one that makes the door's."""
        return self._only(door=True)

    def _only(self, *, door: bool) -> Call:
        found = [call for call in self.calls() if call.word in ("run", "create")
                 and (b"--label=postern.role=door" in call.argv) == door]
        assert len(found) == 1, [call.word for call in self.calls()]
        return found[0]


def _read(call: Path) -> Call:
    argv = (call / "argv").read_bytes().split(b"\0")[:-1]
    items = (call / "environ").read_bytes().split(b"\0")[:-1]
    env_file = call / "env-file"
    return Call(argv[2:], dict(item.split(b"=", 1) for item in items),
                env_file.read_bytes() if env_file.exists() else None)
