# SPDX-License-Identifier: Apache-2.0
"""Calls the model as an application with google-auth does. Reads commands, writes answers: lines."""

import concurrent.futures
import json
import os
import sys

import google.auth
import google.auth.compute_engine
import google.auth.transport.requests
import google.oauth2.id_token

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
ASK = {"contents": [{"role": "user", "parts": [{"text": "Say hello."}]}]}
DEFAULT = []  # what google.auth.default() gave


def call():
    if not DEFAULT:
        DEFAULT.extend(google.auth.default(scopes=[SCOPE]))
    credentials, project = DEFAULT
    session = google.auth.transport.requests.AuthorizedSession(credentials)
    answer = session.post(
        f"{os.environ['GOOGLE_VERTEX_BASE_URL']}/v1/projects/{project}/locations/global"
        "/publishers/google/models/gemini-2.5-flash:generateContent", json=ASK)
    answer.raise_for_status()
    return answer.json()["candidates"][0]["content"]["parts"][0]["text"]


def identity():
    request = google.auth.transport.requests.Request()
    return google.oauth2.id_token.fetch_id_token(request, "https://service.example")


def project():
    return google.auth.default(scopes=[SCOPE])[1]


def foreign():
    credentials = google.auth.compute_engine.Credentials(
        service_account_email="other@my-project.iam.gserviceaccount.com", scopes=[SCOPE])
    credentials.refresh(google.auth.transport.requests.Request())
    return credentials.token


def outcome(do):
    try:
        return {"text": do()}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def calls(count):
    if not DEFAULT:
        DEFAULT.extend(google.auth.default(scopes=[SCOPE]))
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return list(pool.map(outcome, [call] * count))


COMMANDS = {"call": call, "project": project, "foreign": foreign, "identity": identity}
for line in sys.stdin:
    command, *arguments = line.split()
    if command == "calls":
        print(json.dumps(calls(int(arguments[0]))), flush=True)
    else:
        print(json.dumps([outcome(COMMANDS[command])]), flush=True)
