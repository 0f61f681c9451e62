//! Endpoints that name the changes that an episode made on its sites, and keep looks to compare later states with.
//!
//! A look of an episode is a look of each of its sites, under one number.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use schemars::JsonSchema;

use super::{shown, slots};
use crate::api::Api;
use crate::api::changes as site_changes;
use crate::api::described::TextQuery;
use crate::api::error::ApiError;
use crate::api::verify::SiteSubject;
use arenad_api::{EpisodeChanges, EpisodeLooks, LeftOutReason, LeftOutSite, Look, SiteChanges};
use arenad_episodes::EpisodeView;
use arenad_instance::InstanceHandle;
use arenad_instance::changes::{ChangesRequest, PendingLook, keep_looks};

/// The number of sites that are read at the same time.
const AT_ONCE: usize = 4;

/// The query of a comparison.
#[derive(Debug, Default, PartialEq, Eq, JsonSchema)]
pub(in crate::api) struct EpisodeChangesQuery {
    /// The sites to compare; empty means all.
    #[schemars(rename = "site", default)]
    sites: BTreeSet<String>,
    /// Whether values of rows are shown.
    #[schemars(rename = "values", default)]
    with_values: bool,
    /// The number of the look that is the earlier state; without it, the starting points.
    since: Option<u64>,
    /// The number of the look that is the later state; without it, the present.
    until: Option<u64>,
}

/// Parses a query, in which `site` may be repeated.
fn query(text: &str) -> Result<EpisodeChangesQuery, ApiError> {
    let mut query = EpisodeChangesQuery::default();
    for (key, value) in form_urlencoded::parse(text.as_bytes()) {
        match (&*key, &*value, value.parse::<u64>()) {
            ("site", site, _) => drop(query.sites.insert(site.to_owned())),
            ("values", "true" | "1", _) => query.with_values = true,
            ("values", "false" | "0", _) => query.with_values = false,
            ("since", _, Ok(look)) => query.since = Some(look),
            ("until", _, Ok(look)) => query.until = Some(look),
            (key, ..) => {
                return Err(ApiError::bad_request(format!("unknown or invalid parameter `{key}`"))
                    .hint("use site=NAME, values=true, since=LOOK and until=LOOK"));
            }
        }
    }
    Ok(query)
}

/// `GET /v1/episodes/{id}/changes?site=NAME&values=true&since=LOOK&until=LOOK`: returns what the episode changed on its
/// sites since their starting points, or between two looks. `site` may be repeated.
pub(in crate::api) async fn changes(
    State(api): State<Arc<Api>>,
    Path(text): Path<String>,
    asked: TextQuery<EpisodeChangesQuery>,
) -> Result<Json<EpisodeChanges>, ApiError> {
    let begun = Instant::now();
    let query = query(&asked.0)?;
    let view = slots::served(&api, &text)?;
    let EpisodeSubjects { subjects, left_out } = subjects(&api, &view, &query.sites).await?;
    let request = ChangesRequest { since: query.since, until: query.until, with_values: query.with_values };
    // Collected first, because the compiler does not see that a stream of a closure's futures can be sent.
    let comparisons: Vec<_> = subjects.iter().map(|subject| compare(&api, subject, request)).collect();
    let found: Result<Vec<SiteChanges>, ApiError> = stream::iter(comparisons).buffered(AT_ONCE).try_collect().await;
    insist_unchanged(&api, &text)?;
    let sites = found?;
    Ok(Json(EpisodeChanges {
        episode: view.id.to_string(),
        environment: shown::environment(&view).to_owned(),
        since: query.since,
        until: query.until,
        equal: (!sites.is_empty()).then(|| sites.iter().all(|site| site.equal)),
        settled: sites.iter().all(|site| site.settled),
        duration_ms: begun.elapsed().as_secs_f64() * 1e3,
        sites,
        left_out,
    }))
}

async fn compare(api: &Api, subject: &SiteSubject, request: ChangesRequest) -> Result<SiteChanges, ApiError> {
    let found = site_changes::of(api, subject, request).await;
    found.map_err(|error| error.about(subject.handle.site.name.as_str()))
}

/// `POST /v1/episodes/{id}/looks`: keeps the states of the episode's sites, all or none, and returns the number under
/// which they are found again. They are not states of one moment unless the episode is frozen.
pub(in crate::api) async fn keep_look(
    State(api): State<Arc<Api>>,
    Path(text): Path<String>,
) -> Result<(StatusCode, Json<Look>), ApiError> {
    let view = slots::served(&api, &text)?;
    let subjects = compared(&api, &view).await?;
    let kept = read_and_keep(&api, &subjects).await;
    insist_unchanged(&api, &text)?;
    Ok((StatusCode::CREATED, Json(Look { number: kept? })))
}

async fn read_and_keep(api: &Api, subjects: &[SiteSubject]) -> Result<u64, ApiError> {
    let reads: Vec<_> = subjects.iter().map(|subject| read(api, subject)).collect();
    let pending: Vec<PendingLook> = stream::iter(reads).buffered(AT_ONCE).try_collect().await?;
    let first = subjects.first().map(|subject| &subject.handle.id);
    let refused = |error| match first {
        Some(id) => site_changes::refused(error, id),
        None => ApiError::not_found("a site of the episode"),
    };
    keep_looks(pending).await.map_err(refused)
}

async fn read(api: &Api, subject: &SiteSubject) -> Result<PendingLook, ApiError> {
    let look = subject.candidate(api)?.read_look().await;
    let site = subject.handle.site.name.as_str();
    let look = look.map_err(|error| site_changes::refused(error, &subject.handle.id).about(site))?;
    subject.check_generation()?;
    Ok(look)
}

/// `GET /v1/episodes/{id}/looks`: returns the looks that all compared sites of the episode have.
pub(in crate::api) async fn looks(
    State(api): State<Arc<Api>>,
    Path(text): Path<String>,
) -> Result<Json<EpisodeLooks>, ApiError> {
    let view = slots::served(&api, &text)?;
    let mut common: Option<BTreeSet<u64>> = None;
    for subject in compared(&api, &view).await? {
        let numbers: BTreeSet<u64> = site_changes::numbers(&api, &subject).await?.into_iter().collect();
        common = Some(common.map_or(numbers.clone(), |common| &common & &numbers));
    }
    insist_unchanged(&api, &text)?;
    let looks = common.into_iter().flatten().map(|number| Look { number }).collect();
    Ok(Json(EpisodeLooks { episode: view.id.to_string(), looks }))
}

/// Returns an error if the episode has ended or lost a slot. It explains every other failure, and what was read may
/// belong to another episode.
fn insist_unchanged(api: &Api, text: &str) -> Result<(), ApiError> {
    slots::instances(api, &slots::served(api, text)?).map(drop)
}

/// The sites of an episode.
struct EpisodeSubjects {
    /// The sites that can be compared, in the order of the request.
    subjects: Vec<SiteSubject>,
    left_out: Vec<LeftOutSite>,
}

/// Returns the named sites of an episode, or all of them if none is named.
async fn subjects(api: &Api, view: &EpisodeView, names: &BTreeSet<String>) -> Result<EpisodeSubjects, ApiError> {
    let handles = slots::instances(api, view)?;
    for name in names {
        slots::site(view, &handles, name)?;
    }
    let mut found = EpisodeSubjects { subjects: Vec::new(), left_out: Vec::new() };
    for handle in handles.into_iter().filter(|handle| names.is_empty() || names.contains(handle.site.name.as_str())) {
        let site = handle.site.name.clone();
        let subject = match reason_at_first(view, &handle) {
            Some(code) => Err(code),
            None => {
                let subject = SiteSubject::of(api, handle).await?;
                if subject.can_be_compared(api) { Ok(subject) } else { Err(LeftOutReason::NoStateRoot) }
            }
        };
        match subject {
            Ok(subject) => found.subjects.push(subject),
            Err(code) => {
                found.left_out.push(LeftOutSite { site: site.to_string(), code, reason: told(code).to_owned() });
            }
        }
    }
    Ok(found)
}

/// Returns why a site is left out, as far as its definition tells.
fn reason_at_first(view: &EpisodeView, handle: &InstanceHandle) -> Option<LeftOutReason> {
    let has_slot = view.slots.iter().any(|slot| slot.instance == handle.id);
    match (has_slot, handle.site.stores.is_empty()) {
        (false, _) => Some(LeftOutReason::Shared),
        (true, true) => Some(LeftOutReason::NoStores),
        (true, false) => None,
    }
}

fn told(reason: LeftOutReason) -> &'static str {
    match reason {
        LeftOutReason::Shared => "all episodes share it, and it is only read",
        LeftOutReason::NoStores => "its definition declares no stores",
        LeftOutReason::NoStateRoot => "its snapshot was taken without a state root",
    }
}

/// Returns the sites of an episode that can be compared.
///
/// Errors: `cannot_verify` if there is none.
async fn compared(api: &Api, view: &EpisodeView) -> Result<Vec<SiteSubject>, ApiError> {
    let EpisodeSubjects { subjects, left_out } = subjects(api, view, &BTreeSet::new()).await?;
    if !subjects.is_empty() {
        return Ok(subjects);
    }
    let reasons: Vec<String> = left_out.iter().map(|left| format!("{}: {}", left.site, left.reason)).collect();
    let detail = format!("no site of episode {} can be compared: {}", view.id, reasons.join("; "));
    Err(ApiError::new(StatusCode::CONFLICT, "cannot_verify", detail)
        .hint("give a site `stores` in the environment file"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_is_asked_for_by_site_and_look() {
        assert_eq!(query("").expect("nothing"), EpisodeChangesQuery::default());
        let asked = query("site=shop&site=forum&values=true&since=1&until=2").expect("valid");
        let sites = BTreeSet::from(["forum".to_owned(), "shop".to_owned()]);
        assert_eq!(asked, EpisodeChangesQuery { sites, with_values: true, since: Some(1), until: Some(2) });
        for wrong in ["values=yes", "since=", "since=one", "until=-1", "look=1"] {
            assert!(query(wrong).is_err(), "{wrong}");
        }
    }
}
