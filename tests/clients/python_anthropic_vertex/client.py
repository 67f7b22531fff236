# SPDX-License-Identifier: Apache-2.0
"""Calls the model as an application with anthropic[vertex] does."""

import os

from anthropic import AnthropicVertex

ASK = {"model": "claude-sonnet-4-5", "max_tokens": 100,
       "messages": [{"role": "user", "content": "Say hello."}]}
CLIENT = []


def client():
    if not CLIENT:
        CLIENT.append(AnthropicVertex(base_url=f"{os.environ['GOOGLE_VERTEX_BASE_URL']}/v1"))
    return CLIENT[0]


def call():
    return client().messages.create(**ASK).content[0].text


def stream():
    with client().messages.stream(**ASK) as answer:
        return "|".join(answer.text_stream)
