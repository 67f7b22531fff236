// SPDX-License-Identifier: Apache-2.0
// Calls the model as an application with @ai-sdk/google-vertex does. Reads commands, writes answers: lines.
import {createInterface} from 'node:readline';

import {createVertex} from '@ai-sdk/google-vertex';

const location = 'v1/projects/my-project/locations/global/publishers/google';
const model = createVertex({baseURL: `${process.env.GOOGLE_VERTEX_BASE_URL}/${location}`})(
	'gemini-2.5-flash');
const ask = {prompt: [{role: 'user', content: [{type: 'text', text: 'Say hello.'}]}]};

async function call() {
	const answer = await model.doGenerate(ask);
	return answer.content[0].text;
}

async function stream() {
	const parts = [];
	for await (const part of (await model.doStream(ask)).stream) {
		if (part.type === 'text-delta') {
			parts.push(part.delta);
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
