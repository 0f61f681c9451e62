//! The candidate generator's measures. Source: `CERerankingEvaluator` in `src/candidate_generation/metric.py`.

use std::collections::BTreeMap;

/// A candidate with the score that the generator gave it.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoredCandidate {
    /// Identifier of the element.
    pub id: String,
    /// Its text. Candidates with the same text share a score: that of the last one.
    pub text: String,
    /// The score that the generator gave.
    pub score: f64,
}

/// The candidates of one step.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RankedStep {
    /// The candidates on which acting is right.
    pub positive: Vec<ScoredCandidate>,
    /// The candidates on which acting is wrong.
    pub negative: Vec<ScoredCandidate>,
}

/// The numbers of best candidates for which recall is measured.
pub const CUTS: [usize; 6] = [3, 5, 10, 20, 50, 100];

/// The measures of a ranking, and the place of each candidate.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranking {
    /// `mrr`, `acc` and `recall@k`.
    pub results: BTreeMap<String, f64>,
    /// For each step, the place of each candidate.
    pub ranks: Vec<BTreeMap<String, usize>>,
}

/// Ranks the candidates of steps by their scores. `k` limits the reciprocal rank. `None` without steps, at which the
/// benchmark's code raises an error.
#[must_use]
pub fn rank_candidates(steps: &[RankedStep], k: usize) -> Option<Ranking> {
    if steps.is_empty() {
        return None;
    }
    let mut sums: BTreeMap<String, f64> = ["mrr", "acc"].map(|name| (name.to_owned(), 0.0)).into();
    sums.extend(CUTS.map(|cut| (format!("recall@{cut}"), 0.0)));
    let mut ranks = Vec::new();
    for step in steps {
        let all: Vec<&ScoredCandidate> = step.positive.iter().chain(&step.negative).collect();
        let mut by_text: BTreeMap<&str, f64> = BTreeMap::new();
        for candidate in &all {
            by_text.insert(&candidate.text, candidate.score);
        }
        let keys: Vec<f64> = all.iter().map(|candidate| -by_text[candidate.text.as_str()]).collect();
        let order = argsort(&keys);
        ranks.push(order.iter().enumerate().map(|(rank, at)| (all[*at].id.clone(), rank)).collect());
        let first = order.iter().take(k.max(100)).position(|at| *at < step.positive.len());
        let Some(first) = first else { continue };
        let mut add = |name: String, value: f64| *sums.entry(name).or_default() += value;
        add("acc".to_owned(), if first == 0 { 1.0 } else { 0.0 });
        #[expect(clippy::cast_precision_loss, reason = "ranks are small")]
        add("mrr".to_owned(), if first < k { 1.0 / (first + 1) as f64 } else { 0.0 });
        for cut in CUTS {
            add(format!("recall@{cut}"), if first < cut { 1.0 } else { 0.0 });
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "a run has few steps")]
    let count = steps.len() as f64;
    Some(Ranking { results: sums.into_iter().map(|(name, sum)| (name, sum / count)).collect(), ranks })
}

/// Partitions that are not longer than this are sorted by insertion.
const SMALL: usize = 16;

/// numpy's `argsort`: a quicksort that is not stable, so equal scores keep their order only in short lists. Source:
/// `aquicksort_` in `numpy/core/src/npysort/quicksort.cpp`. The depth at which numpy changes to a heap sort is not
/// reached by scores of models.
fn argsort(values: &[f64]) -> Vec<usize> {
    // NaN comes last.
    let less = |one: f64, other: f64| one < other || (other.is_nan() && !one.is_nan());
    let mut order: Vec<usize> = (0..values.len()).collect();
    let mut open = Vec::new();
    if values.is_empty() {
        return order;
    }
    let (mut left, mut right) = (0, values.len() - 1);
    loop {
        while right - left > SMALL - 1 {
            let middle = left + (right - left) / 2;
            let value = |order: &[usize], at: usize| values[order[at]];
            if less(value(&order, middle), value(&order, left)) {
                order.swap(middle, left);
            }
            if less(value(&order, right), value(&order, middle)) {
                order.swap(right, middle);
            }
            if less(value(&order, middle), value(&order, left)) {
                order.swap(middle, left);
            }
            let pivot = value(&order, middle);
            let (mut i, mut j) = (left, right - 1);
            order.swap(middle, j);
            loop {
                i += 1;
                while less(value(&order, i), pivot) {
                    i += 1;
                }
                j -= 1;
                while less(pivot, value(&order, j)) {
                    j -= 1;
                }
                if i >= j {
                    break;
                }
                order.swap(i, j);
            }
            order.swap(i, right - 1);
            // The larger part waits.
            if i - left < right - i {
                open.push((i + 1, right));
                right = i.saturating_sub(1);
            } else {
                open.push((left, i.saturating_sub(1)));
                left = i + 1;
            }
            if right < left {
                break;
            }
        }
        for next in (left + 1)..=right {
            let index = order[next];
            let mut at = next;
            while at > left && less(values[index], values[order[at - 1]]) {
                order[at] = order[at - 1];
                at -= 1;
            }
            order[at] = index;
        }
        match open.pop() {
            Some(part) => (left, right) = part,
            None => return order,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_lists_keep_the_order_of_equal_scores() {
        assert_eq!(argsort(&[1.0, 0.0, 1.0, 0.0]), [1, 3, 0, 2]);
        assert_eq!(argsort(&[]), [0; 0]);
    }

    #[test]
    fn long_lists_are_sorted() {
        let values: Vec<f64> = (0..500).map(|at| f64::from((at * 7919) % 101)).collect();
        let order = argsort(&values);
        assert!(order.windows(2).all(|pair| values[pair[0]] <= values[pair[1]]));
        let mut all = order;
        all.sort_unstable();
        assert!(all.into_iter().eq(0..500));
    }
}
