# SPDX-License-Identifier: Apache-2.0
"""Every identity that a bastion can have: each kind of source, from its file to a minted token."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.google import credentials
from tests.google.federation import WORKFORCE
from tests.google.script import Step
from tests.google.standin import ACCOUNT, PROJECT, SOURCE_ACCOUNT, USER, VM_ACCOUNT, Standin

from . import gcloud, leaks
from .broker import Broker, run
from .conftest import SUMMARY, Starter, new_directory
from .configuration import endpoints_of, render
from .deadline import eventually
from .gcloud import config_helper, program
from .http1 import TOKEN, request
from .sessions import opened

ALLOW = {"GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES": "1"}
MINT = "generateAccessToken"
MIDDLE = "middle@my-project.iam.gserviceaccount.com"


def from_file(path: Path, **more: Any) -> dict[str, Any]:
    """The [source] of a credential file."""
    return {"type": "file", "file": path, **more}


def assert_minted(broker: Broker, google: Standin, caller: str, mints: int = 1) -> None:
    """A token of the profile's account, by a call of this caller, and no call more than that."""
    # some steps, some of them programs: under valgrind longer than a request waits
    assert eventually("a token", lambda: broker.token().status == 200, 30)
    token = broker.token().token
    issued = google.token_info(token)
    assert issued is not None and issued.minted and issued.principal == ACCOUNT
    assert google.calls_of(MINT)[-1].principal == caller
    assert google.count(MINT) == mints
    calls = len(google.calls)
    assert broker.token().token == token and len(google.calls) == calls


# external_account


def test_a_token_in_a_file_becomes_a_minted_one(start: Starter, google: Standin) -> None:
    broker = start(google, source=from_file(google.write_external_account()))
    assert google.calls == []
    assert_minted(broker, google, google.principal())
    sts = google.calls_of("sts")
    assert len(sts) == 1 and "options" not in sts[0].body and "authorization" not in sts[0].headers
    assert broker.status()["source"]["type"] == "external_account"


def test_a_token_in_a_file_is_read_anew_at_each_try(start: Starter, google: Standin) -> None:
    """google-cloud-go#12440, golang/oauth2#755: a token that was read long ago is stale."""
    broker = start(google, source=from_file(google.write_external_account()))
    file = google.directory / "subject-token"
    file.write_text(google.new_subject_token(life_s=-60))
    refused = broker.token()
    assert refused.status == 403 and "login has expired" in refused.json["error_description"]
    broker.wait_for_log("step=sts http_status=400 reason=invalid_grant .*older than an hour.*"
                        "; it ended [6-9][0-9] s ago")
    file.write_text(google.new_subject_token() + "\n\n")
    # a permanent failure is kept for 30 s, or until the source is another one
    google.write_external_account(quota_project_id="another-source")
    assert broker.reload()["result"] == "ok"
    assert_minted(broker, google, google.principal())


def test_a_missing_file_is_said_and_used_when_it_is_there(start: Starter, google: Standin) -> None:
    path = google.write_external_account(source={"file": str(google.directory / "projected")})
    broker = start(google, source=from_file(path))
    reply = broker.token()
    assert reply.status == 503 and "temporarily" in reply.json["error_description"]
    broker.wait_for_log("step=subject_token .*reason=subject_token_file .*class=transient")
    (google.directory / "projected").write_text(google.new_subject_token())
    assert eventually("a token", lambda: broker.token().status == 200)
    assert google.count("sts") == 1


def test_a_token_of_a_url_needs_its_host_to_be_listed(start: Starter, google: Standin) -> None:
    secret = "header-s3cret-of-the-url"
    google.state.subject_headers = {"X-Key": secret}
    google.new_subject_token()
    path = google.write_external_account(source={
        "url": google.subject_token_url + "?format=json", "headers": {"X-Key": secret},
        "format": {"type": "json", "subject_token_field_name": "value"}})
    broker = start(google, source=from_file(path, subject_token_hosts="127.0.0.1"))
    assert_minted(broker, google, google.principal())
    assert google.count("subjectToken") == 1
    refused = check(broker.directory, google, from_file(path))
    assert "credential_source.url" in refused and "subject_token_hosts" in refused


def test_a_plain_url_needs_loopback_and_the_key(start: Starter, google: Standin) -> None:
    google.new_subject_token()
    path = google.write_external_account(source={"url": f"{google.http_url}/subject-token"})
    broker = start(google, source=from_file(path), endpoints={"allow_http_loopback": "yes"})
    assert_minted(broker, google, google.principal())
    assert "subject_token_hosts" in check(broker.directory, google, from_file(path))


def printed(token: str, **more: Any) -> str:
    """What a program for subject tokens prints."""
    return json.dumps({"version": 1, "success": True, "id_token": token,
                       "token_type": "urn:ietf:params:oauth:token-type:id_token", **more})


def test_a_token_of_a_program_needs_to_be_allowed(start: Starter, google: Standin) -> None:
    answer = google.directory / "answer"
    answer.write_text(printed(google.new_subject_token()))
    leaks.note({"stderr-s3cret-of-the-program"})
    path = google.write_external_account(source={"executable": {
        "command": f"{program(google.directory, 'echo stderr-s3cret-of-the-program >&2; cat $1')} "
                   f"{answer}"}})
    broker = start(google, source=from_file(path), env=ALLOW)
    assert_minted(broker, google, google.principal())
    refused = check(broker.directory, google, from_file(path))
    assert "credential_source.executable" in refused and "ALLOW_EXECUTABLES=1" in refused


def test_a_program_that_fails_holds_up_nobody(start: Starter, google: Standin) -> None:
    leaks.note({"stderr-s3cret-of-the-program"})
    path = google.write_external_account(source={"executable": {"command": str(
        program(google.directory, "echo stderr-s3cret-of-the-program >&2; exit 7"))}})
    broker = start(google, source=from_file(path), env=ALLOW)
    assert broker.token().status == 503
    broker.wait_for_log("step=subject_token .*reason=executable_failed .*class=transient")
    assert google.calls == []


def test_a_program_under_way_ends_with_the_broker(start: Starter, google: Standin) -> None:
    mark = google.directory / "running"
    path = google.write_external_account(source={"executable": {
        "command": str(program(google.directory, f"echo $$ > {mark}; exec sleep 600")),
        "timeout_millis": 120000}})
    broker = start(google, source=from_file(path), env=ALLOW)
    assert broker.token().status == 503
    pid = int(mark.read_text())
    assert Path(f"/proc/{pid}").exists()
    assert broker.stop() == 0
    assert not Path(f"/proc/{pid}").exists()


def test_an_impersonated_account_is_the_source(start: Starter, google: Standin) -> None:
    google.grant(google.principal(), SOURCE_ACCOUNT)
    google.revoke(google.principal(), ACCOUNT)
    broker = start(google, source=from_file(
        google.write_external_account(impersonate=SOURCE_ACCOUNT)))
    assert_minted(broker, google, SOURCE_ACCOUNT, mints=2)
    inner = google.calls_of(MINT)[0]
    assert inner.principal == google.principal() and SOURCE_ACCOUNT in inner.path
    assert inner.body["scope"] == ["https://www.googleapis.com/auth/iam"]
    assert broker.status()["source"]["principal"] == SOURCE_ACCOUNT


def test_an_impersonated_account_that_is_the_profiles_is_minted_once(start: Starter,
                                                                     google: Standin) -> None:
    broker = start(google, source=from_file(google.write_external_account(impersonate=ACCOUNT)))
    assert_minted(broker, google, google.principal())
    assert google.calls_of(MINT)[0].body["scope"] == [
        "https://www.googleapis.com/auth/cloud-platform"]


def test_a_pool_without_the_role_is_told_so(start: Starter, google: Standin) -> None:
    """google-github-actions/auth#455"""
    broker = start(google, source=from_file(
        google.write_external_account(impersonate=SOURCE_ACCOUNT)))
    assert broker.token().status == 403
    broker.wait_for_log("step=impersonate http_status=403 reason=IAM_PERMISSION_DENIED .*"
                        "roles/iam.workloadIdentityUser")
    assert google.count(MINT) == 1


def test_a_workforce_pool_names_its_project(start: Starter, google: Standin) -> None:
    path = google.write_external_account(audience=WORKFORCE, workforce_pool_user_project=PROJECT)
    broker = start(google, source=from_file(path))
    assert_minted(broker, google, google.principal(WORKFORCE))
    assert google.calls_of("sts")[0].body["options"].startswith("%7B")


def test_a_client_of_a_workforce_pool_authenticates(start: Starter, google: Standin) -> None:
    secret = "cl1ent:s3cret/of+it~that.is_searched-for="
    google.state.federation.providers[WORKFORCE].client = ("client", secret)
    path = google.write_external_account(
        audience=WORKFORCE, client_id="client", client_secret=secret,
        workforce_pool_user_project=PROJECT)
    broker = start(google, source=from_file(path))
    assert_minted(broker, google, google.principal(WORKFORCE))


# impersonated_service_account


def test_a_login_that_impersonates_is_a_chain_of_two(start: Starter, google: Standin) -> None:
    """golang/oauth2#515: such a file was not known."""
    google.add_account(MIDDLE)
    google.grant(USER, MIDDLE)
    google.grant(MIDDLE, ACCOUNT)
    broker = start(google, source=from_file(google.write_impersonated(account=MIDDLE)))
    assert_minted(broker, google, MIDDLE, mints=2)
    assert google.count("token") == 1


def test_a_login_that_impersonates_the_profiles_account_mints_once(start: Starter,
                                                                   google: Standin) -> None:
    google.revoke(USER, ACCOUNT)
    google.add_account(MIDDLE)
    google.grant(USER, MIDDLE)
    google.grant(MIDDLE, ACCOUNT)
    broker = start(google, source=from_file(
        google.write_impersonated(account=ACCOUNT, delegates=(MIDDLE,))))
    assert_minted(broker, google, USER)
    assert google.calls_of(MINT)[0].body["delegates"] == [f"projects/-/serviceAccounts/{MIDDLE}"]


def test_a_preflight_asks_for_who_would_mint(start: Starter, google: Standin) -> None:
    """Not for the account's grant on itself, where the login within mints straight."""
    broker = start(google, source=from_file(google.write_impersonated(account=ACCOUNT)))
    assert opened(broker, preflight="grant")
    asked = google.calls_of("testIamPermissions")
    assert [call.principal for call in asked] == [USER] and google.count(MINT) == 0


@pytest.mark.parametrize("kind", ["service_account", "external_account"])
def test_other_credentials_may_impersonate(start: Starter, google: Standin, kind: str) -> None:
    """google-auth-library-java#1843: only some kinds could stand within."""
    google.add_account(MIDDLE)
    google.grant(SOURCE_ACCOUNT, MIDDLE)
    google.grant(google.principal(), MIDDLE)
    google.grant(MIDDLE, ACCOUNT)
    source = (google.service_account_key() if kind == "service_account"
              else json.loads(google.write_external_account().read_text()))
    broker = start(google, source=from_file(
        google.write_impersonated(account=MIDDLE, source=source)))
    assert_minted(broker, google, MIDDLE, mints=2)


# the machine


def test_the_machines_account_is_the_source(start: Starter, google: Standin) -> None:
    broker = start(google, source={"type": "metadata", "metadata_host": google.metadata_host})
    assert google.calls == []
    assert_minted(broker, google, VM_ACCOUNT)
    kinds = [call.kind for call in google.calls]
    assert kinds == ["metadataUniverse", "metadataEmail", "metadataToken", MINT]
    assert {call.headers["metadata-flavor"] for call in google.calls[:3]} == {"Google"}
    assert broker.status()["source"]["principal"] == VM_ACCOUNT


def test_the_machines_account_ends_the_search_where_that_is_configured(
        start: Starter, google: Standin) -> None:
    broker = start(google, source={"type": "adc", "adc_metadata": "yes",
                                   "metadata_host": google.metadata_host})
    assert_minted(broker, google, VM_ACCOUNT)
    refused = check(broker.directory, google, {"type": "adc"})
    assert "application_default_credentials.json" in refused


def test_a_login_comes_before_the_machines_account(start: Starter, google: Standin) -> None:
    home = google.directory / "config"
    home.mkdir()
    google.write_adc(home / "application_default_credentials.json")
    broker = start(google, env={"CLOUDSDK_CONFIG": str(home)},
                   source={"type": "adc", "adc_metadata": "yes",
                           "metadata_host": google.metadata_host})
    assert_minted(broker, google, USER)


def test_a_machine_with_few_scopes_is_told_so(start: Starter, google: Standin) -> None:
    """fluent/fluent-bit#5410"""
    google.state.vm.scopes = ("https://www.googleapis.com/auth/devstorage.read_only",)
    broker = start(google, source={"type": "metadata", "metadata_host": google.metadata_host})
    assert broker.token().status == 403
    broker.wait_for_log("reason=ACCESS_TOKEN_SCOPE_INSUFFICIENT")


def test_what_is_no_metadata_server_is_not_believed(start: Starter, google: Standin) -> None:
    google.always("metadataUniverse", Step(missing="Metadata-Flavor"))
    broker = start(google, source={"type": "metadata", "metadata_host": google.metadata_host})
    assert broker.token().status == 403
    broker.wait_for_log("step=metadata .*reason=no_metadata_server .*metadata_host")
    assert google.count("metadataToken") == 0


def test_the_broker_never_asks_itself(start: Starter, google: Standin) -> None:
    broker = start(google)
    host, port = broker.address()
    broker.configure(source={"type": "metadata", "metadata_host": f"{host}:{port}"})
    assert broker.reload()["result"] == "refused"
    broker.wait_for_log("an endpoint of this broker")
    settings = {"listen": f"127.0.0.1:{port}"}
    refused = check(broker.directory, google, {
        "type": "metadata", "metadata_host": f"localhost:{port}"}, settings)
    assert "metadata_host" in refused


@pytest.mark.parametrize(("name", "result"), [
    ("metadata:{port}", "refused"), ("Metadata.Google.Internal:{port}", "refused"),
    ("metadata.google.internal:1", "ok"), ("host.containers.internal:{port}", "refused"),
    ("host.docker.internal:{port}", "refused"), ("docker.example:{port}", "refused"),
    ("other.example:{port}", "ok")])
def test_the_broker_never_asks_itself_by_a_name_that_it_answers_to(
        start: Starter, google: Standin, name: str, result: str) -> None:
    """Only localhost was thought of; the others are accepted in Host as well. No one is asked here."""
    broker = start(google, profiles={"one": {}, "two": {"advertise_host": "docker.example"}})
    profile = "two" if name.startswith("docker.example") else "one"
    broker.configure(source={"type": "metadata", "metadata_host": name.format(
        port=broker.address(profile)[1])}, profiles={
            "one": {}, "two": {"advertise_host": "docker.example"}})
    assert broker.reload()["result"] == result
    assert ("an endpoint of this broker" in broker.log) == (result == "refused")


def test_a_session_of_the_broker_is_no_metadata_server(start: Starter, google: Standin) -> None:
    broker = start(google)
    port = opened(broker)["listen"].rpartition(":")[2]
    broker.configure(source={"type": "metadata", "metadata_host": f"127.0.0.1:{port}"})
    assert broker.reload()["result"] == "refused"


# gcloud


def test_the_login_of_gcloud_is_the_source(start: Starter, google: Standin) -> None:
    token = google.issue_source_token()
    asked = config_helper(google.directory, USER, token, "2099-01-01T00:00:00Z")
    broker = start(google, source={"type": "gcloud", "gcloud": asked},
                   env={"CLOUDSDK_AUTH_IMPERSONATE_SERVICE_ACCOUNT": MIDDLE},
                   profiles={"one": {}, "two": {"lifetime": "30m"}})
    assert google.calls == []
    assert_minted(broker, google, USER)
    # djc/gcp_auth#57: its token is kept, also for the other profile
    assert eventually("a token", lambda: broker.token("two").status == 200)
    assert (google.directory / "runs").read_text() == "run\n"
    source = broker.status()["source"]
    assert (source["type"], source["principal"]) == ("gcloud", USER)


def test_a_gcloud_that_is_slow_holds_up_nobody(start: Starter, google: Standin) -> None:
    """googleapis/google-cloud-cpp#1457: one slow refresh held up everybody."""
    mark = google.directory / "running"
    broker = start(google, source={"type": "gcloud", "gcloud": program(
        google.directory, f"touch {mark}; exec sleep 600")})
    with broker.client() as waiting:
        waiting.send(request(TOKEN))
        eventually("gcloud runs", mark.exists)
        assert broker.get("/").status == 200 and waiting.is_silent()
        assert waiting.read().status == 503
    assert broker.stop() == 0


def test_a_gcloud_without_a_login_names_the_command(start: Starter, google: Standin) -> None:
    asked = program(google.directory,
                    "echo 'ERROR: You do not currently have an active account selected.' >&2\n"
                    "exit 1")
    broker = start(google, source={"type": "gcloud", "gcloud": asked})
    reply = broker.token()
    assert reply.status == 403 and "login has expired" in reply.json["error_description"]
    broker.wait_for_log("step=gcloud .*gcloud auth login")


@pytest.mark.real_time  # a wrapped broker beside a gcloud that starts for seconds
def test_gcloud_itself_is_asked(artifacts: Path, request: pytest.FixtureRequest) -> None:
    """The machine's own where there is one; the summary of the run says which."""
    said = request.config.stash[SUMMARY]
    with gcloud.login(impersonated=MIDDLE) as login:
        leaks.note(login.google.secrets())
        with Broker(new_directory(artifacts, request.node.nodeid), login.google, env=login.env,
                    source={"type": "gcloud", "gcloud": login.program}) as broker:
            assert_minted(broker, login.google, SOURCE_ACCOUNT)
            assert broker.status()["source"]["principal"] == SOURCE_ACCOUNT
        leaks.note(login.google.secrets())
    said.append(gcloud.which()[1])


# what is refused at the start


def check(directory: Path, google: Standin, source: Mapping[str, Any],
          profile: Mapping[str, Any] | None = None) -> str:
    """What a broker says that does not start with this source."""
    file = directory / "refused.conf"
    file.write_text(render({
        "broker": {"control_socket": directory / "refused.sock", "audit_log": "off"},
        "source": source, "endpoints": endpoints_of(google),
        "profile refused": {"service_account": ACCOUNT, "project": PROJECT, **(profile or {})}}))
    ended = run("--config", file, home=directory)
    assert ended.returncode == 2, ended
    return ended.stderr


def test_a_gcloud_that_is_not_there_is_refused(directory: Path, google: Standin) -> None:
    refused = check(directory, google, {"type": "gcloud", "gcloud": "/nonexistent/gcloud"})
    assert "/nonexistent/gcloud" in refused and "gcloud under [source]" in refused


@pytest.mark.parametrize("name", ["external_account_authorized_user", "gdch_service_account"])
def test_other_types_of_files_are_refused_by_name(directory: Path, google: Standin,
                                                  name: str) -> None:
    path = credentials.write_credential(directory / "source.json", {"type": name})
    assert f"{name} is not supported" in check(directory, google, from_file(path))


@pytest.mark.parametrize("source, name", [
    ({"environment_id": "aws1", "url": "http://169.254.169.254/"}, "aws"),
    ({"certificate": {"use_default_certificate_config": True}}, "certificate"),
    ({"file": "/a", "url": "https://127.0.0.1/"}, "several sources"),
])
def test_other_subject_tokens_are_refused_by_name(directory: Path, google: Standin,
                                                  source: dict[str, Any], name: str) -> None:
    path = google.write_external_account(source=source)
    refused = check(directory, google, from_file(path))
    assert name in refused and str(path) in refused and "credential_source" in refused


def test_a_foreign_url_of_a_file_is_refused(directory: Path, google: Standin) -> None:
    path = google.write_external_account(token_url="https://sts.evil.example/v1/token")
    refused = check(directory, google, from_file(path))
    assert '"token_url" is "https://sts.evil.example' in refused


def test_a_url_of_the_stand_in_is_the_configured_endpoint(start: Starter,
                                                          google: Standin) -> None:
    path = google.write_external_account(token_url=f"{google.url_of('sts')}/v1/token")
    broker = start(google, source=from_file(path))
    assert_minted(broker, google, google.principal())
