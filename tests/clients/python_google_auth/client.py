# SPDX-License-Identifier: Apache-2.0
"""Calls the model as an application with google-auth does."""

import os
import threading

import google.auth
import google.auth.compute_engine
import google.auth.transport.requests
import google.oauth2.id_token

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
ASK = {"contents": [{"role": "user", "parts": [{"text": "Say hello."}]}]}
DEFAULT = []  # what google.auth.default() gave
ONCE = threading.Lock()


def call():
    with ONCE:
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
