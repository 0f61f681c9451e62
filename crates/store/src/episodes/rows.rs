//! Reads episodes back from their rows.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::events::ending;
use super::{StoredEpisode, StoredEpisodeLife, StoredSlot};
use crate::{DaemonStore, Doing, StoreError, episode_id, parsed, timestamp, word};
use arenad_model::episode::EpisodeState;
use arenad_model::episode::EpisodeStatus;
use arenad_model::episode::fence::{EpisodeTokens, TokenHash};
use arenad_model::episode::ids::{EpisodeLabels, IdempotencyKey, Owner, RecordBeginningId};
use arenad_model::episode::life::{EpisodeTerms, StoredLife};
use arenad_model::episode::request::{EpisodeRequest, SiteWant, StartPoint};
use arenad_model::ids::{EnvironmentName, ReplayName, SiteId, SiteName};
use arenad_model::instance::InstanceId;
use arenad_model::site::RecordedRequests;

const DOING: &str = "read the episodes";

fn refused(what: &'static str, text: impl ToString) -> StoreError {
    StoreError::Row { what, text: text.to_string() }
}

/// Parses the id of the beginning of a record.
pub(super) fn record_beginning(text: &str) -> Result<RecordBeginningId, StoreError> {
    text.parse().map_err(|_| refused("the beginning of a record", text))
}

fn duration(row: &SqliteRow, column: &str) -> Duration {
    Duration::from_millis(row.get::<Option<i64>, _>(column).unwrap_or_default().max(0).unsigned_abs())
}

/// The rows of other tables that belong to one episode.
#[derive(Default)]
struct EpisodeParts {
    sites: Vec<SiteWant>,
    slots: Vec<StoredSlot>,
    tokens: Vec<TokenHash>,
    key: Option<IdempotencyKey>,
    labels: BTreeMap<String, String>,
}

impl EpisodeParts {
    fn add_site(&mut self, row: &SqliteRow) -> Result<(), StoreError> {
        let environment = parsed("the name of an environment", row.get("environment"), EnvironmentName::parse)?;
        let name = parsed("the name of a site", row.get("site"), SiteName::parse)?;
        let from: Option<&str> = row.get("start_from");
        let start = match (row.get::<&str, _>("start"), from) {
            ("baseline", None) => StartPoint::Baseline,
            ("snapshot", Some(snapshot)) => StartPoint::Snapshot(snapshot.to_owned()),
            ("fork", Some(parent)) => {
                let copy: Option<String> = row.get("copy");
                let copy = copy.ok_or_else(|| refused("the copy that a fork starts from", "nothing"))?.into();
                StartPoint::Fork { parent: episode_id(parent)?, copy }
            }
            (other, _) => return Err(refused("the starting point of an episode", other)),
        };
        if let Some(number) = row.get("slot") {
            let instance = InstanceId { environment: environment.clone(), site: name.clone(), number };
            let generation = row.get::<Option<i64>, _>("generation").map(i64::unsigned_abs);
            self.slots.push(StoredSlot { instance, generation });
        }
        self.sites.push(SiteWant { site: SiteId { environment, site: name }, slot: row.get("wanted"), start });
        Ok(())
    }

    fn add_token(&mut self, row: &SqliteRow) -> Result<(), StoreError> {
        let bytes: &[u8] = row.get("sha256");
        let hash = bytes.try_into().map_err(|_| refused("the hash of a token", bytes.len()))?;
        self.tokens.push(TokenHash::new(hash));
        Ok(())
    }
}

fn live(row: &SqliteRow, status: EpisodeStatus, terms: EpisodeTerms, now: Timestamp) -> Result<StoredLife, StoreError> {
    let state = match status {
        EpisodeStatus::Queued => EpisodeState::Queued,
        EpisodeStatus::Preparing => EpisodeState::Preparing,
        EpisodeStatus::Active => EpisodeState::Active,
        EpisodeStatus::Frozen => EpisodeState::Frozen,
        EpisodeStatus::Released | EpisodeStatus::Expired | EpisodeStatus::Void => {
            return Err(refused("the state of an episode that has not ended", status.name()));
        }
    };
    let deadline = timestamp(row.get::<Option<&str>, _>("deadline").unwrap_or_default())?;
    // A deadline that has passed leaves no time.
    let until = Duration::try_from(deadline.duration_since(now)).unwrap_or(Duration::ZERO);
    Ok(StoredLife {
        state,
        terms,
        left: duration(row, "left_ms").min(until),
        was_held: row.get("is_held"),
        is_frozen_by_client: row.get("is_frozen_by_client"),
    })
}

fn from_row(row: &SqliteRow, parts: EpisodeParts, now: Timestamp) -> Result<StoredEpisode, StoreError> {
    let id = episode_id(row.get("id"))?;
    let status = word("the state of an episode", row.get("state"), EpisodeStatus::named)?;
    let terms = EpisodeTerms::new(duration(row, "ttl_ms"), duration(row, "wait_ms"));
    let terms = terms.map_err(|_| refused("the times of an episode", &id))?;
    let life = match ending(row.get("ending_code"), row.get("ending_slot"), row.get("ending_detail"))? {
        None => StoredEpisodeLife::Live(live(row, status, terms, now)?),
        Some(ending) => {
            let at = timestamp(row.get::<Option<&str>, _>("ended_at").unwrap_or_default())?;
            StoredEpisodeLife::Ended { ending, at }
        }
    };
    let labels = EpisodeLabels::parse(parts.labels).map_err(|_| refused("the labels of an episode", &id))?;
    let owner = parsed("the owner of an episode", row.get("owner"), Owner::parse)?;
    let record = word("the recording of an episode", row.get("record"), RecordedRequests::named)?;
    let beginning = row.get::<Option<&str>, _>("record_beginning").map(record_beginning).transpose()?;
    let replays = row.get::<&str, _>("replays").split_ascii_whitespace();
    let replays = replays.map(|name| parsed("the name of a replay", name, ReplayName::parse));
    let replays = replays.collect::<Result<Vec<_>, _>>()?;
    let (key, sites) = (parts.key, parts.sites);
    Ok(StoredEpisode {
        id,
        request: Arc::new(EpisodeRequest { owner, key, sites, terms, labels, record, beginning, replays }),
        tokens: EpisodeTokens::restored(parts.tokens),
        slots: parts.slots,
        life,
        asked_at: timestamp(row.get("asked_at"))?,
        granted_at: row.get::<Option<&str>, _>("granted_at").map(timestamp).transpose()?,
    })
}

/// Returns a query of the rows that belong to the episodes that have ended, or to the others.
macro_rules! parts_of_episodes {
    ($table:literal, $order:literal) => {
        concat!(
            "SELECT part.* FROM ",
            $table,
            " AS part JOIN episodes ON episodes.id = part.episode WHERE (episodes.ended_seq IS NOT NULL) = ? ORDER BY ",
            $order
        )
    };
}

impl DaemonStore {
    /// Returns the episodes that have not ended, in order of arrival.
    pub async fn live_episodes(&self) -> Result<Vec<StoredEpisode>, StoreError> {
        self.read_episodes(false).await
    }

    /// Returns the episodes that have ended and are remembered, in the order of their ends.
    pub async fn ended_episodes(&self) -> Result<Vec<StoredEpisode>, StoreError> {
        self.read_episodes(true).await
    }

    async fn read_episodes(&self, have_ended: bool) -> Result<Vec<StoredEpisode>, StoreError> {
        let mut parts: BTreeMap<String, EpisodeParts> = BTreeMap::new();
        for row in self.rows(parts_of_episodes!("episode_sites", "part.episode, part.position"), have_ended).await? {
            parts.entry(row.get("episode")).or_default().add_site(&row)?;
        }
        for row in self.rows(parts_of_episodes!("episode_tokens", "part.episode, part.position"), have_ended).await? {
            parts.entry(row.get("episode")).or_default().add_token(&row)?;
        }
        for row in self.rows(parts_of_episodes!("episode_keys", "part.episode"), have_ended).await? {
            let key = parsed("an idempotency key", row.get("key"), IdempotencyKey::parse)?;
            parts.entry(row.get("episode")).or_default().key = Some(key);
        }
        for row in self.rows(parts_of_episodes!("episode_labels", "part.episode"), have_ended).await? {
            parts.entry(row.get("episode")).or_default().labels.insert(row.get("name"), row.get("value"));
        }
        let now = self.clock.now();
        let episodes = "SELECT * FROM episodes WHERE (ended_seq IS NOT NULL) = ? ORDER BY ended_seq, seq";
        let rows = self.rows(episodes, have_ended).await?;
        let parts_of = |row: &SqliteRow| row.get::<&str, _>("id").to_owned();
        rows.iter().map(|row| from_row(row, parts.remove(&parts_of(row)).unwrap_or_default(), now)).collect()
    }

    async fn rows(&self, query: &'static str, have_ended: bool) -> Result<Vec<SqliteRow>, StoreError> {
        sqlx::query(query).bind(have_ended).fetch_all(&self.quick).await.doing(DOING)
    }
}
