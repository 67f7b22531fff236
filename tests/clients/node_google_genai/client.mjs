// SPDX-License-Identifier: Apache-2.0
// Calls the model as an application with @google/genai does. Reads commands, writes answers: lines.
import {createInterface} from 'node:readline';

import {GoogleGenAI} from '@google/genai';

const ai = new GoogleGenAI({});
const ask = {model: 'gemini-2.5-flash', contents: 'Say hello.'};

async function call() {
	const answer = await ai.models.generateContent(ask);
	return answer.text;
}

async function stream() {
	const parts = [];
	for await (const part of await ai.models.generateContentStream(ask)) {
		parts.push(part.text);
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
