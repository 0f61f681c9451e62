//! The HTTP API: the routes, and authorization by token.
//!
//! The Unix socket accepts every client that file permissions let open it. TCP, if enabled, requires a bearer token: that
//! of the daemon, which opens everything, or that of an episode, which opens the life of this episode.

mod accounts;
mod certificates;
mod changes;
mod checks;
mod described;
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
mod openapi;
mod operations;
mod replays;
mod routes;
mod snapshots;
mod space;
mod status;
mod transfer;
mod verify;
mod which;
mod words;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub(crate) use self::error::ApiError;
pub use self::openapi::openapi;
use self::routes::{DescribedRoutes, RouteOptions};
use super::browsers::EpisodeBrowsers;
use super::certificates::Certifier;
use super::environments::EnvironmentRegistry;
use super::host::HostReport;
use super::operations::Operations;
use super::port::OfferedPort;
use super::replays::ReplayRegistry;
use super::slots::EpisodeSettings;
use arenad_api::EventList;
use arenad_api::episodes::StartedEpisode;
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
    /// The replays of the installation.
    pub replays: Arc<ReplayRegistry>,
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
    routes()
        .router()
        .fallback(|| async { ApiError::not_found("this address") })
        .method_not_allowed_fallback(|| async {
            ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "this address has no such method")
        })
        .with_state(api)
}

/// The options of a route with a large body.
fn large() -> RouteOptions {
    RouteOptions { body_max: Some(evaluations::SIZE_MAX), ..RouteOptions::default() }
}

/// The options of a route with other statuses than 200.
fn statuses(statuses: &'static [u16]) -> RouteOptions {
    RouteOptions { statuses, ..RouteOptions::default() }
}

/// The options of a route whose answer is not JSON, or not always.
fn media(media: &'static [&'static str]) -> RouteOptions {
    RouteOptions { media, ..RouteOptions::default() }
}

/// The type of answers that are server-sent events.
const EVENTS: &[&str] = &["text/event-stream"];

/// Returns all routes with their descriptions.
fn routes() -> DescribedRoutes {
    let routes = of_environments(of_daemon(DescribedRoutes::new()));
    of_replays(of_snapshots(of_episodes(of_sites(routes))))
}

fn of_daemon(routes: DescribedRoutes) -> DescribedRoutes {
    routes
        .get("/v1/version", "Returns the versions of the daemon and of its API", status::version)
        .get("/v1/openapi.json", "Returns this document", openapi::document)
        .get("/v1/status", "Returns the daemon, the conditions of the host, and all sites that are up", status::status)
        .get("/v1/health", "Returns the latest rounds of probes, by site and kind", health::health)
        .with(
            "post",
            "/v1/shutdown",
            "Ends the daemon; the containers keep running",
            statuses(&[202]),
            status::shutdown,
        )
        .get("/v1/df", "Returns the use of disk space", space::df)
        .post("/v1/prune", "Removes unused objects", space::prune)
        .post("/v1/purge", "Removes snapshots and built images, once nothing is up", environments::purge)
        .with("get", "/v1/events", "Returns events of the daemon, or streams them", media(EVENTS), events::events)
        .answering::<EventList>()
        .get("/v1/operations/{id}", "Returns an operation, when it has ended or after a time", operations::operation)
        .get("/v1/resets/{id}", "Returns a reset", operations::reset)
        .get("/v1/certificates/key", "Returns the key that verifies certificates of verdicts", certificates::key)
}

fn of_environments(routes: DescribedRoutes) -> DescribedRoutes {
    routes
        .with("put", "/v1/environments/{environment}", "Brings sites up", statuses(&[202]), environments::up)
        .post(
            "/v1/environments/{environment}/down",
            "Takes sites down, and answers when it is done",
            environments::down,
        )
        .with(
            "post",
            "/v1/environments/{environment}/resets",
            "Resets sites or slots of them",
            statuses(&[202]),
            environments::reset,
        )
        .with(
            "get",
            "/v1/environments/{environment}/har",
            "Returns the recorded traffic of sites as a HAR",
            media(&["application/json"]),
            har::har,
        )
        .post(
            "/v1/environments/{environment}/checks/begin",
            "Captures the values that the check of a native task compares with",
            checks::begin,
        )
        .post("/v1/environments/{environment}/checks", "Judges whether a native task is accomplished", checks::check)
        .with(
            "post",
            "/v1/environments/{environment}/evaluations",
            "Judges an agent's results by the rules of a benchmark",
            large(),
            evaluations::evaluate,
        )
        .post(
            "/v1/checks/begin",
            "Captures the values of a native task, in the environment that has it",
            checks::begin_found,
        )
        .post("/v1/checks", "Judges a native task, in the environment that has it", checks::check_found)
        .with(
            "post",
            "/v1/evaluations",
            "Judges an agent's results, in the environment that has the sites of the task",
            large(),
            evaluations::evaluate_found,
        )
}

fn of_sites(routes: DescribedRoutes) -> DescribedRoutes {
    routes
        .get(
            "/v1/environments/{environment}/sites/{site}/accounts",
            "Returns the accounts of a site, without their passwords",
            accounts::list,
        )
        .post(
            "/v1/environments/{environment}/sites/{site}/accounts/{account}/login",
            "Returns a session of an account",
            accounts::log_in,
        )
        .post(
            "/v1/environments/{environment}/sites/{site}/entries",
            "Records that a client is about to run a command in a container, and returns the container",
            entries::enter,
        )
        .post("/v1/environments/{environment}/sites/{site}/verify", "Compares a site with its snapshot", verify::verify)
        .get(
            "/v1/environments/{environment}/sites/{site}/changes",
            "Returns the changes in a site since its snapshot, or between two looks",
            changes::changes,
        )
        .get(
            "/v1/environments/{environment}/sites/{site}/looks",
            "Returns the looks of the serving generation",
            changes::list,
        )
        .with(
            "post",
            "/v1/environments/{environment}/sites/{site}/looks",
            "Keeps the state of a site, to compare with",
            statuses(&[201]),
            changes::keep,
        )
        .with(
            "post",
            "/v1/environments/{environment}/sites/{site}/locate",
            "Reads a value of a site",
            large(),
            locate::locate,
        )
        .with(
            "get",
            "/v1/environments/{environment}/sites/{site}/logs",
            "Returns the logs of a site's containers",
            media(&["text/plain"]),
            logs::logs,
        )
        .with(
            "post",
            "/v1/environments/{environment}/sites/{site}/snapshots",
            "Takes a snapshot of a site",
            statuses(&[202]),
            snapshots::take,
        )
}

fn of_episodes(routes: DescribedRoutes) -> DescribedRoutes {
    let started = RouteOptions { statuses: &[200, 201, 202], media: EVENTS, ..RouteOptions::default() };
    let forked = statuses(&[200, 201, 202]);
    routes
        .get("/v1/episodes", "Returns the episodes, including those that ended recently", episodes::list)
        .with("post", "/v1/episodes", "Starts an episode", started, episodes::start)
        .answering::<StartedEpisode>()
        .get("/v1/episodes/queue", "Returns the requests that wait for slots", episodes::queue)
        .with("get", "/v1/episodes/events", "Streams the states of all episodes", media(EVENTS), episodes::all_events)
        .get("/v1/episodes/{id}", "Returns an episode", episodes::one)
        .delete("/v1/episodes/{id}", "Ends an episode, or withdraws its request", episodes::end)
        .post("/v1/episodes/{id}/heartbeat", "Extends the time to live of an episode", episodes::heartbeat)
        .post(
            "/v1/episodes/{id}/freeze",
            "Freezes an episode, so that no request of a client reaches its slots",
            episodes::freeze,
        )
        .post("/v1/episodes/{id}/unfreeze", "Ends the freeze of an episode", episodes::unfreeze)
        .with(
            "post",
            "/v1/episodes/{id}/fork",
            "Starts episodes from the present state of an episode",
            forked,
            episodes::fork,
        )
        .with(
            "get",
            "/v1/episodes/{id}/hold",
            "Streams the states of an episode, which ends when the connection is closed",
            media(EVENTS),
            episodes::hold,
        )
        .with(
            "get",
            "/v1/episodes/{id}/events",
            "Streams the states of an episode until its end",
            media(EVENTS),
            episodes::events,
        )
        .post(
            "/v1/episodes/{id}/evaluations/begin",
            "Captures the values that the check of the episode's native task compares with",
            episodes::begin,
        )
        .with("post", "/v1/episodes/{id}/evaluations", "Judges an episode", large(), episodes::evaluate)
        .get("/v1/episodes/{id}/changes", "Returns the changes that an episode made on its sites", episodes::changes)
        .get("/v1/episodes/{id}/looks", "Returns the looks that all compared sites have", episodes::looks)
        .with(
            "post",
            "/v1/episodes/{id}/looks",
            "Keeps the states of an episode's sites, to compare with",
            statuses(&[201]),
            episodes::keep_look,
        )
        .get(
            "/v1/episodes/{id}/storage-state/{site}",
            "Returns the session of an account on the episode's slot, for Playwright",
            episodes::storage_state,
        )
        .post(
            "/v1/episodes/{id}/login/{site}",
            "Returns the session of an account on the episode's slot",
            episodes::log_in,
        )
        .with(
            "post",
            "/v1/episodes/{id}/locate/{site}",
            "Reads a value on the episode's slot of a site",
            large(),
            episodes::locate,
        )
        .with(
            "get",
            "/v1/episodes/{id}/har",
            "Returns the record of an episode as a HAR",
            media(&["application/json"]),
            episodes::har,
        )
        .get(
            "/v1/episodes/{id}/observations",
            "Returns the recorded steps of an episode's agent",
            episodes::observations,
        )
        .with(
            "post",
            "/v1/episodes/{id}/observations",
            "Records a step of an episode's agent, for benchmarks that judge steps",
            RouteOptions { body_max: Some(episodes::STEP_BYTES_MAX), ..RouteOptions::default() },
            episodes::observe,
        )
        .get("/v1/episodes/{id}/browser", "Observes the page in the browser of an episode", episodes::browser)
        .get(
            "/v1/episodes/{id}/browser/elements",
            "Returns the elements that people act on in the browser of an episode",
            episodes::browser_elements,
        )
        .get(
            "/v1/episodes/{id}/browser/snapshot",
            "Returns the whole content of the page in the browser of an episode",
            episodes::browser_snapshot,
        )
        .delete("/v1/episodes/{id}/browser", "Closes the browser of an episode", episodes::close_browser)
        .with(
            "post",
            "/v1/episodes/{id}/browser/reset",
            "Opens a browser for an episode, in place of the one that it has, and observes it",
            RouteOptions { body_max: Some(episodes::RESET_BYTES_MAX), ..RouteOptions::default() },
            episodes::browser_reset,
        )
        .post(
            "/v1/episodes/{id}/browser/step",
            "Performs an action in the browser of an episode, and observes the page",
            episodes::browser_step,
        )
}

fn of_replays(routes: DescribedRoutes) -> DescribedRoutes {
    let added = RouteOptions { body_max: Some(replays::UPLOAD_BYTES_MAX), statuses: &[201], ..RouteOptions::default() };
    routes
        .get("/v1/replays", "Returns the replays: recorded sites that are served from their recordings", replays::list)
        .get("/v1/replays/{name}", "Returns a replay with its credentials for the episode proxy", replays::one)
        .with(
            "put",
            "/v1/replays/{name}",
            "Makes a replay from a tar archive of HAR, MHTML, WARC or WACZ files, or from one such file",
            added,
            replays::add,
        )
        .delete("/v1/replays/{name}", "Removes a replay that no live episode uses", replays::remove)
        .get(
            "/v1/certificates/replay",
            "Returns the certificate of the authority that vouches for recorded https hosts",
            replays::certificate,
        )
}

fn of_snapshots(routes: DescribedRoutes) -> DescribedRoutes {
    let import = RouteOptions { body_max: Some(transfer::REQUEST_BYTES_MAX), ..RouteOptions::default() };
    routes
        .get("/v1/snapshots", "Returns the snapshots", snapshots::list)
        .get("/v1/snapshots/{id}", "Returns a snapshot", snapshots::one)
        .delete("/v1/snapshots/{id}", "Removes a snapshot", snapshots::remove)
        .with(
            "get",
            "/v1/snapshots/{id}/export",
            "Returns the file of a snapshot",
            media(&["application/zstd"]),
            transfer::export,
        )
        .get(
            "/v1/snapshots/{id}/differences",
            "Returns the tables and files in which two snapshots of a site differ",
            snapshots::differences,
        )
        .with("post", "/v1/imports", "Begins an import, or continues one", import, transfer::begin)
        .put("/v1/imports/{id}/parts/{index}", "Receives the unmodified content of a part", transfer::part)
        .post("/v1/imports/{id}/finish", "Returns the snapshot, once all of its parts have arrived", transfer::finish)
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
