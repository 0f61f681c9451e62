//! A connection to a browser that speaks the Chrome DevTools Protocol: commands with their answers, and the events of the
//! sessions that someone listens to.
//!
//! One task owns the connection. Nothing is enabled that nobody asked for, so a page of the agent's is left alone.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

use super::transport::{self, Incoming, Outgoing};

/// Why a command has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum CdpError {
    /// The browser or its connection ended.
    #[error("it has gone")]
    Gone,
    /// The browser said no.
    #[error("{method}: {message}")]
    Refused {
        /// The command.
        method: &'static str,
        /// The browser's words.
        message: String,
    },
}

/// A command.
#[derive(Debug, Serialize)]
struct Command<'a> {
    id: u64,
    method: &'a str,
    #[serde(rename = "sessionId", skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
    params: &'a Json,
}

/// What a browser sends: an answer has the number of its command, an event a method.
#[derive(Debug, Deserialize)]
struct Told {
    id: Option<u64>,
    method: Option<String>,
    #[serde(rename = "sessionId")]
    session: Option<String>,
    result: Option<Json>,
    error: Option<Refusal>,
}

#[derive(Debug, Deserialize)]
struct Refusal {
    #[serde(default)]
    message: String,
}

/// Something that happened, such as `Page.loadEventFired`.
#[derive(Debug)]
pub(super) struct Event {
    pub method: String,
}

enum Order {
    Call { method: &'static str, session: Option<String>, params: Json, reply: oneshot::Sender<Result<Json, CdpError>> },
    Listen { session: String, events: mpsc::UnboundedSender<Event> },
    Forget { session: String },
}

/// A connection, shared by whoever has a page there.
#[derive(Clone)]
pub(super) struct Cdp {
    orders: mpsc::UnboundedSender<Order>,
    task: Arc<Task>,
}

struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Cdp {
    /// Connects to a WebSocket address.
    pub(super) async fn connect(address: &str) -> io::Result<Self> {
        transport::websocket(address).await.map(Self::over)
    }

    /// Speaks over a transport.
    pub(super) fn over((incoming, outgoing): (Incoming, Outgoing)) -> Self {
        let (orders, inbox) = mpsc::unbounded_channel();
        let task = tokio::spawn(serve(incoming, outgoing, inbox));
        Self { orders, task: Arc::new(Task(task.abort_handle())) }
    }

    /// Whether the browser has ended.
    pub(super) fn is_gone(&self) -> bool {
        self.orders.is_closed()
    }

    /// Whether this is the same connection.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.task, &other.task)
    }

    /// Sends a command to the browser, or to the session of a page, and waits for the answer.
    pub(super) async fn call(
        &self,
        session: Option<&str>,
        method: &'static str,
        params: Json,
    ) -> Result<Json, CdpError> {
        let (reply, answer) = oneshot::channel();
        let order = Order::Call { method, session: session.map(str::to_owned), params, reply };
        self.orders.send(order).map_err(|_| CdpError::Gone)?;
        answer.await.map_err(|_| CdpError::Gone)?
    }

    /// Sends a command to the browser whose answer does not matter.
    pub(super) fn tell(&self, method: &'static str, params: Json) {
        self.send(method, None, params);
    }

    /// The same to the session of a page.
    pub(super) fn tell_session(&self, session: &str, method: &'static str, params: Json) {
        self.send(method, Some(session.to_owned()), params);
    }

    fn send(&self, method: &'static str, session: Option<String>, params: Json) {
        let (reply, _) = oneshot::channel();
        // A browser that has gone needs to be told nothing.
        let _ = self.orders.send(Order::Call { method, session, params, reply });
    }

    /// The events of a session, from now on.
    pub(super) fn listen(&self, session: &str) -> Events {
        let (sender, inbox) = mpsc::unbounded_channel();
        // A browser that has gone has no events: the receiver says so.
        let _ = self.orders.send(Order::Listen { session: session.to_owned(), events: sender });
        Events { inbox, session: session.to_owned(), orders: self.orders.clone() }
    }
}

/// The events of one session; `None` when the browser has gone.
pub(super) struct Events {
    inbox: mpsc::UnboundedReceiver<Event>,
    session: String,
    orders: mpsc::UnboundedSender<Order>,
}

impl Events {
    pub(super) async fn next(&mut self) -> Option<Event> {
        self.inbox.recv().await
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        let _ = self.orders.send(Order::Forget { session: std::mem::take(&mut self.session) });
    }
}

/// Goes on until nobody wants anything any more, the browser ends, or it says something that is too long.
async fn serve(mut incoming: Incoming, outgoing: Outgoing, mut inbox: mpsc::UnboundedReceiver<Order>) {
    let mut waiting = HashMap::new();
    let mut listeners: HashMap<String, mpsc::UnboundedSender<Event>> = HashMap::new();
    let mut last_id = 0;
    // Writing waits for the browser, which may be waiting to be read.
    let (messages, unsent) = mpsc::unbounded_channel();
    let mut sending = std::pin::pin!(send_all(outgoing, unsent));
    loop {
        tokio::select! {
            order = inbox.recv() => match order {
                None => return,
                Some(Order::Listen { session, events }) => drop(listeners.insert(session, events)),
                Some(Order::Forget { session }) => drop(listeners.remove(&session)),
                Some(Order::Call { method, session, params, reply }) => {
                    last_id += 1;
                    let command = Command { id: last_id, method, session: session.as_deref(), params: &params };
                    match serde_json::to_string(&command) {
                        Ok(message) => {
                            waiting.insert(last_id, (method, reply));
                            // Its end is seen by the branch below.
                            let _ = messages.send(message);
                        }
                        Err(error) => drop(reply.send(Err(CdpError::Refused { method, message: error.to_string() }))),
                    }
                }
            },
            () = &mut sending => return,
            message = incoming.next() => {
                let Some(Ok(message)) = message else { return };
                // What is not understood is an event of a newer browser.
                let Ok(told) = serde_json::from_slice::<Told>(&message) else { continue };
                if let Some((method, reply)) = told.id.and_then(|id| waiting.remove(&id)) {
                    let answer = match told.error {
                        Some(error) => Err(CdpError::Refused { method, message: error.message }),
                        None => Ok(told.result.unwrap_or_default()),
                    };
                    // Whoever asked may have lost patience.
                    let _ = reply.send(answer);
                } else if let (Some(session), Some(method)) = (told.session, told.method) {
                    listeners.get(&session).map(|listener| listener.send(Event { method }));
                }
            },
        }
    }
}

/// Ends with its first error.
async fn send_all(mut outgoing: Outgoing, mut unsent: mpsc::UnboundedReceiver<String>) {
    while let Some(message) = unsent.recv().await {
        if outgoing.send(message).await.is_err() {
            return;
        }
    }
}
