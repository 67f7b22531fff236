// SPDX-License-Identifier: Apache-2.0
// Calls the model as an application with @anthropic-ai/vertex-sdk does.
import {AnthropicVertex} from '@anthropic-ai/vertex-sdk';

const client = new AnthropicVertex({baseURL: `${process.env.GOOGLE_VERTEX_BASE_URL}/v1`});
const ask = {
	model: 'claude-sonnet-4-5',
	max_tokens: 100,
	messages: [{role: 'user', content: 'Say hello.'}],
};

export async function call() {
	const answer = await client.messages.create(ask);
	return answer.content[0].text;
}

export async function stream() {
	const parts = [];
	for await (const event of await client.messages.create({...ask, stream: true})) {
		if (event.type === 'content_block_delta') {
			parts.push(event.delta.text);
		}
	}
	return parts.join('|');
}
