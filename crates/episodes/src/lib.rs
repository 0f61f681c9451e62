//! Episodes: one task owns the registry of all episodes of a daemon, records every change in the store, and has the
//! slots of the sites prepared, switched, cut and recycled.
//!
//! ```text
//!   EpisodeHandle ──► inbox ──► EpisodeKeeper ──► EpisodeRegistry (decides)
//!        ▲                        │    ▲
//!        │ reads                  │    └── ends of work on slots, closed holds, deadlines
//!   published episodes ◄── store ◄┘
//!                            └──► Slots: switch, cut, recycle, prepare     (the daemon implements it)
//! ```
//! The keeper applies a batch of requests to the registry, records the result in one transaction, publishes it, and only
//! then touches slots and answers. Therefore:
//!
//! - A grant is on disk before a client can reach its slots. An episode that was told to be active is active or void
//!   after a crash.
//! - An end is on disk before anyone is told of it, and before its slots are recycled. An ended episode never serves
//!   again, and a slot whose content was replaced never serves the episode that had it.
//! - Reads and the fence use the published episodes, which never differ from what the store has recorded.
//!
//! If the store fails, a grant becomes void, requests are refused, and ends wait until the store works again.
//!
//! | File | Job |
//! |---|---|
//! | `handle`, `guards`, `message` | what callers can ask for |
//! | `keeper`, `requests`, `reports`, `grants` | the task: what each request and report does to the registry |
//! | `recording`, `pending` | from a batch of changes to the transaction, and what follows it |
//! | `work` | the work on slots, one piece at a time for each slot |
//! | `published`, `events` | what readers see; the events without a gap |
//! | `restore` | the start of the task, from the rows of an earlier daemon |
//!
//! The crate depends on `model` and `store`. Start reading at `keeper.rs`.

mod error;
mod events;
mod grants;
mod guards;
mod handle;
mod keeper;
mod message;
mod pending;
mod published;
mod random;
mod recording;
mod reports;
mod requests;
mod restore;
mod slots;
mod token;
mod work;

pub use error::EpisodeError;
pub use events::EpisodeEventCursor;
pub use guards::{EvaluationGuard, HoldGuard};
pub use handle::{EpisodeFilter, EpisodeHandle};
pub use message::EpisodeReceipt;
pub use published::EpisodeView;
pub use random::RandomBytes;
pub use restore::{EpisodeKeeperParts, start};
pub use slots::{ChangePermit, LeasedSlot, PreparedSlot, SlotPreparation, Slots};
pub use token::EpisodeToken;
