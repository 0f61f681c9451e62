//! A session of the environment service.

use std::time::Instant;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

/// The error of a session whose connection has ended.
pub const CLOSED: &str = "the session has ended";

/// A session; its episode ends when it is dropped.
pub struct Session(WebSocketStream<MaybeTlsStream<TcpStream>>);

/// An answer, and the time from the request to it in milliseconds.
pub struct Answer {
    pub data: Value,
    pub took: f64,
}

impl Session {
    /// Connects to the service of a daemon.
    pub async fn open(port: u16) -> Self {
        let address = format!("ws://127.0.0.1:{port}/ws");
        Self(tokio_tungstenite::connect_async(address).await.expect("a session").0)
    }

    /// Sends a message, and waits for the answer.
    ///
    /// Errors: the text of an error frame.
    async fn ask(&mut self, request: Value) -> Result<Answer, String> {
        let begun = Instant::now();
        self.0.send(Message::text(request.to_string())).await.map_err(|error| format!("{CLOSED}: {error}"))?;
        loop {
            let message = self.0.next().await.ok_or(CLOSED)?.map_err(|error| format!("{CLOSED}: {error}"))?;
            if let Message::Text(text) = message {
                let took = begun.elapsed().as_secs_f64() * 1e3;
                let mut answer: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
                return match answer["type"] == "error" {
                    true => Err(answer["data"]["message"].to_string()),
                    false => Ok(Answer { data: answer["data"].take(), took }),
                };
            }
        }
    }

    /// Begins an episode in place of the one that the session has.
    pub async fn reset(&mut self, data: Value) -> Result<Answer, String> {
        self.ask(json!({ "type": "reset", "data": data })).await
    }

    /// Performs an action in the browser of the episode.
    pub async fn step(&mut self, action: &str) -> Result<Answer, String> {
        self.ask(json!({ "type": "step", "data": { "action": action } })).await
    }

    /// Returns the daemon's id of the episode.
    pub async fn episode(&mut self) -> String {
        let state = self.ask(json!({ "type": "state" })).await.expect("a state");
        state.data["arenad_episode"].as_str().expect("an episode").to_owned()
    }
}
