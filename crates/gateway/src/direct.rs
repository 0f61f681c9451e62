//! Requests to a route without a socket, subject to the same decisions as those of clients.
//!
//! This module serves a gateway that has no listeners. `forward` applies the same rules to connections and bytes: the
//! state of the route holds, refuses or sends a request, the request is counted before it is sent, a switch ends it,
//! and its response is valid only if no switch came first.

use std::io;

use tokio::time::Instant;

use super::directory::ProxySite;
use super::gateway::Route;
use super::phase::{RouteState, Target};

/// The properties of a request on which the route's decisions depend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectRequest {
    /// Whether the request may write to the site.
    pub may_write: bool,
    /// Whether the request may be sent again to another target.
    pub is_safe: bool,
}

/// The outcome of a request.
#[derive(Debug)]
pub enum Direct<T> {
    /// The target answered, and no switch came first.
    Answered {
        /// The target that received the request.
        target: Target,
        /// The value that `send` returned.
        answer: T,
    },
    /// The gateway answers with a status and a reason: no target serves, or none did within the hold timeout.
    Refused(u16, String),
    /// `send` failed, whether or not the request reached the target.
    Failed(io::Error),
    /// The connection is refused, because the port is closed.
    Closed,
}

impl Route {
    /// Passes a request on; `send` delivers it to a target and returns the response.
    ///
    /// Cancellation: equivalent to the departure of the client; a request that has been sent is not taken back.
    pub async fn pass<T>(&self, request: DirectRequest, send: impl AsyncFnMut(&Target) -> io::Result<T>) -> Direct<T> {
        if !self.is_listening() {
            return Direct::Closed;
        }
        self.pass_to(None, request, send).await
    }

    /// Passes a request on to one generation, or to any if `generation` is `None`. The route may be without a port.
    async fn pass_to<T>(
        &self,
        generation: Option<u64>,
        request: DirectRequest,
        mut send: impl AsyncFnMut(&Target) -> io::Result<T>,
    ) -> Direct<T> {
        let shared = &self.shared;
        if request.may_write && shared.writes.is_refused {
            return Direct::Refused(405, "it is only read".to_owned());
        }
        let patience = Instant::now() + shared.hold.timeout;
        loop {
            let mut changes = shared.changes();
            let (epoch, state) = shared.state();
            let overtaken = || Direct::Refused(503, "it was being reset".to_owned());
            let target = match state {
                RouteState::Serving { target } => target,
                RouteState::Holding { reason } => {
                    let Some(_place) = shared.enter_held() else {
                        return Direct::Refused(503, format!("too many wait: {reason}"));
                    };
                    let changed = changes.wait_for(|now| *now > epoch);
                    match tokio::time::timeout_at(patience, changed).await {
                        Ok(_) => continue,
                        Err(_) => return Direct::Refused(503, reason),
                    }
                }
                RouteState::Refusing { reason, .. } => return Direct::Refused(503, reason),
                RouteState::Closed => return Direct::Closed,
            };
            if generation.is_some_and(|wanted| wanted != target.generation) {
                return Direct::Refused(503, "another generation serves it".to_owned());
            }
            if request.may_write {
                shared.counters.unsafe_requests.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            }
            let Some(_entry) = shared.enter_target(epoch, None) else { continue };
            let answer = tokio::select! {
                biased;
                // A switch ends the connection, but the target may have received the request nevertheless.
                _ = changes.wait_for(|now| *now > epoch) => None,
                answer = send(&target) => Some(answer),
            };
            let is_current = shared.epoch() == epoch;
            match answer {
                Some(Ok(answer)) if is_current => return Direct::Answered { target, answer },
                Some(Err(error)) if is_current => {
                    shared.counters.target_failed();
                    return Direct::Failed(error);
                }
                _ if request.is_safe => {}
                _ => return overtaken(),
            }
        }
    }
}

impl ProxySite {
    /// Passes a request of the episode's client on, like [`Route::pass`], to the generation that the episode got, until
    /// the access of the episode is revoked.
    ///
    /// Cancellation: as [`Route::pass`].
    pub async fn pass<T>(&self, request: DirectRequest, send: impl AsyncFnMut(&Target) -> io::Result<T>) -> Direct<T> {
        let refused = || Direct::Refused(407, "the access was revoked".to_owned());
        let answered = tokio::select! {
            biased;
            () = self.access.revoked() => return refused(),
            answered = self.route.pass_to(self.generation, request, send) => answered,
        };
        if self.access.refusal().is_some() { refused() } else { answered }
    }
}
