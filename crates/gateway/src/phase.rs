//! What a route does with requests, as a value: no sockets, no clock, no locks.
//!
//! ```text
//!             serve(target)            hold(reason)
//!   Refusing ───────────────► Serving ─────────────► Holding
//!      ▲  ▲                    │   ▲  serve(target)   │  │
//!      │  └────────────────────┘   └──────────────────┘  │
//!      └──────────────── refuse(reason) ─────────────────┘        any ── close ──► Closed
//! ```
//! A route opens as `Refusing`: nothing serves it yet. `Closed` is final.

use std::net::SocketAddr;
use std::time::Duration;

/// Where a route sends its requests: one generation of one instance.
///
/// Two targets with the same address and different generations are different: the bytes behind the address were changed by
/// a reset in between, so nothing of the older one may be seen any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Address that accepts the site's HTTP connections.
    pub address: SocketAddr,
    /// Name of the instance, for people and logs.
    pub instance: String,
    /// Number that grows with every reset of the instance.
    pub generation: u64,
}

/// What a route does with requests at the moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RouteState {
    /// Requests go to the target.
    Serving {
        /// Where they go.
        target: Target,
    },
    /// Requests wait, in bounded number and for a bounded time.
    Holding {
        /// Why, in words for whoever waits too long.
        reason: String,
    },
    /// Requests are answered 503.
    Refusing {
        /// Why, in words for the page that people see.
        reason: String,
        /// When it is worth trying again.
        retry_after: Duration,
    },
    /// The port is released, or about to be.
    Closed,
}

/// What may be asked of a route.
#[derive(Debug, Clone)]
pub(super) enum Command {
    Serve(Target),
    Hold { reason: String },
    Refuse { reason: String, retry_after: Duration },
    Close,
}

impl RouteState {
    /// Returns the state that the command leads to, or `None` if it changes nothing for requests on their way.
    ///
    /// `None` matters: a change ends every exchange with the target, and telling a route twice to serve the same generation
    /// must not cut anybody.
    pub(super) fn after(&self, command: Command) -> Option<Self> {
        let next = match (self, command) {
            (Self::Closed, _) => return None,
            (_, Command::Serve(target)) => Self::Serving { target },
            (_, Command::Hold { reason }) => Self::Holding { reason },
            (_, Command::Refuse { reason, retry_after }) => Self::Refusing { reason, retry_after },
            (_, Command::Close) => Self::Closed,
        };
        (*self != next).then_some(next)
    }
}

/// How many requests a route holds back, and for how long each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoldLimits {
    /// Requests that may wait at the same time; one more is answered 503.
    pub requests: usize,
    /// Time that one request may wait, over all holds that it meets, before it is answered 503.
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
        assert_eq!(serving.after(Command::Serve(target(1))), None);
        assert_eq!(serving.after(Command::Serve(target(2))), Some(RouteState::Serving { target: target(2) }));
    }

    #[test]
    fn serving_again_after_a_hold_is_a_change_even_for_the_same_target() {
        let holding = RouteState::Serving { target: target(1) }.after(Command::Hold { reason: "reset".to_owned() });
        let holding = holding.expect("a hold changes a serving route");
        assert_eq!(holding.after(Command::Serve(target(1))), Some(RouteState::Serving { target: target(1) }));
    }

    #[test]
    fn nothing_reopens_a_closed_route() {
        assert_eq!(RouteState::Closed.after(Command::Serve(target(1))), None);
        assert_eq!(RouteState::Closed.after(Command::Hold { reason: String::new() }), None);
    }
}
