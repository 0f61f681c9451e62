//! An HTTP client for sites' containers: it opens one connection for each request, and supports no proxies, redirects
//! or cookies.
//!
//! Connections are not kept, because a kept one could lead to the container of an earlier generation.
//!
//! The crate depends on no other crate of arenad. Start reading at [`SiteClient`], then [`dial`].

pub mod dial;

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, HOST, HeaderMap, HeaderValue, USER_AGENT};
use http::{Method, Request, StatusCode};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio_util::task::AbortOnDropHandle;
use url::Url;

use crate::dial::Dialer;

/// The time limit for a container to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The reason why a response is missing or incomplete.
#[derive(Debug, thiserror::Error)]
pub enum SiteError {
    /// The path or a header cannot be sent.
    #[error("{0}")]
    Request(String),
    /// The connection could not be opened.
    #[error(transparent)]
    Connect(#[from] io::Error),
    /// The exchange was interrupted.
    #[error(transparent)]
    Exchange(#[from] hyper::Error),
}

/// Sends HTTP requests to sites.
#[derive(Debug, Clone)]
pub struct SiteClient {
    dialer: Dialer,
}

/// The response of a site. [`SiteAnswer::chunk`] reads the body.
#[derive(Debug)]
pub struct SiteAnswer {
    /// Status code of the response.
    pub status: StatusCode,
    /// Headers of the response.
    pub headers: HeaderMap,
    body: Incoming,
    /// Drives the connection, which is closed when the response is dropped.
    _connection: AbortOnDropHandle<()>,
}

impl SiteClient {
    /// Creates a client that connects through `dialer`.
    pub fn new(dialer: Dialer) -> Self {
        Self { dialer }
    }

    /// Returns the dialer that connects to the containers.
    pub fn dialer(&self) -> &Dialer {
        &self.dialer
    }

    /// Sends a request to an address. `path` is path and query; `headers` may name a `Host` other than the address.
    ///
    /// Errors: the connection could not be opened, or no head of an answer arrived. Cancellation: safe; the connection
    /// is closed.
    pub async fn send(
        &self,
        address: SocketAddr,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: Option<String>,
    ) -> Result<SiteAnswer, SiteError> {
        let text = format!("http://{address}{path}");
        // Characters that are not allowed in a request are escaped as browsers escape them.
        let url = Url::parse(&text).map_err(|error| SiteError::Request(format!("{text}: {error}")))?;
        let target = &url[url::Position::BeforePath..url::Position::AfterQuery];
        let body = body.map_or_else(reqwest::Body::default, reqwest::Body::from);
        let mut request = Request::builder().method(method).uri(target).body(body);
        if let Ok(request) = &mut request {
            complete(request.headers_mut(), &url, headers);
        }
        let request = request.map_err(|error| SiteError::Request(format!("{text}: {error}")))?;
        let dialing = tokio::time::timeout(CONNECT_TIMEOUT, self.dialer.dial(address)).await;
        let stream = dialing.unwrap_or_else(|_| {
            let late = format!("no connection to {address} within {CONNECT_TIMEOUT:?}");
            Err(io::Error::new(io::ErrorKind::TimedOut, late))
        })?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let connection = AbortOnDropHandle::new(tokio::spawn(async move {
            // Every connection error also reaches the request or the body that it affects.
            let _ = connection.await;
        }));
        let (parts, body) = sender.send_request(request).await?.into_parts();
        Ok(SiteAnswer { status: parts.status, headers: parts.headers, body, _connection: connection })
    }
}

/// Adds the headers that every request carries.
fn complete(all: &mut HeaderMap, url: &Url, headers: HeaderMap) {
    all.insert(ACCEPT, HeaderValue::from_static("*/*"));
    all.insert(USER_AGENT, HeaderValue::from_static(concat!("arenad/", env!("CARGO_PKG_VERSION"))));
    all.extend(headers);
    let authority = &url[url::Position::BeforeHost..url::Position::AfterPort];
    if !all.contains_key(HOST)
        && let Ok(host) = HeaderValue::from_str(authority)
    {
        all.insert(HOST, host);
    }
}

impl SiteAnswer {
    /// Returns the next chunk of the body, or `None` at its end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, SiteError> {
        loop {
            let frame = std::future::poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx)).await;
            match frame.transpose()? {
                None => return Ok(None),
                // Trailers are not used here, so they are skipped.
                Some(frame) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }
}
