//! What to do next so that a site has its standbys. Pure: the instance's driver observes, asks, and does it.
//!
//! ```text
//!            Make            ready           Freeze
//!   nothing ──────► Making ─────────► Running ───────► Frozen
//!                     ▲  │ failed        │  ◄───────      │
//!               Renew │  ▼               │    Thaw        │
//!                     Used ◄──────── serving ◄────────────┘   a reset takes the best one into service
//! ```
//! What a standby costs is memory, and processor time while it boots, so both are budgets. A failure delays the next attempt
//! of this site alone.

use std::time::Duration;

use super::snapshot::SnapshotId;

/// The pause after the first failure in a row; each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
/// No pause is longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// What a member of the pool is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is being made, or brought back to the snapshot.
    Making,
    /// Equal to the snapshot, ready, and its processes run.
    Running,
    /// Equal to the snapshot, ready, and its processes do not move.
    Frozen,
    /// It has served and holds what its clients wrote.
    Used {
        /// How often it has been brought back since its containers were made.
        renewals: u32,
    },
}

impl Standing {
    /// The word in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Making => "making",
            Self::Running => "running",
            Self::Frozen => "frozen",
            Self::Used { .. } => "used",
        }
    }
}

/// One member of the pool as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Names it within its instance.
    pub generation: u64,
    /// The snapshot that it is of; `None` for one that is being removed.
    pub snapshot: Option<SnapshotId>,
    /// What it is doing.
    pub standing: Standing,
}

/// What is wanted of the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// How many standbys.
    pub count: usize,
    /// Of which snapshot.
    pub snapshot: &'a SnapshotId,
    /// Whether a reset is to be expected soon, so that one of them should be running already.
    pub expects_reset: bool,
    /// How often containers may be brought back before they are made anew; 0: never.
    pub most_renewals: u32,
}

/// What there is to spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Memory that nothing uses, in bytes.
    pub memory_free: u64,
    /// What one standby is expected to take, in bytes.
    pub memory_each: u64,
    /// Memory that standbys leave to everything else, in bytes.
    pub memory_reserve: u64,
    /// Failures to make one in a row, and the time since the last.
    pub failures: Option<(u32, Duration)>,
}

/// The next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolAction {
    /// Make a standby from the snapshot.
    Make,
    /// Bring a used one back to the snapshot.
    Renew(u64),
    /// Remove one.
    Discard(u64),
    /// Stop its processes where they are.
    Freeze(u64),
    /// Let them go on.
    Thaw(u64),
}

/// Why there are fewer standbys than wanted, while nothing is being done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lack {
    /// Of memory, in bytes.
    Memory {
        /// What one more would take, with what is left to others.
        needed: u64,
        /// What there is.
        free: u64,
    },
    /// The last attempt failed; the next comes later.
    Pause(Duration),
}

/// What to do now, and what stands in the way of more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// In this order.
    pub actions: Vec<PoolAction>,
    /// If fewer are wanted than can be had.
    pub lack: Option<Lack>,
}

/// Plans the next steps.
#[must_use]
pub fn plan(wanted: Wanted<'_>, members: &[Member], budget: Budget) -> Plan {
    let mut plan = Plan::default();
    let mut coming = 0;
    let mut ready: Vec<&Member> = Vec::new();
    for member in members {
        let is_current = member.snapshot.as_ref() == Some(wanted.snapshot);
        match member.standing {
            // What is being made cannot be stopped half way; it goes when it is done.
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
            // One at a time: what it takes shows before the next is begun.
            None if coming == 0 => plan.actions.push(PoolAction::Make),
            None => {}
            some => plan.lack = some,
        }
    }
    let keep_running = usize::from(wanted.expects_reset);
    let running: Vec<&&Member> = ready.iter().filter(|member| member.standing == Standing::Running).collect();
    plan.actions.extend(running.iter().skip(keep_running).map(|member| PoolAction::Freeze(member.generation)));
    if running.len() < keep_running
        && let Some(frozen) = ready.iter().find(|member| member.standing == Standing::Frozen)
    {
        plan.actions.push(PoolAction::Thaw(frozen.generation));
    }
    plan
}

fn lack(budget: Budget) -> Option<Lack> {
    if let Some((failures, since)) = budget.failures
        && let Some(left) = pause(failures).checked_sub(since).filter(|left| !left.is_zero())
    {
        return Some(Lack::Pause(left));
    }
    let needed = budget.memory_each.saturating_add(budget.memory_reserve);
    (budget.memory_free < needed).then_some(Lack::Memory { needed, free: budget.memory_free })
}

fn pause(failures: u32) -> Duration {
    match failures {
        0 => Duration::ZERO,
        count => FIRST_PAUSE.saturating_mul(1 << (count - 1).min(10)).min(LONGEST_PAUSE),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;

    const MEMORY_RESERVE: u64 = 512 << 20;

    const PLENTY: Budget =
        Budget { memory_free: 64 << 30, memory_each: 1 << 28, memory_reserve: MEMORY_RESERVE, failures: None };

    static NOW: LazyLock<SnapshotId> = LazyLock::new(|| "now".to_owned().into());

    fn wanted(count: usize) -> Wanted<'static> {
        Wanted { count, snapshot: &NOW, expects_reset: false, most_renewals: 3 }
    }

    fn member(generation: u64, standing: Standing) -> Member {
        Member { generation, snapshot: Some(NOW.clone()), standing }
    }

    #[test]
    fn an_empty_pool_is_filled_one_by_one() {
        assert_eq!(plan(wanted(2), &[], PLENTY).actions, [PoolAction::Make]);
        assert_eq!(plan(wanted(2), &[member(1, Standing::Making)], PLENTY).actions, []);
        assert_eq!(plan(wanted(0), &[], PLENTY), Plan::default());
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
        let old = Member { snapshot: Some("before".to_owned().into()), ..member(1, Standing::Frozen) };
        assert_eq!(plan(wanted(1), &[old], PLENTY).actions, [PoolAction::Discard(1), PoolAction::Make]);
    }

    #[test]
    fn one_runs_when_a_reset_is_expected_and_none_otherwise() {
        let both = [member(1, Standing::Frozen), member(2, Standing::Running)];
        assert_eq!(plan(wanted(2), &both, PLENTY).actions, [PoolAction::Freeze(2)]);
        let expecting = Wanted { expects_reset: true, ..wanted(2) };
        assert_eq!(plan(expecting, &both, PLENTY).actions, []);
        assert_eq!(plan(expecting, &[member(1, Standing::Frozen)], PLENTY).actions[1], PoolAction::Thaw(1));
    }

    #[test]
    fn no_memory_no_standby_and_it_says_so() {
        let poor = Budget { memory_free: 600 << 20, ..PLENTY };
        let plan = plan(wanted(1), &[], poor);
        assert_eq!(plan.actions, []);
        assert_eq!(plan.lack, Some(Lack::Memory { needed: (1 << 28) + MEMORY_RESERVE, free: 600 << 20 }));
    }

    #[test]
    fn failures_delay_the_next_attempt_and_only_that() {
        let failed = |failures, seconds| Budget { failures: Some((failures, Duration::from_secs(seconds))), ..PLENTY };
        assert_eq!(plan(wanted(1), &[], failed(1, 4)).lack, Some(Lack::Pause(Duration::from_secs(1))));
        assert_eq!(plan(wanted(1), &[], failed(1, 5)).actions, [PoolAction::Make]);
        assert_eq!(plan(wanted(1), &[], failed(3, 15)).lack, Some(Lack::Pause(Duration::from_secs(5))));
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

    fn members() -> impl Strategy<Value = Vec<Member>> {
        proptest::collection::vec((standing(), prop_oneof![Just("now"), Just("before")]), 0..8).prop_map(|all| {
            let numbered = all.into_iter().zip(1..);
            numbered
                .map(|((standing, snapshot), generation)| Member {
                    generation,
                    snapshot: Some(snapshot.to_owned().into()),
                    standing,
                })
                .collect()
        })
    }

    /// What there is when the actions have been done and have come to their end.
    fn done(members: &[Member], plan: &Plan) -> Vec<Member> {
        let mut after = members.to_vec();
        for action in &plan.actions {
            let set = |after: &mut Vec<Member>, generation: u64, standing| {
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
        /// Whatever there is, doing what is planned leads to what is wanted, and then there is nothing left to do.
        #[test]
        fn plans_come_to_an_end(count in 0..4usize, expects_reset: bool, most_renewals in 0..4u32, start in members()) {
            let wanted = Wanted { expects_reset, most_renewals, ..wanted(count) };
            let mut now = start;
            for _ in 0..20 {
                now = done(&now, &plan(wanted, &now, PLENTY));
            }
            prop_assert_eq!(plan(wanted, &now, PLENTY), Plan::default());
            prop_assert_eq!(now.len(), count);
            prop_assert!(now.iter().all(|member| member.snapshot.as_ref() == Some(&*NOW)));
            let running = now.iter().filter(|member| member.standing == Standing::Running).count();
            prop_assert_eq!(running, usize::from(expects_reset && count > 0));
        }

        /// No member is told two things at once, none of those being made is touched, and no more are begun than are wanted.
        #[test]
        fn plans_are_consistent(count in 0..4usize, expects_reset: bool, memory_free: u64, start in members()) {
            let wanted = Wanted { expects_reset, ..wanted(count) };
            let plan = plan(wanted, &start, Budget { memory_free, ..PLENTY });
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
            let current = |member: &&Member| member.snapshot.as_ref() == Some(&*NOW);
            let ready = start.iter().filter(current).filter(|member| matches!(member.standing, Standing::Running | Standing::Frozen));
            prop_assert!(begun == 0 || begun + ready.count() + making.filter(current).count() <= count);
            if memory_free < PLENTY.memory_each + MEMORY_RESERVE {
                prop_assert!(!plan.actions.contains(&PoolAction::Make));
            }
        }
    }
}
