# SPDX-License-Identifier: Apache-2.0
"""Public reports about minters of tokens, and the test that each of them has: it names the report."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# by the file of the test: the test, and the reports that it is about
TESTS: dict[str, dict[str, list[str]]] = {
    "tests/integration/test_failure_matrix.py": {
        "test_a_failure": ["google-auth-library-python#1850", "google-cloud-go#20563"],
    },
    "tests/integration/test_time_zones.py": {
        "test_a_token_lives_as_long_in_every_zone": ["google-auth-library-java#931"],
    },
    "tests/integration/test_crossover.py": {
        "test_no_client_gets_a_token_of_another_account": ["apache/arrow-rs-object-store#805"],
    },
    "tests/integration/test_public_reports.py": {
        "test_a_busy_metadata_server_is_asked_again": ["google-cloud-go#10610"],
        "test_a_metadata_servers_old_token_is_not_polled": ["googleapis/google-cloud-cpp#8255"],
        "test_a_metadata_servers_token_is_no_credential": ["aaif-goose/goose#8929"],
        "test_a_busy_token_service_ends_nothing": ["google-github-actions/auth#427"],
        "test_a_refused_token_costs_one_exchange": ["google-cloud-java#14212"],
        "test_a_session_that_is_over_is_not_tried_again": ["anthropics/blobfile#2"],
        "test_a_lifetime_of_12_hours_is_googles_to_refuse": [
            "googleapis/google-api-go-client#1185"],
        "test_scopes_are_the_profiles_whatever_the_login_impersonates": [
            "google-auth-library-python#1864"],
        "test_an_account_that_was_deleted_is_said_to_be_gone": [
            "googleapis/google-cloud-php#3622"],
        "test_a_source_that_is_disabled_is_said_to_be": ["google-api-ruby-client#720"],
    },
    "tests/integration/test_error_tables.py": {
        "test_a_row": ["google-github-actions/auth#340"],
    },
    "tests/integration/test_refresh.py": {
        "test_a_token_that_is_due_is_served_at_once_and_renewed_behind": [
            "google-auth-library-python#581"],
        "test_every_form_of_a_good_answer_is_read": ["google-api-dotnet-client#1838"],
        "test_waiters_behind_the_margin_share_one_mint": ["google-cloud-go#12586"],
        "test_an_expired_token_is_never_served": ["google-auth-library-php#308"],
        "test_a_stale_token_is_served_where_the_mint_fails": ["djc/gcp_auth#1"],
        "test_a_storm_of_clients_is_no_storm_of_mints": ["LianjiaTech/bella-openapi#386"],
    },
    "tests/integration/test_single_flight.py": {
        "test_all_of_them_leaving_ends_no_mint": ["google-cloud-go#10919"],
        "test_a_thousand_first_requests_make_one_mint": ["google-auth-library-python#1780"],
    },
    "tests/integration/test_sources.py": {
        "test_a_token_in_a_file_is_read_anew_at_each_try": [
            "google-cloud-go#12440", "golang/oauth2#755"],
        "test_a_gcloud_that_is_slow_holds_up_nobody": ["googleapis/google-cloud-cpp#1457"],
        "test_the_login_of_gcloud_is_the_source": ["djc/gcp_auth#57"],
        "test_a_pool_without_the_role_is_told_so": ["google-github-actions/auth#455"],
        "test_a_machine_with_few_scopes_is_told_so": ["fluent/fluent-bit#5410"],
        "test_a_login_that_impersonates_is_a_chain_of_two": ["golang/oauth2#515"],
        "test_other_credentials_may_impersonate": ["google-auth-library-java#1843"],
    },
    "tests/integration/test_tokens.py": {
        "test_expires_in_counts_down": ["google-auth-library-ruby#464"],
        "test_an_assertion_is_what_google_asks_for": ["google-auth-library-java#682"],
        "test_a_clock_that_is_off_is_told_and_made_up_for": [
            "googleapis/google-api-php-client#1501"],
        "test_every_attempt_has_an_assertion_of_its_own": ["peburrows/goth#113"],
        "test_a_quota_project_of_the_file_is_not_sent": ["googleapis/google-cloud-java#14450"],
    },
    "tests/integration/test_mint_failures.py": {
        "test_a_fault_of_the_login_is_told_from_one_of_google": [
            "google-auth-library-nodejs#1961"],
    },
    "tests/integration/test_reload.py": {
        "test_a_new_login_counts_at_once": ["anthropics/claude-code#726"],
    },
    "tests/unit/test_gcloud.c": {"a_session_that_is_over_says_so": ["cline/cline#4080"]},
    "tests/unit/test_impersonated.c": {
        "each_token_is_kept_by_its_own_expiry": [
            "google-auth-library-python#516", "stacklok/toolhive#6237"],
    },
    "tests/unit/test_rfc3339.c": {
        "timestamps_are_read_to_the_millisecond": ["vacp2p/nim-libp2p#2975"],
    },
    "tests/unit/test_iam_credentials.c": {
        "an_expire_time_that_cannot_be_read_is_a_failed_mint": ["masumi-network/Citadel#203"],
    },
    "tests/unit/test_token_cache.c": {
        "short_lived_tokens_do_not_become_a_mint_a_request": ["apache/arrow-rs#6625"],
        "a_life_of_29_s_is_served_to_those_who_waited_and_for_a_second": [
            "GoogleCloudPlatform/esp-v2#137"],
    },
    "tests/unit/test_token_cache_waits.c": {
        "a_callback_may_ask_again_and_has_the_new_token_at_once": [
            "google-auth-library-java#1002"],
    },
    "tests/unit/test_token_cache_clocks.c": {
        "a_suspended_machine_finds_its_token_aged": ["ltratt/pizauth#47"],
    },
    "tests/unit/test_token_cache_failures.c": {
        "a_permanent_failure_is_kept_for_30_s": ["hashicorp/terraform-provider-google#15042"],
    },
    "tests/unit/test_external_account.c": {
        "a_file_is_read_anew_at_every_refresh_and_trimmed": ["Azure/azure-sdk-for-rust#1739"],
    },
}
REPORTS = [(report, path, test) for path, tests in TESTS.items()
           for test, reports in tests.items() for report in reports]


def text_of(path: str, test: str) -> str:
    """A test with its docstring, or with the comment above it; "" where it is not run."""
    text = (ROOT / path).read_text()
    if path.endswith(".py"):
        found = re.search(rf"^def {test}\(.*?(?=\n\n\n|\Z)", text, re.M | re.S)
        return found[0] if found else ""
    at = text.find(f"\nstatic void {test}(void **state)\n{{")
    # besides its definition, the list that is run
    if at < 0 or len(re.findall(rf"\b{test}\b", text)) < 2:
        return ""
    return text[max(text.rfind("\n}\n", 0, at), 0):text.find("\n}\n", at)]


@pytest.mark.parametrize("report, path, test", REPORTS, ids=[report for report, *_ in REPORTS])
def test_a_report_has_a_test_that_names_it(report: str, path: str, test: str) -> None:
    assert re.fullmatch(r"[\w.-]+(/[\w.-]+)?#\d+", report)
    assert report in text_of(path, test), f"{path} has no {test} that names {report}"


def test_there_are_enough_of_them() -> None:
    assert len({report for report, *_ in REPORTS}) >= 30
