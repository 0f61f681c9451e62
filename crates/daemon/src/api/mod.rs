//! The HTTP API: the routes, and authorization by token.
//!
//! The Unix socket accepts every client that file permissions let open it. TCP, if enabled, requires a bearer token: that
//! of the daemon, which opens everything, or that of an episode, which opens the life of this episode.

mod accounts;
mod certificates;
mod changes;
mod checks;
mod entries;
mod environments;
pub(crate) mod episodes;
mod error;
mod evaluations;
mod events;
mod har;
mod health;
mod locate;
mod logs;
mod operations;
mod snapshots;
mod space;
mod status;
mod transfer;
mod verify;
mod which;
mod words;

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub(crate) use self::error::ApiError;
use super::browsers::EpisodeBrowsers;
use super::certificates::Certifier;
use super::environments::EnvironmentRegistry;
use super::host::HostReport;
use super::operations::Operations;
use super::port::OfferedPort;
use super::slots::EpisodeSettings;
use arenad_episodes::EpisodeHandle;
use arenad_instance::shared::SharedParts;

/// The state that the handlers share.
pub struct Api {
    /// The state that the daemon's parts share.
    pub shared: Arc<SharedParts>,
    /// The environments that are up.
    pub environments: Arc<EnvironmentRegistry>,
    /// The episodes, and the queue of those that wait.
    pub episodes: EpisodeHandle,
    /// The browsers of the episodes.
    pub browsers: Arc<EpisodeBrowsers>,
    /// Signs certificates of verdicts.
    pub certifier: Certifier,
    /// The limits of the episodes.
    pub episode_settings: EpisodeSettings,
    /// The address of the episode proxy, or the reason why there is none.
    pub proxy: OfferedPort,
    /// The address of the reset server of harnesses, or the reason why there is none.
    pub compat: OfferedPort,
    /// The operations that clients can wait for.
    pub operations: Operations,
    /// The latest report about the engine and the disk.
    pub host: watch::Receiver<HostReport>,
    /// Whether `arenad up` started the daemon.
    pub background: bool,
    /// The time when the daemon was started.
    pub started_at: Timestamp,
    /// Cancelled to make the daemon stop.
    pub stop: CancellationToken,
}

/// Returns the router with all routes of the API.
pub fn router(api: Arc<Api>) -> Router {
    Router::new()
        .route("/v1/version", get(status::version))
        .route("/v1/status", get(status::status))
        .route("/v1/health", get(health::health))
        .route("/v1/shutdown", post(status::shutdown))
        .route("/v1/environments/{environment}", put(environments::up))
        .route("/v1/environments/{environment}/down", post(environments::down))
        .route(
            "/v1/environments/{environment}/evaluations",
            post(evaluations::evaluate).layer(DefaultBodyLimit::max(evaluations::SIZE_MAX)),
        )
        .route("/v1/environments/{environment}/har", get(har::har))
        .route("/v1/environments/{environment}/resets", post(environments::reset))
        .route("/v1/environments/{environment}/checks", post(checks::check))
        .route("/v1/environments/{environment}/checks/begin", post(checks::begin))
        .route("/v1/checks", post(checks::check_found))
        .route("/v1/checks/begin", post(checks::begin_found))
        .route("/v1/evaluations", post(evaluations::evaluate_found).layer(DefaultBodyLimit::max(evaluations::SIZE_MAX)))
        .route("/v1/environments/{environment}/sites/{site}/accounts", get(accounts::list))
        .route("/v1/environments/{environment}/sites/{site}/accounts/{account}/login", post(accounts::log_in))
        .route("/v1/environments/{environment}/sites/{site}/entries", post(entries::enter))
        .route("/v1/environments/{environment}/sites/{site}/verify", post(verify::verify))
        .route("/v1/environments/{environment}/sites/{site}/changes", get(changes::changes))
        .route("/v1/environments/{environment}/sites/{site}/looks", get(changes::list).post(changes::keep))
        .route(
            "/v1/environments/{environment}/sites/{site}/locate",
            post(locate::locate).layer(DefaultBodyLimit::max(evaluations::SIZE_MAX)),
        )
        .route("/v1/environments/{environment}/sites/{site}/logs", get(logs::logs))
        .route("/v1/environments/{environment}/sites/{site}/snapshots", post(snapshots::take))
        .route("/v1/episodes", get(episodes::list).post(episodes::start))
        .route("/v1/episodes/queue", get(episodes::queue))
        .route("/v1/episodes/events", get(episodes::all_events))
        .route("/v1/episodes/{id}", get(episodes::one).delete(episodes::end))
        .route("/v1/episodes/{id}/heartbeat", post(episodes::heartbeat))
        .route("/v1/episodes/{id}/freeze", post(episodes::freeze))
        .route("/v1/episodes/{id}/unfreeze", post(episodes::unfreeze))
        .route("/v1/episodes/{id}/fork", post(episodes::fork))
        .route("/v1/episodes/{id}/hold", get(episodes::hold))
        .route("/v1/episodes/{id}/events", get(episodes::events))
        .route("/v1/episodes/{id}/evaluations/begin", post(episodes::begin))
        .route(
            "/v1/episodes/{id}/evaluations",
            post(episodes::evaluate).layer(DefaultBodyLimit::max(evaluations::SIZE_MAX)),
        )
        .route("/v1/episodes/{id}/changes", get(episodes::changes))
        .route("/v1/episodes/{id}/looks", get(episodes::looks).post(episodes::keep_look))
        .route("/v1/episodes/{id}/storage-state/{site}", get(episodes::storage_state))
        .route("/v1/episodes/{id}/login/{site}", post(episodes::log_in))
        .route(
            "/v1/episodes/{id}/locate/{site}",
            post(episodes::locate).layer(DefaultBodyLimit::max(evaluations::SIZE_MAX)),
        )
        .route("/v1/episodes/{id}/har", get(episodes::har))
        .route("/v1/episodes/{id}/browser", get(episodes::browser).delete(episodes::close_browser))
        .route("/v1/episodes/{id}/browser/reset", post(episodes::browser_reset))
        .route("/v1/episodes/{id}/browser/step", post(episodes::browser_step))
        .route("/v1/certificates/key", get(certificates::key))
        .route("/v1/purge", post(environments::purge))
        .route("/v1/df", get(space::df))
        .route("/v1/prune", post(space::prune))
        .route("/v1/operations/{id}", get(operations::operation))
        .route("/v1/resets/{id}", get(operations::reset))
        .route("/v1/snapshots", get(snapshots::list))
        .route("/v1/snapshots/{id}", get(snapshots::one).delete(snapshots::remove))
        .route("/v1/snapshots/{id}/export", get(transfer::export))
        .route("/v1/imports", post(transfer::begin).layer(DefaultBodyLimit::max(transfer::REQUEST_BYTES_MAX)))
        .route("/v1/imports/{id}/parts/{index}", put(transfer::part))
        .route("/v1/imports/{id}/finish", post(transfer::finish))
        .route("/v1/snapshots/{id}/differences", get(snapshots::differences))
        .route("/v1/events", get(events::events))
        .fallback(|| async { ApiError::not_found("this address") })
        .method_not_allowed_fallback(|| async {
            ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "this address has no such method")
        })
        .with_state(api)
}

/// Requires `Authorization: Bearer <token>` on every request, with the daemon's token or that of the request's episode.
pub(crate) fn with_token(router: Router, token: &str, episodes: EpisodeHandle) -> Router {
    let tokens = Arc::new(KnownTokens { daemon: digest(token), episodes });
    router.layer(middleware::from_fn_with_state(tokens, check_token))
}

/// The tokens that open the API.
struct KnownTokens {
    /// The digest of the token that opens everything.
    daemon: Vec<u8>,
    episodes: EpisodeHandle,
}

impl KnownTokens {
    fn open(&self, request: &Request, given: &str) -> bool {
        digest(given) == self.daemon || episodes::opens(&self.episodes, request.method(), request.uri().path(), given)
    }
}

/// Returns the digest of a token. Digests are compared instead of tokens, so that the duration of the comparison
/// reveals nothing about the token.
fn digest(token: &str) -> Vec<u8> {
    Sha256::digest(token.as_bytes()).to_vec()
}

async fn check_token(State(tokens): State<Arc<KnownTokens>>, request: Request, next: Next) -> Response {
    let given = request
        .headers()
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer "));
    if given.is_some_and(|given| tokens.open(&request, given)) {
        next.run(request).await
    } else {
        ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", "this address wants a bearer token")
            .hint("set ARENAD_TOKEN to the token that the daemon was started with")
            .into_response()
    }
}
