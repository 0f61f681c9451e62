//! The resets that were asked for here: which run, and which have failed.
//!
//! ```text
//!   (nothing) ── begin ──► running ── complete ──► (nothing)
//!                           │  ▲ └── fail ──► failed ── begin ──► running
//!                           └──┘ begin: another pass
//! ```
//! A client that asks while a reset runs is told so, and waits for the same end as the client that began it. It may
//! have written to a site whose turn was over, so the run has another pass: no earlier write survives a reset that is
//! reported as done.
//!
//! A failure stays until a reset succeeds, because harnesses continue as soon as `/status` says that the sites are
//! ready. The daemon keeps the board in its store, so that this holds over its restarts as well.

use std::collections::BTreeMap;

use arenad_model::ids::SiteName;
use arenad_model::instance::InstanceState;
use arenad_model::reset_scope::ResetScope;

#[derive(Debug, Clone, PartialEq, Eq)]
enum ScopeState {
    Running { is_wanted_again: bool },
    Failed { reason: String },
}

/// The answer to a request for a reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BeganReset {
    /// The reset begins; the caller performs it.
    Started,
    /// One runs already, and gets another pass.
    AlreadyRunning,
}

/// The readiness of sites, as harnesses are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SiteReadiness {
    /// A reset runs, or a site is not ready yet.
    Ongoing,
    /// A reset has failed, or a site has.
    Failed {
        /// The reason, for a person.
        reason: String,
    },
    /// All sites are ready, and no reset has failed since the last that succeeded.
    Ready,
}

/// The resets that run, and those that have failed.
#[derive(Debug, Clone, Default)]
pub struct ResetBoard {
    scopes: BTreeMap<ResetScope, ScopeState>,
}

impl ResetBoard {
    /// Returns a board with failures that an earlier daemon left.
    pub fn with_failures(failures: impl IntoIterator<Item = (ResetScope, String)>) -> Self {
        let failed = failures.into_iter().map(|(scope, reason)| (scope, ScopeState::Failed { reason }));
        Self { scopes: failed.collect() }
    }

    /// Begins a reset, or gives the one that runs another pass. A reset of all sites takes the place of failures of
    /// single ones.
    pub fn begin(&mut self, scope: &ResetScope) -> BeganReset {
        if let Some(ScopeState::Running { is_wanted_again }) = self.scopes.get_mut(scope) {
            *is_wanted_again = true;
            return BeganReset::AlreadyRunning;
        }
        if scope.site.is_none() {
            let is_replaced = |other: &ResetScope, state: &ScopeState| {
                scope.is_beside(other) && matches!(state, ScopeState::Failed { .. })
            };
            self.scopes.retain(|other, state| !is_replaced(other, state));
        }
        self.scopes.insert(scope.clone(), ScopeState::Running { is_wanted_again: false });
        BeganReset::Started
    }

    /// Whether a reset whose pass has succeeded must have another one. Asking clears the wish.
    pub fn takes_another_pass(&mut self, scope: &ResetScope) -> bool {
        match self.scopes.get_mut(scope) {
            Some(ScopeState::Running { is_wanted_again }) => std::mem::take(is_wanted_again),
            _ => false,
        }
    }

    /// Ends a reset that has succeeded. The caller has made sure that no other pass is wanted.
    pub fn complete(&mut self, scope: &ResetScope) {
        self.scopes.remove(scope);
    }

    /// Ends a reset that has failed.
    pub fn fail(&mut self, scope: &ResetScope, reason: String) {
        self.scopes.insert(scope.clone(), ScopeState::Failed { reason });
    }

    /// Returns the readiness of a slot of all sites, given their states. Without a site nothing is ready.
    pub fn of_all<'a>(
        &self,
        scope: &ResetScope,
        sites: impl IntoIterator<Item = (&'a SiteName, &'a InstanceState)>,
    ) -> SiteReadiness {
        let beside = || self.scopes.iter().filter(|(other, _)| scope.is_beside(other)).map(|(_, state)| state);
        if beside().any(|state| matches!(state, ScopeState::Running { .. })) {
            return SiteReadiness::Ongoing;
        }
        let failures = beside().filter_map(|state| match state {
            ScopeState::Failed { reason } => Some(reason.clone()),
            ScopeState::Running { .. } => None,
        });
        let mut failures: Vec<String> = failures.collect();
        let (mut is_ongoing, mut is_empty) = (false, true);
        for (name, state) in sites {
            is_empty = false;
            match of_state(name, state) {
                SiteReadiness::Ready => {}
                SiteReadiness::Ongoing => is_ongoing = true,
                SiteReadiness::Failed { reason } => failures.push(reason),
            }
        }
        if is_empty {
            failures.push("no site is up".to_owned());
        }
        match (failures.is_empty(), is_ongoing) {
            (false, _) => SiteReadiness::Failed { reason: failures.join("; ") },
            (true, true) => SiteReadiness::Ongoing,
            (true, false) => SiteReadiness::Ready,
        }
    }

    /// Returns the readiness of one site, given its state. A failed reset of all sites does not count: it says nothing
    /// about this one.
    pub fn of_site(&self, scope: &ResetScope, name: &SiteName, state: &InstanceState) -> SiteReadiness {
        let whole = ResetScope { site: None, ..scope.clone() };
        let is_running = |scope: &ResetScope| matches!(self.scopes.get(scope), Some(ScopeState::Running { .. }));
        if is_running(scope) || is_running(&whole) {
            return SiteReadiness::Ongoing;
        }
        match self.scopes.get(scope) {
            Some(ScopeState::Failed { reason }) => SiteReadiness::Failed { reason: reason.clone() },
            _ => of_state(name, state),
        }
    }
}

/// Returns the readiness of a site of which no reset was asked for here. One that fails its probes may recover, so
/// harnesses wait for it.
fn of_state(name: &SiteName, state: &InstanceState) -> SiteReadiness {
    match state {
        InstanceState::Ready => SiteReadiness::Ready,
        InstanceState::Preparing | InstanceState::Starting | InstanceState::Resetting | InstanceState::Unhealthy(_) => {
            SiteReadiness::Ongoing
        }
        InstanceState::Failed(failure) => {
            SiteReadiness::Failed { reason: format!("{name} has failed: {}; {}", failure.reason, failure.hint) }
        }
        InstanceState::Down | InstanceState::Stopping => {
            SiteReadiness::Failed { reason: format!("{name} is {}", state.name()) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arenad_model::ids::EnvironmentName;
    use arenad_model::instance::InstanceFailure;
    use proptest::prelude::*;

    fn scope(slot: u32, site: Option<&str>) -> ResetScope {
        let site = site.map(|name| SiteName::parse(name).expect("a name"));
        ResetScope { environment: EnvironmentName::parse("mini").expect("a name"), slot, site }
    }

    fn names() -> [SiteName; 2] {
        ["forum", "shop"].map(|name| SiteName::parse(name).expect("a name"))
    }

    fn ready(board: &ResetBoard, scope: &ResetScope) -> SiteReadiness {
        let names = names();
        board.of_all(scope, names.iter().map(|name| (name, &InstanceState::Ready)))
    }

    fn failed(reason: &str) -> SiteReadiness {
        SiteReadiness::Failed { reason: reason.to_owned() }
    }

    #[test]
    fn a_failure_stays_until_a_reset_succeeds() {
        let mut board = ResetBoard::default();
        let all = scope(1, None);
        assert_eq!(ready(&board, &all), SiteReadiness::Ready);
        assert_eq!(board.begin(&all), BeganReset::Started);
        assert_eq!(ready(&board, &all), SiteReadiness::Ongoing);
        board.fail(&all, "no disk".to_owned());
        assert_eq!(ready(&board, &all), failed("no disk"));
        assert_eq!(ready(&board, &scope(2, None)), SiteReadiness::Ready, "another slot");
        assert_eq!(board.begin(&all), BeganReset::Started);
        assert_eq!(ready(&board, &all), SiteReadiness::Ongoing, "a running one is told first");
        board.complete(&all);
        assert_eq!(ready(&board, &all), SiteReadiness::Ready);
        let left = ResetBoard::with_failures([(all.clone(), "the daemon ended".to_owned())]);
        assert_eq!(ready(&left, &all), failed("the daemon ended"));
    }

    #[test]
    fn a_client_that_asks_meanwhile_gets_another_pass() {
        let mut board = ResetBoard::default();
        let all = scope(1, None);
        board.begin(&all);
        assert_eq!(board.begin(&all), BeganReset::AlreadyRunning);
        assert!(board.takes_another_pass(&all));
        assert!(!board.takes_another_pass(&all), "one for all who asked during the first");
        assert_eq!(ready(&board, &all), SiteReadiness::Ongoing);
        board.complete(&all);
        assert_eq!(ready(&board, &all), SiteReadiness::Ready);
        assert_eq!(board.begin(&all), BeganReset::Started);
    }

    #[test]
    fn resets_of_single_sites_count_for_all() {
        let mut board = ResetBoard::default();
        let (all, forum) = (scope(1, None), scope(1, Some("forum")));
        let [name, other] = names();
        board.begin(&forum);
        assert_eq!(ready(&board, &all), SiteReadiness::Ongoing);
        board.fail(&forum, "it differs".to_owned());
        assert_eq!(ready(&board, &all), failed("it differs"));
        assert_eq!(board.of_site(&forum, &name, &InstanceState::Ready), failed("it differs"));
        let shop = scope(1, Some("shop"));
        assert_eq!(board.of_site(&shop, &other, &InstanceState::Ready), SiteReadiness::Ready);
        board.begin(&all);
        assert_eq!(board.of_site(&shop, &other, &InstanceState::Ready), SiteReadiness::Ongoing);
        board.complete(&all);
        assert_eq!(ready(&board, &all), SiteReadiness::Ready);
        assert_eq!(board.of_site(&forum, &name, &InstanceState::Ready), SiteReadiness::Ready, "all were reset");
        // A failure during the reset of all sites stays: the site may have had its turn before.
        board.begin(&all);
        board.begin(&forum);
        board.fail(&forum, "it differs".to_owned());
        board.complete(&all);
        assert_eq!(ready(&board, &all), failed("it differs"));
        board.begin(&all);
        board.fail(&all, "no disk".to_owned());
        assert_eq!(
            board.of_site(&shop, &other, &InstanceState::Ready),
            SiteReadiness::Ready,
            "it says nothing about it"
        );
    }

    #[test]
    fn sites_that_do_not_serve_are_not_ready() {
        let board = ResetBoard::default();
        let all = scope(1, None);
        let [name, other] = names();
        let failure = InstanceFailure { reason: "its disk is full".to_owned(), hint: "make room".to_owned() };
        let with = |state: &InstanceState| board.of_all(&all, [(&name, &InstanceState::Ready), (&other, state)]);
        for state in [
            InstanceState::Preparing,
            InstanceState::Starting,
            InstanceState::Resetting,
            InstanceState::Unhealthy(failure.clone()),
        ] {
            assert_eq!(with(&state), SiteReadiness::Ongoing, "{state:?}");
        }
        assert_eq!(with(&InstanceState::Failed(failure)), failed("shop has failed: its disk is full; make room"));
        assert_eq!(with(&InstanceState::Stopping), failed("shop is stopping"));
        assert_eq!(board.of_all(&all, []), failed("no site is up"));
    }

    proptest! {
        /// In every order of events, sites are reported as ready neither while a reset runs nor after one that failed,
        /// and each request for a reset has a pass that begins after it.
        #[test]
        fn ready_is_never_said_too_early(steps in proptest::collection::vec((0_u8..4, 0_usize..3), 0..60)) {
            let scopes = [scope(1, None), scope(1, Some("forum")), scope(1, Some("shop"))];
            let mut board = ResetBoard::default();
            // For each scope: whether a reset runs, whether another was asked for meanwhile, whether the last one
            // failed.
            let mut model = [(false, false, false); 3];
            for (step, index) in steps {
                let (scope, is_running) = (&scopes[index], model[index].0);
                match step {
                    0 | 1 => {
                        let began = board.begin(scope);
                        prop_assert_eq!(began == BeganReset::AlreadyRunning, is_running);
                        if is_running {
                            model[index].1 = true;
                        } else {
                            model[index] = (true, false, false);
                            if index == 0 {
                                model.iter_mut().for_each(|(_, _, has_failed)| *has_failed = false);
                            }
                        }
                    }
                    2 if is_running => {
                        let goes_on = board.takes_another_pass(scope);
                        prop_assert_eq!(goes_on, model[index].1);
                        if !goes_on {
                            board.complete(scope);
                        }
                        model[index] = (goes_on, false, false);
                    }
                    3 if is_running => {
                        board.fail(scope, "reason".to_owned());
                        model[index] = (false, false, true);
                    }
                    _ => {}
                }
                let expected = if model.iter().any(|(is_running, ..)| *is_running) {
                    SiteReadiness::Ongoing
                } else if model.iter().any(|(.., has_failed)| *has_failed) {
                    let count = model.iter().filter(|(.., has_failed)| *has_failed).count();
                    failed(&vec!["reason"; count].join("; "))
                } else {
                    SiteReadiness::Ready
                };
                prop_assert_eq!(ready(&board, &scopes[0]), expected);
            }
        }
    }
}
