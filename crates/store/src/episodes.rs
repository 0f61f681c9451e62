//! The tables of episodes, with their sites, slots, tokens, keys and labels.
//!
//! The episode task writes the changes of any number of episodes in one transaction, so that the rows are at all times
//! a state that the task had. A partial index ensures that no slot belongs to two episodes.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;

use super::connection::Transaction;
use super::{DaemonStore, Doing, OldRows, Retention, StoreError, time_text};
use arenad_model::episode::ending::EpisodeEnding;
use arenad_model::episode::fence::EpisodeTokens;
use arenad_model::episode::ids::{EpisodeId, RecordBeginningId};
use arenad_model::episode::life::StoredLife;
use arenad_model::episode::request::{EpisodeRequest, StartPoint};
use arenad_model::episode::{EpisodeState, EpisodeStatus};
use arenad_model::ids::ReplayName;
use arenad_model::instance::InstanceId;

mod evaluations;
mod events;
mod rows;

pub use evaluations::{NewEvaluation, StoredEvaluation};
pub use events::{NewEpisodeEvent, StoredEpisodeEvent};

/// An episode as it is stored.
#[derive(Debug, Clone)]
pub struct StoredEpisode {
    /// The id of the episode.
    pub id: EpisodeId,
    /// The request that the episode came from.
    pub request: Arc<EpisodeRequest>,
    /// The tokens that open the episode.
    pub tokens: EpisodeTokens,
    /// The slots in the order of the request, without shared sites.
    pub slots: Vec<StoredSlot>,
    /// The state and its times.
    pub life: StoredEpisodeLife,
    /// The time of the request.
    pub asked_at: Timestamp,
    /// The time of the grant. `None` before it.
    pub granted_at: Option<Timestamp>,
}

/// A slot that an episode has, or had until its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSlot {
    /// The instance of the slot.
    pub instance: InstanceId,
    /// The generation that the episode got. `None` until the slot is prepared.
    pub generation: Option<u64>,
}

/// The life of a stored episode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredEpisodeLife {
    /// The episode had not ended. When the life is read, the time that is left is the smaller of the time that was left
    /// when the row was written and the time until the deadline on the wall clock.
    Live(StoredLife),
    /// The episode is over.
    Ended {
        /// How the episode ended.
        ending: EpisodeEnding,
        /// The time of the end.
        at: Timestamp,
    },
}

impl StoredEpisodeLife {
    /// Returns the state without the cause of an end.
    pub fn status(&self) -> EpisodeStatus {
        match self {
            Self::Live(life) => life.state.status(),
            Self::Ended { ending, .. } => EpisodeState::Ended(ending.clone()).status(),
        }
    }
}

/// The part of an episode that has changed since it was written last. The life is always written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EpisodePart {
    /// Nothing beside the life.
    Life,
    /// The slots, in addition to the life.
    Slots,
    /// The tokens, in addition to the life.
    Tokens,
    /// Everything. The episode may have no row yet.
    Everything,
}

impl EpisodePart {
    /// Returns the part that includes both.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        match (self, other) {
            (Self::Life, part) | (part, Self::Life) => part,
            (one, other) if one == other => one,
            _ => Self::Everything,
        }
    }
}

/// Changes of episodes that are written in one transaction.
#[derive(Debug, Clone, Default)]
pub struct EpisodeChanges {
    /// The episodes whose rows are deleted.
    pub forgotten: Vec<EpisodeId>,
    /// The episodes that are new or have changed. New ones are in order of arrival, and ended ones in the order of their
    /// ends.
    pub written: Vec<(EpisodePart, StoredEpisode)>,
    /// The changes of states, in their order.
    pub events: Vec<NewEpisodeEvent>,
    /// Whether the changes must survive a crash of the host, because a client is told of them.
    pub is_durable: bool,
}

const RECORD: &str = "record episodes";

fn milliseconds(duration: std::time::Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn as_integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl DaemonStore {
    /// Writes changes of episodes in one transaction. Returns the number of the newest event, if there are new ones.
    pub async fn record_episodes(&self, changes: &EpisodeChanges) -> Result<Option<i64>, StoreError> {
        let connection = if changes.is_durable { &self.durable } else { &self.quick };
        let mut transaction = connection.begin().await.doing(RECORD)?;
        for id in &changes.forgotten {
            sqlx::query("DELETE FROM episodes WHERE id = ?")
                .bind(id.as_str())
                .execute(&mut transaction)
                .await
                .doing(RECORD)?;
        }
        // Ended episodes come first, because others may have their slots in the same transaction.
        let is_ended =
            |(_, episode): &&(EpisodePart, StoredEpisode)| matches!(episode.life, StoredEpisodeLife::Ended { .. });
        let others = changes.written.iter().filter(|one| !is_ended(one));
        for (part, episode) in changes.written.iter().filter(is_ended).chain(others) {
            self.write_episode(&mut transaction, *part, episode).await.doing(RECORD)?;
        }
        let mut newest = None;
        for event in &changes.events {
            newest = Some(events::append(&mut transaction, event, self.now()).await.doing(RECORD)?);
        }
        transaction.commit().await.doing(RECORD)?;
        Ok(newest)
    }

    async fn write_episode(
        &self,
        transaction: &mut Transaction,
        part: EpisodePart,
        episode: &StoredEpisode,
    ) -> Result<(), sqlx::Error> {
        if part == EpisodePart::Everything {
            insert(transaction, episode).await?;
        }
        if matches!(part, EpisodePart::Everything | EpisodePart::Tokens) {
            write_tokens(transaction, episode).await?;
        }
        self.write_life(transaction, episode).await?;
        let has_slots = matches!(part, EpisodePart::Everything | EpisodePart::Slots);
        match &episode.life {
            _ if has_slots => write_slots(transaction, episode).await,
            StoredEpisodeLife::Live(_) => Ok(()),
            StoredEpisodeLife::Ended { .. } => {
                sqlx::query("UPDATE episode_sites SET is_leased = 0 WHERE episode = ?")
                    .bind(episode.id.as_str())
                    .execute(transaction)
                    .await?;
                Ok(())
            }
        }
    }

    async fn write_life(&self, transaction: &mut Transaction, episode: &StoredEpisode) -> Result<(), sqlx::Error> {
        let state = episode.life.status().name();
        match &episode.life {
            StoredEpisodeLife::Live(life) => {
                let deadline = self.clock.now().saturating_add(life.left).unwrap_or(Timestamp::MAX);
                sqlx::query(
                    "UPDATE episodes SET state = ?, granted_at = ?, deadline = ?, left_ms = ?, is_held = ?, \
                     is_frozen_by_client = ? WHERE id = ?",
                )
                .bind(state)
                .bind(episode.granted_at.map(time_text))
                .bind(time_text(deadline))
                .bind(milliseconds(life.left))
                .bind(life.was_held)
                .bind(life.is_frozen_by_client)
                .bind(episode.id.as_str())
                .execute(transaction)
                .await?;
            }
            StoredEpisodeLife::Ended { ending, at } => {
                sqlx::query(
                    "UPDATE episodes SET state = ?1, granted_at = ?2, deadline = NULL, left_ms = NULL, is_held = 0, \
                     is_frozen_by_client = 0, ended_at = ?3, ending_code = ?4, ending_slot = ?5, ending_detail = ?6, \
                     ended_seq = coalesce(ended_seq, (SELECT coalesce(max(ended_seq), 0) + 1 FROM episodes)) \
                     WHERE id = ?7",
                )
                .bind(state)
                .bind(episode.granted_at.map(time_text))
                .bind(time_text(*at))
                .bind(ending.code())
                .bind(ending.slot().map(InstanceId::to_string))
                .bind(ending.detail())
                .bind(episode.id.as_str())
                .execute(transaction)
                .await?;
            }
        }
        Ok(())
    }

    /// Returns the beginnings of records that episodes which have not ended take over, or have taken over.
    pub async fn live_record_beginnings(&self) -> Result<BTreeSet<RecordBeginningId>, StoreError> {
        let beginnings: Vec<String> = sqlx::query_scalar(
            "SELECT DISTINCT record_beginning FROM episodes WHERE record_beginning IS NOT NULL AND ended_at IS NULL",
        )
        .fetch_all(&self.quick)
        .await
        .doing("look for the beginnings of records")?;
        beginnings.iter().map(|text| rows::record_beginning(text)).collect()
    }

    /// Deletes episodes that ended long ago, and returns their number.
    pub async fn forget_episodes(&self, keep: Retention) -> Result<u64, StoreError> {
        let rows = OldRows { table: "episodes", seq: "ended_seq", at: "ended_at", only: "TRUE" };
        self.forget_rows(rows, keep, "forget old episodes").await
    }
}

/// Writes the parts that never change. They may have been written by an attempt whose outcome was unknown.
async fn insert(transaction: &mut Transaction, episode: &StoredEpisode) -> Result<(), sqlx::Error> {
    let StoredEpisode { id, request, .. } = episode;
    sqlx::query(
        "INSERT INTO episodes (id, owner, state, ttl_ms, wait_ms, asked_at, record, record_beginning, replays) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
    )
    .bind(id.as_str())
    .bind(request.owner.as_str())
    .bind(episode.life.status().name())
    .bind(milliseconds(request.terms.ttl()))
    .bind(milliseconds(request.terms.wait()))
    .bind(time_text(episode.asked_at))
    .bind(request.record.name())
    .bind(request.beginning.as_ref().map(RecordBeginningId::as_str))
    .bind(request.replays.iter().map(ReplayName::as_str).collect::<Vec<_>>().join(" "))
    .execute(&mut *transaction)
    .await?;
    for (position, want) in (0_i64..).zip(&request.sites) {
        let (start, from) = match &want.start {
            StartPoint::Baseline => ("baseline", None),
            StartPoint::Snapshot(name) => ("snapshot", Some(name.as_str())),
            StartPoint::Fork { parent, .. } => ("fork", Some(parent.as_str())),
        };
        sqlx::query(
            "INSERT INTO episode_sites (episode, position, environment, site, wanted, start, start_from, copy) \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (episode, position) DO NOTHING",
        )
        .bind(id.as_str())
        .bind(position)
        .bind(want.site.environment.as_str())
        .bind(want.site.site.as_str())
        .bind(want.slot)
        .bind(start)
        .bind(from)
        .bind(want.start.copy().map(|copy| copy.as_str()))
        .execute(&mut *transaction)
        .await?;
    }
    for (name, value) in request.labels.iter() {
        sqlx::query(
            "INSERT INTO episode_labels (episode, name, value) VALUES (?, ?, ?) ON CONFLICT (episode, name) DO NOTHING",
        )
        .bind(id.as_str())
        .bind(name)
        .bind(value)
        .execute(&mut *transaction)
        .await?;
    }
    if let Some(key) = &request.key {
        sqlx::query("INSERT INTO episode_keys (owner, key, episode) VALUES (?, ?, ?) ON CONFLICT (episode) DO NOTHING")
            .bind(request.owner.as_str())
            .bind(key.as_str())
            .bind(id.as_str())
            .execute(&mut *transaction)
            .await?;
    }
    Ok(())
}

async fn write_tokens(transaction: &mut Transaction, episode: &StoredEpisode) -> Result<(), sqlx::Error> {
    sqlx::query("DELETE FROM episode_tokens WHERE episode = ?")
        .bind(episode.id.as_str())
        .execute(&mut *transaction)
        .await?;
    for (position, token) in (0_i64..).zip(episode.tokens.iter()) {
        sqlx::query("INSERT INTO episode_tokens (episode, position, sha256) VALUES (?, ?, ?)")
            .bind(episode.id.as_str())
            .bind(position)
            .bind(token.as_bytes().as_slice())
            .execute(&mut *transaction)
            .await?;
    }
    Ok(())
}

async fn write_slots(transaction: &mut Transaction, episode: &StoredEpisode) -> Result<(), sqlx::Error> {
    let is_leased = matches!(episode.life, StoredEpisodeLife::Live(_));
    for StoredSlot { instance, generation } in &episode.slots {
        sqlx::query(
            "UPDATE episode_sites SET slot = ?, generation = ?, is_leased = ? \
             WHERE episode = ? AND environment = ? AND site = ?",
        )
        .bind(instance.number)
        .bind(generation.map(as_integer))
        .bind(is_leased)
        .bind(episode.id.as_str())
        .bind(instance.environment.as_str())
        .bind(instance.site.as_str())
        .execute(&mut *transaction)
        .await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
