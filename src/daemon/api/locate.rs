//! Values of a site.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;

use super::Api;
use super::environments::{Body, body};
use super::error::ApiError;
use crate::daemon::instance::InstanceHandle;
use crate::daemon::locate::{self, Look};
use crate::domain::locator::{self, Arguments};
use crate::locators::{Located, json};
use crate::wire;

/// `POST /v1/environments/{environment}/sites/{site}/locate`
pub(super) async fn locate(
    State(api): State<Arc<Api>>,
    Path((environment, site)): Path<(String, String)>,
    request: Body<wire::LocateRequest>,
) -> Result<Json<wire::Located>, ApiError> {
    let request = body(request)?;
    let handles = api.environments.choose(&environment, &[site])?;
    let handle = handles.into_iter().next().ok_or_else(|| ApiError::not_found("this site"))?;
    let parsed = locator::parse(&request.locator).map_err(|error| {
        let detail = format!("understand the locator `{}`: {error}", request.locator);
        ApiError::new(StatusCode::BAD_REQUEST, "bad_locator", detail).hint("`arenad locate --help` shows each kind")
    })?;
    let locator = parsed.with(&Arguments(request.arguments.into_iter().collect()));
    let host = api.environments.host(&environment).unwrap_or_default();
    let look = Look { page: request.page, live: request.cdp };
    let located = locate::locate(&api.shared, &handle, &host, &locator, look).await?;
    Ok(Json(shown(&handle, locator.kind.name(), located)))
}

fn shown(handle: &InstanceHandle, kind: &str, located: Located) -> wire::Located {
    let evidence = located.evidence;
    wire::Located {
        kind: located.value.type_name().to_owned(),
        value: json::plain(&located.value),
        evidence: wire::Evidence {
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
