//! Requests that reach a route without a socket, by the decisions by which those of clients do.
//!
//! For a gateway that listens nowhere. `forward` does the same with connections and bytes: a request is held, refused or
//! sent by the route's state; it counts before it is sent; a switch ends it; its answer counts only if no switch came first.

use std::io;

use tokio::time::Instant;

use super::gateway::Route;
use super::phase::{RouteState, Target};

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectRequest {
    /// Whether it may write.
    pub may_write: bool,
    /// Whether it may be sent again to another target.
    pub is_safe: bool,
}

/// What came of a request.
#[derive(Debug)]
pub enum Direct<T> {
    /// The target's answer.
    Answered {
        /// The target.
        target: Target,
        /// What it said.
        answer: T,
    },
    /// The gateway answers itself, with a status and its reason: nothing serves, or nothing in time.
    Refused(u16, String),
    /// The target was reached or not, and did not answer.
    Failed(io::Error),
    /// The connection is refused: nothing listens.
    Closed,
}

impl Route {
    /// Passes a request on; `send` brings it to a target and returns its answer.
    ///
    /// Cancellation: the client has gone; what was sent stays sent.
    pub async fn pass<T>(
        &self,
        request: DirectRequest,
        mut send: impl AsyncFnMut(&Target) -> io::Result<T>,
    ) -> Direct<T> {
        let shared = &self.shared;
        if !self.is_listening() {
            return Direct::Closed;
        }
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
            if request.may_write {
                shared.counters.unsafe_requests.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            }
            let Some(_entry) = shared.enter_target(epoch, None) else { continue };
            let answer = tokio::select! {
                biased;
                // What a switch ends is the connection: the target may have got the request all the same.
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
