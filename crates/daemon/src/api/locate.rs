//! The endpoint that reads a value of a site by a locator or a helper.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;

use super::Api;
use super::environments::{JsonRequest, body};
use super::error::ApiError;
use super::words;
use crate::answers;
use crate::locate::{self, LocateOptions, LocatingError};
use arenad_api as wire;
use arenad_instance::InstanceHandle;
use arenad_locators::js::LivePage;
use arenad_locators::{LocateError, LocatorReading};
use arenad_model::helper::{Helper, HelperCall};
use arenad_model::locator::json;
use arenad_model::locator::{self, Arguments, JsPage, Locator, LocatorKind, SyntaxError};

/// The prefix of a text that calls a helper.
const HELPER: &str = "helper:";

/// `POST /v1/environments/{environment}/sites/{site}/locate`: runs a locator or a helper, and returns its value with
/// the evidence.
pub(super) async fn locate(
    State(api): State<Arc<Api>>,
    Path((environment, site)): Path<(String, String)>,
    request: JsonRequest<wire::LocateRequest>,
) -> Result<Json<wire::LocateResponse>, ApiError> {
    let request = body(request)?;
    let handles = api.environments.choose(&environment, &[site])?;
    let handle = handles.into_iter().next().ok_or_else(|| ApiError::not_found("this site"))?;
    read(&api, &environment, &handle, request).await.map(Json)
}

/// Runs a locator or a helper on an instance, and returns its value with the evidence.
pub(super) async fn read(
    api: &Api,
    environment: &str,
    handle: &InstanceHandle,
    request: wire::LocateRequest,
) -> Result<wire::LocateResponse, ApiError> {
    let host = api.environments.host(environment).unwrap_or_default();
    let traffic = request.har.map(|har| har.get().to_owned());
    let look = LocateOptions { page: request.page, live: request.cdp.map(LivePage::Address), traffic };
    if let Some(call) = request.locator.trim_start().strip_prefix(HELPER) {
        let (helper, locator) = helper(handle, call)?;
        let lack = lack(handle, &locator, &look, "");
        let found = locate::locate(&api.shared, handle, &host, &locator, look).await;
        let mut located = found.map_err(|error| refused(error, lack))?;
        located.value = helper.gives(located.value, &answers::origin(handle, &host));
        return Ok(shown(handle, "helper", located));
    }
    let unbound = without(&request.locator, &request.arguments);
    let parsed = locator::parse(&request.locator).map_err(|error| misread(&request.locator, &error))?;
    let locator = parsed.with(&Arguments(request.arguments.into_iter().collect()));
    let lack = lack(handle, &locator, &look, &unbound);
    let found = locate::locate(&api.shared, handle, &host, &locator, look).await;
    let located = found.map_err(|error| refused(error, lack))?;
    Ok(shown(handle, locator.kind.name(), located))
}

/// Returns the first placeholder of a locator, such as `{sku}`, that has no argument; the empty string if there is
/// none.
fn without(locator: &str, arguments: &std::collections::BTreeMap<String, String>) -> String {
    let is_name = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let places = locator.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name);
    places.into_iter().find(|name| is_name(name) && !arguments.contains_key(*name)).unwrap_or_default().to_owned()
}

/// Returns a hint about the option that the locator needs and the request omits.
fn lack(handle: &InstanceHandle, locator: &Locator, look: &LocateOptions, unbound: &str) -> Option<String> {
    match &locator.kind {
        LocatorKind::Js(js) if js.page == JsPage::Live && look.live.is_none() => {
            Some("give the address of the agent's browser with `--cdp http://HOST:PORT`".to_owned())
        }
        LocatorKind::Trace(_) if look.traffic.is_none() && handle.recording().is_none() => Some(format!(
            "give a HAR with `--har FILE`, or have the gateway record: `public: {{ record: all }}` of {} in the environment file",
            handle.site.name
        )),
        LocatorKind::Sql(_) if !unbound.is_empty() => Some(format!("give the argument with `-a {unbound}=TEXT`")),
        _ => None,
    }
}

/// Converts an error, with the hint about the omitted option if that option may be the cause.
fn refused(error: LocatingError, lack: Option<String>) -> ApiError {
    let is_lacking = matches!(&error, LocatingError::Locate(LocateError::Refused(_) | LocateError::Unavailable(_)));
    match lack.filter(|_| is_lacking) {
        Some(lack) => ApiError::from(error).hint(lack),
        None => error.into(),
    }
}

/// Parses a call; returns the helper and its locator with the arguments filled in.
fn helper<'a>(handle: &'a InstanceHandle, call: &str) -> Result<(&'a Helper, Locator), ApiError> {
    let parsed = HelperCall::parse(call).map_err(|error| misread(call, &error))?;
    let site = &handle.site;
    let helper = answers::named(handle, &parsed.name).ok_or_else(|| {
        let known: Vec<&str> = site.helpers.iter().map(|helper| helper.name.as_str()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let detail = format!("find helper {} of {}: it has {known}", parsed.name, site.name);
        ApiError::new(StatusCode::NOT_FOUND, "unknown_helper", detail)
            .hint(format!("`sites.{}.helpers` of the environment file declares them", site.name))
    })?;
    let arguments = helper.arguments(&parsed.arguments);
    let arguments = arguments
        .map_err(|error| ApiError::new(StatusCode::BAD_REQUEST, "bad_locator", format!("call the helper: {error}")))?;
    Ok((helper, helper.locator.clone().with(&arguments)))
}

fn misread(text: &str, error: &SyntaxError) -> ApiError {
    let detail = format!("understand the locator `{text}`: {error}");
    ApiError::new(StatusCode::BAD_REQUEST, "bad_locator", detail).hint("`arenad locate --help` shows each kind")
}

fn shown(handle: &InstanceHandle, kind: &str, located: LocatorReading) -> wire::LocateResponse {
    let evidence = located.evidence;
    wire::LocateResponse {
        kind: words::value(&located.value),
        value: json::plain(&located.value),
        evidence: wire::LocateEvidence {
            locator: kind.to_owned(),
            ran: evidence.ran,
            environment: handle.id.environment.to_string(),
            site: handle.site.name.to_string(),
            instance: evidence.instance,
            generation: evidence.generation,
            duration_ms: evidence.took.as_secs_f64() * 1e3,
            notes: evidence.notes.into_iter().map(|(name, text)| (name.to_owned(), text)).collect(),
        },
    }
}
