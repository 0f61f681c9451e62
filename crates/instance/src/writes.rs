//! Sites that are kept because they are only read: whether someone has written to one all the same.
//!
//! Requests that may write are counted by the gateway and shown; they need not have changed anything. What has been changed
//! is found in the stores, at once after such a request and with every deep round of probes, and is undone by a reset that
//! nobody has to ask for: the site is shared, and whoever comes next trusts it. A site without stores has nothing that could
//! be compared; it is trusted until a request that may write has reached it, and then it is not left as it is by the next
//! reset.

use tokio::task::JoinError;
use tokio_util::task::AbortOnDropHandle;

use super::context::Context;
use super::operations::Instance;
use crate::proof::{Candidate, ProofError};
use arenad_digest::{Lines, Taken};
use arenad_launch::Incarnation;
use arenad_model::error::describe;
use arenad_model::health::Depth;
use arenad_model::instance::InstanceState;
use arenad_model::site::ResetStrategyName;
use arenad_model::snapshot::Snapshot;
use arenad_store::StoredWrites;

/// What a comparison in the background found.
pub(super) struct Compared {
    /// The generation that was compared.
    generation: u64,
    /// `None`: there is nothing to compare, or nothing has moved.
    found: Option<Result<Option<Taken>, ProofError>>,
}

impl Compared {
    /// A comparison whose task did not come to its end says nothing.
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

    /// Takes up what an earlier daemon had found of the containers that it left.
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

    /// What was written to containers of the past is of no interest.
    pub(super) fn forget_writes(&mut self) {
        self.requests_seen = 0;
        self.service.report().send_modify(|report| report.writes = None);
    }

    /// Has a site that is only read compared, after a round of probes, where something may have been written to it.
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
                Compared { generation: incarnation.generation, found }
            }))
        });
    }

    /// Takes in what a comparison found. Whether a reset is due.
    pub(super) async fn note_compared(&mut self, compared: Compared) -> bool {
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
            // What cannot be looked at now is looked at again.
            Some(Err(error)) => {
                let id = &self.context.id;
                tracing::warn!(instance.id = %id, error = describe(&error), "not known whether it was written to");
                false
            }
            None => false,
        }
    }

    /// Whether a reset may leave the site as it is. If not, the events say why.
    pub(super) async fn is_trusted(&mut self) -> bool {
        self.note_requests().await;
        if self.service.was_entered() {
            self.note_written("is not left as it is: somebody has run commands in its containers").await;
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
            // Nothing has moved since it was last compared.
            None if last.is_some() => return true,
            None if is_adopted => {
                "a request that may write may have reached it, and there are no stores to compare".to_owned()
            }
            None if self.service.report().borrow().writes.is_none() => return true,
            None => "a request that may write has reached it, and there are no stores to compare".to_owned(),
        };
        self.note_written(&format!("is not left as it is: {reason}")).await;
        false
    }

    /// Takes note of requests that may have written. Whether there are new ones.
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
        self.context.note("instance.written", &format!("{} is only read, but {what}", self.context.id)).await;
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

/// Compares the stores with the snapshot, as far as they have moved. `None`: there is nothing to compare, or nothing has
/// moved.
async fn compare(
    context: &Context,
    snapshot: &Snapshot,
    incarnation: &Incarnation,
    last: Option<&Taken>,
) -> Option<Result<Option<Taken>, ProofError>> {
    let (shared, id, site) = (&context.shared, &context.id, &context.site);
    let candidate = Candidate { shared, id, site, snapshot, incarnation };
    let lines = Lines::passing();
    let compared = match last {
        Some(last) => candidate.prove_again(last, &lines).await,
        None => candidate.prove(&lines).await,
    };
    match compared {
        Ok(None) => None,
        compared => Some(compared),
    }
}
