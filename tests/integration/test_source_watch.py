# SPDX-License-Identifier: Apache-2.0
"""The credential file is watched: whatever way it is rewritten, no SIGHUP is needed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.google.standin import ACCOUNT, SOURCE_ACCOUNT, USER, Standin

from . import procfs
from .broker import Broker
from .conftest import Starter
from .deadline import eventually
from .http1 import TOKEN, request
from .test_sources import from_file

MINT = "generateAccessToken"
LOGIN = "token"
# Their tokens are not the same ones.
TWO: dict[str, dict[str, str]] = {"one": {}, "two": {"lifetime": "30m"}}
# Contract: a changed source is used within that.
RECOVERY_S = 2.0


def changes(broker: Broker, result: str = "ok") -> int:
    """How often the trail says so."""
    return len(broker.audit_of("source.change", result=result))


def wait_for_changes(broker: Broker, count: int, result: str = "ok") -> None:
    """Until it says so that often."""
    eventually(f"{count} changes, {result}", lambda: changes(broker, result) == count, RECOVERY_S)


def settled(broker: Broker, google: Standin, directory: Path) -> None:
    """Whatever was written before has been looked at: a write after it has been."""
    before = changes(broker)
    google.write_adc(directory, **google.new_login())
    wait_for_changes(broker, before + 1)


def source_file(broker: Broker) -> Path:
    """Of its configuration."""
    return Path(broker.sections["source"]["file"])


def principal(broker: Broker) -> str:
    """Who it is."""
    return str(broker.status()["source"]["principal"])


def in_place(path: Path, write: Callable[[Path], Any]) -> None:
    write(path)


def renamed_over(path: Path, write: Callable[[Path], Any]) -> None:
    beside = path.with_name("adc.tmp")
    write(beside)
    beside.rename(path)


def removed_first(path: Path, write: Callable[[Path], Any]) -> None:
    path.unlink()
    write(path)


def linked(path: Path, write: Callable[[Path], Any]) -> None:
    beside = path.with_name("adc.tmp")
    write(beside)
    path.unlink()
    path.hardlink_to(beside)


def directory_and_all(path: Path, write: Callable[[Path], Any]) -> None:
    shutil.rmtree(path.parent)
    path.parent.mkdir()
    write(path)


def directory_moved(path: Path, write: Callable[[Path], Any]) -> None:
    aside = path.parent.with_name("aside")
    aside.mkdir()
    write(aside / path.name)
    path.parent.rename(path.parent.with_name("old"))
    aside.rename(path.parent)


WAYS = [in_place, renamed_over, removed_first, linked, directory_and_all, directory_moved]


@pytest.fixture
def file(google: Standin) -> Path:
    """A login in a directory of its own."""
    directory = google.directory / "login"
    directory.mkdir()
    return google.write_adc(directory / "adc.json")


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_new_login_ends_a_kept_failure(start: Starter, google: Standin, file: Path,
                                         way: Callable[..., None]) -> None:
    """oidc-agent#507: logged in again, and nobody has to tell the broker."""
    broker = start(google, source=from_file(file))
    google.revoke_login()
    assert broker.token().status == 403
    way(file, lambda path: google.write_adc(path, **google.new_login()))
    broker.until_token(timeout_s=RECOVERY_S)
    assert changes(broker) == 1 and not broker.audit_of("config.reload")
    assert broker.wait_for_log(f"^info: source: changed, .*{file}")


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_twice_in_a_row(start: Starter, google: Standin, file: Path,
                        way: Callable[..., None]) -> None:
    """What replaced a file is watched as the file was."""
    broker = start(google, source=from_file(file))
    way(file, lambda path: google.write_adc(path, **google.new_login()))
    wait_for_changes(broker, 1)
    for left in ("old", "login/adc.tmp"):
        gone = file.parent.parent / left
        if gone.is_dir():
            shutil.rmtree(gone)
        elif gone.exists():
            gone.unlink()
    way(file, lambda path: google.write_service_account(path))
    wait_for_changes(broker, 2)
    assert principal(broker) == SOURCE_ACCOUNT


def swap(volume: Path, version: str, write: Callable[[Path], Any]) -> None:
    """As a kubelet: a new directory, `..data` renamed to it, the old one removed."""
    old = volume / os.readlink(volume / "..data") if (volume / "..data").is_symlink() else None
    new = volume / f"..{version}"
    new.mkdir()
    write(new / "adc.json")
    (volume / "..data_tmp").symlink_to(new.name)
    (volume / "..data_tmp").rename(volume / "..data")
    if old is not None:
        shutil.rmtree(old)


def test_a_volume_of_kubernetes(start: Starter, google: Standin) -> None:
    """kubernetes/kubernetes: AtomicWriter; nothing happens to the link that is the file."""
    volume = google.directory / "volume"
    volume.mkdir()
    swap(volume, "2026_1", google.write_adc)
    (volume / "adc.json").symlink_to("..data/adc.json")
    broker = start(google, source=from_file(volume / "adc.json"))
    for number in range(2, 5):
        google.revoke_login()
        login = google.new_login()
        swap(volume, f"2026_{number}", lambda path, new=login: google.write_adc(path, **new))
        wait_for_changes(broker, number - 1)
        broker.until_token(timeout_s=RECOVERY_S)
    assert changes(broker) == 3 and changes(broker, "refused") == 0


def test_a_directory_that_is_a_link(start: Starter, google: Standin) -> None:
    one, two = google.directory / "one", google.directory / "two"
    for directory in (one, two):
        directory.mkdir()
    google.write_adc(one / "adc.json")
    google.write_service_account(two / "adc.json")
    current = google.directory / "current"
    current.symlink_to(one)
    broker = start(google, source=from_file(current / "adc.json"))
    (google.directory / "next").symlink_to(two)
    (google.directory / "next").rename(current)
    wait_for_changes(broker, 1)
    assert principal(broker) == SOURCE_ACCOUNT
    settled(broker, google, two / "adc.json")  # the new target is watched


BROKEN: dict[str, tuple[Callable[[Path], Any], list[str]]] = {
    "no JSON": (lambda path: path.write_text("{"), ["adc.json:1:", "cut off", "copy it again"]),
    "empty": (lambda path: path.write_text(""), ["adc.json", "the file is empty"]),
    "a field is missing": (lambda path: path.write_text('{"type": "authorized_user"}'),
                           ["adc.json", 'field "', "gcloud auth application-default login"]),
    "a type that is unknown": (lambda path: path.write_text('{"type": "x"}'),
                               ["adc.json", 'field "type"', "supported are"]),
    "readable by all": (lambda path: path.chmod(0o604), ["adc.json", "chmod o-r"]),
    "writable by the group": (lambda path: path.chmod(0o660), ["adc.json", "chmod go-w"]),
    "gone": (lambda path: path.unlink(), ["adc.json", "No such file"]),
    "its directory is gone": (lambda path: shutil.rmtree(path.parent), ["adc.json", "No such"]),
}


@pytest.mark.parametrize(("damage", "said"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_rewrite_keeps_the_identity_until_it_is_repaired(
        start: Starter, google: Standin, file: Path, damage: Callable[[Path], Any],
        said: list[str]) -> None:
    broker = start(google, source=from_file(file), profiles=TWO)
    assert broker.token("one").token
    content = file.read_bytes()
    damage(file)
    wait_for_changes(broker, 1, "refused")
    line = broker.wait_for_log("^error: source: .*the old identity stays: .*")[0]
    assert all(words in line for words in said), line
    assert broker.token("two").token  # minted by the old one
    assert google.calls_of(MINT)[-1].principal == USER
    # the repair of a mode is a chmod, of a file its old content
    file.parent.mkdir(exist_ok=True)
    if file.exists() and file.read_bytes() == content:
        file.chmod(0o600)
    else:
        beside = file.with_name("again")
        beside.touch(0o600)
        beside.write_bytes(content)
        beside.rename(file)
    broker.wait_for_log("^info: source: its file is in order again")
    assert changes(broker) == 0
    settled(broker, google, file)
    assert len([text for text in broker.log.splitlines() if text.startswith("error: ")]) == 1


def test_a_broken_file_is_said_once(start: Starter, google: Standin, file: Path) -> None:
    broker = start(google, source=from_file(file))
    file.write_text("{")
    wait_for_changes(broker, 1, "refused")
    for _ in range(3):
        file.write_text("{")
        os.utime(file)
    file.write_text("[]")
    wait_for_changes(broker, 2, "refused")
    assert len(broker.log.split("error: source: ")) == 3


def test_a_sighup_repeats_what_is_wrong_and_changes_nothing(start: Starter, google: Standin,
                                                           file: Path) -> None:
    broker = start(google, source=from_file(file))
    file.write_text("{")
    wait_for_changes(broker, 1, "refused")
    assert broker.reload()["result"] == "refused"
    assert broker.token().token
    settled(broker, google, file)


def test_what_is_the_same_is_no_change(start: Starter, google: Standin, file: Path) -> None:
    broker = start(google, source=from_file(file))
    assert broker.token().token
    content = file.read_bytes()
    os.utime(file)
    file.write_bytes(content)
    renamed_over(file, lambda path: (path.touch(0o600), path.write_bytes(content)))
    file.with_name("other").write_text("a file beside it")
    settled(broker, google, file)
    assert changes(broker) == 1 and changes(broker, "refused") == 0


def test_a_held_token_outlives_a_change(start: Starter, google: Standin, file: Path) -> None:
    broker = start(google, source=from_file(file))
    token = broker.token().token
    settled(broker, google, file)
    assert broker.token().token == token and google.count(MINT) == 1


@pytest.mark.real_time
@pytest.mark.parametrize("kind", [LOGIN, MINT])
def test_a_rewrite_while_a_mint_is_under_way(start: Starter, google: Standin, file: Path,
                                             kind: str) -> None:
    broker = start(google, source=from_file(file), profiles=TWO)
    google.hold(kind)
    with broker.client("one") as client:
        client.send(request(TOKEN))
        google.wait_for(kind)
        google.write_service_account(file)
        wait_for_changes(broker, 1)
        google.release(kind)
        assert client.read().token
    assert google.calls_of(MINT)[0].principal == USER
    assert broker.token("two").token
    assert google.calls_of(MINT)[-1].principal == SOURCE_ACCOUNT


def test_rewrites_past_an_impersonated_account_while_it_mints(start: Starter,
                                                              google: Standin) -> None:
    file = google.write_impersonated(account=ACCOUNT)
    broker = start(google, source=from_file(file))
    google.hold(LOGIN)
    with broker.client() as client:
        client.send(request(TOKEN))
        google.wait_for(LOGIN)
        for number in range(1, 4):
            google.write_impersonated(file, account=ACCOUNT, source=google.new_login())
            wait_for_changes(broker, number)
        google.release(LOGIN)
        client.read()
    broker.until_token()


def test_a_storm_of_rewrites_is_bounded_work(start: Starter, google: Standin,
                                             file: Path) -> None:
    broker = start(google, source=from_file(file))
    settled(broker, google, file)
    descriptors = len(procfs.descriptors(broker.pid))
    before = changes(broker)
    logins = [google.new_login() for _ in range(20)]
    for number in range(2000):
        renamed_over(file, lambda path, n=number: google.write_adc(path, **logins[n % 20]))
    google.write_service_account(file)
    eventually("the last one", lambda: principal(broker) == SOURCE_ACCOUNT, RECOVERY_S)
    assert 1 <= changes(broker) - before <= 40 and changes(broker, "refused") == 0
    assert len(procfs.descriptors(broker.pid)) <= descriptors + 1
    assert broker.token().token


def test_a_file_named_by_a_reload_is_watched_and_the_old_one_no_more(
        start: Starter, google: Standin, file: Path) -> None:
    broker = start(google, source=from_file(file))
    other = google.write_adc(google.directory / "other.json", **google.new_login())
    broker.configure(source=from_file(other))
    assert broker.reload()["result"] == "ok"
    assert changes(broker) == 1
    file.write_text("{")
    settled(broker, google, other)
    assert changes(broker) == 2 and changes(broker, "refused") == 0


def test_a_file_of_the_same_content_elsewhere_is_watched(start: Starter, google: Standin,
                                                         file: Path) -> None:
    broker = start(google, source=from_file(file))
    other = google.directory / "other.json"
    shutil.copy(file, other)
    broker.configure(source=from_file(other))
    assert broker.reload()["result"] == "ok"
    before = changes(broker)
    google.write_service_account(other)
    wait_for_changes(broker, before + 1)


def test_a_source_without_a_file_gives_way_to_one_with(start: Starter, google: Standin,
                                                       file: Path) -> None:
    broker = start(google, source={"type": "offline"})
    broker.configure(source=from_file(file))
    assert broker.reload()["result"] == "ok"
    settled(broker, google, file)
    broker.configure(source={"type": "offline"})
    assert broker.reload()["result"] == "ok"
    before = changes(broker)
    file.write_text("{")
    assert broker.reload()["result"] == "ok"
    assert changes(broker) == before and changes(broker, "refused") == 0


@pytest.mark.parametrize("adc_metadata", ["yes", "no"])
def test_a_login_that_goes_does_not_become_the_machines_account(
        start: Starter, google: Standin, file: Path, adc_metadata: str) -> None:
    home = file.parent
    path = google.write_adc(home / "application_default_credentials.json")
    broker = start(google, env={"CLOUDSDK_CONFIG": str(home)},
                   source={"type": "adc", "adc_metadata": adc_metadata,
                           "metadata_host": google.metadata_host})
    path.unlink()
    wait_for_changes(broker, 1, "refused")
    broker.wait_for_log(f"^error: source: .*{path}")
    assert broker.status()["source"]["type"] == "authorized_user"
    assert broker.token().token and google.calls_of(MINT)[-1].principal == USER
    settled(broker, google, path)


def test_a_key_that_is_rotated(start: Starter, google: Standin) -> None:
    file = google.write_service_account()
    broker = start(google, source=from_file(file), profiles=TWO)
    assert broker.token("one").token
    old = google.service_account_key()["private_key_id"]
    google.write_service_account(file, fresh=True)
    google.remove_key(old)
    wait_for_changes(broker, 1)
    assert broker.token("two").token


def test_a_key_that_is_rotated_while_the_clock_is_off(start: Starter, google: Standin) -> None:
    """What was known of the clock went with the old key, and the new one was refused for good."""
    file = google.write_service_account()
    google.clock_offset_s = -600.0
    broker = start(google, source=from_file(file), profiles=TWO)
    broker.until_token("one")
    google.forget_calls()
    google.write_service_account(file, fresh=True)
    wait_for_changes(broker, 1)
    assert broker.token("two").token and google.count(MINT) == 1


def test_there_is_one_watch(start: Starter, google: Standin, file: Path) -> None:
    """However often it is rearmed."""
    broker = start(google, source=from_file(file))
    for _ in range(5):
        settled(broker, google, file)
        assert broker.reload()["result"] == "ok"
    links = [os.readlink(path) for path in Path(f"/proc/{broker.pid}/fd").iterdir()
             if path.is_symlink()]
    assert links.count("anon_inode:inotify") == 1
