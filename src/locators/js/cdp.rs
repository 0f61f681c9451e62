//! A connection to a browser that speaks the Chrome DevTools Protocol: commands with their answers, and the events of the
//! sessions that someone listens to.
//!
//! One task owns the connection. Nothing is enabled that nobody asked for, so a page of the agent's is left alone.

use std::collections::HashMap;
use std::sync::Arc;

use chromiumoxide::Connection;
use chromiumoxide::types::{EventMessage, Message, Method, MethodId};
use futures_util::StreamExt;
use serde::Deserialize;
use serde_json::Value as Json;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

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

/// Something that happened.
#[derive(Debug, Deserialize)]
pub(super) struct Event {
    /// Such as `Page.loadEventFired`.
    pub method: String,
    #[serde(rename = "sessionId")]
    session: Option<String>,
}

impl Method for Event {
    fn identifier(&self) -> MethodId {
        self.method.clone().into()
    }
}

impl EventMessage for Event {
    fn session_id(&self) -> Option<&str> {
        self.session.as_deref()
    }
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
    pub(super) async fn connect(address: &str) -> Result<Self, String> {
        let connection = Connection::<Event>::connect(address).await.map_err(|error| error.to_string())?;
        let (orders, inbox) = mpsc::unbounded_channel();
        let task = tokio::spawn(serve(connection, inbox));
        Ok(Self { orders, task: Arc::new(Task(task.abort_handle())) })
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

async fn serve(mut connection: Connection<Event>, mut inbox: mpsc::UnboundedReceiver<Order>) {
    let mut waiting = HashMap::new();
    let mut listeners: HashMap<String, mpsc::UnboundedSender<Event>> = HashMap::new();
    loop {
        tokio::select! {
            order = inbox.recv() => match order {
                None => return,
                Some(Order::Listen { session, events }) => drop(listeners.insert(session, events)),
                Some(Order::Forget { session }) => drop(listeners.remove(&session)),
                Some(Order::Call { method, session, params, reply }) => {
                    match connection.submit_command(method.into(), session.map(Into::into), params) {
                        Ok(id) => drop(waiting.insert(id, (method, reply))),
                        Err(error) => drop(reply.send(Err(CdpError::Refused { method, message: error.to_string() }))),
                    }
                }
            },
            message = connection.next() => match message {
                None => return,
                // What is not understood is an event of a newer browser; a broken connection ends with the next look.
                Some(Err(error)) => if is_end(&error) { return },
                Some(Ok(Message::Response(response))) => {
                    let Some((method, reply)) = waiting.remove(&response.id) else { continue };
                    let answer = match response.error {
                        Some(error) => Err(CdpError::Refused { method, message: error.message }),
                        None => Ok(response.result.unwrap_or_default()),
                    };
                    // Whoever asked may have lost patience.
                    let _ = reply.send(answer);
                }
                Some(Ok(Message::Event(event))) => {
                    let listener = event.session.as_ref().and_then(|session| listeners.get(session));
                    listener.map(|listener| listener.send(event));
                }
            },
        }
    }
}

fn is_end(error: &chromiumoxide::error::CdpError) -> bool {
    use chromiumoxide::error::CdpError as E;
    matches!(error, E::Ws(_) | E::Io(_) | E::NoResponse)
}
