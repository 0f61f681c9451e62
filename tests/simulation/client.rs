//! Clients: of the API, in the process; and of the sites, through the gateway's decisions.

use std::io;
use std::time::Duration;

use arenad_fake_engine::{FakeEngine, Request};
use arenad_gateway::{Direct, DirectRequest, Route, RouteState};
use axum::Router;
use axum::body::{Body, to_bytes};
use http::Method;
use serde_json::Value;
use tower::ServiceExt;

/// How long a request to a site is on its way, each way.
const TRAVELS: Duration = Duration::from_millis(3);
/// How long a request is held before the gateway is asked for its answer, and how often the route is looked at.
const HELD: Duration = Duration::from_secs(20);
const LOOKS_AGAIN: Duration = Duration::from_millis(10);
/// How long a client waits for a site.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long an operation is waited for: longer than anything is allowed to take, and the engine may be silent about an image for an
/// hour.
pub const OPERATION_LIMIT: Duration = Duration::from_secs(3600 + 1800);
/// How long it waits after the API could not say how an operation is.
pub const ASKS_AGAIN: Duration = Duration::from_millis(100);

/// Sends a request to the API; returns status and body.
pub async fn call(router: &Router, method: Method, path: &str, body: &Value) -> (u16, Value) {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(Body::from(body.to_string()))
        .expect("a request");
    let Ok(answer) = router.clone().oneshot(request).await;
    let status = answer.status().as_u16();
    let bytes = to_bytes(answer.into_body(), usize::MAX).await.unwrap_or_default();
    (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

/// Waits for the end of an operation and returns it as the API shows it; the last that was seen of it, after a time that no
/// operation takes. With it comes whether it was told at once.
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
            // The store may not be readable for a while.
            tokio::time::sleep(ASKS_AGAIN).await;
        }
    }
}

/// What a client has of a request to a site.
#[derive(Debug)]
pub enum Seen {
    /// An answer of what serves: generation, status, body.
    Answer(u64, u16, String),
    /// Something else: the gateway's own answer, no connection, no answer in time.
    Nothing(#[expect(dead_code, reason = "told in traces")] String),
}

/// Sends a request to a site; `reached` hears of each generation that gets it.
pub async fn visit(route: &Route, engine: &FakeEngine, request: &Request, reached: impl Fn(u64)) -> Seen {
    let is_read = request.method == "GET";
    // Those that are held go on in the order in which they came: the gateway's channel would wake them by chance.
    let begun = tokio::time::Instant::now();
    while matches!(route.state(), RouteState::Holding { .. }) && begun.elapsed() < HELD {
        tokio::time::sleep(LOOKS_AGAIN).await;
    }
    let send = async |target: &arenad_gateway::Target| {
        tokio::time::sleep(TRAVELS).await;
        let response = loop {
            match engine.request(target.address, request) {
                // Frozen: the answer comes when it goes on.
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
    let asked = route.pass(DirectRequest { may_write: !is_read, is_safe: is_read }, send);
    match tokio::time::timeout(PATIENCE, asked).await {
        Ok(Direct::Answered { target, answer }) => Seen::Answer(target.generation, answer.status, answer.body_text()),
        Ok(Direct::Refused(status, reason)) => Seen::Nothing(format!("{status} {reason}")),
        Ok(Direct::Failed(error)) => Seen::Nothing(error.to_string()),
        Ok(Direct::Closed) => Seen::Nothing("closed".to_owned()),
        Err(_) => Seen::Nothing("no answer".to_owned()),
    }
}
