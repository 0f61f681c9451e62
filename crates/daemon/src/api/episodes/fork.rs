//! Forks: episodes that start from the present state of a running one.
//!
//! The state is copied once for all children of a request. From then on they are requests like others, and need nothing
//! of their parent any more. With an idempotency key, each child has a key of its own, so a repetition gets the children
//! that exist, and those that are missing start from the same copy.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use futures_util::future::try_join_all;

use super::start::{Unanswered, invalid, key, recorded, started, status};
use super::{id, refusal, shown, slots};
use crate::api::Api;
use crate::api::environments::{JsonRequest, body};
use crate::api::error::ApiError;
use arenad_api::episodes::{
    DEFAULT_WAIT_SECONDS, EpisodeForkRequest, EpisodeStartRequest, ForkedEpisodes, MOST_CHILDREN, StartedEpisode,
};
use arenad_episodes::{EpisodeError, EpisodeReceipt, EpisodeView};
use arenad_model::episode::ids::{EpisodeId, EpisodeLabels, IdempotencyKey, Owner};
use arenad_model::episode::life::EpisodeTerms;
use arenad_model::episode::request::{AskRefusal, EpisodeRequest, SiteWant, StartPoint};

/// `POST /v1/episodes/{id}/fork`: starts children of an episode, and answers when each of them is active or has ended. A
/// detached request is answered when the state of the parent is copied.
pub(in crate::api) async fn fork(
    State(api): State<Arc<Api>>,
    Path(text): Path<String>,
    headers: HeaderMap,
    request: JsonRequest<EpisodeForkRequest>,
) -> Result<(StatusCode, Json<ForkedEpisodes>), ApiError> {
    let request = body(request)?;
    let order = ForkOrder { parent: id(&text)?, key: key(&headers)?, slots: BTreeMap::new(), request };
    let parent = order.parent.to_string();
    let children = order.execute(&api).await?;
    let is_known = children.iter().all(|(_, child)| child.is_known);
    let is_served = children.iter().all(|(view, _)| shown::is_served(view));
    let children = children.into_iter().map(|(_, child)| child).collect();
    Ok((status(is_known, is_served), Json(ForkedEpisodes { parent, children })))
}

/// Starts the single child of a request for an episode that names a parent.
pub(super) async fn start(
    api: Arc<Api>,
    request: EpisodeStartRequest,
    key: Option<IdempotencyKey>,
) -> Result<(StatusCode, Json<StartedEpisode>), ApiError> {
    let EpisodeStartRequest { environment, sites, task, file, snapshots, slots, replays, from_episode, .. } = request;
    let is_described = environment.is_some() || !sites.is_empty() || task.is_some() || file.is_some();
    if is_described || !snapshots.is_empty() || !replays.is_empty() {
        let detail = "`from_episode` determines the environment, the sites, the replays and the task";
        return Err(ApiError::bad_request(detail).hint("leave out all fields that describe them"));
    }
    let request = EpisodeForkRequest {
        children: None,
        ttl_seconds: request.ttl_seconds,
        wait_seconds: request.wait_seconds,
        detach: request.detach,
        owner: request.owner,
        labels: request.labels,
        record: request.record,
    };
    let order = ForkOrder { parent: id(&from_episode.unwrap_or_default())?, key, slots, request };
    let child = order.execute(&api).await?.pop();
    // An order has at least one child.
    let (view, child) = child.ok_or_else(|| ApiError::not_found("this child"))?;
    Ok((status(child.is_known, shown::is_served(&view)), Json(child)))
}

/// An order to fork an episode.
struct ForkOrder {
    parent: EpisodeId,
    key: Option<IdempotencyKey>,
    /// The numbers of slots, by site.
    slots: BTreeMap<String, u32>,
    request: EpisodeForkRequest,
}

impl ForkOrder {
    /// Returns the children, unless none of them has got its slots.
    ///
    /// Errors: `not_active`, `ended` and `void` for the parent; `not_copied`; as for other requests for episodes.
    async fn execute(self, api: &Arc<Api>) -> Result<Vec<(EpisodeView, StartedEpisode)>, ApiError> {
        let keys = self.keys()?;
        let parent = api.episodes.get(&self.parent)?;
        let owner = match &self.request.owner {
            Some(owner) => Owner::parse(owner).map_err(invalid)?,
            None => parent.request.owner.clone(),
        };
        let known = keys.iter().flatten().find_map(|key| api.episodes.requested_with(&owner, key));
        // The copy stays until the requests that start from it are recorded.
        let record = self.request.record.map_or(parent.request.record, recorded);
        let (sites, beginning, _copy) = match known {
            Some(known) if !parent.slots.is_empty() && !self.is_child(&known) => {
                return Err(EpisodeError::Ask(AskRefusal::KeyReused(known.id)).into());
            }
            Some(known) => (known.request.sites.clone(), known.request.beginning.clone(), None),
            None => {
                let parent = slots::served(api, self.parent.as_str())?;
                let copy = api.environments.copy_episode(&parent, record).await;
                // An end meanwhile explains every failure, and leaves nothing to fork.
                slots::served(api, self.parent.as_str())?;
                let copy = copy?;
                let wants = parent.request.sites.iter().map(|want| SiteWant {
                    site: want.site.clone(),
                    slot: self.slots.get(want.site.site.as_str()).copied(),
                    start: match copy.of_site(&want.site) {
                        Some(copy) => StartPoint::Fork { parent: parent.id.clone(), copy: copy.clone() },
                        None => StartPoint::Baseline,
                    },
                });
                (wants.collect(), copy.beginning().cloned(), Some(copy))
            }
        };
        let (terms, labels, replays) = (self.terms(&parent)?, self.labels(&parent)?, parent.request.replays.clone());
        let request = EpisodeRequest { owner, key: None, sites, terms, labels, record, beginning, replays };
        let receipts = ask_all(api, &request, keys).await?;
        let views: Vec<EpisodeView> = match self.request.detach {
            true => receipts.iter().map(|receipt| api.episodes.get(&receipt.id)).collect::<Result<_, _>>()?,
            false => wait_all(api, &receipts, self.key.is_some()).await?,
        };
        if let Some(first) = views.first().and_then(|view| view.state.ending())
            && views.iter().all(|view| view.state.ending().is_some())
        {
            return Err(refusal::ended(first));
        }
        let child = |(view, receipt): (EpisodeView, EpisodeReceipt)| {
            let child = started(api, &view, receipt.token.reveal(), receipt.is_known);
            (view, child)
        };
        Ok(views.into_iter().zip(receipts).map(child).collect())
    }

    /// Whether an episode is a fork of the parent.
    fn is_child(&self, view: &EpisodeView) -> bool {
        view.request.sites.iter().any(|want| match &want.start {
            StartPoint::Fork { parent, .. } => *parent == self.parent,
            StartPoint::Baseline | StartPoint::Snapshot(_) => false,
        })
    }

    /// Returns the keys of the children.
    fn keys(&self) -> Result<Vec<Option<IdempotencyKey>>, ApiError> {
        let count = self.request.children.unwrap_or(1);
        if !(1..=MOST_CHILDREN).contains(&count) {
            return Err(ApiError::bad_request(format!("`children` is {count}; a fork has 1 to {MOST_CHILDREN}")));
        }
        let of_child = |number: u32| match &self.key {
            None => Ok(None),
            Some(key) => IdempotencyKey::parse(&format!("{}/{number}", key.as_str())).map(Some).map_err(invalid),
        };
        (1..=count).map(of_child).collect()
    }

    fn terms(&self, parent: &EpisodeView) -> Result<EpisodeTerms, ApiError> {
        let ttl = self.request.ttl_seconds.map_or(parent.request.terms.ttl(), Duration::from_secs);
        let wait = Duration::from_secs(self.request.wait_seconds.unwrap_or(DEFAULT_WAIT_SECONDS));
        EpisodeTerms::new(ttl, wait).map_err(invalid)
    }

    fn labels(&self, parent: &EpisodeView) -> Result<EpisodeLabels, ApiError> {
        let inherited = parent.request.labels.iter().map(|(key, value)| (key.to_owned(), value.to_owned()));
        let given = self.request.labels.clone();
        EpisodeLabels::parse(inherited.chain(given).collect()).map_err(invalid)
    }
}

/// Requests an episode for each key. If one request is refused, those before it are withdrawn.
async fn ask_all(
    api: &Arc<Api>,
    request: &EpisodeRequest,
    keys: Vec<Option<IdempotencyKey>>,
) -> Result<Vec<EpisodeReceipt>, EpisodeError> {
    let mut receipts: Vec<EpisodeReceipt> = Vec::new();
    // A client that goes away before all requests are recorded knows none of their ids.
    let mut unanswered = Vec::new();
    for key in keys {
        let has_key = key.is_some();
        let receipt = match api.episodes.ask(EpisodeRequest { key, ..request.clone() }).await {
            Ok(receipt) => receipt,
            Err(error) => {
                unanswered.into_iter().for_each(Unanswered::answer);
                for receipt in receipts.iter().filter(|receipt| !receipt.is_known) {
                    // Refused only if the request has ended.
                    let _ = api.episodes.release(&receipt.id).await;
                }
                return Err(error);
            }
        };
        unanswered.push(Unanswered::of(api, &receipt.id, has_key));
        receipts.push(receipt);
    }
    unanswered.into_iter().for_each(Unanswered::answer);
    Ok(receipts)
}

/// Waits until each child is active or has ended. If the client goes away meanwhile, all children without keys end.
async fn wait_all(
    api: &Arc<Api>,
    receipts: &[EpisodeReceipt],
    has_key: bool,
) -> Result<Vec<EpisodeView>, EpisodeError> {
    let unanswered: Vec<Unanswered> =
        receipts.iter().map(|receipt| Unanswered::of(api, &receipt.id, has_key)).collect();
    let views = try_join_all(receipts.iter().map(|receipt| api.episodes.wait(&receipt.id))).await?;
    unanswered.into_iter().for_each(Unanswered::answer);
    Ok(views)
}
