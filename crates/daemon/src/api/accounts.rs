//! Endpoints that list a site's accounts and sign in with them.

use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;

use super::Api;
use super::error::ApiError;
use arenad_accounts::{self as accounts, LoginFailure, LoginSession, VisitAddress};
use arenad_api as wire;
use arenad_baseline::sessions;
use arenad_instance::{AskError, InstanceHandle, InstanceReport};
use arenad_model::login::Login;

/// `GET /v1/environments/{environment}/sites/{site}/accounts`: returns the accounts of a site and how each signs in.
pub(super) async fn list(
    State(api): State<Arc<Api>>,
    Path((environment, site)): Path<(String, String)>,
) -> Result<Json<wire::Accounts>, ApiError> {
    let handle = handle(&api, &environment, site)?;
    let accounts = handle.site.accounts.iter().map(|account| wire::ListedAccount {
        name: account.name.clone(),
        username: account.username.clone(),
        login: account.login.as_ref().map(|login| login.recipe.name().to_owned()),
    });
    Ok(Json(wire::Accounts { accounts: accounts.collect() }))
}

/// `POST /v1/environments/{environment}/sites/{site}/accounts/{account}/login`: returns a valid session of an account,
/// from the snapshot or by signing in.
pub(super) async fn log_in(
    State(api): State<Arc<Api>>,
    Path((environment, site, name)): Path<(String, String, String)>,
) -> Result<Json<wire::AccountSession>, ApiError> {
    let handle = handle(&api, &environment, site)?;
    session(&api, &environment, &handle, &name).await.map(Json)
}

/// Returns a valid session of an account on an instance, from the snapshot or by signing in.
pub(super) async fn session(
    api: &Api,
    environment: &str,
    handle: &InstanceHandle,
    name: &str,
) -> Result<wire::AccountSession, ApiError> {
    let site = &handle.site;
    let account = site.accounts.iter().find(|account| account.name == name).ok_or_else(|| {
        let known: Vec<&str> = site.accounts.iter().map(|account| account.name.as_str()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let detail = format!("find account {name} of {}: it has {known}", site.name);
        ApiError::new(StatusCode::NOT_FOUND, "unknown_account", detail)
    })?;
    let login = account.login.as_ref().ok_or_else(|| {
        let detail = format!("the definition does not say how {name} of {} signs in", site.name);
        let hint = format!("give `sites.{}.accounts.{name}` a `login` in the environment file", site.name);
        ApiError::new(StatusCode::CONFLICT, "no_login", detail).hint(hint)
    })?;
    let host = api.environments.host(environment).unwrap_or_default();
    let report = handle.report();
    let address = report.containers.get(site.entry.service.as_str()).and_then(|(_, address)| *address);
    let Some(address) = address.filter(|_| report.state.serves()) else {
        return Err(AskError::NotUp { instance: handle.id.clone(), state: report.state.name() }.into());
    };
    let place = VisitAddress { host, port: site.public.port, entry: (address, site.entry.port).into() };
    let access = handle.begin_visit(report.generation)?;
    let begun = Instant::now();
    let client = api.shared.prober.http();
    let visit = async {
        let kept = kept(api, handle, &report, &place, name, login).await?;
        let is_kept = kept.is_some();
        let session = match kept {
            Some(session) => Ok(session),
            None => accounts::log_in(client, &place, account, login).await,
        };
        Ok::<_, ApiError>((session, is_kept))
    };
    // A visit that continued after the switch could reach the next generation through the same containers.
    let visited = access.run_until_cancelled(report.visits.run_until_cancelled(visit)).await.flatten();
    let took = begun.elapsed();
    let was_reset = || {
        let detail = format!("{} was reset while {name} signed in", site.name);
        ApiError::new(StatusCode::CONFLICT, "busy", detail).hint("try again")
    };
    let (session, is_kept) = visited.ok_or_else(was_reset)??;
    if handle.report().generation != report.generation {
        return Err(was_reset());
    }
    let session = session.map_err(|failure| failed(handle, name, &failure))?;
    Ok(wire::AccountSession { is_kept, ..shown(handle, name, &place.host, took.as_secs_f64() * 1e3, session) })
}

/// Returns the session that is part of the snapshot, if the site still accepts it.
async fn kept(
    api: &Api,
    handle: &InstanceHandle,
    report: &InstanceReport,
    place: &VisitAddress,
    account: &str,
    login: &Login,
) -> Result<Option<LoginSession>, ApiError> {
    let Some(snapshot) = &report.snapshot else { return Ok(None) };
    let found = api.shared.store.session(snapshot, account, &sessions::place(&handle.site)).await?;
    let Some(session) = found else { return Ok(None) };
    let is_good = accounts::prove(api.shared.prober.http(), place, login, &session).await.is_ok();
    Ok(is_good.then_some(session))
}

fn handle(api: &Api, environment: &str, site: String) -> Result<InstanceHandle, ApiError> {
    let handles = api.environments.choose(environment, &[site])?;
    handles.into_iter().next().ok_or_else(|| ApiError::not_found("this site"))
}

fn failed(handle: &InstanceHandle, account: &str, failure: &LoginFailure) -> ApiError {
    let site = &handle.site.name;
    let detail = format!("sign in to {site} as {account}: {failure}");
    let hint = format!(
        "compare `sites.{site}.accounts.{account}.login` of the environment file with the site; `arenad logs {site}` shows what it says"
    );
    ApiError::new(StatusCode::BAD_GATEWAY, "login_failed", detail).hint(hint)
}

fn shown(
    handle: &InstanceHandle,
    account: &str,
    host: &str,
    duration_ms: f64,
    session: LoginSession,
) -> wire::AccountSession {
    let cookies = session.cookies.into_iter().map(|cookie| wire::StorageCookie {
        name: cookie.name,
        value: cookie.value.expose().to_owned(),
        domain: cookie.domain,
        path: cookie.path,
        expires: cookie.expires.map_or(-1, |at| at.as_second()),
        http_only: cookie.http_only,
        secure: cookie.secure,
        same_site: cookie.same_site.unwrap_or_else(|| "Lax".to_owned()),
    });
    let headers = session.headers.iter().map(|(name, value)| (name.clone(), value.expose().to_owned()));
    wire::AccountSession {
        environment: handle.id.environment.to_string(),
        site: handle.site.name.to_string(),
        account: account.to_owned(),
        url: handle.site.url(host),
        instance: handle.id.to_string(),
        generation: handle.report().generation,
        is_kept: false,
        duration_ms,
        cookies: cookies.collect(),
        headers: headers.collect(),
    }
}
