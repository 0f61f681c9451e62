//! The containers' logs of a site, as plain text.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use futures_util::stream::{self, SelectAll};
use futures_util::{Stream, StreamExt};
use serde::Deserialize;

use super::Api;
use super::error::ApiError;
use crate::engine::{EngineHandle, LogRange};

#[derive(Deserialize)]
pub(super) struct Range {
    /// The last lines only.
    tail: Option<u32>,
    /// Since this time, in seconds since 1970.
    since: Option<i64>,
    /// Whether to wait for more.
    #[serde(default)]
    follow: bool,
    /// Whether each line begins with its time.
    #[serde(default)]
    timestamps: bool,
    /// One service only.
    service: Option<String>,
}

/// `GET /v1/environments/{environment}/sites/{site}/logs`; lines begin with the service where there are several.
pub(super) async fn logs(
    State(api): State<Arc<Api>>,
    Path((environment, site)): Path<(String, String)>,
    Query(query): Query<Range>,
) -> Result<Response, ApiError> {
    let handles = api.environments.choose(&environment, std::slice::from_ref(&site))?;
    let containers = handles.into_iter().flat_map(|handle| handle.report().containers);
    let wanted: Vec<(String, EngineHandle)> = containers
        .filter(|(service, _)| query.service.as_ref().is_none_or(|wanted| wanted == service))
        .map(|(service, (id, _))| (service, EngineHandle(id)))
        .collect();
    if wanted.is_empty() {
        return Err(
            ApiError::not_found(&format!("a container of {site}")).hint("`arenad status` says what the site is doing")
        );
    }
    let range = LogRange { tail: query.tail, since: query.since, follow: query.follow, timestamps: query.timestamps };
    let is_single = wanted.len() == 1;
    let mut merged = SelectAll::new();
    for (service, handle) in wanted {
        let prefix = if is_single { String::new() } else { format!("{service} | ") };
        let chunks = api.shared.engine.logs(&handle, range).map(|chunk| chunk.map(|chunk| chunk.bytes));
        merged.push(Box::pin(lines(chunks, prefix)));
    }
    let stop = api.stop.clone();
    let body = Body::from_stream(merged.take_until(async move { stop.cancelled().await }));
    Ok(([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], body).into_response())
}

/// Cuts chunks at line ends, so that the lines of several containers do not mix.
fn lines<E: std::fmt::Display + Send + 'static>(
    chunks: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    prefix: String,
) -> impl Stream<Item = std::io::Result<Bytes>> + Send {
    let chunks = Box::pin(chunks);
    stream::unfold((chunks, BytesMut::new(), prefix, false), |(mut chunks, mut rest, prefix, ended)| async move {
        if ended {
            return None;
        }
        loop {
            if let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let line = rest.split_to(end + 1);
                let mut out = BytesMut::from(prefix.as_bytes());
                out.extend_from_slice(&line);
                return Some((Ok(out.freeze()), (chunks, rest, prefix, false)));
            }
            match chunks.next().await {
                Some(Ok(chunk)) => rest.extend_from_slice(&chunk),
                Some(Err(error)) => {
                    return Some((Err(std::io::Error::other(error.to_string())), (chunks, rest, prefix, true)));
                }
                None if rest.is_empty() => return None,
                None => {
                    let mut out = BytesMut::from(prefix.as_bytes());
                    out.extend_from_slice(&rest);
                    out.extend_from_slice(b"\n");
                    return Some((Ok(out.freeze()), (chunks, BytesMut::new(), prefix, true)));
                }
            }
        }
    })
}
