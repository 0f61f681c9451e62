//! Clients of the API, which is called in the process, and of the sites, which are reached by the gateway's decisions.

use std::io;
use std::time::Duration;

use arenad_api::episodes::IDEMPOTENCY_KEY;
use arenad_fake_engine::{FakeEngine, ProgramRequest};
use arenad_gateway::{Direct, DirectRequest, ProxySite, Route, RouteState};
use axum::Router;
use axum::body::{Body, BodyDataStream, to_bytes};
use axum::response::Response;
use futures_util::StreamExt;
use http::Method;
use serde_json::Value;
use tower::ServiceExt;

/// The one-way latency of a request to a site.
const TRAVELS: Duration = Duration::from_millis(3);
/// The time that a request is held before the gateway decides on its answer, and the interval at which the route is
/// polled.
const HELD: Duration = Duration::from_secs(20);
const LOOKS_AGAIN: Duration = Duration::from_millis(10);
/// The time that a client waits for a site.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest wait for an operation. It exceeds the sum of all limits; the engine alone may send no progress of an
/// image for an hour.
pub const OPERATION_LIMIT: Duration = Duration::from_secs(3600 + 1800);
/// The delay before the state of an operation is requested again after the API could not return it.
pub const ASKS_AGAIN: Duration = Duration::from_millis(100);

/// Sends a request to the API; returns status and body.
pub async fn call(router: &Router, method: Method, path: &str, body: &Value) -> (u16, Value) {
    call_with_key(router, method, path, body, None).await
}

/// Sends a request to the API with an idempotency key, if there is one; returns status and body.
pub async fn call_with_key(
    router: &Router,
    method: Method,
    path: &str,
    body: &Value,
    key: Option<&str>,
) -> (u16, Value) {
    read(answer(router, method, path, body, key).await).await
}

/// Sends a request for an episode that its connection holds. Returns status and body, or the first event of the answer
/// and the rest, with which the connection ends.
pub async fn call_and_hold(router: &Router, body: &Value) -> (u16, Value, Option<BodyDataStream>) {
    let answer = answer(router, Method::POST, "/v1/episodes", body, None).await;
    if !answer.status().is_success() {
        let (status, problem) = read(answer).await;
        return (status, problem, None);
    }
    let status = answer.status().as_u16();
    let mut rest = answer.into_body().into_data_stream();
    let first = rest.next().await.and_then(Result::ok).unwrap_or_default();
    let text = String::from_utf8_lossy(&first);
    let data = text.strip_prefix("event: started\ndata: ").unwrap_or_default();
    (status, serde_json::from_str(data).unwrap_or(Value::Null), Some(rest))
}

async fn answer(router: &Router, method: Method, path: &str, body: &Value, key: Option<&str>) -> Response {
    let mut request = http::Request::builder().method(method).uri(path).header("content-type", "application/json");
    if let Some(key) = key {
        request = request.header(IDEMPOTENCY_KEY, key);
    }
    let request = request.body(Body::from(body.to_string())).expect("a request");
    let Ok(answer) = router.clone().oneshot(request).await;
    answer
}

async fn read(answer: Response) -> (u16, Value) {
    let status = answer.status().as_u16();
    let bytes = to_bytes(answer.into_body(), usize::MAX).await.unwrap_or_default();
    (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

/// Waits for the end of an operation and returns it in the API's format, or its last known state if `OPERATION_LIMIT`
/// has passed. The flag tells whether the API answered every request.
pub async fn ended(router: &Router, id: &str) -> (Value, bool) {
    let begun = tokio::time::Instant::now();
    let mut at_once = true;
    loop {
        let (status, shown) = call(router, Method::GET, &format!("/v1/operations/{id}?wait=60"), &Value::Null).await;
        if status == 200 && shown["state"] != "running" || begun.elapsed() > OPERATION_LIMIT {
            return (shown, at_once);
        }
        if status != 200 {
            at_once = false;
            // The store may be unreadable for a while.
            tokio::time::sleep(ASKS_AGAIN).await;
        }
    }
}

/// The outcome of a request to a site.
#[derive(Debug)]
pub enum VisitOutcome {
    /// An answer from the site: generation, status, body.
    Answer(u64, u16, String),
    /// No answer from the site: the gateway's own answer, no connection, or a timeout.
    Nothing(#[expect(dead_code, reason = "told in traces")] String),
}

/// The way of a client to a site.
#[derive(Clone, Copy)]
pub enum SiteDoor<'a> {
    /// The public port of the site, which anyone can reach.
    Public(&'a Route),
    /// The episode proxy, with the credentials of an episode.
    Episode(&'a ProxySite),
}

/// Sends a request to a site; `reached` is called with each generation that receives it.
pub async fn visit(
    door: SiteDoor<'_>,
    engine: &FakeEngine,
    request: &ProgramRequest,
    reached: impl Fn(u64),
) -> VisitOutcome {
    let is_read = request.method == "GET";
    let route = match door {
        SiteDoor::Public(route) => route,
        SiteDoor::Episode(site) => &site.route,
    };
    // Polling lets held requests continue in the order of their arrival; the gateway's channel would wake them in
    // random order.
    let begun = tokio::time::Instant::now();
    while matches!(route.state(), RouteState::Holding { .. }) && begun.elapsed() < HELD {
        tokio::time::sleep(LOOKS_AGAIN).await;
    }
    let send = async |target: &arenad_gateway::Target| {
        tokio::time::sleep(TRAVELS).await;
        let response = loop {
            match engine.request(target.address, request) {
                // The container is paused: the answer follows once it is resumed.
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
                answered => break answered?,
            }
        };
        reached(target.generation);
        tokio::time::sleep(TRAVELS).await;
        Ok::<_, io::Error>(response)
    };
    let meant = DirectRequest { may_write: !is_read, is_safe: is_read };
    let asked = async {
        match door {
            SiteDoor::Public(route) => route.pass(meant, send).await,
            SiteDoor::Episode(site) => site.pass(meant, send).await,
        }
    };
    match tokio::time::timeout(PATIENCE, asked).await {
        Ok(Direct::Answered { target, answer }) => {
            VisitOutcome::Answer(target.generation, answer.status, answer.body_text())
        }
        Ok(Direct::Refused(status, reason)) => VisitOutcome::Nothing(format!("{status} {reason}")),
        Ok(Direct::Failed(error)) => VisitOutcome::Nothing(error.to_string()),
        Ok(Direct::Closed) => VisitOutcome::Nothing("closed".to_owned()),
        Err(_) => VisitOutcome::Nothing("no answer".to_owned()),
    }
}
