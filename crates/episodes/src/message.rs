//! The messages to the episode keeper.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::error::EpisodeError;
use crate::guards::{EvaluationGuard, HoldGuard};
use crate::token::EpisodeToken;
use arenad_model::episode::ending::VoidReason;
use arenad_model::episode::ids::EpisodeId;
use arenad_model::episode::life::HoldId;
use arenad_model::episode::queue::QueuePlace;
use arenad_model::episode::registry::{EpisodeChange, WithdrawalScope};
use arenad_model::episode::request::{EpisodeRequest, SiteCapacity};
use arenad_model::episode::slots::SlotDemand;
use arenad_model::ids::SiteId;
use arenad_model::instance::InstanceId;

/// The answer to a request for an episode.
#[derive(Debug, Clone)]
pub struct EpisodeReceipt {
    /// The id of the episode.
    pub id: EpisodeId,
    /// The token that opens the episode. It is shown only here.
    pub token: EpisodeToken,
    /// Whether the request repeats an earlier one, whose episode it gets.
    pub is_known: bool,
}

/// The receipt of a new episode whose client may have gone away. Without the receipt no client knows the id of the episode,
/// so the episode is released unless the receipt is claimed.
#[derive(Debug)]
pub(crate) struct UnclaimedReceipt {
    receipt: EpisodeReceipt,
    closings: Option<mpsc::UnboundedSender<Closing>>,
}

impl UnclaimedReceipt {
    /// Wraps a receipt. `closings` is `None` if the client can ask for the same episode again.
    pub(crate) fn new(receipt: EpisodeReceipt, closings: Option<mpsc::UnboundedSender<Closing>>) -> Self {
        Self { receipt, closings }
    }

    pub(crate) fn claim(mut self) -> EpisodeReceipt {
        self.closings = None;
        self.receipt.clone()
    }
}

impl Drop for UnclaimedReceipt {
    fn drop(&mut self) {
        if let Some(closings) = &self.closings {
            // Without a keeper there is nothing to release.
            let _ = closings.send(Closing::Unclaimed(self.receipt.id.clone()));
        }
    }
}

/// The channel through which a caller learns the outcome of its request.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, EpisodeError>>;

/// A request to the episode keeper.
pub(crate) enum Message {
    Ask { request: EpisodeRequest, reply: Reply<UnclaimedReceipt> },
    AskAndHold { request: EpisodeRequest, reply: Reply<(EpisodeReceipt, HoldGuard)> },
    Change { id: EpisodeId, change: EpisodeChange, reply: Reply<()> },
    Hold { id: EpisodeId, reply: Reply<HoldGuard> },
    BeginEvaluation { id: EpisodeId, limit: Duration, reply: Reply<EvaluationGuard> },
    Release { id: EpisodeId, reply: Reply<()> },
    Fail { id: EpisodeId, reason: VoidReason, reply: Reply<()> },
    Places(Reply<Vec<QueuePlace>>),
    Demand { site: SiteId, reply: Reply<SlotDemand> },
    OfferSite { site: SiteId, capacity: SiteCapacity, reply: Reply<()> },
    AddSlot { slot: InstanceId, reply: Reply<()> },
    RetireSlot { slot: InstanceId, reply: Reply<()> },
    Withdraw { scope: WithdrawalScope, reply: Reply<()> },
    SlotFailed { slot: InstanceId, reason: VoidReason, reply: Reply<()> },
}

/// The end of something that a caller had. Each message of this kind answers an earlier [`Message`], so the inbox bounds
/// their number, and they need no bound of their own.
pub(crate) enum Closing {
    /// A connection that held an episode was closed.
    Hold(EpisodeId, HoldId),
    /// An evaluation has ended.
    Evaluation(EpisodeId, Option<Reply<()>>),
    /// The client went away before it learned the id of its episode.
    Unclaimed(EpisodeId),
}
