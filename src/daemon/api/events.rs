//! The event log, as a list or as a stream of server-sent events.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use serde::Deserialize;
use tokio::sync::broadcast;

use super::Api;
use super::error::ApiError;
use crate::daemon::store::{Store, StoredEvent};
use crate::wire;

/// How many events one page has at most.
const PAGE_MAX: u32 = 1000;

#[derive(Deserialize)]
pub(super) struct Range {
    /// After this sequence number; without it, the newest `limit`.
    after: Option<i64>,
    /// At most so many.
    limit: Option<u32>,
    /// Whether to stream what follows.
    #[serde(default)]
    follow: bool,
}

fn shown(event: StoredEvent) -> wire::Event {
    wire::Event {
        seq: event.seq,
        at: event.at.to_string(),
        kind: event.kind,
        instance: event.instance,
        message: event.message,
    }
}

/// `GET /v1/events?after=SEQ&limit=N&follow=true`; `Last-Event-ID` counts as `after`.
pub(super) async fn events(
    State(api): State<Arc<Api>>,
    Query(range): Query<Range>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let limit = range.limit.unwrap_or(100).min(PAGE_MAX);
    let resumed = headers.get("last-event-id").and_then(|id| id.to_str().ok()).and_then(|id| id.parse().ok());
    let store = api.shared.store.clone();
    // Listening begins before reading: nothing that happens in between is missed.
    let live = api.shared.events.listen();
    let after = match resumed.or(range.after) {
        Some(after) => after,
        None => store.seq_before_last(limit).await?,
    };
    let past = store.events_after(after, limit).await?;
    if !range.follow {
        let events = past.into_iter().map(shown).collect();
        return Ok(Json(wire::Events { events }).into_response());
    }
    let seen = past.last().map_or(after, |event| event.seq);
    let stop = api.stop.clone();
    let stream = stream::iter(past).chain(following(store, live, seen)).map(|event| {
        let event = shown(event);
        let sent = Event::default().id(event.seq.to_string()).event(event.kind.clone());
        Ok::<_, Infallible>(sent.json_data(&event).unwrap_or_default())
    });
    let stream = stream.take_until(async move { stop.cancelled().await });
    Ok(Sse::new(stream).keep_alive(KeepAlive::default()).into_response())
}

/// The events after `seen`, live; what a slow listener missed is read from the store.
fn following(
    store: Store,
    live: broadcast::Receiver<StoredEvent>,
    seen: i64,
) -> impl futures_util::Stream<Item = StoredEvent> {
    stream::unfold((store, live, seen, Vec::new()), |(store, mut live, mut seen, mut missed)| async move {
        loop {
            if let Some(event) = missed.pop() {
                let event: StoredEvent = event;
                seen = event.seq;
                return Some((event, (store, live, seen, missed)));
            }
            match live.recv().await {
                Ok(event) if event.seq <= seen => {}
                Ok(event) => {
                    seen = event.seq;
                    return Some((event, (store, live, seen, missed)));
                }
                Err(broadcast::error::RecvError::Lagged(_)) => {
                    missed = store.events_after(seen, PAGE_MAX).await.ok()?;
                    missed.reverse();
                }
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    })
}
