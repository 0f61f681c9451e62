//! One HTTP request to an endpoint, and its answer.

use std::io;

use bytes::BytesMut;
use http::header::{self, HeaderMap};
use http::{Request, StatusCode};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use url::Url;

use arenad_model::site::Secret;
use arenad_outbound::Connector;

/// The maximum length of an answer, in bytes.
const ANSWER_MAX: usize = 1 << 20;

pub(super) struct EndpointResponse {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// Posts a JSON document. Redirects are not followed, because they would send the key to another server.
pub(super) async fn post(
    connector: &Connector,
    url: &Url,
    key: Option<&Secret>,
    document: &Value,
) -> io::Result<EndpointResponse> {
    let connected = connector.connect(url).await?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(connected.wire)).await.map_err(io::Error::other)?;
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let mut request = Request::post(format!("{}{}", connected.prefix, &url[url::Position::BeforePath..]))
        .header(header::HOST, format!("{}{port}", url.host_str().unwrap_or_default()))
        .header(header::USER_AGENT, concat!("arenad/", env!("CARGO_PKG_VERSION")))
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT_ENCODING, "identity")
        .header(header::CONNECTION, "close");
    if let Some(value) = connected.proxy_authorization {
        request = request.header(header::PROXY_AUTHORIZATION, value);
    }
    if let Some(key) = key {
        request = request.header(header::AUTHORIZATION, format!("Bearer {}", key.expose()));
    }
    let request = request.body(document.to_string()).map_err(io::Error::other)?;
    let exchange = async {
        let (head, body) = sender.send_request(request).await.map_err(io::Error::other)?.into_parts();
        Ok(EndpointResponse { status: head.status, headers: head.headers, body: read(body).await? })
    };
    // This task drives the connection during the exchange, so the connection ends with it.
    let carried = std::pin::pin!(connection);
    let exchange = std::pin::pin!(exchange);
    match futures_util::future::select(exchange, carried).await {
        futures_util::future::Either::Left((answer, _)) => answer,
        futures_util::future::Either::Right((ended, exchange)) => {
            // Data that was received before the connection ended can still be read.
            ended.map_err(io::Error::other)?;
            exchange.await
        }
    }
}

async fn read(mut body: Incoming) -> io::Result<Vec<u8>> {
    use hyper::body::Body;
    let mut read = BytesMut::new();
    while let Some(frame) = std::future::poll_fn(|context| std::pin::Pin::new(&mut body).poll_frame(context)).await {
        if let Ok(piece) = frame.map_err(io::Error::other)?.into_data() {
            if read.len() + piece.len() > ANSWER_MAX {
                return Err(io::Error::other("the answer is longer than a mebibyte"));
            }
            read.extend_from_slice(&piece);
        }
    }
    Ok(read.to_vec())
}
