//! The log of the states of episodes, which clients follow without a gap.

use jiff::Timestamp;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use crate::connection::Transaction;
use crate::{DaemonStore, Doing, OldRows, Retention, StoreError, instance_id, parsed, timestamp, word};
use arenad_model::episode::EpisodeStatus;
use arenad_model::episode::ending::EpisodeEnding;
use arenad_model::episode::ids::EpisodeId;
use arenad_model::instance::InstanceId;

/// A change of an episode's state that is about to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEpisodeEvent {
    /// The episode that changed.
    pub episode: EpisodeId,
    /// The state that the episode has entered.
    pub status: EpisodeStatus,
    /// How the episode ended, if it did.
    pub ending: Option<EpisodeEnding>,
}

/// A change of an episode's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEpisodeEvent {
    /// The number of the event. It increases and is never used again.
    pub seq: i64,
    /// The time at which the change was written.
    pub at: Timestamp,
    /// The episode that changed.
    pub episode: EpisodeId,
    /// The state that the episode has entered.
    pub status: EpisodeStatus,
    /// How the episode ended, if it did.
    pub ending: Option<EpisodeEnding>,
}

fn from_row(row: &SqliteRow) -> Result<StoredEpisodeEvent, StoreError> {
    Ok(StoredEpisodeEvent {
        seq: row.get("seq"),
        at: timestamp(row.get("at"))?,
        episode: parsed("the id of an episode", row.get("episode"), str::parse)?,
        status: word("the state of an episode", row.get("state"), EpisodeStatus::named)?,
        ending: ending(row.get("code"), row.get("slot"), row.get("detail"))?,
    })
}

/// Parses the end of an episode from its columns.
pub(super) fn ending(
    code: Option<&str>,
    slot: Option<&str>,
    detail: Option<&str>,
) -> Result<Option<EpisodeEnding>, StoreError> {
    let Some(code) = code else { return Ok(None) };
    let slot = slot.map(instance_id).transpose()?;
    let ending = EpisodeEnding::from_parts(code, slot, detail.unwrap_or_default());
    ending.map(Some).ok_or_else(|| StoreError::Row { what: "the end of an episode", text: code.to_owned() })
}

pub(super) async fn append(
    transaction: &mut Transaction,
    event: &NewEpisodeEvent,
    at: String,
) -> Result<i64, sqlx::Error> {
    let ending = event.ending.as_ref();
    sqlx::query_scalar(
        "INSERT INTO episode_events (at, episode, state, code, slot, detail) VALUES (?, ?, ?, ?, ?, ?) RETURNING seq",
    )
    .bind(at)
    .bind(event.episode.as_str())
    .bind(event.status.name())
    .bind(ending.map(EpisodeEnding::code))
    .bind(ending.and_then(EpisodeEnding::slot).map(InstanceId::to_string))
    .bind(ending.map(EpisodeEnding::detail))
    .fetch_one(transaction)
    .await
}

impl DaemonStore {
    /// Returns at most `limit` events of all episodes after `seq`, oldest first.
    pub async fn episode_events_after(&self, seq: i64, limit: u32) -> Result<Vec<StoredEpisodeEvent>, StoreError> {
        let rows = sqlx::query("SELECT * FROM episode_events WHERE seq > ? ORDER BY seq LIMIT ?")
            .bind(seq)
            .bind(limit)
            .fetch_all(&self.readers)
            .await
            .doing("read the events of episodes")?;
        rows.iter().map(from_row).collect()
    }

    /// Returns the number of the newest event of an episode, or zero if there is none.
    pub async fn newest_episode_event(&self) -> Result<i64, StoreError> {
        let newest: Option<i64> = sqlx::query_scalar("SELECT max(seq) FROM episode_events")
            .fetch_one(&self.quick)
            .await
            .doing("read the events of episodes")?;
        Ok(newest.unwrap_or(0))
    }

    /// Deletes old events of episodes, and returns their number.
    pub async fn prune_episode_events(&self, keep: Retention) -> Result<u64, StoreError> {
        let rows = OldRows { table: "episode_events", seq: "seq", at: "at", only: "TRUE" };
        self.forget_rows(rows, keep, "forget old events of episodes").await
    }
}
