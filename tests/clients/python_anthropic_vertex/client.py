# SPDX-License-Identifier: Apache-2.0
"""Calls the model as an application with anthropic[vertex] does. Reads commands, writes answers: lines."""

import concurrent.futures
import json
import os
import sys

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


def outcome(do):
    try:
        return {"text": do()}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def calls(count):
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return list(pool.map(outcome, [call] * count))


for line in sys.stdin:
    command, *arguments = line.split()
    if command == "calls":
        print(json.dumps(calls(int(arguments[0]))), flush=True)
    else:
        print(json.dumps([outcome({"call": call, "stream": stream}[command])]), flush=True)
