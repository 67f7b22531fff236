// SPDX-License-Identifier: Apache-2.0
//! Calls the model as an application with google-cloud-auth does. Reads commands, writes answers: lines.

use std::env;
use std::error::Error;
use std::io::stdin;

use google_cloud_auth::credentials::{AccessTokenCredentials, Builder};
use serde_json::{Value, json};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
const MODEL: &str =
    "v1/projects/my-project/locations/global/publishers/google/models/gemini-2.5-flash";

async fn call(credentials: AccessTokenCredentials, model: reqwest::Client) -> Result<String> {
    let token = credentials.access_token().await?.token;
    let url = format!("{}/{MODEL}:generateContent", env::var("GOOGLE_VERTEX_BASE_URL")?);
    let ask = json!({"contents": [{"role": "user", "parts": [{"text": "Say hello."}]}]});
    let answer = model.post(url).bearer_auth(token).json(&ask).send().await?.error_for_status()?;
    let said: Value = answer.json().await?;
    let text = said["candidates"][0]["content"]["parts"][0]["text"].as_str();
    Ok(text.ok_or("the model said nothing")?.to_owned())
}

/// The error and what it comes from.
fn chain(error: &(dyn Error + 'static)) -> String {
    let source = error.source().map(|source| format!(": {}", chain(source)));
    format!("{error}{}", source.unwrap_or_default())
}

fn outcome(done: Result<String>) -> Value {
    match done {
        Ok(text) => json!({"text": text}),
        Err(error) => json!({"error": chain(error.as_ref())}),
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    // What the library asks for where it is built without one of its own.
    let provider = rustls::crypto::ring::default_provider();
    provider.install_default().map_err(|_| "another provider of cryptography is installed")?;
    let credentials = Builder::default().with_scopes([SCOPE]).build_access_token_credentials()?;
    let model = reqwest::Client::new();
    for line in stdin().lines() {
        let line = line?;
        let (_, count) = line.split_once(' ').unwrap_or((&line, "1"));
        let all = (0..count.parse()?)
            .map(|_| tokio::spawn(call(credentials.clone(), model.clone())))
            .collect::<Vec<_>>();
        let mut outcomes = Vec::new();
        for each in all {
            outcomes.push(outcome(each.await?));
        }
        println!("{}", Value::from(outcomes));
    }
    Ok(())
}
