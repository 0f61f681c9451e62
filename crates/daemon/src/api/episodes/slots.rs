//! The slots of an episode: how they are found, and the endpoints that read sessions, values and traffic of them.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{id, refusal, shown};
use crate::api::environments::{JsonRequest, body};
use crate::api::error::ApiError;
use crate::api::{Api, accounts, har as recorded, locate};
use crate::traffic::SiteTraffic;
use arenad_api::episodes::StorageState;
use arenad_api::{AccountSession, LocateRequest, LocateResponse, StorageCookie};
use arenad_episodes::{EpisodeError, EpisodeView};
use arenad_instance::InstanceHandle;
use arenad_model::episode::fence::FenceDecision;
use arenad_model::episode::ids::EpisodeId;
use arenad_model::episode::{EpisodeRefusal, EpisodeState};
use arenad_model::error::describe;
use arenad_model::ids::SiteId;
use arenad_model::proxy_address::{ARENA_DOMAIN, own_host};
use arenad_model::site::{RecordedRequests, Site};

/// Returns an episode whose client can reach its sites.
///
/// Errors: `not_active`, `ended`, `void`.
pub(super) fn served(api: &Api, text: &str) -> Result<EpisodeView, ApiError> {
    let id = id(text)?;
    let view = api.episodes.get(&id)?;
    match api.episodes.admit_visitor(&id) {
        FenceDecision::Ended(ending) => Err(refusal::ended(&ending)),
        _ if shown::is_served(&view) => Ok(view),
        _ if view.state == EpisodeState::Queued => Err(EpisodeError::Refused(EpisodeRefusal::Waiting).into()),
        _ => Err(EpisodeError::Refused(EpisodeRefusal::Preparing).into()),
    }
}

/// Returns the instances of an episode: its slots, and the sites that it shares with others.
///
/// Errors: `busy` if an instance has another generation than the episode got. The episode is void then, or about to be.
pub(super) fn instances(api: &Api, view: &EpisodeView) -> Result<Vec<InstanceHandle>, ApiError> {
    let sites = view.request.sites.iter().map(|want| &want.site);
    let found = sites.map(|site| match view.slots.iter().find(|slot| slot.instance.site == site.site) {
        None => shared(api, site),
        Some(slot) => {
            let instance = api.environments.slot(&slot.instance);
            let is_its = |instance: &InstanceHandle| slot.generation == Some(instance.report().generation);
            instance.filter(is_its).ok_or_else(|| {
                let detail = format!("{} no longer serves the generation that episode {} got", slot.instance, view.id);
                ApiError::new(StatusCode::CONFLICT, "busy", detail)
                    .hint(format!("`arenad episode show {}` shows the state of the episode", view.id))
            })
        }
    });
    found.collect()
}

/// Returns the instance of a site that all episodes share.
fn shared(api: &Api, site: &SiteId) -> Result<InstanceHandle, ApiError> {
    let names = [site.site.to_string()];
    let handles = api.environments.choose(site.environment.as_str(), &names)?;
    handles.into_iter().next().ok_or_else(|| ApiError::not_found("this site"))
}

/// Returns the instance of a site of an episode.
pub(super) fn site<'a>(
    view: &EpisodeView,
    handles: &'a [InstanceHandle],
    name: &str,
) -> Result<&'a InstanceHandle, ApiError> {
    handles.iter().find(|handle| handle.site.name.as_str() == name).ok_or_else(|| {
        let known: Vec<&str> = handles.iter().map(|handle| handle.site.name.as_str()).collect();
        let detail = format!("episode {} has no site {name}; it has {}", view.id, known.join(", "));
        ApiError::new(StatusCode::NOT_FOUND, "unknown_site", detail)
    })
}

#[derive(Deserialize, JsonSchema)]
pub(in crate::api) struct StorageQuery {
    /// The name of the account; by default the only one that can sign in.
    account: Option<String>,
}

/// `GET /v1/episodes/{id}/storage-state/{site}?account=NAME`: returns the session of an account on the slot of the
/// episode, for Playwright.
pub(in crate::api) async fn storage_state(
    State(api): State<Arc<Api>>,
    Path((text, site)): Path<(String, String)>,
    Query(query): Query<StorageQuery>,
) -> Result<Json<StorageState>, ApiError> {
    let session = session(&api, &text, &site, query.account).await?;
    Ok(Json(StorageState { cookies: session.cookies, origins: Vec::new() }))
}

/// `POST /v1/episodes/{id}/login/{site}?account=NAME`: returns the session of an account on the slot of the episode, with
/// the headers of an account that signs in with headers.
pub(in crate::api) async fn log_in(
    State(api): State<Arc<Api>>,
    Path((text, site)): Path<(String, String)>,
    Query(query): Query<StorageQuery>,
) -> Result<Json<AccountSession>, ApiError> {
    session(&api, &text, &site, query.account).await.map(Json)
}

/// Returns the session of an account on the slot of an episode.
pub(super) async fn session(
    api: &Api,
    text: &str,
    site: &str,
    account: Option<String>,
) -> Result<AccountSession, ApiError> {
    let view = served(api, text)?;
    let handles = instances(api, &view)?;
    let handle = self::site(&view, &handles, site)?;
    let account = match account {
        Some(account) => account,
        None => only_account(handle)?,
    };
    let environment = shown::environment(&view);
    let session = accounts::session(api, environment, handle, &account).await;
    // The episode may have ended while the account signed in, and the session would be of its successor.
    served(api, text)?;
    let session = session?;
    let host = api.environments.host(environment).unwrap_or_default();
    let cookies = at_all_hosts(session.cookies, &host, &arena_hosts(&handle.site));
    Ok(AccountSession { cookies, ..session })
}

/// Returns the cookies of a session for all hosts by which the clients of episodes reach a site. Signing in happens at the
/// canonical host, and a browser sends its cookies to no other one.
fn at_all_hosts(cookies: Vec<StorageCookie>, canonical: &str, others: &[String]) -> Vec<StorageCookie> {
    let signed = cookies.iter().filter(|cookie| cookie.domain.trim_start_matches('.') == canonical);
    let copies = signed.flat_map(|cookie| {
        let others = others.iter().filter(|host| *host != canonical);
        others.map(|host| StorageCookie { domain: host.clone(), ..cookie.clone() })
    });
    let copies: Vec<StorageCookie> = copies.collect();
    cookies.into_iter().chain(copies).collect()
}

/// Returns the hosts of a site in the arena, and its aliases.
fn arena_hosts(site: &Site) -> Vec<String> {
    let aliases = site.public.aliases.iter().map(|alias| alias.host.clone());
    let mut hosts: Vec<String> = [own_host(site), ARENA_DOMAIN.to_owned()].into_iter().chain(aliases).collect();
    hosts.sort();
    hosts.dedup();
    hosts
}

/// `POST /v1/episodes/{id}/locate/{site}`: runs a locator or a helper on the slot of the episode, and returns its value
/// with the evidence.
pub(in crate::api) async fn locate(
    State(api): State<Arc<Api>>,
    Path((text, site)): Path<(String, String)>,
    request: JsonRequest<LocateRequest>,
) -> Result<Json<LocateResponse>, ApiError> {
    let request = body(request)?;
    let view = served(&api, &text)?;
    let handles = instances(&api, &view)?;
    let handle = self::site(&view, &handles, &site)?;
    let read = locate::read(&api, shown::environment(&view), handle, request).await;
    // The episode may have ended meanwhile, and the value would be of its successor.
    instances(&api, &served(&api, &text)?)?;
    read.map(Json)
}

/// Returns the only account of a site that can sign in.
fn only_account(handle: &InstanceHandle) -> Result<String, ApiError> {
    let site = &handle.site;
    let able: Vec<&str> =
        site.accounts.iter().filter(|account| account.login.is_some()).map(|account| account.name.as_str()).collect();
    match able.as_slice() {
        [only] => Ok((*only).to_owned()),
        [] => Err(ApiError::new(StatusCode::CONFLICT, "no_login", format!("no account of {} can sign in", site.name))
            .hint(format!("give an account of `sites.{}` a `login` in the environment file", site.name))),
        several => {
            let detail = format!("several accounts of {} can sign in: {}", site.name, several.join(", "));
            Err(ApiError::bad_request(detail).hint(format!("name one with `?account={}`", several[0])))
        }
    }
}

/// `GET /v1/episodes/{id}/har`: returns the record of an episode that runs or has ended, as a HAR. For a running episode
/// that is not recorded, it returns the traffic of its sites as far as their definitions have it recorded.
///
/// Errors: `no_record` for an episode that has ended and has no record, or none any more.
pub(in crate::api) async fn har(State(api): State<Arc<Api>>, Path(text): Path<String>) -> Result<Response, ApiError> {
    let text = match recorded_har(&api, &id(&text)?).await? {
        Some(har) => har,
        None => traffic_of_slots(&api, &text).await?,
    };
    Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response())
}

/// Returns the record of an episode as a HAR, or `None` if there is none and the episode runs.
pub(super) async fn recorded_har(api: &Api, id: &EpisodeId) -> Result<Option<String>, ApiError> {
    let har = api.environments.records().har(id).await.map_err(|error| {
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", describe(&error))
            .hint("the state directory may be damaged; the daemon's log says more")
    })?;
    if har.is_some() {
        return Ok(har);
    }
    // Also for an episode whose record is kept and that is forgotten otherwise, so only here.
    let view = api.episodes.get(id)?;
    match view.state.ending() {
        None => Ok(None),
        Some(_) if view.request.record == RecordedRequests::Nothing => {
            let detail = format!("episode {id} was not recorded");
            Err(no_record(detail).hint("start episodes with `--record all`, or with `\"record\": \"all\"`"))
        }
        Some(_) => {
            let detail = format!("the record of episode {id} does not exist any more");
            Err(no_record(detail).hint(
                "export records soon; `arenad serve --record-age` and `--record-size` limit how long they are kept",
            ))
        }
    }
}

fn no_record(detail: String) -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "no_record", detail)
}

/// Returns the traffic of an episode's sites since their generations began to serve, from the gateway's memory.
async fn traffic_of_slots(api: &Api, text: &str) -> Result<String, ApiError> {
    let view = served(api, text)?;
    let traffic: Vec<SiteTraffic> = instances(api, &view)?.iter().map(SiteTraffic::of).collect();
    // The recording may have changed hands between the look at the generation and that at the traffic.
    instances(api, &served(api, text)?)?;
    recorded::text(traffic).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_valid_at_each_host_of_the_site_and_foreign_cookies_stay_where_they_are() {
        let cookie = |name: &str, domain: &str| StorageCookie {
            name: name.to_owned(),
            value: "v".to_owned(),
            domain: domain.to_owned(),
            path: "/".to_owned(),
            expires: -1,
            http_only: true,
            secure: false,
            same_site: "Lax".to_owned(),
        };
        let others = ["shop.arena.test", "arena.test", "localhost"].map(str::to_owned);
        let given = vec![cookie("session", "localhost"), cookie("wide", ".localhost"), cookie("other", "tracker.test")];
        let found = at_all_hosts(given, "localhost", &others);
        let found: Vec<(&str, &str)> = found.iter().map(|it| (it.name.as_str(), it.domain.as_str())).collect();
        let expected = [
            ("session", "localhost"),
            ("wide", ".localhost"),
            ("other", "tracker.test"),
            ("session", "shop.arena.test"),
            ("session", "arena.test"),
            ("wide", "shop.arena.test"),
            ("wide", "arena.test"),
        ];
        assert_eq!(found, expected);
    }
}
