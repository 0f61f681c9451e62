//! Counts the answers of a replay, and remembers the latest requests that it could not answer.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;

use arenad_api::replays::{MissKind, MissedRequest, ReplayCounts, RuleCount};
use arenad_replay::MatchRule;

/// The number of requests without an answer that are remembered.
const MISSED_KEPT: usize = 100;

/// The counts of one replay since the daemon was started.
#[derive(Debug, Default)]
pub(crate) struct AnswerCounts {
    rules: [AtomicU64; MatchRule::ALL.len()],
    recorded_failures: AtomicU64,
    misses: AtomicU64,
    forbidden: AtomicU64,
    service_workers: AtomicU64,
    missed: Mutex<VecDeque<MissedRequest>>,
}

impl AnswerCounts {
    /// Counts a request that was answered by a rule, with a recorded status.
    pub(crate) fn hit(&self, rule: MatchRule, status: u16) {
        let index = MatchRule::ALL.iter().position(|known| *known == rule).unwrap_or_default();
        self.rules[index].fetch_add(1, Ordering::Relaxed);
        if status >= 400 {
            self.recorded_failures.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a request for the script of a service worker.
    pub(crate) fn service_worker(&self) {
        self.service_workers.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request for which nothing was recorded, or for a host that was not recorded.
    pub(crate) fn missed(&self, kind: MissKind, method: &str, url: &str) {
        let counter = match kind {
            MissKind::Miss => &self.misses,
            MissKind::Forbidden => &self.forbidden,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        // Every change leaves a valid list.
        let mut missed = self.missed.lock().unwrap_or_else(PoisonError::into_inner);
        if missed.len() == MISSED_KEPT {
            missed.pop_front();
        }
        let at = Timestamp::now().to_string();
        missed.push_back(MissedRequest { at, kind, method: method.to_owned(), url: url.to_owned() });
    }

    /// Returns the counts in the shape of the API.
    pub(crate) fn shown(&self) -> ReplayCounts {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let rules = MatchRule::ALL.iter().zip(&self.rules);
        let rules = rules.map(|(rule, count)| RuleCount { rule: rule.word().to_owned(), requests: load(count) });
        let rules: Vec<RuleCount> = rules.filter(|count| count.requests > 0).collect();
        ReplayCounts {
            hits: rules.iter().map(|count| count.requests).sum(),
            rules,
            recorded_failures: load(&self.recorded_failures),
            misses: load(&self.misses),
            forbidden: load(&self.forbidden),
            service_workers: load(&self.service_workers),
        }
    }

    /// Returns the latest requests that were not answered, oldest first.
    pub(crate) fn latest_missed(&self) -> Vec<MissedRequest> {
        self.missed.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}
