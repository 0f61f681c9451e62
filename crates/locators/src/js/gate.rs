//! The proxy of one page's context: it forwards requests to the site's entry and refuses every other address.
//!
//! Any script on a page, including an expression, can request any address. From the daemon's host these include its
//! loopback, its network and the metadata services of clouds; the proxy answers them with 403. It serves only the
//! browser: the proxy adds an account's headers, and its port is reachable by every user of the host.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use arenad_accounts::{LoginSession, VisitAddress};
use arenad_probes::innermost;

/// A proxy on a port of its own; it ends when it is dropped.
pub(super) struct Gate {
    address: SocketAddr,
    state: Arc<GateState>,
    _tasks: JoinSet<()>,
}

struct GateState {
    client: reqwest::Client,
    user: Option<u32>,
    /// The site and the headers that every request gets; unset until `lead` is called.
    way: OnceLock<(VisitAddress, HeaderMap)>,
    /// The reason why the site could not be reached, if it could not.
    fault: Mutex<Option<String>>,
}

impl Gate {
    /// Opens the proxy, which refuses every address until `lead` is called. If `user` is given, the proxy accepts only
    /// connections of that user.
    pub(super) async fn open(client: reqwest::Client, user: Option<u32>) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let state = Arc::new(GateState { client, user, way: OnceLock::new(), fault: Mutex::default() });
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, state.clone()));
        Ok(Self { address, state, _tasks: tasks })
    }

    /// Sets the site, once and for all. The session's headers are added to every request.
    pub(super) fn lead(&self, place: VisitAddress, session: Option<&LoginSession>) {
        let pairs = session.iter().flat_map(|session| &session.headers);
        let headers = pairs.filter_map(|(name, value)| {
            Some((name.parse::<header::HeaderName>().ok()?, HeaderValue::from_str(value.expose()).ok()?))
        });
        // A page is opened only once, so the cell is still empty.
        let _ = self.state.way.set((place, headers.collect()));
    }

    /// Returns the address on which the proxy listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the reason why the site could not be reached, if it could not.
    pub(super) fn fault(&self) -> Option<String> {
        self.state.fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn accept(listener: TcpListener, state: Arc<GateState>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, peer)) = accepted else { continue };
                // Without this option the connection is slower, but still correct.
                let _ = stream.set_nodelay(true);
                let state = state.clone();
                connections.spawn(async move {
                    if let Some(user) = state.user
                        && !is_of(user, peer, stream.local_addr()).await
                    {
                        return;
                    }
                    let service = service_fn(|request| pass(state.clone(), request));
                    // A browser that disconnects early is not an error of the proxy.
                    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Returns whether the other end of a connection within this host belongs to the user.
async fn is_of(user: u32, peer: SocketAddr, here: std::io::Result<SocketAddr>) -> bool {
    let Ok(here) = here else { return false };
    let looked = tokio::task::spawn_blocking(move || arenad_chromium::belongs_to(user, peer, here));
    looked.await.unwrap_or_default()
}

async fn pass(state: Arc<GateState>, request: Request<Incoming>) -> Result<Response<reqwest::Body>, Infallible> {
    let uri = request.uri();
    let leads_there = |place: &VisitAddress| {
        uri.scheme_str() == Some("http")
            && uri.host() == Some(place.host.as_str())
            && uri.port_u16().unwrap_or(80) == place.port
    };
    let way = state.way.get().filter(|(place, _)| request.method() != Method::CONNECT && leads_there(place));
    let Some((place, added)) = way else {
        return Ok(refusal(StatusCode::FORBIDDEN, "this address is not the site's"));
    };
    let target = format!("http://{}{}", place.entry, uri.path_and_query().map_or("/", |path| path.as_str()));
    let (head, body) = request.into_parts();
    let mut headers = head.headers;
    for name in [header::CONNECTION, header::PROXY_AUTHORIZATION, header::TRANSFER_ENCODING, header::UPGRADE] {
        headers.remove(name);
    }
    headers.remove("proxy-connection");
    headers.extend(added.clone());
    let has_body = !matches!(head.method, Method::GET | Method::HEAD);
    let mut sent = state.client.request(head.method, target).headers(headers);
    if has_body {
        sent = sent.body(reqwest::Body::wrap(body));
    }
    match sent.send().await {
        Ok(answer) => {
            let mut answer: Response<reqwest::Body> = answer.into();
            for name in [header::CONNECTION, header::TRANSFER_ENCODING] {
                answer.headers_mut().remove(name);
            }
            Ok(answer)
        }
        Err(error) => {
            let reason = innermost(&error);
            *state.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason.clone());
            Ok(refusal(StatusCode::BAD_GATEWAY, &reason))
        }
    }
}

fn refusal(status: StatusCode, reason: &str) -> Response<reqwest::Body> {
    let mut response = Response::new(reqwest::Body::from(reason.to_owned()));
    *response.status_mut() = status;
    response
}
