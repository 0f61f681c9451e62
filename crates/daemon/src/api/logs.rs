//! The endpoint that returns the logs of the containers of a site, or of one of its slots, as plain text.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use futures_util::stream::{self, SelectAll};
use futures_util::{Stream, StreamExt};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Api;
use super::error::ApiError;
use arenad_engine::{EngineHandle, LogRange};
use arenad_model::lines::{Line, LineSplitter};

/// The maximum length of a line in the response, in bytes; longer lines are cut.
const LINE_MAX: usize = 64 << 10;

#[derive(Deserialize, JsonSchema)]
pub(super) struct LogQuery {
    /// The number of last lines to return; all lines by default.
    tail: Option<u32>,
    /// Only lines since this time, in seconds since 1970.
    since: Option<i64>,
    /// Whether to wait for new lines.
    #[serde(default)]
    follow: bool,
    /// Whether each line starts with its time.
    #[serde(default)]
    timestamps: bool,
    /// The service to read; all services by default.
    service: Option<String>,
}

/// `GET /v1/environments/{environment}/sites/{site}/logs`; lines start with the service's name if there are several
/// containers.
pub(super) async fn logs(
    State(api): State<Arc<Api>>,
    Path((environment, site)): Path<(String, String)>,
    Query(query): Query<LogQuery>,
) -> Result<Response, ApiError> {
    let containers = api.environments.choose_slot(&environment, &site)?.report().containers;
    let wanted: Vec<(String, EngineHandle)> = containers
        .into_iter()
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

/// Splits chunks at line ends, so that the lines of several containers do not mix. A line that is too long is cut and
/// marked as cut.
fn lines<E: std::fmt::Display + Send + 'static>(
    chunks: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    prefix: String,
) -> impl Stream<Item = std::io::Result<Bytes>> + Send {
    let state = (Box::pin(chunks), LineSplitter::new(LINE_MAX), prefix, false);
    stream::unfold(state, |(mut chunks, mut lines, prefix, has_ended)| async move {
        if has_ended {
            return None;
        }
        let mut out = BytesMut::new();
        loop {
            match chunks.next().await {
                Some(Ok(chunk)) => lines.push(&chunk, |line| put(&mut out, &prefix, line)),
                Some(Err(error)) => {
                    return Some((Err(std::io::Error::other(error.to_string())), (chunks, lines, prefix, true)));
                }
                None => {
                    lines.end(|line| put(&mut out, &prefix, line));
                    return Some((Ok(out.freeze()), (chunks, lines, prefix, true)));
                }
            }
            if !out.is_empty() {
                return Some((Ok(out.freeze()), (chunks, lines, prefix, false)));
            }
        }
    })
}

fn put(out: &mut BytesMut, prefix: &str, line: Line<'_>) {
    out.extend_from_slice(prefix.as_bytes());
    out.extend_from_slice(line.bytes);
    if line.is_cut {
        out.extend_from_slice(format!(" … (cut: the line is longer than {} KiB)", LINE_MAX >> 10).as_bytes());
    }
    out.extend_from_slice(b"\n");
}

#[cfg(test)]
mod tests {
    use futures_util::TryStreamExt;

    use super::*;

    #[tokio::test]
    async fn a_line_without_end_is_cut_and_the_lines_after_it_are_whole() {
        let endless = std::iter::repeat_n(Bytes::from(vec![b'y'; 1 << 14]), 1000);
        let chunks = endless.chain([Bytes::from_static(b"\nnext\nlast")]).map(Ok::<_, std::io::Error>);
        let shown: Vec<Bytes> = lines(stream::iter(chunks), "app | ".to_owned()).try_collect().await.expect("lines");
        let shown = String::from_utf8(shown.concat()).expect("text");
        let shown: Vec<&str> = shown.lines().collect();
        assert_eq!(shown[1..], ["app | next", "app | last"]);
        assert!(shown[0].ends_with(" … (cut: the line is longer than 64 KiB)"), "{}", &shown[0][shown[0].len() - 60..]);
        assert!(shown[0].len() < LINE_MAX + 100);
    }
}
