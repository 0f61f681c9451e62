//! Answers requests to one replay, which the gateway sends to a port of loopback.
//!
//! Only this process may use the port: recordings can contain anything that a page shows, and every user of the host
//! reaches loopback. Answers have exactly the recorded bodies; a request for which nothing was recorded gets 404 with the
//! field `Arenad-Replay: miss`, so that it differs from a recorded 404.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, CONTENT_TYPE, HOST,
    ORIGIN,
};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::registry::LoadedReplay;
use arenad_api::replays::MissKind;
use arenad_replay::{HeaderField, KeptReplay, MatchRule, ReplayMatch, ReplayRequest};

/// The maximum size of the body of a request, in bytes.
const REQUEST_MAX: usize = 64 << 20;

/// The field that marks an answer which was not recorded.
const MARK: HeaderName = HeaderName::from_static("arenad-replay");

/// The body of an answer.
type ReplayBody = http_body_util::Full<Bytes>;

/// Opens the port of a replay.
pub(super) async fn listen() -> std::io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Serves a replay until `stop` is cancelled.
pub(super) async fn serve(replay: Arc<LoadedReplay>, listener: TcpListener, stop: CancellationToken) {
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let (replay, stop) = (replay.clone(), stop.clone());
                tokio::spawn(async move {
                    tokio::select! {
                        () = stop.cancelled() => {}
                        () = serve_one(replay, stream, peer) => {}
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection to a replay was not accepted");
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        }
    }
}

async fn serve_one(replay: Arc<LoadedReplay>, stream: TcpStream, peer: SocketAddr) {
    let Ok(here) = stream.local_addr() else { return };
    let user = rustix::process::geteuid().as_raw();
    let is_own = tokio::task::spawn_blocking(move || arenad_agent_browser::belongs_to(user, peer, here)).await;
    if !is_own.unwrap_or_default() {
        return;
    }
    let answer = service_fn(move |request| {
        let replay = replay.clone();
        async move { Ok::<_, Infallible>(answer(&replay, request).await) }
    });
    // The recorded time is part of the answer.
    let served = http1::Builder::new().auto_date_header(false).serve_connection(TokioIo::new(stream), answer).await;
    if let Err(error) = served {
        tracing::debug!(%error, "a connection to a replay ended early");
    }
}

async fn answer(replay: &Arc<LoadedReplay>, request: Request<Incoming>) -> Response<ReplayBody> {
    let (parts, body) = request.into_parts();
    let Some(url) = url(replay, &parts.headers, &parts.uri) else {
        return told(StatusCode::BAD_REQUEST, "the request names no host".to_owned());
    };
    if parts.headers.get("service-worker").is_some_and(|value| value == "script") {
        replay.counts.service_worker();
        return told(StatusCode::NOT_FOUND, "service workers are off in replays".to_owned());
    }
    let Some(body) = whole(body).await else {
        return told(StatusCode::PAYLOAD_TOO_LARGE, "the body of the request is longer than 64 MiB".to_owned());
    };
    let replay = replay.clone();
    // Reads files, and the entries at the first request.
    let answered = tokio::task::spawn_blocking(move || find(&replay, &parts, &url, &body)).await;
    answered.unwrap_or_else(|error| told(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}

/// Returns the URL of a request, whose scheme is that of the recorded host.
fn url(replay: &LoadedReplay, headers: &HeaderMap, uri: &http::Uri) -> Option<Url> {
    let host = headers.get(HOST)?.to_str().ok()?;
    let plain = Url::parse(&format!("http://{host}")).ok()?;
    let port = plain.port().unwrap_or(80);
    let name = plain.host_str()?.trim_matches(['[', ']']).to_ascii_lowercase();
    let origin = replay.origin(&name, port)?;
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    Url::parse(&format!("{origin}{target}")).ok()
}

/// Reads the body of a request; `None` if it is too long or ends early.
async fn whole(body: Incoming) -> Option<Bytes> {
    use http_body_util::BodyExt as _;
    if body.is_end_stream() {
        return Some(Bytes::new());
    }
    let limited = http_body_util::Limited::new(body, REQUEST_MAX);
    limited.collect().await.ok().map(http_body_util::Collected::to_bytes)
}

fn find(replay: &LoadedReplay, parts: &http::request::Parts, url: &Url, body: &[u8]) -> Response<ReplayBody> {
    let kept = match replay.kept() {
        Ok(kept) => kept,
        Err(error) => return told(StatusCode::INTERNAL_SERVER_ERROR, error.clone()),
    };
    let headers: Vec<HeaderField> = parts
        .headers
        .iter()
        .filter_map(|(name, value)| Some(HeaderField(name.to_string(), value.to_str().ok()?.to_owned())))
        .collect();
    let method = parts.method.as_str();
    let request = ReplayRequest { method, url: url.clone(), headers: &headers, body };
    match kept.index().find(&request) {
        ReplayMatch::Found { entry, rule } => {
            replay.counts.hit(rule, entry.status);
            recorded(kept, entry)
        }
        ReplayMatch::Preflight => {
            replay.counts.hit(MatchRule::Preflight, StatusCode::NO_CONTENT.as_u16());
            preflight(&parts.headers)
        }
        ReplayMatch::Miss => {
            replay.counts.missed(MissKind::Miss, method, url.as_str());
            let text = format!("nothing was recorded for {method} {url} in the replay {}", replay.name);
            let mut answer = told(StatusCode::NOT_FOUND, text);
            answer.headers_mut().insert(MARK, HeaderValue::from_static("miss"));
            answer
        }
    }
}

fn recorded(kept: &KeptReplay, entry: &arenad_replay::KeptEntry) -> Response<ReplayBody> {
    let body = match kept.body(entry.body) {
        Ok(body) => body,
        Err(error) => return told(StatusCode::INTERNAL_SERVER_ERROR, format!("read a recorded body: {error}")),
    };
    let mut answer = Response::new(ReplayBody::new(body.into()));
    *answer.status_mut() = StatusCode::from_u16(entry.status).unwrap_or(StatusCode::OK);
    for HeaderField(name, value) in &entry.headers {
        // Values that HTTP does not allow were never sent.
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            answer.headers_mut().append(name, value);
        }
    }
    answer
}

/// Allows a request that was recorded, whose preflight the browser's recording left out.
fn preflight(asked: &HeaderMap) -> Response<ReplayBody> {
    let mut answer = Response::new(ReplayBody::default());
    *answer.status_mut() = StatusCode::NO_CONTENT;
    let pairs = [
        (ORIGIN, ACCESS_CONTROL_ALLOW_ORIGIN),
        (ACCESS_CONTROL_REQUEST_METHOD, ACCESS_CONTROL_ALLOW_METHODS),
        (ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_ALLOW_HEADERS),
    ];
    for (from, to) in pairs {
        if let Some(value) = asked.get(from) {
            answer.headers_mut().insert(to, value.clone());
        }
    }
    answer.headers_mut().insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
    answer
}

fn told(status: StatusCode, text: String) -> Response<ReplayBody> {
    let mut answer = Response::new(ReplayBody::new(format!("arenad: {text}\n").into()));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    answer
}
