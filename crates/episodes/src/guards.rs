//! Guards of what a caller has: a hold, or an evaluation.

use tokio::sync::{mpsc, oneshot};

use crate::error::EpisodeError;
use crate::message::Closing;
use arenad_model::episode::ids::EpisodeId;
use arenad_model::episode::life::HoldId;

/// Binds an episode to a connection. When the guard is dropped, the episode ends at once.
#[derive(Debug)]
pub struct HoldGuard {
    pub(crate) id: EpisodeId,
    pub(crate) hold: HoldId,
    pub(crate) closings: mpsc::UnboundedSender<Closing>,
}

impl HoldGuard {
    /// Returns the id of the episode that is held.
    pub fn episode(&self) -> &EpisodeId {
        &self.id
    }
}

impl Drop for HoldGuard {
    fn drop(&mut self) {
        // Without a keeper, the next daemon ends the episode unless its client holds it again.
        let _ = self.closings.send(Closing::Hold(self.id.clone(), self.hold));
    }
}

/// Keeps an episode frozen while it is evaluated. The evaluation ends when the guard is dropped.
#[derive(Debug)]
pub struct EvaluationGuard {
    pub(crate) id: EpisodeId,
    pub(crate) closings: mpsc::UnboundedSender<Closing>,
    pub(crate) is_open: bool,
}

impl EvaluationGuard {
    /// Ends the evaluation, and returns when the end is recorded.
    ///
    /// Errors: [`EpisodeError::Refused`] if the episode has ended meanwhile, so that the evaluation does not count.
    ///
    /// Cancellation: the evaluation ends.
    pub async fn end(mut self) -> Result<(), EpisodeError> {
        let (reply, answer) = oneshot::channel();
        self.is_open = false;
        let closing = Closing::Evaluation(self.id.clone(), Some(reply));
        self.closings.send(closing).map_err(|_| EpisodeError::Stopping)?;
        answer.await.map_err(|_| EpisodeError::Stopping)?
    }
}

impl Drop for EvaluationGuard {
    fn drop(&mut self) {
        if self.is_open {
            // Without a keeper, the next daemon unfreezes the episode.
            let _ = self.closings.send(Closing::Evaluation(self.id.clone(), None));
        }
    }
}
