// SPDX-License-Identifier: Apache-2.0
// Calls the model as an application with google-auth-library does.
import {Compute, GoogleAuth} from 'google-auth-library';

const auth = new GoogleAuth({scopes: 'https://www.googleapis.com/auth/cloud-platform'});
const ask = {contents: [{role: 'user', parts: [{text: 'Say hello.'}]}]};

export async function call() {
	const client = await auth.getClient();
	const project = await auth.getProjectId();
	const answer = await client.request({
		url: `${process.env.GOOGLE_VERTEX_BASE_URL}/v1/projects/${project}/locations/global` +
			'/publishers/google/models/gemini-2.5-flash:generateContent',
		method: 'POST',
		data: ask,
	});
	return answer.data.candidates[0].content.parts[0].text;
}

export async function project() {
	return auth.getProjectId();
}

export async function foreign() {
	const account = 'other@my-project.iam.gserviceaccount.com';
	return (await new Compute({serviceAccountEmail: account}).getAccessToken()).token;
}

export async function identity() {
	const client = await auth.getIdTokenClient('https://service.example');
	const headers = await client.getRequestHeaders();
	return headers.get('authorization');
}
