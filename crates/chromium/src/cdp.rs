//! A connection to a browser that speaks the Chrome DevTools Protocol: commands with their replies, and the events of
//! sessions that have a listener.
//!
//! One task owns the connection. It enables no domain by itself, so a page of the agent is left unchanged.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

use crate::transport::{self, IncomingMessages, OutgoingMessages};

/// The reason why a command has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CdpError {
    /// The browser or its connection has ended.
    #[error("it has gone")]
    Gone,
    /// The browser rejected the command.
    #[error("{method}: {message}")]
    Refused {
        /// Name of the rejected command.
        method: &'static str,
        /// Error message of the browser.
        message: String,
    },
}

/// A command in the form in which it is sent.
#[derive(Debug, Serialize)]
struct CdpCommand<'a> {
    id: u64,
    method: &'a str,
    #[serde(rename = "sessionId", skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
    params: &'a Json,
}

/// A message from the browser: a reply has the number of its command, an event has a method.
#[derive(Debug, Deserialize)]
struct CdpMessage {
    id: Option<u64>,
    method: Option<String>,
    #[serde(rename = "sessionId")]
    session: Option<String>,
    params: Option<Json>,
    result: Option<Json>,
    error: Option<CdpRefusal>,
}

#[derive(Debug, Deserialize)]
struct CdpRefusal {
    #[serde(default)]
    message: String,
}

/// An event, such as `Page.loadEventFired`.
#[derive(Debug)]
pub struct CdpEvent {
    /// Name of the event.
    pub method: String,
    /// Parameters of the event.
    pub params: Json,
}

enum CdpOrder {
    Call { method: &'static str, session: Option<String>, params: Json, reply: oneshot::Sender<Result<Json, CdpError>> },
    Listen { session: String, events: mpsc::UnboundedSender<CdpEvent> },
    Forget { session: String },
}

/// A connection, shared by the owners of its pages.
#[derive(Clone)]
pub struct Cdp {
    orders: mpsc::UnboundedSender<CdpOrder>,
    task: Arc<CdpTask>,
}

struct CdpTask(AbortHandle);

impl Drop for CdpTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Cdp {
    /// Connects to a WebSocket address. The browser's messages have at most `message_max` bytes.
    pub async fn connect(address: &str, message_max: usize) -> io::Result<Self> {
        transport::websocket(address, message_max).await.map(Self::over)
    }

    /// Starts a connection over a transport.
    pub fn over((incoming, outgoing): (IncomingMessages, OutgoingMessages)) -> Self {
        let (orders, inbox) = mpsc::unbounded_channel();
        let task = tokio::spawn(serve(incoming, outgoing, inbox));
        Self { orders, task: Arc::new(CdpTask(task.abort_handle())) }
    }

    /// Returns whether the connection to the browser has ended.
    pub fn is_gone(&self) -> bool {
        self.orders.is_closed()
    }

    /// Returns whether both handles belong to the same connection.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.task, &other.task)
    }

    /// Sends a command to the browser, or to the session of a page, and waits for the reply.
    pub async fn call(&self, session: Option<&str>, method: &'static str, params: Json) -> Result<Json, CdpError> {
        let (reply, answer) = oneshot::channel();
        let order = CdpOrder::Call { method, session: session.map(str::to_owned), params, reply };
        self.orders.send(order).map_err(|_| CdpError::Gone)?;
        answer.await.map_err(|_| CdpError::Gone)?
    }

    /// Sends a command to the browser and ignores the reply.
    pub fn tell(&self, method: &'static str, params: Json) {
        self.send(method, None, params);
    }

    /// Sends a command to the session of a page and ignores the reply.
    pub fn tell_session(&self, session: &str, method: &'static str, params: Json) {
        self.send(method, Some(session.to_owned()), params);
    }

    fn send(&self, method: &'static str, session: Option<String>, params: Json) {
        let (reply, _) = oneshot::channel();
        // If the browser has disconnected, the command is moot.
        let _ = self.orders.send(CdpOrder::Call { method, session, params, reply });
    }

    /// Returns the events of a session from now on.
    pub fn listen(&self, session: &str) -> CdpEvents {
        let (sender, inbox) = mpsc::unbounded_channel();
        // If the browser has disconnected, there are no events, and the receiver reports the end.
        let _ = self.orders.send(CdpOrder::Listen { session: session.to_owned(), events: sender });
        CdpEvents { inbox, session: session.to_owned(), orders: self.orders.clone() }
    }
}

/// The events of one session; `next` returns `None` when the browser has disconnected.
pub struct CdpEvents {
    inbox: mpsc::UnboundedReceiver<CdpEvent>,
    session: String,
    orders: mpsc::UnboundedSender<CdpOrder>,
}

impl CdpEvents {
    /// Returns the next event.
    pub async fn next(&mut self) -> Option<CdpEvent> {
        self.inbox.recv().await
    }
}

impl Drop for CdpEvents {
    fn drop(&mut self) {
        let _ = self.orders.send(CdpOrder::Forget { session: std::mem::take(&mut self.session) });
    }
}

/// Serves the connection until all handles are dropped, the browser ends, or a message from it is too long.
async fn serve(
    mut incoming: IncomingMessages,
    outgoing: OutgoingMessages,
    mut inbox: mpsc::UnboundedReceiver<CdpOrder>,
) {
    let mut waiting = HashMap::new();
    let mut listeners: HashMap<String, mpsc::UnboundedSender<CdpEvent>> = HashMap::new();
    let mut last_id = 0;
    // Sending runs concurrently with receiving: the browser may accept no more data until its own messages are read.
    let (messages, unsent) = mpsc::unbounded_channel();
    let mut sending = std::pin::pin!(send_all(outgoing, unsent));
    loop {
        tokio::select! {
            order = inbox.recv() => match order {
                None => return,
                Some(CdpOrder::Listen { session, events }) => drop(listeners.insert(session, events)),
                Some(CdpOrder::Forget { session }) => drop(listeners.remove(&session)),
                Some(CdpOrder::Call { method, session, params, reply }) => {
                    last_id += 1;
                    let command = CdpCommand { id: last_id, method, session: session.as_deref(), params: &params };
                    match serde_json::to_string(&command) {
                        Ok(message) => {
                            waiting.insert(last_id, (method, reply));
                            // The branch below notices the end of the sender.
                            let _ = messages.send(message);
                        }
                        Err(error) => drop(reply.send(Err(CdpError::Refused { method, message: error.to_string() }))),
                    }
                }
            },
            () = &mut sending => return,
            message = incoming.next() => {
                let Some(Ok(message)) = message else { return };
                // A message that does not parse is an event of a newer browser.
                let Ok(told) = serde_json::from_slice::<CdpMessage>(&message) else { continue };
                if let Some((method, reply)) = told.id.and_then(|id| waiting.remove(&id)) {
                    let answer = match told.error {
                        Some(error) => Err(CdpError::Refused { method, message: error.message }),
                        None => Ok(told.result.unwrap_or_default()),
                    };
                    // The caller may no longer be waiting.
                    let _ = reply.send(answer);
                } else if let (Some(session), Some(method)) = (told.session, told.method) {
                    listeners.get(&session).map(|listener| listener.send(CdpEvent { method, params: told.params.unwrap_or_default() }));
                }
            },
        }
    }
}

/// Sends messages until the first error.
async fn send_all(mut outgoing: OutgoingMessages, mut unsent: mpsc::UnboundedReceiver<String>) {
    while let Some(message) = unsent.recv().await {
        if outgoing.send(message).await.is_err() {
            return;
        }
    }
}
