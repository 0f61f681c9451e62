//! The gate between an instance and its route: who may reach the generation that the driver serves.
//!
//! The driver offers a generation, and the episodes decide on the access. Both can change at any time, and the route
//! serves only while they agree:
//!
//! ```text
//!   driver:   serve(generation) | hold | refuse ──┐
//!                                                 ├──► route
//!   episodes: open | closed | leased(generation) ─┘
//! ```
//! A generation that does not belong to the lease is never served while the lease lasts, whatever the driver does, and
//! none is while the episode is frozen. While an episode is forked, the gates of all its slots are suspended: they hold
//! what they would serve.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use arenad_gateway::{Route, Target};
use arenad_model::episode::ids::EpisodeId;

/// The `Retry-After` of responses while no client may reach the instance.
const RETRY_AFTER: Duration = Duration::from_secs(2);
/// The `Retry-After` of responses while the episode is frozen, which usually lasts as long as an evaluation.
const RETRY_FROZEN_AFTER: Duration = Duration::from_secs(1);

/// The clients that may reach an instance through its route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RouteAccess {
    /// Everybody who knows the address.
    Open,
    /// No client reaches the instance.
    Closed {
        /// The reason, for the page that people see.
        reason: String,
        /// The episode that the slot is being prepared for.
        episode: Option<EpisodeId>,
    },
    /// The clients of an episode.
    Leased {
        /// The episode that has the slot.
        episode: EpisodeId,
        /// The only generation that may serve the episode.
        generation: u64,
        /// Whether the episode is frozen, so that its site must not change.
        is_frozen: bool,
    },
}

/// The reason why a generation must not be served, with the `Retry-After`.
type RouteRefusal = (String, Duration);

impl RouteAccess {
    /// Returns the reason why a generation must not be served.
    fn refusal(&self, generation: u64) -> Option<RouteRefusal> {
        match self {
            Self::Leased { generation: leased, episode, .. } if *leased != generation => {
                Some((format!("episode {episode} had another generation, which is gone"), RETRY_AFTER))
            }
            access => access.refusal_of_all(),
        }
    }

    /// Returns the reason why no generation may be served.
    fn refusal_of_all(&self) -> Option<RouteRefusal> {
        match self {
            Self::Closed { reason, .. } => Some((reason.clone(), RETRY_AFTER)),
            Self::Leased { episode, is_frozen: true, .. } => {
                let reason = format!("episode {episode} is frozen, for example while it is evaluated: try again later");
                Some((reason, RETRY_FROZEN_AFTER))
            }
            Self::Open | Self::Leased { .. } => None,
        }
    }

    /// Whether the same clients have the instance, although they may not reach it at the moment.
    fn has_same_clients(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Leased { episode, generation, .. },
                Self::Leased { episode: other, generation: other_generation, .. },
            ) => (episode, generation) == (other, other_generation),
            _ => self == other,
        }
    }
}

/// The wish of the driver.
#[derive(Debug, Clone)]
enum RouteOffer {
    Serve(Target),
    Hold(String),
    Refuse(String, Duration),
}

#[derive(Debug)]
struct GateState {
    access: RouteAccess,
    offer: RouteOffer,
    /// Ends the daemon's own visits that began under this access.
    visits: CancellationToken,
    /// The number of suspensions.
    suspensions: usize,
}

/// The gate of one instance.
#[derive(Debug)]
pub struct RouteGate {
    route: Route,
    state: Mutex<GateState>,
}

impl RouteGate {
    /// Creates the gate of an instance that does not serve yet.
    pub fn new(route: Route, access: RouteAccess) -> Self {
        let offer = RouteOffer::Refuse("nothing serves it yet".to_owned(), RETRY_AFTER);
        Self { route, state: Mutex::new(GateState { access, offer, visits: CancellationToken::new(), suspensions: 0 }) }
    }

    fn state(&self) -> MutexGuard<'_, GateState> {
        // Every change is one assignment, so a panic leaves a valid state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the route. Its state is changed through the gate alone.
    pub(crate) fn route(&self) -> &Route {
        &self.route
    }

    /// Sends requests to a target as far as the access allows it.
    pub(crate) fn serve(&self, target: Target) {
        self.offer(RouteOffer::Serve(target));
    }

    /// Holds requests, unless no client may reach the instance.
    pub(crate) fn hold(&self, reason: String) {
        self.offer(RouteOffer::Hold(reason));
    }

    /// Refuses requests, whatever the access.
    pub(crate) fn refuse(&self, reason: String, retry_after: Duration) {
        self.offer(RouteOffer::Refuse(reason, retry_after));
    }

    fn offer(&self, offer: RouteOffer) {
        let mut state = self.state();
        state.offer = offer;
        self.apply(&state);
    }

    /// Changes the access. If the instance has other clients from now on, the daemon's own visits that began under the
    /// earlier access end, and unless everybody may reach the instance, the connections of all earlier clients are cut.
    pub(crate) fn set_access(&self, access: RouteAccess) {
        let mut state = self.state();
        if state.access == access {
            return;
        }
        let has_same_clients = state.access.has_same_clients(&access);
        if !has_same_clients && access != RouteAccess::Open {
            self.route.fence("the slot changes hands", RETRY_AFTER);
        }
        state.access = access;
        // A frozen episode is evaluated by such visits.
        if !has_same_clients {
            std::mem::take(&mut state.visits).cancel();
        }
        self.apply(&state);
    }

    /// Holds the requests of those who may reach the instance until the guard is dropped, whatever the driver offers.
    pub(crate) fn suspend(self: &Arc<Self>) -> RouteSuspension {
        self.change_suspensions(|suspensions| suspensions + 1);
        RouteSuspension(self.clone())
    }

    fn change_suspensions(&self, change: impl FnOnce(usize) -> usize) {
        let mut state = self.state();
        state.suspensions = change(state.suspensions);
        self.apply(&state);
    }

    /// Begins a visit of the daemon itself, whose end the token announces. `note` runs before the access can change.
    ///
    /// Errors: the slot is being prepared for the episode, and must stay untouched.
    pub(crate) fn begin_visit(&self, note: impl FnOnce()) -> Result<CancellationToken, EpisodeId> {
        let state = self.state();
        if let RouteAccess::Closed { episode: Some(episode), .. } = &state.access {
            return Err(episode.clone());
        }
        note();
        Ok(state.visits.clone())
    }

    /// Returns the episode that has the slot, or that the slot is being prepared for.
    pub(crate) fn holder(&self) -> Option<EpisodeId> {
        match &self.state().access {
            RouteAccess::Open => None,
            RouteAccess::Closed { episode, .. } => episode.clone(),
            RouteAccess::Leased { episode, .. } => Some(episode.clone()),
        }
    }

    /// Puts the route into the state that offer and access allow. The lock is held, so that the last change wins.
    fn apply(&self, state: &GateState) {
        match &state.offer {
            RouteOffer::Serve(target) => match state.access.refusal(target.generation) {
                None if state.suspensions > 0 => self.route.hold("its episode is being forked"),
                None => self.route.serve(target.clone()),
                Some((reason, retry_after)) => self.route.refuse(reason, retry_after),
            },
            RouteOffer::Hold(reason) => match state.access.refusal_of_all() {
                // A request that is held now would reach the next episode, or a frozen one.
                Some((reason, retry_after)) => self.route.refuse(reason, retry_after),
                None => self.route.hold(reason.clone()),
            },
            RouteOffer::Refuse(reason, retry_after) => self.route.refuse(reason.clone(), *retry_after),
        }
    }
}

/// Holds the requests of an instance while it exists.
#[derive(Debug)]
pub struct RouteSuspension(Arc<RouteGate>);

impl Drop for RouteSuspension {
    fn drop(&mut self) {
        self.0.change_suspensions(|suspensions| suspensions.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use arenad_gateway::{Gateway, HoldLimits, RecordingFilter, RouteState, WriteRules};

    fn gate(access: RouteAccess) -> RouteGate {
        let hold = HoldLimits { requests: 1, timeout: Duration::from_secs(1) };
        let gateway = Gateway::without_sockets();
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let route = gateway.open(address, hold, WriteRules::default(), RecordingFilter::Nothing, "shop");
        RouteGate::new(route.expect("a port that is only marked"), access)
    }

    fn target(generation: u64) -> Target {
        let address = SocketAddr::from(([127, 0, 0, 1], 80));
        Target { address, instance: "mini/shop/1".to_owned(), generation }
    }

    fn serves(gate: &RouteGate) -> Option<u64> {
        match gate.route().state() {
            RouteState::Serving { target } => Some(target.generation),
            _ => None,
        }
    }

    fn leased(generation: u64) -> RouteAccess {
        RouteAccess::Leased { episode: EpisodeId::from_random([1; 10]), generation, is_frozen: false }
    }

    fn frozen(generation: u64) -> RouteAccess {
        RouteAccess::Leased { episode: EpisodeId::from_random([1; 10]), generation, is_frozen: true }
    }

    fn closed() -> RouteAccess {
        RouteAccess::Closed { reason: "it is being prepared".to_owned(), episode: None }
    }

    /// Otherwise its containers, with what clients left in their memory, would be kept for a later generation.
    #[tokio::test]
    async fn a_generation_that_was_reached_is_known_as_such_while_the_gate_is_closed() {
        let gate = gate(RouteAccess::Open);
        gate.serve(target(2));
        gate.serve(target(3));
        let request = arenad_gateway::DirectRequest { may_write: true, is_safe: false };
        gate.route().pass(request, async |_: &Target| Ok(())).await;
        gate.set_access(closed());
        gate.serve(target(4));
        assert!(gate.route().may_have_reached(3), "the request reached it");
        assert!(!gate.route().may_have_reached(2), "no request reached it");
        gate.set_access(leased(4));
        assert!(gate.route().may_have_reached(3));
        assert!(!gate.route().may_have_reached(4));
        assert!(gate.route().may_have_reached(1), "nothing is known of it");
    }

    #[test]
    fn an_open_gate_passes_everything_on() {
        let gate = gate(RouteAccess::Open);
        gate.serve(target(3));
        assert_eq!(serves(&gate), Some(3));
        gate.hold("it is being reset".to_owned());
        assert!(matches!(gate.route().state(), RouteState::Holding { .. }));
        gate.serve(target(4));
        assert_eq!(serves(&gate), Some(4));
    }

    #[test]
    fn a_lease_admits_its_generation_only() {
        let gate = gate(leased(3));
        gate.serve(target(4));
        assert_eq!(serves(&gate), None, "a later generation");
        gate.serve(target(2));
        assert_eq!(serves(&gate), None, "an earlier generation");
        gate.serve(target(3));
        assert_eq!(serves(&gate), Some(3));
        gate.set_access(leased(4));
        assert_eq!(serves(&gate), None, "the generation of another lease");
    }

    #[test]
    fn a_closed_gate_neither_serves_nor_holds() {
        let gate = gate(RouteAccess::Open);
        gate.serve(target(3));
        gate.set_access(closed());
        assert_eq!(serves(&gate), None);
        gate.hold("it is being reset".to_owned());
        assert!(matches!(gate.route().state(), RouteState::Refusing { .. }), "a held request would reach the next one");
        gate.serve(target(4));
        assert_eq!(serves(&gate), None);
        gate.set_access(RouteAccess::Open);
        assert_eq!(serves(&gate), Some(4), "the offer of the driver is remembered");
    }

    #[test]
    fn the_gate_of_a_frozen_episode_refuses_clients_and_admits_the_visits_of_the_daemon() {
        let gate = Arc::new(gate(leased(3)));
        gate.serve(target(3));
        let visit = gate.begin_visit(|| ()).expect("the episode may be looked at");
        gate.set_access(frozen(3));
        let refusal = |gate: &RouteGate| match gate.route().state() {
            RouteState::Refusing { reason, .. } => reason,
            state => panic!("{state:?}"),
        };
        assert!(refusal(&gate).contains("is frozen"), "{}", refusal(&gate));
        let late = gate.begin_visit(|| ()).expect("an evaluation reads the sites");
        assert!(!visit.is_cancelled() && !late.is_cancelled());
        // Neither the driver nor a fork opens it.
        gate.hold("its state is copied".to_owned());
        assert!(refusal(&gate).contains("is frozen"), "a held request would come later");
        let suspension = gate.suspend();
        gate.serve(target(3));
        drop(suspension);
        assert_eq!(serves(&gate), None);
        gate.set_access(leased(3));
        assert_eq!(serves(&gate), Some(3));
        assert!(!late.is_cancelled(), "the clients are the same");
        gate.set_access(frozen(3));
        gate.set_access(leased(4));
        assert!(late.is_cancelled(), "the slot changed hands");
    }

    #[test]
    fn a_suspended_gate_holds_until_the_last_suspension_ends() {
        let gate = Arc::new(gate(leased(3)));
        gate.serve(target(3));
        let (one, other) = (gate.suspend(), gate.suspend());
        let is_holding = || matches!(gate.route().state(), RouteState::Holding { .. });
        assert!(is_holding());
        gate.hold("its state is copied".to_owned());
        gate.serve(target(3));
        assert!(is_holding(), "the driver has done its part, others have not");
        drop(one);
        assert!(is_holding());
        gate.set_access(closed());
        assert!(matches!(gate.route().state(), RouteState::Refusing { .. }), "the episode ended meanwhile");
        gate.set_access(leased(3));
        drop(other);
        assert_eq!(serves(&gate), Some(3));
    }

    #[test]
    fn visits_end_with_the_access_that_they_began_under() {
        let gate = gate(RouteAccess::Open);
        let visit = gate.begin_visit(|| ()).expect("open");
        gate.set_access(RouteAccess::Open);
        assert!(!visit.is_cancelled(), "nothing has changed");
        gate.set_access(leased(3));
        assert!(visit.is_cancelled());
        let visit = gate.begin_visit(|| ()).expect("the episode may be looked at");
        let episode = EpisodeId::from_random([2; 10]);
        gate.set_access(RouteAccess::Closed { reason: String::new(), episode: Some(episode.clone()) });
        assert!(visit.is_cancelled());
        let mut is_noted = false;
        assert_eq!(gate.begin_visit(|| is_noted = true).map(drop), Err(episode));
        assert!(!is_noted, "a slot that is being prepared stays untouched");
    }
}
