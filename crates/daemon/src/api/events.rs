//! The endpoint of the event log, as a list or as a stream of server-sent events.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt, stream};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;

use super::Api;
use super::error::ApiError;
use arenad_api as wire;
use arenad_model::error::describe;
use arenad_store::{EventCursor, FollowError, StoredEvent};

/// The largest number of events on one page.
const PAGE_MAX: u32 = 1000;

/// The number of events that a stream reads at a time, which bounds the memory that a slow client occupies.
pub(super) const STREAM_PAGE: u32 = 100;

#[derive(Deserialize, JsonSchema)]
pub(super) struct EventQuery {
    /// Only events after this sequence number; without it, the newest `limit` events.
    after: Option<i64>,
    /// Only events from this time on, in seconds since 1970.
    since: Option<i64>,
    /// The largest number of events. For a stream, the number of earlier events to start with, unless `after` or
    /// `since` gives the starting point.
    limit: Option<u32>,
    /// Whether to stream later events.
    #[serde(default)]
    follow: bool,
}

fn shown(event: StoredEvent) -> wire::DaemonEvent {
    wire::DaemonEvent {
        seq: event.seq,
        at: event.at.to_string(),
        kind: event.kind,
        instance: event.instance.map(|id| id.to_string()),
        message: event.message,
    }
}

/// `GET /v1/events?after=SEQ&since=SECONDS&limit=N&follow=true`; `Last-Event-ID` counts as `after`.
///
/// A stream contains every event after the first one that it sends, each exactly once. It ends with an event named
/// [`wire::GONE`] when it cannot continue: the client read so slowly that the next events have been deleted, or the
/// store failed.
pub(super) async fn events(
    State(api): State<Arc<Api>>,
    Query(range): Query<EventQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let limit = range.limit.unwrap_or(100).min(PAGE_MAX);
    let resumed = resumed(&headers);
    let store = &api.shared.store;
    let after = match (resumed.or(range.after), range.since) {
        (Some(after), _) => after,
        (None, Some(since)) => store.seq_before(Timestamp::from_second(since).unwrap_or(Timestamp::MIN)).await?,
        (None, None) => store.seq_before_last(limit).await?,
    };
    if !range.follow {
        let events = store.events_after(after, limit).await?.into_iter().map(shown).collect();
        return Ok(Json(wire::EventList { events }).into_response());
    }
    let stop = api.stop.clone();
    let stream = sent(api.shared.events.follow(after)).take_until(async move { stop.cancelled().await });
    Ok(Sse::new(stream).keep_alive(KeepAlive::default()).into_response())
}

/// Returns the events in the form in which they are sent. The next page is read only after the client has taken the
/// last one.
fn sent(followed: EventCursor) -> impl Stream<Item = Result<Event, Infallible>> + Send {
    let pages = stream::unfold(Some(followed), |followed| async move {
        let mut followed = followed?;
        match followed.next(STREAM_PAGE).await {
            Ok(events) => {
                let page: Vec<Event> = events.into_iter().map(shown).map(|event| one(&event)).collect();
                Some((page, Some(followed)))
            }
            Err(error) => Some((vec![gone(followed.after(), &error)], None)),
        }
    });
    pages.flat_map(stream::iter).map(Ok)
}

fn one(event: &wire::DaemonEvent) -> Event {
    let sent = Event::default().id(event.seq.to_string()).event(event.kind.clone());
    sent.json_data(event).unwrap_or_default()
}

/// Returns the sequence number of the last event that a client of an earlier stream received.
pub(super) fn resumed(headers: &HeaderMap) -> Option<i64> {
    headers.get("last-event-id")?.to_str().ok()?.parse().ok()
}

/// Returns the last event of a stream that cannot continue.
pub(super) fn gone(after: i64, error: &FollowError) -> Event {
    let next = match error {
        FollowError::Forgotten { next, .. } => Some(*next),
        FollowError::Store(_) | FollowError::Stopping => None,
    };
    let said = wire::EventsGone { after, next, message: describe(error) };
    Event::default().event(wire::GONE).json_data(said).unwrap_or_default()
}
