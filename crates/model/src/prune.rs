//! Choice of the baselines that may be removed to free space. Snapshots that a user named, and those that instances
//! start from, are never removed.

use std::collections::BTreeSet;
use std::time::Duration;

/// A snapshot with the properties that the choice depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PruneCandidate {
    /// The environment and the site that the snapshot belongs to.
    pub site: (String, String),
    /// Whether a user named the snapshot.
    pub is_named: bool,
    /// Whether an instance starts from the snapshot, or an operation may be about to use it.
    pub is_used: bool,
    /// The time since the snapshot was taken.
    pub age: Duration,
    /// The space that the snapshot occupies, in bytes.
    pub bytes: u64,
}

/// The limits beyond which unused baselines are removed in addition to those that a newer one has replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PruneBudget {
    /// The maximum age. Unused baselines that are older are removed.
    pub older: Option<Duration>,
    /// The maximum size of all snapshots together, in bytes. Unused baselines are removed, the oldest first, until the
    /// remaining snapshots fit or no unused baseline is left.
    pub keep_bytes: Option<u64>,
}

/// The reason why a baseline may be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// A newer baseline of the same site has replaced it.
    Replaced,
    /// The baseline is older than the requested maximum age.
    Old,
    /// All snapshots together exceed the requested maximum size.
    OverBudget,
}

impl Reason {
    /// Returns the reason as text for messages.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Replaced => "a newer baseline has taken its place",
            Self::Old => "nothing uses it, and it is older than --older",
            Self::OverBudget => "nothing uses it, and snapshots take more than --keep-bytes",
        }
    }
}

/// Chooses the snapshots to remove: their positions in `snapshots` and the reasons. Those that have been replaced or
/// are too old come first, then those over the size budget, each from the oldest.
pub fn choose(snapshots: &[PruneCandidate], budget: PruneBudget) -> Vec<(usize, Reason)> {
    let mut by_age: Vec<usize> = (0..snapshots.len()).collect();
    by_age.sort_by_key(|index| std::cmp::Reverse(snapshots[*index].age));
    let newest: BTreeSet<usize> = snapshots
        .iter()
        .filter(|snapshot| !snapshot.is_named)
        .map(|snapshot| &snapshot.site)
        .collect::<BTreeSet<_>>()
        .into_iter()
        .filter_map(|site| {
            by_age.iter().rev().copied().find(|index| !snapshots[*index].is_named && snapshots[*index].site == *site)
        })
        .collect();
    let is_free = |index: &usize| !snapshots[*index].is_named && !snapshots[*index].is_used;
    let mut chosen: Vec<(usize, Reason)> = Vec::new();
    for index in by_age.iter().copied().filter(is_free) {
        if !newest.contains(&index) {
            chosen.push((index, Reason::Replaced));
        } else if budget.older.is_some_and(|older| snapshots[index].age > older) {
            chosen.push((index, Reason::Old));
        }
    }
    let Some(keep_bytes) = budget.keep_bytes else { return chosen };
    let goes = |chosen: &[(usize, Reason)], index: usize| chosen.iter().any(|(gone, _)| *gone == index);
    let kept = |index: &usize| !goes(&chosen, *index);
    let mut rest =
        (0..snapshots.len()).filter(kept).fold(0_u64, |sum, index| sum.saturating_add(snapshots[index].bytes));
    for index in by_age.into_iter().filter(is_free) {
        if rest > keep_bytes && !goes(&chosen, index) {
            rest = rest.saturating_sub(snapshots[index].bytes);
            chosen.push((index, Reason::OverBudget));
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn baseline(site: &str, days: u64, bytes: u64) -> PruneCandidate {
        PruneCandidate {
            site: ("mini".to_owned(), site.to_owned()),
            is_named: false,
            is_used: false,
            age: Duration::from_secs(days * 86_400),
            bytes,
        }
    }

    #[test]
    fn only_replaced_baselines_go_unless_more_is_wished() {
        let snapshots = [
            baseline("shop", 9, 10),
            baseline("shop", 1, 10),
            baseline("forum", 5, 10),
            PruneCandidate { is_used: true, ..baseline("forum", 30, 10) },
            PruneCandidate { is_named: true, ..baseline("forum", 40, 10) },
        ];
        assert_eq!(choose(&snapshots, PruneBudget::default()), [(0, Reason::Replaced)]);
        let older = PruneBudget { older: Some(Duration::from_secs(3 * 86_400)), keep_bytes: None };
        assert_eq!(choose(&snapshots, older), [(0, Reason::Replaced), (2, Reason::Old)]);
        let budget = |keep_bytes| PruneBudget { older: None, keep_bytes: Some(keep_bytes) };
        assert_eq!(choose(&snapshots, budget(40)), [(0, Reason::Replaced)]);
        assert_eq!(choose(&snapshots, budget(39)), [(0, Reason::Replaced), (2, Reason::OverBudget)]);
        let all = [(0, Reason::Replaced), (2, Reason::OverBudget), (1, Reason::OverBudget)];
        assert_eq!(choose(&snapshots, budget(0)), all);
    }

    #[test]
    fn a_named_snapshot_replaces_no_baseline() {
        let snapshots = [baseline("shop", 9, 10), PruneCandidate { is_named: true, ..baseline("shop", 1, 10) }];
        assert_eq!(choose(&snapshots, PruneBudget::default()), []);
    }

    fn candidate() -> impl Strategy<Value = PruneCandidate> {
        (0..4_u8, any::<bool>(), any::<bool>(), 0..50_u64, 0..100_u64).prop_map(
            |(site, is_named, is_used, days, bytes)| PruneCandidate {
                is_named,
                is_used,
                ..baseline(&site.to_string(), days, bytes)
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_named_or_used_never_goes_and_nothing_goes_twice(
            snapshots in prop::collection::vec(candidate(), 0..20),
            older in prop::option::of(0..50_u64),
            keep_bytes in prop::option::of(0..1000_u64),
        ) {
            let older = older.map(|days| Duration::from_secs(days * 86_400));
            let chosen = choose(&snapshots, PruneBudget { older, keep_bytes });
            let mut seen = BTreeSet::new();
            for (index, _) in &chosen {
                prop_assert!(!snapshots[*index].is_named && !snapshots[*index].is_used && seen.insert(*index));
            }
            let left = |index: &usize| !seen.contains(index);
            let rest: u64 = (0..snapshots.len()).filter(left).map(|index| snapshots[index].bytes).sum();
            let is_free = |index: usize| !snapshots[index].is_named && !snapshots[index].is_used;
            let all_went = (0..snapshots.len()).filter(left).all(|index| !is_free(index));
            prop_assert!(keep_bytes.is_none_or(|keep| rest <= keep) || all_went);
        }
    }
}
