//! Answers requests by the decisions of the crate `compat`.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::env_ctrl;
use super::resets::AskedResets;
use super::subject::{self, ResetTargets};
use crate::api::{Api, ApiError};
use arenad_compat::address::{self, CompatAction, CompatRequest, UnknownAddress};
use arenad_compat::admission::{self, RequestOrigin};
use arenad_compat::board::SiteReadiness;
use arenad_compat::env_ctrl::{self as control, EnvCtrlReply};
use arenad_compat::reply::{self, ResetReply};

/// The time for which `/status` waits for the end of a reset. BrowserGym asks at once and then every 20 s, so waiting
/// saves most of its time. It has no time limit of its own; proxies often end a request after a minute.
const STATUS_PATIENCE: Duration = Duration::from_secs(50);

/// The time for which the reset form waits for the end of the reset. VisualWebArena takes every answer for the end.
const FORM_PATIENCE: Duration = Duration::from_secs(600);

/// The maximum size of the reset form.
const FORM_MAX: usize = 4096;

/// The exported variable of a site that is the token of its reset form.
const FORM_TOKEN: &str = "CLASSIFIEDS_RESET_TOKEN";

/// The state that the handlers share.
pub(super) struct CompatServer {
    pub(super) api: Arc<Api>,
    pub(super) resets: Arc<AskedResets>,
}

/// Returns the router of the compatible server.
pub(crate) fn router(api: Arc<Api>, resets: Arc<AskedResets>) -> Router {
    Router::new().fallback(answer).with_state(Arc::new(CompatServer { api, resets }))
}

async fn answer(State(server): State<Arc<CompatServer>>, request: Request) -> Response {
    let parsed = address::parse(request.method().as_str(), request.uri().path(), request.uri().query());
    let parsed = match parsed {
        Ok(parsed) => parsed,
        Err(UnknownAddress::ResetServer) => return shown(reply::unknown()),
        Err(UnknownAddress::EnvCtrl) => return printed(control::unknown()),
    };
    let action = parsed.action;
    if let Err(refusal) = server.admit(&request, action.changes_state()) {
        let told = format!("{refusal}; use `arenad reset`, or a program such as curl");
        tracing::debug!(address = %request.uri(), "a request to the reset server was refused: {refusal}");
        return failed(action, StatusCode::FORBIDDEN, &told);
    }
    match Box::pin(server.perform(parsed, request)).await {
        Ok(response) => response,
        Err(error) => failed(action, error.status(), &error.told()),
    }
}

impl CompatServer {
    fn admit(&self, request: &Request, changes_state: bool) -> Result<(), admission::AdmissionRefusal> {
        let headers = request.headers();
        let hosts = hosts(headers, request.uri());
        let origin = RequestOrigin {
            hosts: &hosts.iter().map(String::as_str).collect::<Vec<_>>(),
            user_agent: headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok()),
            has_origin: headers.contains_key(header::ORIGIN),
            has_fetch_site: headers.contains_key("sec-fetch-site"),
        };
        let names = self.api.environments.list().into_iter().map(|(definition, _)| definition.host);
        admission::admit(&origin, changes_state, &names.collect::<Vec<_>>())
    }

    async fn perform(&self, parsed: CompatRequest, request: Request) -> Result<Response, ApiError> {
        let targets = subject::find(&self.api, &parsed.subject)?;
        match parsed.action {
            CompatAction::Reset => {
                let base = parsed.subject.base();
                let began = self.resets.ask(&self.api, targets).await?;
                Ok(shown(reply::began(began, &base)))
            }
            CompatAction::Status => {
                let patience = wait(request.uri()).unwrap_or(STATUS_PATIENCE).min(STATUS_PATIENCE);
                let readiness = self.resets.settled(&self.api, &targets, Instant::now() + patience).await;
                Ok(shown(reply::readiness(&readiness)))
            }
            CompatAction::EnvCtrl(command) => {
                let waits = wait(request.uri()).is_some_and(|wait| !wait.is_zero());
                Ok(printed(env_ctrl::perform(self, targets, command, waits).await?))
            }
            CompatAction::ResetForm => self.submit(targets, request).await,
        }
    }

    /// Resets a site as its own reset form does: the response is sent when the site is ready.
    async fn submit(&self, targets: ResetTargets, request: Request) -> Result<Response, ApiError> {
        let exports = targets.instances.iter().flat_map(|instance| &instance.site.exports);
        let Some((_, token)) = exports.into_iter().find(|(name, _)| name == FORM_TOKEN) else {
            return Err(ApiError::not_found("a reset form of this site"));
        };
        let body = to_bytes(request.into_body(), FORM_MAX).await;
        let body = body.map_err(|_| ApiError::bad_request("the form is too long or ended early"))?;
        let given = form_urlencoded::parse(&body).find(|(name, _)| name == "token").map(|(_, value)| value);
        // Digests are compared, so that the duration of the comparison reveals nothing about the token.
        let digest = |text: &str| Sha256::digest(text.as_bytes());
        if given.is_none_or(|given| digest(&given) != digest(token)) {
            let detail = "the form has another token than the site";
            return Err(ApiError::new(StatusCode::FORBIDDEN, "unauthorized", detail)
                .hint("use the value of CLASSIFIEDS_RESET_TOKEN that `arenad env` prints"));
        }
        self.resets.ask(&self.api, targets.clone()).await?;
        let readiness = self.resets.settled(&self.api, &targets, Instant::now() + FORM_PATIENCE).await;
        Ok(shown(match readiness {
            SiteReadiness::Ready => reply::readiness(&readiness),
            SiteReadiness::Failed { reason } => reply::failure(500, &reason),
            SiteReadiness::Ongoing => reply::failure(504, "the site is not ready yet"),
        }))
    }
}

/// Returns the hosts that a request names.
fn hosts(headers: &HeaderMap, uri: &Uri) -> Vec<String> {
    let named = headers.get_all(header::HOST).iter();
    // A value with other bytes than ASCII becomes the empty name, which no host has.
    let named = named.map(|host: &HeaderValue| host.to_str().unwrap_or_default().to_owned());
    named.chain(uri.authority().map(|authority| authority.as_str().to_owned())).collect()
}

/// Returns the value of `wait`, in seconds, as the API has it. env-ctrl's clients send `wait=1` to wait at all.
fn wait(uri: &Uri) -> Option<Duration> {
    let query = uri.query().unwrap_or_default();
    let (_, value) = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "wait")?;
    Duration::try_from_secs_f64(value.parse().ok()?).ok()
}

fn failed(action: CompatAction, status: StatusCode, reason: &str) -> Response {
    match action {
        CompatAction::EnvCtrl(_) => {
            printed(EnvCtrlReply { status: status.as_u16(), ..control::outcome(false, reason) })
        }
        CompatAction::Reset | CompatAction::Status | CompatAction::ResetForm => {
            shown(reply::failure(status.as_u16(), reason))
        }
    }
}

fn shown(ResetReply { status, body }: ResetReply) -> Response {
    response(status, reply::CONTENT_TYPE, body)
}

fn printed(EnvCtrlReply { status, body }: EnvCtrlReply) -> Response {
    response(status, control::CONTENT_TYPE, body)
}

fn response(status: u16, content_type: &'static str, body: String) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, [(header::CONTENT_TYPE, content_type)], body).into_response()
}
