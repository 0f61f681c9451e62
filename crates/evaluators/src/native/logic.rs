//! Verdicts of combinations. An open verdict may become either, so a combination is decided only if both would have the
//! same result.

use arenad_verdict::Verdict;

/// Every part has to pass; a failure decides.
#[must_use]
pub(super) fn all(verdicts: &[Verdict]) -> Verdict {
    // In the order of verdicts failures are the last. Open verdicts come before them, ordered by gravity.
    verdicts.iter().copied().max().unwrap_or(Verdict::Passed)
}

/// One part has to pass; a pass decides.
#[must_use]
pub(super) fn any(verdicts: &[Verdict]) -> Verdict {
    if verdicts.contains(&Verdict::Passed) {
        return Verdict::Passed;
    }
    let open = verdicts.iter().copied().filter(|verdict| *verdict != Verdict::Failed);
    open.max().unwrap_or(Verdict::Failed)
}

/// Negates a verdict; an open verdict stays open.
#[must_use]
pub(super) fn not(verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Passed => Verdict::Failed,
        Verdict::Failed => Verdict::Passed,
        Verdict::NeedsJudge | Verdict::Inconclusive | Verdict::Unsupported => verdict,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Verdict, all, any, not};

    const EVERY: [Verdict; 5] =
        [Verdict::Passed, Verdict::NeedsJudge, Verdict::Inconclusive, Verdict::Unsupported, Verdict::Failed];

    /// A combination of readings, each given by its index.
    #[derive(Debug, Clone)]
    enum ReadingTree {
        Look(usize),
        All(Vec<ReadingTree>),
        Any(Vec<ReadingTree>),
        Not(Box<ReadingTree>),
    }

    impl ReadingTree {
        fn verdict(&self, looks: &[Verdict]) -> Verdict {
            let of = |parts: &[ReadingTree]| parts.iter().map(|part| part.verdict(looks)).collect::<Vec<_>>();
            match self {
                Self::Look(number) => looks[*number],
                Self::All(parts) => all(&of(parts)),
                Self::Any(parts) => any(&of(parts)),
                Self::Not(part) => not(part.verdict(looks)),
            }
        }
    }

    const LOOKS: usize = 4;

    fn tree() -> impl Strategy<Value = ReadingTree> {
        let look = (0..LOOKS).prop_map(ReadingTree::Look);
        look.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 1..4).prop_map(ReadingTree::All),
                prop::collection::vec(inner.clone(), 1..4).prop_map(ReadingTree::Any),
                inner.prop_map(|part| ReadingTree::Not(Box::new(part))),
            ]
        })
    }

    fn looks() -> impl Strategy<Value = Vec<Verdict>> {
        prop::collection::vec(prop::sample::select(EVERY.to_vec()), LOOKS)
    }

    fn is_decided(verdict: Verdict) -> bool {
        matches!(verdict, Verdict::Passed | Verdict::Failed)
    }

    proptest! {
        #[test]
        fn a_decided_verdict_stays_whatever_the_open_looks_turn_out_to_be(
            tree in tree(), looks in looks(), turned in prop::collection::vec(proptest::bool::ANY, LOOKS),
        ) {
            let before = tree.verdict(&looks);
            let resolve = |(look, passes): (&Verdict, bool)| match is_decided(*look) {
                true => *look,
                false if passes => Verdict::Passed,
                false => Verdict::Failed,
            };
            let resolved: Vec<Verdict> = looks.iter().zip(turned).map(resolve).collect();
            let after = tree.verdict(&resolved);
            prop_assert!(is_decided(after));
            prop_assert!(!is_decided(before) || before == after);
        }

        #[test]
        fn none_of_is_all_not(looks in looks()) {
            let turned: Vec<Verdict> = looks.iter().map(|look| not(*look)).collect();
            prop_assert_eq!(not(any(&looks)), all(&turned));
            prop_assert_eq!(not(all(&looks)), any(&turned));
        }

        #[test]
        fn the_order_of_parts_does_not_count(mut looks in looks()) {
            let (first, second) = (all(&looks), any(&looks));
            looks.reverse();
            prop_assert_eq!((first, second), (all(&looks), any(&looks)));
        }
    }
}
