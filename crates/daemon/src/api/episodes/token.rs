//! The endpoints that the token of an episode opens over TCP.
//!
//! The daemon's token opens everything. A client that has only the token of an episode can keep its own episode alive
//! and end it, and use a browser that was opened for it. It cannot evaluate it, because evidence contains the expected answers, nor get sessions of accounts that
//! it was not given, nor read its changes, because the rows of a site are not for its visitors.

use axum::http::Method;

use arenad_episodes::{EpisodeHandle, EpisodeToken};
use arenad_model::episode::fence::FenceDecision;
use arenad_model::episode::ids::EpisodeId;

/// Whether a token opens this endpoint. The token of an episode that has ended opens the same endpoints, so that its
/// client learns how the episode ended.
pub(in crate::api) fn opens(episodes: &EpisodeHandle, method: &Method, path: &str, token: &str) -> bool {
    let Some(id) = subject(method, path) else { return false };
    match episodes.admit_client(&id, &EpisodeToken::presented(token).hash()) {
        FenceDecision::Admitted | FenceDecision::NotReady | FenceDecision::Frozen | FenceDecision::Ended(_) => true,
        FenceDecision::Unknown | FenceDecision::WrongToken => false,
    }
}

/// Returns the episode of an endpoint that the episode's own token may open.
fn subject(method: &Method, path: &str) -> Option<EpisodeId> {
    let rest = path.strip_prefix("/v1/episodes/")?;
    let (id, rest) = rest.split_once('/').map_or((rest, None), |(id, rest)| (id, Some(rest)));
    let is_own = match (method, rest) {
        (&Method::GET | &Method::DELETE, None) => true,
        (&Method::GET, Some(rest)) => matches!(rest, "hold" | "events" | "browser"),
        // Not `browser/reset`, which signs in accounts.
        (&Method::POST, Some(rest)) => matches!(rest, "heartbeat" | "browser/step"),
        _ => false,
    };
    id.parse().ok().filter(|_| is_own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_episodes_token_opens_its_life_and_nothing_else() {
        let id = EpisodeId::from_random([7; 10]);
        let of = |method: Method, path: &str| subject(&method, &path.replace("ID", id.as_str()));
        for (method, path) in [
            (Method::GET, "/v1/episodes/ID"),
            (Method::DELETE, "/v1/episodes/ID"),
            (Method::GET, "/v1/episodes/ID/hold"),
            (Method::GET, "/v1/episodes/ID/events"),
            (Method::POST, "/v1/episodes/ID/heartbeat"),
            (Method::GET, "/v1/episodes/ID/browser"),
            (Method::POST, "/v1/episodes/ID/browser/step"),
        ] {
            assert_eq!(of(method.clone(), path), Some(id.clone()), "{method} {path}");
        }
        for (method, path) in [
            (Method::POST, "/v1/episodes"),
            (Method::GET, "/v1/episodes/queue"),
            (Method::POST, "/v1/episodes/ID"),
            (Method::POST, "/v1/episodes/ID/evaluations"),
            (Method::POST, "/v1/episodes/ID/freeze"),
            (Method::POST, "/v1/episodes/ID/browser/reset"),
            (Method::DELETE, "/v1/episodes/ID/browser"),
            (Method::POST, "/v1/episodes/ID/fork"),
            (Method::GET, "/v1/episodes/ID/storage-state/shop"),
            (Method::POST, "/v1/episodes/ID/login/shop"),
            (Method::POST, "/v1/episodes/ID/locate/shop"),
            (Method::GET, "/v1/episodes/ID/changes"),
            (Method::POST, "/v1/episodes/ID/looks"),
            (Method::GET, "/v1/episodes/ID/hold/"),
            (Method::GET, "/v1/episodes/ID/events/../../../status"),
            (Method::GET, "/v1/status"),
        ] {
            assert_eq!(of(method.clone(), path), None, "{method} {path}");
        }
    }
}
