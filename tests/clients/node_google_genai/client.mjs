// SPDX-License-Identifier: Apache-2.0
// Calls the model as an application with @google/genai does.
import {GoogleGenAI} from '@google/genai';

const ai = new GoogleGenAI({});
const ask = {model: 'gemini-2.5-flash', contents: 'Say hello.'};

export async function call() {
	const answer = await ai.models.generateContent(ask);
	return answer.text;
}

export async function stream() {
	const parts = [];
	for await (const part of await ai.models.generateContentStream(ask)) {
		parts.push(part.text);
	}
	return parts.join('|');
}
