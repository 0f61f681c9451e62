//! The table of instances: the desired state of each and its newest generation.

use jiff::Timestamp;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::connection::Transaction;
use super::resets::{NewReset, insert_reset};
use super::{DaemonStore, Doing, StoreError, instance_id, time_text, timestamp, word};
use arenad_model::instance::{InstanceId, InstanceState, InstanceStatus};
use arenad_model::reset::ResetWay;
use arenad_model::snapshot::SnapshotId;

/// One row of the table of instances.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredInstance {
    /// The instance's id, which contains the names of its environment and site.
    pub id: InstanceId,
    /// Whether the instance should be up.
    pub desired_up: bool,
    /// The last recorded state.
    pub state: InstanceStatus,
    /// The highest number of a generation that was begun for the instance, or, in the instance with number 1, as a standby
    /// of the site.
    pub generation: u64,
    /// The generation that serves or is being made to serve; `None` before the first one.
    pub serving: Option<ServingGeneration>,
    /// The id of the snapshot that the instance starts from.
    pub snapshot: Option<SnapshotId>,
    /// The id of the snapshot that a reset leads to.
    pub baseline: Option<SnapshotId>,
    /// The time when the last recorded state began.
    pub since: Timestamp,
}

/// The generation of an instance that clients reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServingGeneration {
    /// The number of the generation that serves.
    pub generation: u64,
    /// The generation that the containers were made for; their labels name it. It is lower than `generation` after a
    /// rewind, which makes a new generation of the same containers.
    pub made: u64,
}

/// A generation that is about to be made.
#[derive(Debug, Clone, Copy)]
pub struct NewGeneration<'a> {
    /// Whether the generation gets containers of its own; otherwise the serving containers are rewound to the snapshot.
    pub has_new_containers: bool,
    /// The id of the snapshot that the generation is made from.
    pub snapshot: &'a SnapshotId,
    /// The instance's state from now on.
    pub state: &'a InstanceState,
    /// The time when that state begins.
    pub since: Timestamp,
    /// The reset that needs the generation; `None` outside a reset.
    pub reset: Option<StoredResetRequest<'a>>,
    /// The way of resetting that is being tried.
    pub strategy: ResetWay,
}

/// A reset as it was requested.
#[derive(Debug, Clone, Copy)]
pub struct StoredResetRequest<'a> {
    /// The id of the reset.
    pub id: &'a str,
    /// The time of the request.
    pub requested_at: Timestamp,
}

/// A generation that is about to serve.
#[derive(Debug, Clone, Copy)]
pub struct NewServing<'a> {
    /// The generation's number; `None` assigns the next one.
    pub generation: Option<u64>,
    /// The generation that the containers were made for.
    pub made: u64,
    /// The id of the snapshot that the generation was made from.
    pub snapshot: &'a SnapshotId,
    /// The id of the snapshot that later resets lead to; `None` leaves the recorded one unchanged.
    pub baseline: Option<&'a SnapshotId>,
    /// The time when the generation begins to serve.
    pub since: Timestamp,
    /// The reset that led to the generation; `None` if there was none.
    pub reset: Option<NewReset<'a>>,
}

fn from_row(row: &SqliteRow) -> Result<StoredInstance, StoreError> {
    Ok(StoredInstance {
        id: instance_id(row.get("id"))?,
        desired_up: row.get::<String, _>("desired") == "up",
        state: word("the state of an instance", row.get("state"), InstanceStatus::named)?,
        generation: row.get::<i64, _>("generation").unsigned_abs(),
        serving: serving(row),
        snapshot: row.get::<Option<String>, _>("snapshot").map(SnapshotId::from),
        baseline: row.get::<Option<String>, _>("baseline").map(SnapshotId::from),
        since: timestamp(row.get("since"))?,
    })
}

fn serving(row: &SqliteRow) -> Option<ServingGeneration> {
    let generation = row.get::<Option<i64>, _>("serving")?.unsigned_abs();
    let made = row.get::<Option<i64>, _>("made")?.unsigned_abs();
    Some(ServingGeneration { generation, made })
}

/// The number of the next generation of the site of the row that is being updated. No two generations of a site have the
/// same number, because a generation can leave one instance and later serve in another.
macro_rules! next_generation {
    () => {
        "(SELECT max(others.generation) + 1 FROM instances AS others \
         WHERE others.environment = instances.environment AND others.site = instances.site)"
    };
}

/// Records whether an instance should be up, and creates its row if it has none.
///
/// The generation numbers of a new row start above those of every deleted instance, whose containers may still exist on
/// another engine and whose trees may still be in the state root.
pub(super) async fn want(
    transaction: &mut Transaction,
    id: &InstanceId,
    up: bool,
    now: String,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO instances (id, environment, site, desired, state, since, generation) VALUES (?1, ?2, ?3, ?4, 'down', ?5, \
         coalesce((SELECT generations FROM installation), 0)) \
         ON CONFLICT (id) DO UPDATE SET desired = excluded.desired",
    )
    .bind(id.to_string())
    .bind(id.environment.as_str())
    .bind(id.site.as_str())
    .bind(if up { "up" } else { "down" })
    .bind(now)
    .execute(transaction)
    .await?;
    Ok(())
}

impl DaemonStore {
    /// Records that an instance should be up, and creates its row if it has none.
    pub async fn want_instance(&self, id: &InstanceId) -> Result<(), StoreError> {
        let doing = "note what is wanted of an instance";
        let mut transaction = self.durable.begin().await.doing(doing)?;
        want(&mut transaction, id, true, self.now()).await.doing(doing)?;
        transaction.commit().await.doing(doing)
    }

    /// Records that an instance should be down.
    pub async fn unwant_instance(&self, id: &InstanceId) -> Result<(), StoreError> {
        let doing = "note what is wanted of an instance";
        let mut transaction = self.durable.begin().await.doing(doing)?;
        want(&mut transaction, id, false, self.now()).await.doing(doing)?;
        transaction.commit().await.doing(doing)
    }

    /// Returns the instances of an environment, ordered by id.
    pub async fn instances(&self, environment: &str) -> Result<Vec<StoredInstance>, StoreError> {
        let rows = sqlx::query("SELECT * FROM instances WHERE environment = ? ORDER BY id")
            .bind(environment)
            .fetch_all(&self.quick)
            .await
            .doing("read the instances")?;
        rows.iter().map(from_row).collect()
    }

    /// Returns one instance, if it has a row.
    pub async fn instance(&self, id: &InstanceId) -> Result<Option<StoredInstance>, StoreError> {
        let row = sqlx::query("SELECT * FROM instances WHERE id = ?")
            .bind(id.to_string())
            .fetch_optional(&self.quick)
            .await
            .doing("read an instance")?;
        row.as_ref().map(from_row).transpose()
    }

    /// Records the state of an instance and the time when it began.
    ///
    /// The desired state follows. An instance that is ready should be up, even if an earlier `down` had failed; an
    /// instance that is stopping should be down, regardless of the requester. When an instance is brought up after an
    /// interrupted reset, its containers are no longer recorded as serving, because a later daemon could not know
    /// whether they are still in their previous state.
    pub async fn save_state(&self, id: &InstanceId, state: &InstanceState, since: Timestamp) -> Result<(), StoreError> {
        let trouble = state.trouble();
        sqlx::query(
            "UPDATE instances SET state = ?1, reason = ?2, hint = ?3, since = ?4, \
             serving = CASE WHEN state = 'resetting' AND ?1 = 'preparing' THEN NULL ELSE serving END, \
             made = CASE WHEN state = 'resetting' AND ?1 = 'preparing' THEN NULL ELSE made END, \
             desired = CASE ?1 WHEN 'ready' THEN 'up' WHEN 'stopping' THEN 'down' WHEN 'down' THEN 'down' ELSE desired END \
             WHERE id = ?5",
        )
        .bind(state.name())
        .bind(trouble.map(|trouble| trouble.reason.clone()))
        .bind(trouble.map(|trouble| trouble.hint.clone()))
        .bind(time_text(since))
        .bind(id.to_string())
        .execute(&self.durable)
        .await
        .doing("note an instance's state")?;
        Ok(())
    }

    /// Records that no generation of an instance serves or is being made to serve; its remaining containers become
    /// orphans.
    pub async fn disown_serving(&self, id: &InstanceId) -> Result<(), StoreError> {
        sqlx::query("UPDATE instances SET serving = NULL, made = NULL WHERE id = ?")
            .bind(id.to_string())
            .execute(&self.durable)
            .await
            .doing("note that nothing serves")?;
        Ok(())
    }

    /// Begins a new generation that is to serve and returns its number, which no earlier generation of the site has had.
    /// The state, the generation and the reset in progress are written in one change.
    ///
    /// The row is on disk before any object of that generation exists in the engine. The engine can therefore hold no
    /// generation that the row does not know, and a generation that neither serves nor is a standby of this daemon is
    /// an orphan.
    pub async fn begin_generation(&self, id: &InstanceId, begun: &NewGeneration<'_>) -> Result<u64, StoreError> {
        let generation: i64 = sqlx::query_scalar(concat!(
            "UPDATE instances SET generation = ",
            next_generation!(),
            ", serving = ",
            next_generation!(),
            ", made = CASE WHEN ?1 THEN ",
            next_generation!(),
            " ELSE made END, snapshot = ?2, state = ?3, since = ?4, reason = NULL, hint = NULL, \
             engine = (SELECT engine FROM installation), reset_id = ?5, reset_strategy = ?6, reset_requested_at = ?7 \
             WHERE id = ?8 RETURNING generation",
        ))
        .bind(begun.has_new_containers)
        .bind(begun.snapshot.as_str())
        .bind(begun.state.name())
        .bind(time_text(begun.since))
        .bind(begun.reset.map(|reset| reset.id))
        .bind(begun.reset.map(|_| begun.strategy.name()))
        .bind(begun.reset.map(|reset| time_text(reset.requested_at)))
        .bind(id.to_string())
        .fetch_one(&self.durable)
        .await
        .doing("begin a generation")?;
        Ok(generation.unsigned_abs())
    }

    /// Records that a generation serves and returns its number; a standby that takes over gets a new number.
    ///
    /// The reset that led to it is written in the same transaction. The row is on disk before the first client reaches
    /// the generation, so after a crash in between, the next daemon adopts containers that no client has used.
    pub async fn record_serving(&self, id: &InstanceId, recorded: &NewServing<'_>) -> Result<u64, StoreError> {
        let doing = "note which generation serves";
        let as_integer = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let mut transaction = self.durable.begin().await.doing(doing)?;
        let generation: i64 = sqlx::query_scalar(concat!(
            "UPDATE instances SET generation = CASE WHEN ?1 IS NULL THEN ",
            next_generation!(),
            " ELSE generation END, serving = CASE WHEN ?1 IS NULL THEN ",
            next_generation!(),
            " ELSE ?1 END, made = ?2, snapshot = ?3, baseline = coalesce(?4, baseline), state = 'ready', reason = NULL, \
             hint = NULL, since = ?5, desired = 'up', engine = (SELECT engine FROM installation), reset_id = NULL, \
             reset_strategy = NULL, reset_requested_at = NULL WHERE id = ?6 RETURNING serving",
        ))
        .bind(recorded.generation.map(as_integer))
        .bind(as_integer(recorded.made))
        .bind(recorded.snapshot.as_str())
        .bind(recorded.baseline.map(SnapshotId::as_str))
        .bind(time_text(recorded.since))
        .bind(id.to_string())
        .fetch_one(&mut transaction)
        .await
        .doing(doing)?;
        sqlx::query("DELETE FROM standbys WHERE instance = ? AND made = ?")
            .bind(id.owner().to_string())
            .bind(as_integer(recorded.made))
            .execute(&mut transaction)
            .await
            .doing(doing)?;
        if let Some(reset) = &recorded.reset {
            insert_reset(&mut transaction, id, reset, self.now()).await.doing(doing)?;
        }
        transaction.commit().await.doing(doing)?;
        Ok(generation.unsigned_abs())
    }

    /// Begins a new generation of the site of an instance, which does not serve yet, and returns its number.
    pub async fn begin_standby(&self, id: &InstanceId) -> Result<u64, StoreError> {
        let begin =
            concat!("UPDATE instances SET generation = ", next_generation!(), " WHERE id = ? RETURNING generation");
        let generation: i64 = sqlx::query_scalar(begin)
            .bind(id.owner().to_string())
            .fetch_one(&self.durable)
            .await
            .doing("begin a standby")?;
        Ok(generation.unsigned_abs())
    }
}
