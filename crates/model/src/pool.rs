//! Planning of a site's standbys, which all of its slots share. The plan is a pure function: the keeper of the pool
//! observes the pool, requests a plan, and executes it.
//!
//! ```text
//!            Make            ready           Freeze
//!   nothing ──────► Making ─────────► Running ───────► Frozen
//!                     ▲  │ failed        │  ◄───────      │
//!               Renew │  ▼               │    Thaw        │
//!                     Used ◄──────── serving ◄────────────┘   a reset takes the best one into service
//! ```
//! A standby costs memory, and processor time while it boots, so the plan has a budget for both. A failure delays only
//! the next attempt of the same site.

use std::time::Duration;

use super::snapshot::SnapshotId;

/// The pause after the first failure. Each further consecutive failure doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
/// The upper limit of the pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// The number of slots for which a pool has one standby at least.
const SLOTS_PER_STANDBY: usize = 4;

/// Returns the number of standbys of a site with this many slots. `configured` is the number that the definition states; it
/// suffices for up to four slots, and each further four have another one. Zero stays zero.
#[must_use]
pub fn pool_size(configured: usize, slots: usize) -> usize {
    if configured == 0 { 0 } else { configured.max(slots.div_ceil(SLOTS_PER_STANDBY)) }
}

/// The condition of a member of the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The member is being created, or brought back to the snapshot.
    Making,
    /// The member equals the snapshot, is ready, and its processes run.
    Running,
    /// The member equals the snapshot, is ready, and its processes are paused.
    Frozen,
    /// The member has served and contains its clients' writes.
    Used {
        /// The number of times that the containers have been brought back since they were created.
        renewals: u32,
    },
}

impl Standing {
    /// Returns the name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Making => "making",
            Self::Running => "running",
            Self::Frozen => "frozen",
            Self::Used { .. } => "used",
        }
    }
}

/// One member of the pool, as observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolMember {
    /// The generation, which identifies the member within its site.
    pub generation: u64,
    /// The snapshot from which the member was created; `None` while the member is being removed.
    pub snapshot: Option<SnapshotId>,
    /// The condition of the member.
    pub standing: Standing,
}

/// The intended state of the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolIntent<'a> {
    /// The number of standbys.
    pub count: usize,
    /// The snapshot that the standbys must equal.
    pub snapshot: &'a SnapshotId,
    /// Whether a reset is expected soon, so that one standby should already be running.
    pub expects_reset: bool,
    /// Whether standbys may be paused. If not, all of them run.
    pub may_pause: bool,
    /// The number of times that containers may be brought back before they are recreated. Zero means never.
    pub most_renewals: u32,
}

/// The resources that the pool may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolBudget {
    /// The unused memory of the host, in bytes.
    pub memory_free: u64,
    /// The memory that one standby is expected to use, in bytes.
    pub memory_each: u64,
    /// The memory that standbys must leave unused, in bytes.
    pub memory_reserve: u64,
    /// The number of consecutive failures to create a standby, and the time since the last one.
    pub failures: Option<(u32, Duration)>,
}

/// An action on the pool. The numbers are the generations of members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolAction {
    /// Create a standby from the snapshot.
    Make,
    /// Bring a used member back to the snapshot.
    Renew(u64),
    /// Remove the member of this generation.
    Discard(u64),
    /// Pause the processes of a member.
    Freeze(u64),
    /// Resume the processes of a member.
    Thaw(u64),
}

/// The reason why there are fewer standbys than intended while no action increases their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StandbyShortage {
    /// The host has too little unused memory.
    Memory {
        /// The memory that another standby and the reserve need, in bytes.
        needed: u64,
        /// The unused memory, in bytes.
        free: u64,
    },
    /// The last attempt failed, and the next one starts after this time.
    Pause(Duration),
}

/// The next actions, and the obstacle to further ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PoolPlan {
    /// The actions, in order of execution.
    pub actions: Vec<PoolAction>,
    /// The reason why no standby is created although more are intended.
    pub lack: Option<StandbyShortage>,
}

/// Plans the next actions.
#[must_use]
pub fn plan(wanted: PoolIntent<'_>, members: &[PoolMember], budget: PoolBudget) -> PoolPlan {
    let mut plan = PoolPlan::default();
    let mut coming = 0;
    let mut ready: Vec<&PoolMember> = Vec::new();
    for member in members {
        let is_current = member.snapshot.as_ref() == Some(wanted.snapshot);
        match member.standing {
            // The creation of a member cannot be interrupted, so an obsolete one is removed when it is complete.
            Standing::Making => coming += usize::from(is_current),
            Standing::Running | Standing::Frozen if is_current && ready.len() < wanted.count => ready.push(member),
            Standing::Running | Standing::Frozen => plan.actions.push(PoolAction::Discard(member.generation)),
            Standing::Used { .. } => {}
        }
    }
    for member in members {
        let Standing::Used { renewals } = member.standing else { continue };
        let may_renew = member.snapshot.as_ref() == Some(wanted.snapshot) && renewals < wanted.most_renewals;
        if may_renew && ready.len() + coming < wanted.count {
            coming += 1;
            plan.actions.push(PoolAction::Renew(member.generation));
        } else {
            plan.actions.push(PoolAction::Discard(member.generation));
        }
    }
    if ready.len() + coming < wanted.count {
        match lack(budget) {
            // Only one standby is created at a time, so that its actual memory use is visible before the next decision.
            None if coming == 0 => plan.actions.push(PoolAction::Make),
            None => {}
            some => plan.lack = some,
        }
    }
    let keep_running = if wanted.may_pause { usize::from(wanted.expects_reset) } else { wanted.count };
    let running: Vec<&&PoolMember> = ready.iter().filter(|member| member.standing == Standing::Running).collect();
    plan.actions.extend(running.iter().skip(keep_running).map(|member| PoolAction::Freeze(member.generation)));
    let paused = ready.iter().filter(|member| member.standing == Standing::Frozen);
    let resumed = paused.take(keep_running.saturating_sub(running.len()));
    plan.actions.extend(resumed.map(|member| PoolAction::Thaw(member.generation)));
    plan
}

fn lack(budget: PoolBudget) -> Option<StandbyShortage> {
    if let Some(left) = budget.failures.and_then(|(failures, since)| retry_pause(failures, since)) {
        return Some(StandbyShortage::Pause(left));
    }
    let needed = budget.memory_each.saturating_add(budget.memory_reserve);
    (budget.memory_free < needed).then_some(StandbyShortage::Memory { needed, free: budget.memory_free })
}

/// Returns the time until the next attempt, `since` the last of consecutive failures, or `None` if the attempt is due.
pub(crate) fn retry_pause(failures: u32, since: Duration) -> Option<Duration> {
    let pause = match failures {
        0 => Duration::ZERO,
        count => FIRST_PAUSE.saturating_mul(1 << (count - 1).min(10)).min(LONGEST_PAUSE),
    };
    pause.checked_sub(since).filter(|left| !left.is_zero())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;

    const MEMORY_RESERVE: u64 = 512 << 20;

    const PLENTY: PoolBudget =
        PoolBudget { memory_free: 64 << 30, memory_each: 1 << 28, memory_reserve: MEMORY_RESERVE, failures: None };

    static NOW: LazyLock<SnapshotId> = LazyLock::new(|| "now".to_owned().into());

    fn wanted(count: usize) -> PoolIntent<'static> {
        PoolIntent { count, snapshot: &NOW, expects_reset: false, may_pause: true, most_renewals: 3 }
    }

    fn member(generation: u64, standing: Standing) -> PoolMember {
        PoolMember { generation, snapshot: Some(NOW.clone()), standing }
    }

    #[test]
    fn a_pool_grows_more_slowly_than_the_number_of_slots() {
        let sizes = |configured| [1, 2, 4, 5, 8, 9, 16].map(|slots| pool_size(configured, slots));
        assert_eq!(sizes(0), [0; 7]);
        assert_eq!(sizes(1), [1, 1, 1, 2, 2, 3, 4]);
        assert_eq!(sizes(3), [3, 3, 3, 3, 3, 3, 4]);
        assert_eq!(pool_size(2, 0), 2);
    }

    #[test]
    fn an_empty_pool_is_filled_one_by_one() {
        assert_eq!(plan(wanted(2), &[], PLENTY).actions, [PoolAction::Make]);
        assert_eq!(plan(wanted(2), &[member(1, Standing::Making)], PLENTY).actions, []);
        assert_eq!(plan(wanted(0), &[], PLENTY), PoolPlan::default());
    }

    #[test]
    fn what_served_comes_back_instead_of_a_new_one_until_it_is_worn() {
        let used = |renewals| member(1, Standing::Used { renewals });
        assert_eq!(plan(wanted(1), &[used(2)], PLENTY).actions, [PoolAction::Renew(1)]);
        assert_eq!(plan(wanted(1), &[used(3)], PLENTY).actions, [PoolAction::Discard(1), PoolAction::Make]);
        let full = [used(0), member(2, Standing::Frozen)];
        assert_eq!(plan(wanted(1), &full, PLENTY).actions, [PoolAction::Discard(1)]);
    }

    #[test]
    fn standbys_of_another_snapshot_go() {
        let old = PoolMember { snapshot: Some("before".to_owned().into()), ..member(1, Standing::Frozen) };
        assert_eq!(plan(wanted(1), &[old], PLENTY).actions, [PoolAction::Discard(1), PoolAction::Make]);
    }

    #[test]
    fn one_runs_when_a_reset_is_expected_and_none_otherwise() {
        let both = [member(1, Standing::Frozen), member(2, Standing::Running)];
        assert_eq!(plan(wanted(2), &both, PLENTY).actions, [PoolAction::Freeze(2)]);
        let expecting = PoolIntent { expects_reset: true, ..wanted(2) };
        assert_eq!(plan(expecting, &both, PLENTY).actions, []);
        assert_eq!(plan(expecting, &[member(1, Standing::Frozen)], PLENTY).actions[1], PoolAction::Thaw(1));
    }

    #[test]
    fn all_run_if_none_may_be_paused() {
        let both = [member(1, Standing::Frozen), member(2, Standing::Running), member(3, Standing::Frozen)];
        let running = PoolIntent { may_pause: false, ..wanted(3) };
        assert_eq!(plan(running, &both, PLENTY).actions, [PoolAction::Thaw(1), PoolAction::Thaw(3)]);
    }

    #[test]
    fn no_memory_no_standby_and_it_says_so() {
        let poor = PoolBudget { memory_free: 600 << 20, ..PLENTY };
        let plan = plan(wanted(1), &[], poor);
        assert_eq!(plan.actions, []);
        assert_eq!(plan.lack, Some(StandbyShortage::Memory { needed: (1 << 28) + MEMORY_RESERVE, free: 600 << 20 }));
    }

    #[test]
    fn failures_delay_the_next_attempt_and_only_that() {
        let failed =
            |failures, seconds| PoolBudget { failures: Some((failures, Duration::from_secs(seconds))), ..PLENTY };
        assert_eq!(plan(wanted(1), &[], failed(1, 4)).lack, Some(StandbyShortage::Pause(Duration::from_secs(1))));
        assert_eq!(plan(wanted(1), &[], failed(1, 5)).actions, [PoolAction::Make]);
        assert_eq!(plan(wanted(1), &[], failed(3, 15)).lack, Some(StandbyShortage::Pause(Duration::from_secs(5))));
        assert_eq!(plan(wanted(1), &[], failed(u32::MAX, 300)).actions, [PoolAction::Make]);
    }

    fn standing() -> impl Strategy<Value = Standing> {
        prop_oneof![
            Just(Standing::Making),
            Just(Standing::Running),
            Just(Standing::Frozen),
            (0..5u32).prop_map(|renewals| Standing::Used { renewals }),
        ]
    }

    fn members() -> impl Strategy<Value = Vec<PoolMember>> {
        proptest::collection::vec((standing(), prop_oneof![Just("now"), Just("before")]), 0..8).prop_map(|all| {
            let numbered = all.into_iter().zip(1..);
            numbered
                .map(|((standing, snapshot), generation)| PoolMember {
                    generation,
                    snapshot: Some(snapshot.to_owned().into()),
                    standing,
                })
                .collect()
        })
    }

    /// Returns the pool after all actions have completed.
    fn done(members: &[PoolMember], plan: &PoolPlan) -> Vec<PoolMember> {
        let mut after = members.to_vec();
        for action in &plan.actions {
            let set = |after: &mut Vec<PoolMember>, generation: u64, standing| {
                for member in after.iter_mut().filter(|member| member.generation == generation) {
                    member.standing = standing;
                }
            };
            match *action {
                PoolAction::Make => {
                    let next = after.iter().map(|member| member.generation).max().unwrap_or_default() + 1;
                    after.push(member(next, Standing::Running));
                }
                PoolAction::Renew(generation) | PoolAction::Thaw(generation) => {
                    set(&mut after, generation, Standing::Running);
                }
                PoolAction::Freeze(generation) => set(&mut after, generation, Standing::Frozen),
                PoolAction::Discard(generation) => after.retain(|member| member.generation != generation),
            }
        }
        for member in after.iter_mut().filter(|member| member.standing == Standing::Making) {
            member.standing = Standing::Running;
        }
        after
    }

    proptest! {
        /// From any pool, the plans lead to the intended pool, after which no actions are left.
        #[test]
        fn plans_come_to_an_end(
            count in 0..4usize, expects_reset: bool, may_pause: bool, most_renewals in 0..4u32, start in members(),
        ) {
            let wanted = PoolIntent { expects_reset, may_pause, most_renewals, ..wanted(count) };
            let mut now = start;
            for _ in 0..20 {
                now = done(&now, &plan(wanted, &now, PLENTY));
            }
            prop_assert_eq!(plan(wanted, &now, PLENTY), PoolPlan::default());
            prop_assert_eq!(now.len(), count);
            prop_assert!(now.iter().all(|member| member.snapshot.as_ref() == Some(&*NOW)));
            let running = now.iter().filter(|member| member.standing == Standing::Running).count();
            let must_run = if may_pause { usize::from(expects_reset).min(count) } else { count };
            prop_assert_eq!(running, must_run);
        }

        /// No member gets two actions at once, no member in creation gets any, and no more creations begin than
        /// intended.
        #[test]
        fn plans_are_consistent(
            count in 0..4usize, expects_reset: bool, may_pause: bool, memory_free: u64, start in members(),
        ) {
            let wanted = PoolIntent { expects_reset, may_pause, ..wanted(count) };
            let plan = plan(wanted, &start, PoolBudget { memory_free, ..PLENTY });
            let mut told = BTreeSet::new();
            let mut begun = 0;
            for action in &plan.actions {
                match action {
                    PoolAction::Make => begun += 1,
                    PoolAction::Renew(generation) => {
                        begun += 1;
                        prop_assert!(told.insert(*generation));
                    }
                    PoolAction::Discard(generation) | PoolAction::Freeze(generation) | PoolAction::Thaw(generation) => {
                        prop_assert!(told.insert(*generation));
                    }
                }
            }
            let making = start.iter().filter(|member| member.standing == Standing::Making);
            prop_assert!(making.clone().all(|member| !told.contains(&member.generation)));
            let current = |member: &&PoolMember| member.snapshot.as_ref() == Some(&*NOW);
            let ready = start.iter().filter(current).filter(|member| matches!(member.standing, Standing::Running | Standing::Frozen));
            prop_assert!(begun == 0 || begun + ready.count() + making.filter(current).count() <= count);
            if memory_free < PLENTY.memory_each + MEMORY_RESERVE {
                prop_assert!(!plan.actions.contains(&PoolAction::Make));
            }
        }
    }
}
