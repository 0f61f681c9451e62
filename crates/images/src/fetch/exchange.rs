//! One request to a mirror and its response, following redirects. Each request uses a new connection, because a
//! download is a single body.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Request, StatusCode};
use hyper::body::{Body, Incoming};
use hyper_util::rt::TokioIo;
use url::Url;

use super::FetchError;
use arenad_outbound::Connector;

/// Maximum number of redirects; archive.org needs two.
const REDIRECTS_MAX: usize = 10;

/// Maximum time for connecting, including TLS.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// A response whose body has not been read yet.
pub(crate) struct MirrorResponse {
    /// Status code of the response.
    pub status: StatusCode,
    /// Header fields of the response.
    pub headers: HeaderMap,
    body: Incoming,
    patience: Duration,
    /// Task that drives the connection; it is aborted when the response is dropped.
    _connection: Carrier,
}

struct Carrier(tokio::task::JoinHandle<()>);

impl Drop for Carrier {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl MirrorResponse {
    /// Returns the next piece of the body, or `None` at its proper end.
    pub(crate) async fn piece(&mut self) -> Result<Option<Bytes>, FetchError> {
        loop {
            let frame = poll_fn(|context| Pin::new(&mut self.body).poll_frame(context));
            let frame = tokio::time::timeout(self.patience, frame).await;
            match frame.map_err(|_| FetchError::Stalled(self.patience))? {
                None => return Ok(None),
                Some(Ok(frame)) => {
                    if let Ok(piece) = frame.into_data() {
                        return Ok(Some(piece));
                    }
                }
                Some(Err(cause)) => return Err(FetchError::Broken(cause.into())),
            }
        }
    }

    /// Returns a header as text.
    pub(crate) fn header(&self, name: header::HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns whether the end of the body is marked. Otherwise the end of the body cannot be distinguished from a
    /// broken connection.
    pub(crate) fn is_delimited(&self) -> bool {
        self.headers.contains_key(header::CONTENT_LENGTH) || self.headers.contains_key(header::TRANSFER_ENCODING)
    }

    /// Returns the length of the body if it is declared.
    pub(crate) fn length(&self) -> Option<u64> {
        self.header(header::CONTENT_LENGTH)?.trim().parse().ok()
    }
}

/// Requests a file, following redirects.
pub(crate) async fn get(
    connector: &Connector,
    url: &str,
    headers: &HeaderMap,
    patience: Duration,
) -> Result<MirrorResponse, FetchError> {
    let mut url = Url::parse(url).map_err(|error| FetchError::Refused(format!("the URL is unusable: {error}")))?;
    for _ in 0..=REDIRECTS_MAX {
        let answer = ask(connector, &url, headers, patience).await?;
        if !matches!(answer.status.as_u16(), 301 | 302 | 303 | 307 | 308) {
            return Ok(answer);
        }
        let target = answer.header(header::LOCATION).and_then(|location| url.join(location).ok());
        let target = target.filter(|target| matches!(target.scheme(), "http" | "https"));
        let target = target.ok_or_else(|| FetchError::Refused("it redirects to nowhere".to_owned()))?;
        if url.scheme() == "https" && target.scheme() == "http" {
            return Err(FetchError::Refused(format!("it redirects from https to {target}")));
        }
        url = target;
    }
    Err(FetchError::Refused(format!("it redirects more than {REDIRECTS_MAX} times")))
}

async fn ask(
    connector: &Connector,
    url: &Url,
    headers: &HeaderMap,
    patience: Duration,
) -> Result<MirrorResponse, FetchError> {
    let unreachable = |cause: io::Error| FetchError::Unreachable(cause);
    let connected = tokio::time::timeout(CONNECT_TIMEOUT, connector.connect(url)).await;
    let connected = connected.map_err(|_| unreachable(io::ErrorKind::TimedOut.into()))?.map_err(unreachable)?;
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(connected.wire)).await;
    let (mut sender, connection) = handshake.map_err(|cause| FetchError::Broken(cause.into()))?;
    let carrier = Carrier(tokio::spawn(async move {
        // The reader of the response receives any error.
        let _ = connection.await;
    }));
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let mut request = Request::get(format!("{}{}{query}", connected.prefix, url.path()))
        .header(header::HOST, format!("{}{port}", url.host_str().unwrap_or_default()))
        .header(header::USER_AGENT, concat!("arenad/", env!("CARGO_PKG_VERSION")))
        // With a compressed transfer, lengths and ranges would differ from those of the file.
        .header(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    if let Some(value) = connected.proxy_authorization {
        request = request.header(header::PROXY_AUTHORIZATION, value);
    }
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let request = request.body(String::new()).map_err(|error| FetchError::Refused(error.to_string()))?;
    let answer = tokio::time::timeout(patience, sender.send_request(request)).await;
    let answer = answer.map_err(|_| FetchError::Stalled(patience))?;
    let (head, body) = answer.map_err(|cause| FetchError::Broken(cause.into()))?.into_parts();
    Ok(MirrorResponse { status: head.status, headers: head.headers, body, patience, _connection: carrier })
}
