//! The WebSocket of a session. Pings are answered, and a closed connection is noticed, while a message is worked on.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use futures_util::{SinkExt, StreamExt};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use serde_json::Value as Json;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use super::session::{CallFailure, Session};
use super::{EnvironmentService, SESSIONS_MAX};
use arenad_openenv::{
    ClientFrame, ErrorCode, ErrorFrame, RpcAnswer, RpcCall, RpcErrorCode, observation_frame, rpc_frame, state_frame,
    tools,
};

/// The largest message of a client, in bytes. Actions and data sets' rows are small.
const MESSAGE_MAX: usize = 1 << 20;

/// The most messages that wait while one is worked on. Clients send the next one after the answer.
const WAITING_MAX: usize = 16;

type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// `GET /ws`: begins a session.
pub(super) async fn session(
    State(service): State<Arc<EnvironmentService>>,
    mut request: Request,
) -> axum::response::Response {
    let headers = request.headers();
    let says = |name: header::HeaderName, word: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        value.split(',').any(|part| part.trim().eq_ignore_ascii_case(word))
    };
    let is_upgrade = says(header::CONNECTION, "upgrade")
        && says(header::UPGRADE, "websocket")
        && says(header::SEC_WEBSOCKET_VERSION, "13");
    let accept = headers.get(header::SEC_WEBSOCKET_KEY).map(|key| derive_accept_key(key.as_bytes()));
    let (Some(accept), true) = (accept.and_then(|key| HeaderValue::try_from(key).ok()), is_upgrade) else {
        let upgrade = [(header::UPGRADE, HeaderValue::from_static("websocket"))];
        return (StatusCode::UPGRADE_REQUIRED, upgrade, "this address opens a WebSocket\n").into_response();
    };
    let wants_session = request.uri().query().unwrap_or_default().contains("session_id=");
    let upgrade = hyper::upgrade::on(&mut request);
    let tasks = service.api.shared.tasks.clone();
    tasks.spawn(async move {
        let upgraded = match upgrade.await {
            Ok(upgraded) => upgraded,
            Err(error) => return tracing::debug!(%error, "a session did not begin"),
        };
        let config = WebSocketConfig::default().max_message_size(Some(MESSAGE_MAX)).max_frame_size(Some(MESSAGE_MAX));
        let socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(config)).await;
        let stop = service.api.stop.clone();
        // A daemon that stops closes the connection, which ends the episode.
        stop.run_until_cancelled(Box::pin(serve(service, socket, wants_session))).await;
    });
    let mut response = Response::new(axum::body::Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    response
}

/// Serves a session until the client closes it.
async fn serve(service: Arc<EnvironmentService>, mut socket: Socket, wants_session: bool) {
    let refusal = if wants_session {
        Some(ErrorFrame::new(ErrorCode::SessionError, "there are no sessions to attach to: each connection is one"))
    } else {
        None
    };
    let place = match (refusal, service.enter()) {
        (Some(refusal), _) => Err(refusal),
        (None, Ok(place)) => Ok(place),
        (None, Err(active)) => Err(ErrorFrame::capacity(active, SESSIONS_MAX)),
    };
    match place {
        Ok(place) => {
            let mut session = Session::new(service.api.clone());
            converse(&mut socket, &mut session).await;
            session.end().await;
            drop(place);
        }
        Err(refusal) => drop(socket.send(text(refusal.text())).await),
    }
    // The client may have gone.
    let _ = socket.close(None).await;
}

fn text(text: String) -> Message {
    Message::Text(Utf8Bytes::from(text))
}

/// Answers messages one after the other.
async fn converse(socket: &mut Socket, session: &mut Session) {
    let mut waiting = VecDeque::new();
    loop {
        let message = match waiting.pop_front() {
            Some(message) => message,
            None => match next(socket).await {
                Some(message) => message,
                None => return,
            },
        };
        let answered = {
            let mut work = std::pin::pin!(answer(session, &message));
            loop {
                tokio::select! {
                    answered = &mut work => break Some(answered),
                    further = next(socket) => match further {
                        Some(further) if waiting.len() < WAITING_MAX => waiting.push_back(further),
                        // The client has gone, or does not wait for answers. Its episode ends with the session.
                        _ => break None,
                    },
                }
            }
        };
        let Some(ControlFlow::Continue(answer)) = answered else { return };
        if socket.send(text(answer)).await.is_err() {
            return;
        }
    }
}

/// Returns the next text message; `None` if the connection has ended. Reading answers pings.
async fn next(socket: &mut Socket) -> Option<Utf8Bytes> {
    loop {
        match socket.next().await?.ok()? {
            Message::Text(text) => return Some(text),
            Message::Close(_) => return None,
            Message::Ping(_) | Message::Pong(_) | Message::Binary(_) | Message::Frame(_) => {}
        }
    }
}

/// Returns the answer to a message, or the end of the session.
async fn answer(session: &mut Session, message: &str) -> ControlFlow<(), String> {
    let answer = match ClientFrame::parse(message) {
        Err(error) => error.text(),
        Ok(ClientFrame::Close) => return ControlFlow::Break(()),
        Ok(ClientFrame::State) => state_frame(&session.state()),
        Ok(ClientFrame::Reset(data)) => observed(session.reset(&data).await),
        Ok(ClientFrame::Step(data)) => observed(session.step(&data).await),
        Ok(ClientFrame::Mcp(request)) => rpc_frame(&call(Some(session), &request).await.json()),
    };
    ControlFlow::Continue(answer)
}

fn observed(result: Result<Json, ErrorFrame>) -> String {
    match result {
        Ok(data) => observation_frame(&data),
        Err(error) => error.text(),
    }
}

/// Answers a call by JSON-RPC. Tools can be listed without a session.
pub(super) async fn call(session: Option<&mut Session>, request: &Json) -> RpcAnswer {
    let (id, call) = match RpcCall::read(request) {
        Ok(read) => read,
        Err(answer) => return *answer,
    };
    let result = match (call, session) {
        (RpcCall::ListTools, _) => Ok(serde_json::json!({ "tools": tools("inputSchema") })),
        (RpcCall::CallTool { .. }, None) => {
            let message = "there is no episode: call tools by messages of the type `mcp` in a session (`/ws`)";
            Err((RpcErrorCode::Server, message.to_owned()))
        }
        (RpcCall::CallTool { name, arguments }, Some(session)) => {
            session.call(&name, &arguments).await.map_err(|failure| match failure {
                CallFailure::Tool(failure) => (RpcErrorCode::InvalidParams, failure.message()),
                CallFailure::Session(error) => (RpcErrorCode::Server, error.message),
            })
        }
    };
    RpcAnswer { id, result }
}
