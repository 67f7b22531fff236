// SPDX-License-Identifier: Apache-2.0
// Runs a client in JavaScript: serve.mjs CLIENT. Reads commands, functions of the client; writes outcomes: lines.
import {createInterface} from 'node:readline';
import {pathToFileURL} from 'node:url';

const client = await import(pathToFileURL(process.argv[2]));

async function outcome(work) {
	try {
		return {text: await work()};
	} catch (error) {
		return {error: `${error.name}: ${error.message}`};
	}
}

for await (const line of createInterface({input: process.stdin})) {
	const [command, count = '1'] = line.split(' ');
	// "calls N" is N of them at the same time.
	const work = command === 'calls' ? client.call : client[command];
	const done = await Promise.all(Array.from({length: Number(count)}, () => outcome(work)));
	console.log(JSON.stringify(done));
}
