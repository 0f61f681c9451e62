//! Sites that are kept because they are only read: whether someone has written to one all the same.
//!
//! Requests that may write are counted by the gateway and shown; they need not have changed anything. What has been changed
//! is found in the stores, at once after such a request and with every deep round of probes, and is undone by a reset that
//! nobody has to ask for: the site is shared, and whoever comes next trusts it. A site without stores has nothing that could
//! be compared; it is trusted until a request that may write has reached it, and then it is not left as it is by the next
//! reset.

use jiff::Timestamp;

use super::core::Core;
use crate::daemon::proof::{Candidate, ProofError};
use crate::daemon::store::StoredWrites;
use crate::digest::Lines;
use crate::domain::health::Depth;
use crate::domain::instance::InstanceState;
use crate::domain::site::ResetStrategyName;
use crate::probes::describe;

impl Core {
    /// Whether the definition says that the site is only read.
    pub(super) fn is_only_read(&self) -> bool {
        self.site.reset.strategy == ResetStrategyName::Keep
    }

    /// Takes up what an earlier daemon had found of the containers that it left.
    pub(super) async fn recall_writes(&mut self, generation: u64) {
        if !self.is_only_read() {
            return;
        }
        match self.shared.store.writes(&self.id, generation).await {
            Ok(writes) => self.report.send_modify(|report| report.writes = writes),
            Err(error) => tracing::warn!(instance.id = %self.id, error = describe(&error), "writes are not known"),
        }
    }

    /// What was written to containers of the past is of no interest.
    pub(super) fn forget_writes(&mut self) {
        self.requests_seen = 0;
        self.report.send_modify(|report| report.writes = None);
    }

    /// Looks whether a site that is only read has been written to, after a round of probes. Whether a reset is due.
    pub(super) async fn look_for_writes(&mut self, depth: Depth) -> bool {
        if !self.is_only_read() || self.state() != InstanceState::Ready {
            return false;
        }
        let is_news = self.note_requests().await;
        if !is_news && depth == Depth::Shallow {
            return false;
        }
        match self.compare().await {
            Some(Err(error @ ProofError::Differs(_))) => {
                self.note_difference(error.to_string()).await;
                true
            }
            // What cannot be looked at now is looked at again.
            Some(Err(error)) => {
                tracing::warn!(instance.id = %self.id, error = describe(&error), "not known whether it was written to");
                false
            }
            Some(Ok(())) | None => false,
        }
    }

    /// Whether a reset may leave the site as it is. If not, the events say why.
    pub(super) async fn is_trusted(&mut self) -> bool {
        self.note_requests().await;
        let reason = match self.compare().await {
            Some(Ok(())) => return true,
            Some(Err(error @ ProofError::Differs(_))) => {
                self.note_difference(error.to_string()).await;
                return false;
            }
            Some(Err(error)) => format!("it cannot be compared: {}", describe(&error)),
            None if self.report.borrow().writes.is_none() => return true,
            None => "a request that may write has reached it, and there are no stores to compare".to_owned(),
        };
        self.note_written(&format!("is not left as it is: {reason}")).await;
        false
    }

    /// Compares the stores with the snapshot, as far as they have moved. `None`: there is nothing to compare.
    async fn compare(&mut self) -> Option<Result<(), ProofError>> {
        let (snapshot, incarnation) = (self.snapshot.as_ref()?, self.incarnation.as_ref()?);
        let candidate = Candidate { shared: &self.shared, id: &self.id, site: &self.site, snapshot, incarnation };
        let lines = Lines::passing();
        let proven = match &self.proven {
            Some(last) => match candidate.prove_again(last, &lines).await {
                // Nothing has moved.
                Ok(None) => return Some(Ok(())),
                other => other,
            },
            None => candidate.prove(&lines).await,
        };
        match proven {
            Ok(taken) => {
                self.proven = taken;
                self.proven.is_some().then_some(Ok(()))
            }
            Err(error) => Some(Err(error)),
        }
    }

    /// Takes note of requests that may have written. Whether there are new ones.
    async fn note_requests(&mut self) -> bool {
        // The gateway begins to count anew whenever a route is opened again.
        let counted = self.route_stats().unsafe_requests;
        let fresh = if counted >= self.requests_seen { counted - self.requests_seen } else { counted };
        self.requests_seen = counted;
        if fresh == 0 {
            return false;
        }
        let known = self.report.borrow().writes.clone();
        let is_first = known.is_none();
        let requests = known.as_ref().map_or(0, |writes| writes.requests) + fresh;
        let writes = StoredWrites { requests, ..known.unwrap_or_else(|| StoredWrites::since(Timestamp::now())) };
        self.publish_writes(writes).await;
        if is_first {
            self.note_written("a request that may write has reached it").await;
        }
        true
    }

    async fn note_difference(&mut self, difference: String) {
        let known = self.report.borrow().writes.clone();
        if known.as_ref().is_some_and(|writes| writes.difference.as_ref() == Some(&difference)) {
            return;
        }
        let message = format!("has been written to: {difference}");
        let writes = known.unwrap_or_else(|| StoredWrites::since(Timestamp::now()));
        self.publish_writes(StoredWrites { difference: Some(difference), ..writes }).await;
        self.note_written(&message).await;
    }

    async fn note_written(&self, what: &str) {
        let message = format!("{} is only read, but {what}", self.id);
        self.shared.events.note("instance.written", Some(&self.id.to_string()), &message).await;
    }

    async fn publish_writes(&mut self, writes: StoredWrites) {
        let generation = self.report.borrow().generation;
        if let Err(error) = self.shared.store.save_writes(&self.id, generation, &writes).await {
            tracing::warn!(instance.id = %self.id, error = describe(&error), "writes are not stored");
        }
        self.report.send_modify(|report| report.writes = Some(writes));
    }
}
