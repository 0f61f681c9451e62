//! Detects writes to sites that are shared and meant to be read only (`strategy: keep`).
//!
//! The gateway counts requests that may write, and the status shows the count; such requests need not have changed
//! anything. Changes are found by comparing the stores, after the next round of probes that follows such a request and
//! after every deep round. arenad then resets the site without being asked, because the site is shared and its next
//! client relies on its content. A site without stores cannot be compared: it is trusted until a request that may write
//! has reached it, and the next reset then recreates its containers.

use tokio::task::JoinError;
use tokio_util::task::AbortOnDropHandle;

use super::context::InstanceContext;
use super::operations::Instance;
use crate::proof::{ProofCandidate, ProofError};
use arenad_digest::{StoreConnections, Taken};
use arenad_launch::Incarnation;
use arenad_model::error::describe;
use arenad_model::event::EventKind;
use arenad_model::health::Depth;
use arenad_model::instance::InstanceState;
use arenad_model::site::ResetStrategyName;
use arenad_model::snapshot::Snapshot;
use arenad_store::StoredWrites;

/// The result of a comparison in the background.
pub(super) struct BackgroundComparison {
    /// The generation that was compared.
    generation: u64,
    /// `None` if there is nothing to compare or nothing has changed.
    found: Option<Result<Option<Taken>, ProofError>>,
}

impl BackgroundComparison {
    /// Creates the result of a task that panicked, which yields no information.
    pub(super) fn broken_off(error: &JoinError) -> Self {
        tracing::error!("a comparison broke off: {error}");
        Self { generation: 0, found: None }
    }
}

impl Instance {
    /// Whether the definition says that the site is only read.
    pub(super) fn is_only_read(&self) -> bool {
        self.context.site.reset.strategy == ResetStrategyName::Keep
    }

    /// Restores the writes that an earlier daemon had noticed in the adopted containers.
    pub(super) async fn recall_writes(&mut self, generation: u64) {
        if !self.is_only_read() {
            return;
        }
        let context = &self.context;
        match context.shared.store.writes(&context.id, generation).await {
            Ok(writes) => self.service.report().send_modify(|report| report.writes = writes),
            Err(error) => tracing::warn!(instance.id = %context.id, error = describe(&error), "writes are not known"),
        }
    }

    /// Forgets the writes to the previous containers.
    pub(super) fn forget_writes(&mut self) {
        self.requests_seen = 0;
        self.service.report().send_modify(|report| report.writes = None);
    }

    /// Begins a comparison of a site that is only read, after a round of probes, if the site may have been written to.
    pub(super) async fn look_for_writes(&mut self, depth: Depth) {
        if !self.is_only_read() || self.service.state() != InstanceState::Ready {
            return;
        }
        let is_news = self.note_requests().await;
        if !is_news && depth == Depth::Shallow {
            return;
        }
        let Some(serving) = self.service.serving() else { return };
        let (snapshot, incarnation) = (serving.snapshot.clone(), serving.incarnation.clone());
        let (last, context) = (serving.proven.clone(), self.context.clone());
        self.watch.compare(|| {
            let tasks = context.shared.tasks.clone();
            AbortOnDropHandle::new(tasks.spawn(async move {
                let found = compare(&context, &snapshot, &incarnation, last.as_ref()).await;
                BackgroundComparison { generation: incarnation.generation, found }
            }))
        });
    }

    /// Takes in the result of a comparison; returns whether a reset is due.
    pub(super) async fn note_compared(&mut self, compared: BackgroundComparison) -> bool {
        let is_current =
            self.service.serving().is_some_and(|serving| serving.incarnation.generation == compared.generation);
        match compared.found.filter(|_| is_current) {
            Some(Ok(taken)) => {
                self.service.prove(taken);
                false
            }
            Some(Err(error @ ProofError::Differs(_))) => {
                self.note_difference(error.to_string()).await;
                true
            }
            // A comparison that could not be made is repeated after the next deep round of probes or request that may
            // write.
            Some(Err(error)) => {
                let id = &self.context.id;
                tracing::warn!(instance.id = %id, error = describe(&error), "failed to determine whether the site was written to");
                false
            }
            None => false,
        }
    }

    /// Whether a reset may leave the site unchanged; if not, an event says why.
    pub(super) async fn is_trusted(&mut self) -> bool {
        self.note_requests().await;
        if self.service.was_entered() {
            self.note_written("must be reset: an operator has run commands in its containers").await;
            return false;
        }
        let Some(serving) = self.service.serving() else { return false };
        let (snapshot, incarnation) = (serving.snapshot.clone(), serving.incarnation.clone());
        let (last, is_adopted) = (serving.proven.clone(), serving.is_adopted);
        let reason = match compare(&self.context, &snapshot, &incarnation, last.as_ref()).await {
            Some(Ok(taken)) => {
                self.service.prove(taken);
                return true;
            }
            Some(Err(error @ ProofError::Differs(_))) => {
                self.note_difference(error.to_string()).await;
                return false;
            }
            Some(Err(error)) => format!("it cannot be compared: {}", describe(&error)),
            // Nothing has changed since the last comparison.
            None if last.is_some() => return true,
            None if is_adopted => {
                "a request that may write may have reached it, and there are no stores to compare".to_owned()
            }
            None if self.service.report().borrow().writes.is_none() => return true,
            None => "a request that may write has reached it, and there are no stores to compare".to_owned(),
        };
        self.note_written(&format!("must be reset: {reason}")).await;
        false
    }

    /// Notes new requests that may have written; returns whether there are any.
    async fn note_requests(&mut self) -> bool {
        let counted = self.service.stats().unsafe_requests;
        let fresh = counted.saturating_sub(self.requests_seen);
        self.requests_seen = counted;
        if fresh == 0 {
            return false;
        }
        let known = self.service.report().borrow().writes.clone();
        let is_first = known.is_none();
        let requests = known.as_ref().map_or(0, |writes| writes.requests) + fresh;
        let writes =
            StoredWrites { requests, ..known.unwrap_or_else(|| StoredWrites::since(self.context.shared.clock.now())) };
        self.publish_writes(writes).await;
        if is_first {
            self.note_written("a request that may write has reached it").await;
        }
        true
    }

    async fn note_difference(&mut self, difference: String) {
        let known = self.service.report().borrow().writes.clone();
        if known.as_ref().is_some_and(|writes| writes.difference.as_ref() == Some(&difference)) {
            return;
        }
        let message = format!("has been written to: {difference}");
        let writes = known.unwrap_or_else(|| StoredWrites::since(self.context.shared.clock.now()));
        self.publish_writes(StoredWrites { difference: Some(difference), ..writes }).await;
        self.note_written(&message).await;
    }

    async fn note_written(&self, what: &str) {
        self.context.note(EventKind::InstanceWritten, &format!("{} is read-only, but {what}", self.context.id)).await;
    }

    async fn publish_writes(&mut self, writes: StoredWrites) {
        let (context, report) = (&self.context, self.service.report());
        let generation = report.borrow().generation;
        if let Err(error) = context.shared.store.save_writes(&context.id, generation, &writes).await {
            tracing::warn!(instance.id = %context.id, error = describe(&error), "writes are not stored");
        }
        report.send_modify(|report| report.writes = Some(writes));
    }
}

/// Compares the stores that have changed with the snapshot's; returns `None` if there is nothing to compare or nothing
/// has changed.
async fn compare(
    context: &InstanceContext,
    snapshot: &Snapshot,
    incarnation: &Incarnation,
    last: Option<&Taken>,
) -> Option<Result<Option<Taken>, ProofError>> {
    let (shared, id, site) = (&context.shared, &context.id, &context.site);
    let candidate = ProofCandidate { shared, id, site, snapshot, incarnation };
    let lines = StoreConnections::passing();
    let compared = match last {
        Some(last) => candidate.prove_again(last, &lines).await,
        None => candidate.prove(&lines).await,
    };
    match compared {
        Ok(None) => None,
        compared => Some(compared),
    }
}
