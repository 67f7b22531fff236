// SPDX-License-Identifier: Apache-2.0
//! Calls the model as an application with gcp_auth does. Reads commands, writes answers: lines.

use std::env;
use std::error::Error;
use std::io::{Read, Write, stdin};
use std::net::TcpStream;

use gcp_auth::{MetadataServiceAccount, TokenProvider};
use serde_json::{Value, json};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const SCOPES: &[&str] = &["https://www.googleapis.com/auth/cloud-platform"];

/// One request of HTTP/1.1, without TLS: the stand-in for the model has none.
fn ask(token: &str, project: &str) -> Result<String> {
    let base = env::var("GOOGLE_VERTEX_BASE_URL")?;
    let host = base.strip_prefix("http://").ok_or("the model is not at http://")?;
    let body = json!({"contents": [{"role": "user", "parts": [{"text": "Say hello."}]}]}).to_string();
    let mut connection = TcpStream::connect(host)?;
    write!(
        connection,
        "POST /v1/projects/{project}/locations/global/publishers/google/models/gemini-2.5-flash:generateContent \
         HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer)?;
    let (_, said) = answer.split_once("\r\n\r\n").ok_or("the model's answer has no end of headers")?;
    let said: Value = serde_json::from_str(said)?;
    let text = said["candidates"][0]["content"]["parts"][0]["text"].as_str();
    Ok(text.ok_or_else(|| said.to_string())?.to_owned())
}

async fn call() -> Result<String> {
    let account = MetadataServiceAccount::new().await?;
    let token = account.token(SCOPES).await?;
    ask(token.as_str(), &account.project_id().await?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    // What the library asks for where it is built without one of its own.
    let provider = rustls::crypto::ring::default_provider();
    provider.install_default().map_err(|_| "another provider of cryptography is installed")?;
    for line in stdin().lines() {
        line?;
        let outcome = match call().await {
            Ok(text) => json!([{"text": text}]),
            Err(error) => json!([{"error": error.to_string()}]),
        };
        println!("{outcome}");
    }
    Ok(())
}
