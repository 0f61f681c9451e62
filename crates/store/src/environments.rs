//! The table of definitions, as `arenad up` received them.

use std::collections::BTreeMap;

use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::instances::want;
use super::{DaemonStore, Doing, StoreError, json, to_json};
use arenad_model::instance::InstanceId;

/// A definition as the text of its files, with the variables that it was resolved with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEnvironment {
    /// The name of the environment.
    pub name: String,
    /// The folder that holds `environments/` and `compose/`.
    pub root: String,
    /// The path and text of `environments/<name>.yaml`.
    pub environment: (String, String),
    /// The path and text of `compose/<name>.yaml`.
    pub compose: (String, String),
    /// The path and text of the `.env` file, if there is one.
    pub dotenv: Option<(String, String)>,
    /// The variables of the caller's shell that the files mention.
    pub variables: BTreeMap<String, String>,
}

fn from_row(row: &SqliteRow) -> Result<StoredEnvironment, StoreError> {
    let dotenv: (Option<String>, Option<String>) = (row.get("dotenv_path"), row.get("dotenv_text"));
    Ok(StoredEnvironment {
        name: row.get("name"),
        root: row.get("root"),
        environment: (row.get("environment_path"), row.get("environment_text")),
        compose: (row.get("compose_path"), row.get("compose_text")),
        dotenv: dotenv.0.zip(dotenv.1),
        variables: json("an environment's variables", row.get("variables"))?,
    })
}

impl DaemonStore {
    /// Saves a definition, replacing one of the same name, and marks the given instances as wanted, in one transaction.
    pub async fn save_environment(
        &self,
        environment: &StoredEnvironment,
        wanted: &[InstanceId],
    ) -> Result<(), StoreError> {
        let mut transaction = self.durable.begin().await.doing("keep a definition")?;
        let (dotenv_path, dotenv_text) = environment.dotenv.clone().unzip();
        sqlx::query(
            "INSERT INTO environments (name, root, environment_path, environment_text, compose_path, compose_text, \
             dotenv_path, dotenv_text, variables, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) \
             ON CONFLICT (name) DO UPDATE SET root = excluded.root, environment_path = excluded.environment_path, \
             environment_text = excluded.environment_text, compose_path = excluded.compose_path, \
             compose_text = excluded.compose_text, dotenv_path = excluded.dotenv_path, \
             dotenv_text = excluded.dotenv_text, variables = excluded.variables, updated_at = excluded.updated_at",
        )
        .bind(&environment.name)
        .bind(&environment.root)
        .bind(&environment.environment.0)
        .bind(&environment.environment.1)
        .bind(&environment.compose.0)
        .bind(&environment.compose.1)
        .bind(dotenv_path)
        .bind(dotenv_text)
        .bind(to_json(&environment.variables))
        .bind(self.now())
        .execute(&mut transaction)
        .await
        .doing("keep a definition")?;
        for id in wanted {
            want(&mut transaction, id, true, self.now()).await.doing("keep a definition")?;
        }
        transaction.commit().await.doing("keep a definition")
    }

    /// Returns all definitions, ordered by name.
    pub async fn environments(&self) -> Result<Vec<StoredEnvironment>, StoreError> {
        let rows = sqlx::query("SELECT * FROM environments ORDER BY name")
            .fetch_all(&self.quick)
            .await
            .doing("read the definitions")?;
        rows.iter().map(from_row).collect()
    }

    /// Deletes a definition and its instances. The numbers of their generations are never reused.
    pub async fn forget_environment(&self, name: &str) -> Result<(), StoreError> {
        const DOING: &str = "forget a definition";
        let mut transaction = self.durable.begin().await.doing(DOING)?;
        for statement in [
            "UPDATE installation SET generations = max(generations, \
             coalesce((SELECT max(generation) FROM instances WHERE environment = ?), 0))",
            "DELETE FROM environments WHERE name = ?",
        ] {
            sqlx::query(statement).bind(name).execute(&mut transaction).await.doing(DOING)?;
        }
        transaction.commit().await.doing(DOING)
    }
}
