//! Endpoints whose answers are streams: the hold, and the events of episodes.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt, stream};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{id, shown};
use crate::api::Api;
use crate::api::error::ApiError;
use crate::api::events::{STREAM_PAGE, gone, resumed};
use arenad_episodes::{EpisodeEventCursor, HoldGuard};
use arenad_model::episode::EpisodeStatus;
use arenad_model::episode::ids::EpisodeId;
use arenad_store::StoredEpisodeEvent;

/// The pause between two comments that show each side that the other one is there.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// `GET /v1/episodes/{id}/hold`: binds an episode to this connection. When the connection is closed, the episode ends.
///
/// Shape: server-sent events of the name `episode`, whose data is the episode: first its present state, then each
/// state that follows. The stream ends when the episode has ended. If it ends earlier, the daemon is stopping, and the
/// client has a few seconds to hold the episode at the next daemon.
pub(in crate::api) async fn hold(State(api): State<Arc<Api>>, Path(text): Path<String>) -> Result<Response, ApiError> {
    let guard = api.episodes.hold(&id(&text)?).await?;
    Ok(answer(held(api, guard)))
}

/// Returns the answer to a client whose connection holds an episode.
pub(super) fn answer(events: impl Stream<Item = Result<Event, Infallible>> + Send + 'static) -> Response {
    Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response()
}

/// A hold together with the state that the client has been told.
struct Held {
    api: Arc<Api>,
    guard: HoldGuard,
    told: Option<EpisodeStatus>,
}

/// Returns the states of an episode, from the present one on. The episode ends when the stream is dropped.
pub(super) fn held(api: Arc<Api>, guard: HoldGuard) -> impl Stream<Item = Result<Event, Infallible>> + Send {
    stream::unfold(Some(Held { api, guard, told: None }), |held| async move {
        let Held { api, guard, told } = held?;
        let next = api.stop.run_until_cancelled(api.episodes.changed(guard.episode(), told)).await;
        let Some(next) = next else {
            // Not dropped: the end of the daemon is not that of its clients. They hold their episodes again at the
            // next daemon, which ends those that are not held in time.
            std::mem::forget(guard);
            return None;
        };
        let view = next.ok()?;
        let status = view.state.status();
        let event = Event::default().event("episode").json_data(shown::whole(&api, &view)).unwrap_or_default();
        let rest = view.state.ending().is_none().then_some(Held { api, guard, told: Some(status) });
        Some((Ok(event), rest))
    })
}

#[derive(Deserialize, JsonSchema)]
pub(in crate::api) struct EpisodeEventQuery {
    /// Only events after this sequence number; without it, all that are kept.
    after: Option<i64>,
}

/// `GET /v1/episodes/{id}/events?after=SEQ`: streams the states of an episode, past and future, and ends when the
/// episode has ended. `Last-Event-ID` counts as `after`.
pub(in crate::api) async fn events(
    State(api): State<Arc<Api>>,
    Path(text): Path<String>,
    Query(range): Query<EpisodeEventQuery>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let id = id(&text)?;
    api.episodes.get(&id)?;
    Ok(followed(&api, Some(id), &range, &headers))
}

/// `GET /v1/episodes/events?after=SEQ`: streams the states of all episodes.
pub(in crate::api) async fn all_events(
    State(api): State<Arc<Api>>,
    Query(range): Query<EpisodeEventQuery>,
    headers: HeaderMap,
) -> Response {
    followed(&api, None, &range, &headers)
}

fn followed(api: &Api, only: Option<EpisodeId>, range: &EpisodeEventQuery, headers: &HeaderMap) -> Response {
    let cursor = api.episodes.follow(resumed(headers).or(range.after).unwrap_or(0).max(0));
    let stop = api.stop.clone();
    let stream = sent(cursor, only).take_until(async move { stop.cancelled().await });
    Sse::new(stream).keep_alive(KeepAlive::default()).into_response()
}

/// Returns the events in the form in which they are sent. The next page is read only after the client has taken the
/// last one.
fn sent(cursor: EpisodeEventCursor, only: Option<EpisodeId>) -> impl Stream<Item = Result<Event, Infallible>> + Send {
    let pages = stream::unfold(Some((cursor, only)), |place| async move {
        let (mut cursor, only) = place?;
        match cursor.next(STREAM_PAGE).await {
            Ok(events) => {
                let (page, is_over) = page(events, only.as_ref());
                Some((page, (!is_over).then_some((cursor, only))))
            }
            Err(error) => Some((vec![gone(cursor.after(), &error)], None)),
        }
    });
    pages.flat_map(stream::iter).map(Ok)
}

/// Returns the events of a page that concern an episode, and whether the last one is its end.
fn page(events: Vec<StoredEpisodeEvent>, only: Option<&EpisodeId>) -> (Vec<Event>, bool) {
    let is_meant = |event: &StoredEpisodeEvent| only.is_none_or(|only| event.episode == *only);
    let meant: Vec<StoredEpisodeEvent> = events.into_iter().filter(is_meant).collect();
    let is_over = only.is_some() && meant.iter().any(|event| event.ending.is_some());
    (meant.iter().map(one).collect(), is_over)
}

fn one(event: &StoredEpisodeEvent) -> Event {
    let sent = Event::default().id(event.seq.to_string()).event(format!("episode.{}", event.status.name()));
    sent.json_data(shown::event(event)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arenad_model::episode::ending::{EpisodeEnding, ExpiryCause};
    use jiff::Timestamp;

    fn stored(seq: i64, episode: &EpisodeId, ending: Option<EpisodeEnding>) -> StoredEpisodeEvent {
        let status = if ending.is_some() { EpisodeStatus::Expired } else { EpisodeStatus::Active };
        StoredEpisodeEvent { seq, at: Timestamp::UNIX_EPOCH, episode: episode.clone(), status, ending }
    }

    #[test]
    fn a_stream_of_one_episode_ends_with_its_end_and_not_with_that_of_another() {
        let (one, other) = (EpisodeId::from_random([1; 10]), EpisodeId::from_random([2; 10]));
        let end = || Some(EpisodeEnding::Expired(ExpiryCause::Ttl));
        let events = || vec![stored(1, &one, None), stored(2, &other, end())];
        assert_eq!((page(events(), Some(&one)).0.len(), page(events(), Some(&one)).1), (1, false));
        assert_eq!((page(events(), Some(&other)).0.len(), page(events(), Some(&other)).1), (1, true));
        assert_eq!((page(events(), None).0.len(), page(events(), None).1), (2, false));
    }
}
