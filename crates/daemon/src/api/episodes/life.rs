//! Endpoints that show episodes and the queue, and change the life of an episode.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use schemars::JsonSchema;

use super::{id, shown};
use crate::api::Api;
use crate::api::described::TextQuery;
use crate::api::environments::{JsonRequest, body};
use crate::api::error::ApiError;
use arenad_api::episodes::{EpisodeList, EpisodeQueueList, HeartbeatRequest, QueuedRequest, ReportedEpisode};
use arenad_episodes::EpisodeFilter;
use arenad_model::episode::ids::{EpisodeLabels, Owner};
use arenad_model::episode::life::check_ttl;
use arenad_model::episode::queue::QueuePlace;

/// `GET /v1/episodes?owner=NAME&label=KEY=VALUE&live=true`: returns the episodes that have the owner and all of the
/// labels. `label` may be repeated.
pub(in crate::api) async fn list(
    State(api): State<Arc<Api>>,
    query: TextQuery<EpisodeListQuery>,
) -> Result<Json<EpisodeList>, ApiError> {
    let filter = filter(&query.0)?;
    let episodes = api.episodes.list(&filter).iter().map(|view| shown::listed(&api, view)).collect();
    Ok(Json(EpisodeList { episodes }))
}

/// The parameters that [`filter`] parses.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is used")]
pub(in crate::api) struct EpisodeListQuery {
    /// Only episodes of this owner.
    owner: Option<String>,
    /// Only episodes with this label, as `KEY=VALUE`. With several, only episodes that have all of them.
    #[schemars(default)]
    label: Vec<String>,
    /// Whether episodes that have ended are left out.
    #[schemars(default)]
    live: bool,
}

/// Parses the query of a list, in which `label` may be repeated.
fn filter(query: &str) -> Result<EpisodeFilter, ApiError> {
    let (mut filter, mut labels) = (EpisodeFilter::default(), BTreeMap::new());
    for (key, value) in form_urlencoded::parse(query.as_bytes()) {
        match (&*key, &*value) {
            ("owner", owner) => {
                filter.owner = Some(Owner::parse(owner).map_err(|error| ApiError::bad_request(error.to_string()))?);
            }
            ("label", label) => {
                let Some((name, value)) = label.split_once('=') else {
                    return Err(ApiError::bad_request(format!("`label={label}` is not of the form label=KEY=VALUE")));
                };
                if labels.insert(name.to_owned(), value.to_owned()).is_some_and(|earlier| earlier != value) {
                    return Err(ApiError::bad_request(format!("an episode has one value of the label {name}")));
                }
            }
            ("live", "true" | "1") => filter.is_live = true,
            ("live", "false" | "0") => filter.is_live = false,
            (key, _) => {
                return Err(ApiError::bad_request(format!("unknown or invalid parameter `{key}`"))
                    .hint("use owner=NAME, label=KEY=VALUE and live=true"));
            }
        }
    }
    filter.labels = EpisodeLabels::parse(labels).map_err(|error| ApiError::bad_request(error.to_string()))?;
    Ok(filter)
}

/// `GET /v1/episodes/{id}`.
pub(in crate::api) async fn one(
    State(api): State<Arc<Api>>,
    Path(text): Path<String>,
) -> Result<Json<ReportedEpisode>, ApiError> {
    let Json(mut episode) = reported(&api, &text)?;
    let stored = api.shared.store.evaluations(&id(&text)?).await?;
    episode.evaluations = stored.into_iter().map(shown::evaluation).collect();
    Ok(Json(episode))
}

fn reported(api: &Api, text: &str) -> Result<Json<ReportedEpisode>, ApiError> {
    let view = api.episodes.get(&id(text)?)?;
    Ok(Json(shown::whole(api, &view)))
}

/// `GET /v1/episodes/queue`: returns the requests that wait for slots.
pub(in crate::api) async fn queue(State(api): State<Arc<Api>>) -> Result<Json<EpisodeQueueList>, ApiError> {
    let places = api.episodes.queue().await?;
    // A request that was granted meanwhile has left the queue, and may even be forgotten.
    let requests = places.into_iter().filter_map(|place| queued(&api, place)).collect();
    Ok(Json(EpisodeQueueList { requests }))
}

fn queued(api: &Api, place: QueuePlace) -> Option<QueuedRequest> {
    let view = api.episodes.get(&place.episode).ok()?;
    Some(QueuedRequest {
        id: place.episode.to_string(),
        position: place.position,
        ahead: place.ahead,
        is_over_quota: place.is_over_quota,
        estimate_seconds: place.estimate.map(|estimate| estimate.as_secs_f64()),
        owner: view.request.owner.to_string(),
        environment: shown::environment(&view).to_owned(),
        sites: view.request.sites.iter().map(|want| want.site.site.to_string()).collect(),
        asked_at: view.asked_at.to_string(),
    })
}

/// `POST /v1/episodes/{id}/heartbeat`: extends the time to live, from now on.
pub(in crate::api) async fn heartbeat(
    State(api): State<Arc<Api>>,
    Path(text): Path<String>,
    request: JsonRequest<HeartbeatRequest>,
) -> Result<Json<ReportedEpisode>, ApiError> {
    let extension = body(request)?.extend_seconds.map(Duration::from_secs);
    if let Some(extension) = extension {
        check_ttl(extension).map_err(|error| ApiError::bad_request(error.to_string()))?;
    }
    api.episodes.heartbeat(&id(&text)?, extension).await?;
    reported(&api, &text)
}

/// `POST /v1/episodes/{id}/freeze`: freezes an episode until `unfreeze`. No request of a client reaches its slots.
pub(in crate::api) async fn freeze(
    State(api): State<Arc<Api>>,
    Path(text): Path<String>,
) -> Result<Json<ReportedEpisode>, ApiError> {
    api.episodes.freeze(&id(&text)?).await?;
    reported(&api, &text)
}

/// `POST /v1/episodes/{id}/unfreeze`.
pub(in crate::api) async fn unfreeze(
    State(api): State<Arc<Api>>,
    Path(text): Path<String>,
) -> Result<Json<ReportedEpisode>, ApiError> {
    api.episodes.unfreeze(&id(&text)?).await?;
    reported(&api, &text)
}

/// `DELETE /v1/episodes/{id}`: ends an episode or withdraws its request. Answers when the end is recorded and the
/// connections of the client are cut.
pub(in crate::api) async fn end(State(api): State<Arc<Api>>, Path(text): Path<String>) -> Result<StatusCode, ApiError> {
    api.episodes.release(&id(&text)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_filtered_by_owner_labels_and_life() {
        let all = filter("").expect("no filter");
        assert!(all.owner.is_none() && all.labels.iter().next().is_none() && !all.is_live);
        let some = filter("owner=ann&label=run%3D7&label=task=a.b=c&live=true").expect("a filter");
        assert_eq!(some.owner.map(|owner| owner.to_string()).as_deref(), Some("ann"));
        assert_eq!(some.labels.iter().collect::<Vec<_>>(), [("run", "7"), ("task", "a.b=c")]);
        assert!(some.is_live);
        for wrong in ["label=run", "label=a=1&label=a=2", "owner=", "live=maybe", "state=active"] {
            assert!(filter(wrong).is_err(), "{wrong}");
        }
    }
}
