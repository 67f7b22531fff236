# SPDX-License-Identifier: Apache-2.0
"""A kernel that lacks something: one system call, with one value of an argument, fails in a command."""

from __future__ import annotations

import ctypes
import platform
import struct
from collections.abc import Callable

_NUMBERS = {"x86_64": {"socket": 41, "setsockopt": 54, "prctl": 157},
            "aarch64": {"socket": 198, "setsockopt": 208, "prctl": 167}}
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _FILTER = 38, 22, 2
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ERRNO = 0x7fff0000, 0x00050000
_libc = ctypes.CDLL(None, use_errno=True)


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


def forbidding(call: str, argument: int, value: int, error: int) -> Callable[[], None]:
    """For a command's preexec_fn: from then on this call fails so with that value of its argument, counted
    from 0."""
    steps = [(_LOAD, 0, 0, 0), (_EQUAL, 0, 3, _NUMBERS[platform.machine()][call]),
             (_LOAD, 0, 0, 16 + 8 * argument), (_EQUAL, 0, 1, value), (_RETURN, 0, 0, _ERRNO | error),
             (_RETURN, 0, 0, _ALLOW)]
    code = b"".join(struct.pack("HBBI", *step) for step in steps)

    def install() -> None:
        program = _Program(len(steps), code)
        if _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or _libc.prctl(
                _PR_SET_SECCOMP, _FILTER, ctypes.byref(program), 0, 0):
            raise OSError(ctypes.get_errno(), "no filter of system calls")
    return install
