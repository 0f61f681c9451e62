//! The evaluations of episodes. They are kept as long as the rows of their episodes, without their evidence.

use jiff::Timestamp;
use sqlx::Row;

use crate::{DaemonStore, Doing, StoreError, timestamp};
use arenad_model::episode::ids::EpisodeId;

/// The most evaluations of one episode that are kept: the newest.
const KEPT: i64 = 100;

/// An evaluation that is about to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEvaluation {
    /// The native task by name, or the benchmark and the number of its task.
    pub task: String,
    /// The word of the verdict, as the API has it.
    pub verdict: String,
    /// 1 if the task was accomplished, 0 if it was not, and `None` otherwise.
    pub reward: Option<f64>,
}

/// An evaluation of an episode.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEvaluation {
    /// The time at which the verdict was given.
    pub at: Timestamp,
    /// The task and its verdict.
    pub evaluation: NewEvaluation,
}

impl DaemonStore {
    /// Records an evaluation of an episode.
    ///
    /// Errors: the episode has been forgotten, or the store failed.
    pub async fn note_evaluation(&self, episode: &EpisodeId, evaluation: &NewEvaluation) -> Result<(), StoreError> {
        const DOING: &str = "record an evaluation";
        let mut transaction = self.durable.begin().await.doing(DOING)?;
        sqlx::query("INSERT INTO episode_evaluations (episode, at, task, verdict, reward) VALUES (?, ?, ?, ?, ?)")
            .bind(episode.to_string())
            .bind(self.now())
            .bind(&evaluation.task)
            .bind(&evaluation.verdict)
            .bind(evaluation.reward)
            .execute(&mut transaction)
            .await
            .doing(DOING)?;
        sqlx::query(
            "DELETE FROM episode_evaluations WHERE episode = ?1 AND seq <= \
             (SELECT seq FROM episode_evaluations WHERE episode = ?1 ORDER BY seq DESC LIMIT 1 OFFSET ?2)",
        )
        .bind(episode.to_string())
        .bind(KEPT)
        .execute(&mut transaction)
        .await
        .doing(DOING)?;
        transaction.commit().await.doing(DOING)
    }

    /// Returns the evaluations of an episode, oldest first.
    pub async fn evaluations(&self, episode: &EpisodeId) -> Result<Vec<StoredEvaluation>, StoreError> {
        let query = "SELECT at, task, verdict, reward FROM episode_evaluations WHERE episode = ? ORDER BY seq";
        let rows = sqlx::query(query).bind(episode.to_string()).fetch_all(&self.quick).await;
        let read = rows.doing("read the evaluations of an episode")?;
        let evaluations = read.iter().map(|row| {
            let evaluation =
                NewEvaluation { task: row.get("task"), verdict: row.get("verdict"), reward: row.get("reward") };
            Ok(StoredEvaluation { at: timestamp(row.get("at"))?, evaluation })
        });
        evaluations.collect()
    }
}
