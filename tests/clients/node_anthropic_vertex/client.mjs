// SPDX-License-Identifier: Apache-2.0
// Calls the model as an application with @anthropic-ai/vertex-sdk does. Reads commands, writes answers: lines.
import {createInterface} from 'node:readline';

import {AnthropicVertex} from '@anthropic-ai/vertex-sdk';

const client = new AnthropicVertex({baseURL: `${process.env.GOOGLE_VERTEX_BASE_URL}/v1`});
const ask = {
	model: 'claude-sonnet-4-5',
	max_tokens: 100,
	messages: [{role: 'user', content: 'Say hello.'}],
};

async function call() {
	const answer = await client.messages.create(ask);
	return answer.content[0].text;
}

async function stream() {
	const parts = [];
	for await (const event of await client.messages.create({...ask, stream: true})) {
		if (event.type === 'content_block_delta') {
			parts.push(event.delta.text);
		}
	}
	return parts.join('|');
}

async function outcome(work) {
	try {
		return {text: await work()};
	} catch (error) {
		return {error: `${error.name}: ${error.message}`};
	}
}

for await (const line of createInterface({input: process.stdin})) {
	const [command, count = '1'] = line.split(' ');
	const work = {call, calls: call, stream}[command];
	const done = await Promise.all(Array.from({length: Number(count)}, () => outcome(work)));
	console.log(JSON.stringify(done));
}
