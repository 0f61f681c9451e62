//! The errors of requests about episodes.

use axum::http::StatusCode;

use super::shown;
use crate::api::error::ApiError;
use crate::slots::ForkError;
use arenad_episodes::EpisodeError;
use arenad_model::episode::EpisodeRefusal;
use arenad_model::episode::ending::{EpisodeEnding, ExpiryCause};
use arenad_model::episode::request::AskRefusal;
use arenad_model::error::describe;

/// The error for an episode that has ended, with its ending.
pub(super) fn ended(ending: &EpisodeEnding) -> ApiError {
    let detail = format!("the episode has ended: {ending}");
    let error = match ending {
        EpisodeEnding::Void(_) => ApiError::new(StatusCode::GONE, "void", detail)
            .hint("repeat the episode: the environment failed it, and not its client"),
        EpisodeEnding::Expired(ExpiryCause::Wait) => ApiError::new(StatusCode::CONFLICT, "no_slot", detail).hint(
            "wait longer; `arenad queue` shows the requests that wait, and `arenad episode ls` what they wait for",
        ),
        EpisodeEnding::Expired(ExpiryCause::Ttl) => ApiError::new(StatusCode::GONE, "ended", detail)
            .hint("start another episode; send heartbeats or hold it, or give it a longer time to live"),
        EpisodeEnding::Released(_) => {
            ApiError::new(StatusCode::GONE, "ended", detail).hint("start another episode with `arenad episode start`")
        }
    };
    error.ending(shown::ending(ending))
}

impl From<EpisodeError> for ApiError {
    fn from(error: EpisodeError) -> Self {
        let detail = describe(&error);
        match error {
            EpisodeError::Ask(refusal) => asked(&refusal),
            EpisodeError::Refused(refusal) => refused(&refusal),
            EpisodeError::Slot(_) => Self::new(StatusCode::CONFLICT, "busy", detail).hint("try again"),
            EpisodeError::Busy { retry_after } => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "full", detail).retry_after(retry_after)
            }
            EpisodeError::Store(_) => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "store", detail)
                .hint("the state directory may be full or read-only; the daemon's log says more"),
            EpisodeError::Stopping => Self::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", detail)
                .hint("try again in a moment: `arenad up` starts it anew"),
        }
    }
}

impl From<ForkError> for ApiError {
    fn from(error: ForkError) -> Self {
        let detail = error.to_string();
        match error {
            ForkError::Lost(_) => Self::new(StatusCode::CONFLICT, "busy", detail)
                .hint("`arenad episode show` shows the state of the episode"),
            ForkError::Refused(error) => error.into(),
            ForkError::Failed { hint, .. } => Self::new(StatusCode::BAD_GATEWAY, "not_copied", detail).hint(hint),
            ForkError::Interrupted(_) => Self::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", detail)
                .hint("try again when the daemon and the site are up"),
        }
    }
}

/// The hint for a time to live above the limit.
const TTL_HINT: &str = "ask for a shorter time and send heartbeats; `arenad serve --ttl-limit` sets the limit";

fn asked(refusal: &AskRefusal) -> ApiError {
    let said = refusal.to_string();
    match refusal {
        AskRefusal::NoSites
        | AskRefusal::TooManySites
        | AskRefusal::SeveralEnvironments(..)
        | AskRefusal::SiteTwice(_)
        | AskRefusal::InvalidSnapshot(_) => ApiError::bad_request(said),
        AskRefusal::UnknownSite(_) => ApiError::new(StatusCode::CONFLICT, "not_up", said)
            .hint("bring it up with `arenad up`, and wait until it is ready"),
        AskRefusal::NoSuchSlot { .. } => {
            ApiError::new(StatusCode::NOT_FOUND, "unknown_slot", said).hint("name one of these, or none to get any")
        }
        AskRefusal::OnlyByName(site) => {
            let hint = format!("name a slot: `--slot {}=1`, or `\"slots\": {{\"{}\": 1}}`", site.site, site.site);
            ApiError::new(StatusCode::CONFLICT, "only_by_name", said).hint(hint)
        }
        AskRefusal::Shared(_) => {
            ApiError::new(StatusCode::BAD_REQUEST, "shared_site", said).hint("name the site alone")
        }
        AskRefusal::TtlTooLong { .. } => ApiError::bad_request(said).hint(TTL_HINT),
        AskRefusal::NoQuota(_) => ApiError::new(StatusCode::FORBIDDEN, "no_quota", said).hint("ask as another owner"),
        AskRefusal::KeyReused(_) => ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "key_reused", said)
            .hint("repeat the first request unchanged, or choose a new key"),
        AskRefusal::IdTaken(_) => ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", said),
        AskRefusal::QueueFull { retry_after, .. } | AskRefusal::OwnerQueueFull { retry_after, .. } => {
            ApiError::new(StatusCode::TOO_MANY_REQUESTS, "queue_full", said)
                .hint("`arenad queue` shows the requests that wait")
                .retry_after(*retry_after)
        }
    }
}

fn refused(refusal: &EpisodeRefusal) -> ApiError {
    let said = refusal.to_string();
    match refusal {
        EpisodeRefusal::Waiting | EpisodeRefusal::Preparing => ApiError::new(StatusCode::CONFLICT, "not_active", said)
            .hint("wait until its state is `active`: `arenad episode show`"),
        EpisodeRefusal::AlreadyGranted => ApiError::new(StatusCode::CONFLICT, "conflict", said),
        EpisodeRefusal::NotFrozen => ApiError::new(StatusCode::CONFLICT, "not_frozen", said),
        EpisodeRefusal::AlreadyHeld | EpisodeRefusal::NotHeld => {
            ApiError::new(StatusCode::CONFLICT, "already_held", said)
                .hint("an episode has one connection that holds it")
        }
        EpisodeRefusal::Overdue => ApiError::new(StatusCode::GONE, "ended", said)
            .hint("start another episode; send heartbeats or hold it, or give it a longer time to live"),
        EpisodeRefusal::Ended(ending) => ended(ending),
        EpisodeRefusal::TtlTooLong { .. } => ApiError::bad_request(said).hint(TTL_HINT),
        EpisodeRefusal::Unknown => ApiError::new(StatusCode::NOT_FOUND, "unknown_episode", said)
            .hint("list the episodes with `arenad episode ls --all`; old ones are forgotten"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::http::header;
    use axum::response::IntoResponse;

    use super::*;
    use arenad_api::Problem;
    use arenad_model::episode::ending::{ReleaseCause, VoidReason};

    async fn problem(error: EpisodeError) -> (u16, Option<String>, Problem) {
        let response = ApiError::from(error).into_response();
        let retry = response.headers().get(header::RETRY_AFTER).map(|it| it.to_str().expect("text").to_owned());
        let status = response.status().as_u16();
        let body = axum::body::to_bytes(response.into_body(), 1 << 20).await.expect("a body");
        (status, retry, serde_json::from_slice(&body).expect("a problem"))
    }

    #[tokio::test]
    async fn a_full_queue_says_when_to_try_again() {
        let full = AskRefusal::QueueFull { waiting: 200, retry_after: Duration::from_secs(7) };
        let (status, retry, problem) = problem(full.into()).await;
        assert_eq!((status, retry.as_deref(), problem.code.as_str()), (429, Some("7"), "queue_full"));
        assert_eq!(problem.ending, None);
    }

    #[tokio::test]
    async fn an_ended_episode_is_gone_and_its_ending_is_told() {
        let void = EpisodeEnding::Void(VoidReason::PreparationTimedOut);
        for (ending, expected) in [
            (EpisodeEnding::Released(ReleaseCause::Client), (410, "ended", "client")),
            (EpisodeEnding::Released(ReleaseCause::HoldClosed), (410, "ended", "hold_closed")),
            (EpisodeEnding::Expired(ExpiryCause::Ttl), (410, "ended", "ttl")),
            (EpisodeEnding::Expired(ExpiryCause::Wait), (409, "no_slot", "wait")),
            (void, (410, "void", "preparation_timed_out")),
        ] {
            let (status, _, problem) = problem(EpisodeRefusal::Ended(ending).into()).await;
            let code = problem.ending.expect("an ending").code;
            assert_eq!((status, problem.code.as_str(), code.as_str()), expected);
        }
    }

    #[tokio::test]
    async fn what_is_unknown_and_what_comes_too_early_differ() {
        assert_eq!(problem(EpisodeRefusal::Unknown.into()).await.0, 404);
        let (status, retry, early) = problem(EpisodeRefusal::Preparing.into()).await;
        assert_eq!((status, retry, early.code.as_str()), (409, None, "not_active"));
        let busy = EpisodeError::Busy { retry_after: Duration::from_millis(10) };
        assert_eq!(problem(busy).await.1.as_deref(), Some("1"), "whole seconds, and never none");
    }
}
