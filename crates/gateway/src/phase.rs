//! The state of a route as a value: no sockets, no clock, no locks.
//!
//! ```text
//!             serve(target)            hold(reason)
//!   Refusing ───────────────► Serving ─────────────► Holding
//!      ▲  ▲                    │   ▲  serve(target)   │  │
//!      │  └────────────────────┘   └──────────────────┘  │
//!      └──────────────── refuse(reason) ─────────────────┘        any ── close ──► Closed
//! ```
//! A route opens as `Refusing`, because it has no target yet. `Closed` is final.

use std::net::SocketAddr;
use std::time::Duration;

/// The destination of a route's requests: one generation of one instance.
///
/// Two targets with the same address and different generations are different: a reset has changed the content behind
/// the address, so no byte of the older target may be seen any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Address that accepts the site's HTTP connections.
    pub address: SocketAddr,
    /// Name of the instance, for people and logs.
    pub instance: String,
    /// Generation of the instance; it grows with every reset.
    pub generation: u64,
}

/// The way in which a route currently treats requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RouteState {
    /// Requests are forwarded to the target.
    Serving {
        /// The generation that receives the requests.
        target: Target,
    },
    /// Requests wait, up to a limit in number and in time ([`HoldLimits`]).
    Holding {
        /// Reason for the hold, shown to clients whose request waits too long or exceeds the limit.
        reason: String,
    },
    /// Requests are answered 503.
    Refusing {
        /// Reason for the refusal, shown on the page that people see.
        reason: String,
        /// Time after which the client should try again, sent as `Retry-After`.
        retry_after: Duration,
    },
    /// The port is released, or is about to be.
    Closed,
}

/// A command that changes the state of a route.
#[derive(Debug, Clone)]
pub(super) enum RouteCommand {
    Serve(Target),
    Hold { reason: String },
    Refuse { reason: String, retry_after: Duration },
    Close,
}

impl RouteState {
    /// Returns the state that the command leads to, or `None` if it changes nothing for requests under way.
    ///
    /// `None` matters: a change ends every exchange with the target, and serving the same generation twice must not cut
    /// any connection.
    pub(super) fn after(&self, command: RouteCommand) -> Option<Self> {
        let next = match (self, command) {
            (Self::Closed, _) => return None,
            (_, RouteCommand::Serve(target)) => Self::Serving { target },
            (_, RouteCommand::Hold { reason }) => Self::Holding { reason },
            (_, RouteCommand::Refuse { reason, retry_after }) => Self::Refusing { reason, retry_after },
            (_, RouteCommand::Close) => Self::Closed,
        };
        (*self != next).then_some(next)
    }
}

/// Limits on the number of requests that a route holds and on the time that each may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoldLimits {
    /// Number of requests that may wait at the same time; further ones are answered 503.
    pub requests: usize,
    /// Total time that one request may wait, over all holds that it meets, before it is answered 503.
    pub timeout: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(generation: u64) -> Target {
        Target { address: SocketAddr::from(([127, 0, 0, 1], 80)), instance: "shop-1".to_owned(), generation }
    }

    #[test]
    fn serving_the_same_generation_again_changes_nothing() {
        let serving = RouteState::Serving { target: target(1) };
        assert_eq!(serving.after(RouteCommand::Serve(target(1))), None);
        assert_eq!(serving.after(RouteCommand::Serve(target(2))), Some(RouteState::Serving { target: target(2) }));
    }

    #[test]
    fn serving_again_after_a_hold_is_a_change_even_for_the_same_target() {
        let holding =
            RouteState::Serving { target: target(1) }.after(RouteCommand::Hold { reason: "reset".to_owned() });
        let holding = holding.expect("a hold changes a serving route");
        assert_eq!(holding.after(RouteCommand::Serve(target(1))), Some(RouteState::Serving { target: target(1) }));
    }

    #[test]
    fn nothing_reopens_a_closed_route() {
        assert_eq!(RouteState::Closed.after(RouteCommand::Serve(target(1))), None);
        assert_eq!(RouteState::Closed.after(RouteCommand::Hold { reason: String::new() }), None);
    }
}
