// SPDX-License-Identifier: Apache-2.0
// Calls the model as an application with @ai-sdk/google-vertex does.
import {createVertex} from '@ai-sdk/google-vertex';

const location = 'v1/projects/my-project/locations/global/publishers/google';
const model = createVertex({baseURL: `${process.env.GOOGLE_VERTEX_BASE_URL}/${location}`})(
	'gemini-2.5-flash');
const ask = {prompt: [{role: 'user', content: [{type: 'text', text: 'Say hello.'}]}]};

export async function call() {
	const answer = await model.doGenerate(ask);
	return answer.content[0].text;
}

export async function stream() {
	const parts = [];
	for await (const part of (await model.doStream(ask)).stream) {
		if (part.type === 'text-delta') {
			parts.push(part.delta);
		}
	}
	return parts.join('|');
}
