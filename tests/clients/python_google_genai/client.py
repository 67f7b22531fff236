# SPDX-License-Identifier: Apache-2.0
"""Calls the model as an application with google-genai does."""

import os

from google import genai

ASK = {"model": "gemini-2.5-flash", "contents": "Say hello."}
CLIENT = []  # made at the first call: it looks for the credentials


def client():
    if not CLIENT:
        # With an address of its own it drops a project and a location that come from variables.
        CLIENT.append(genai.Client(
            project=os.environ["GOOGLE_CLOUD_PROJECT"], location=os.environ["GOOGLE_CLOUD_LOCATION"],
            http_options={"base_url": os.environ["GOOGLE_VERTEX_BASE_URL"]}))
    return CLIENT[0]


def call():
    return client().models.generate_content(**ASK).text


def stream():
    return "|".join(part.text for part in client().models.generate_content_stream(**ASK))
