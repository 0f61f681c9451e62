//! The table of resets that harnesses have asked for and that are not known to have succeeded.
//!
//! A row is there from before the first site is reset until all sites are. A daemon that finds rows therefore knows
//! that sites may still have what was written to them.

use sqlx::Row;

use super::{DaemonStore, Doing, StoreError, parsed};
use arenad_model::ids::{EnvironmentName, SiteName};
use arenad_model::reset_scope::ResetScope;

/// Returns the site of a scope as its column has it.
fn site_text(scope: &ResetScope) -> &str {
    scope.site.as_ref().map_or("", SiteName::as_str)
}

impl DaemonStore {
    /// Records that a reset begins. One of all sites takes the place of failures of single sites.
    pub async fn begin_asked_reset(&self, scope: &ResetScope) -> Result<(), StoreError> {
        const DOING: &str = "note a reset that begins";
        let mut transaction = self.durable.begin().await.doing(DOING)?;
        if scope.site.is_none() {
            sqlx::query("DELETE FROM asked_resets WHERE environment = ? AND slot = ? AND failure IS NOT NULL")
                .bind(scope.environment.as_str())
                .bind(scope.slot)
                .execute(&mut transaction)
                .await
                .doing(DOING)?;
        }
        sqlx::query(
            "INSERT OR REPLACE INTO asked_resets (environment, slot, site, began_at, failure) VALUES (?, ?, ?, ?, NULL)",
        )
        .bind(scope.environment.as_str())
        .bind(scope.slot)
        .bind(site_text(scope))
        .bind(self.now())
        .execute(&mut transaction)
        .await
        .doing(DOING)?;
        transaction.commit().await.doing(DOING)
    }

    /// Records that a reset has failed.
    pub async fn fail_asked_reset(&self, scope: &ResetScope, failure: &str) -> Result<(), StoreError> {
        sqlx::query("UPDATE asked_resets SET failure = ? WHERE environment = ? AND slot = ? AND site = ?")
            .bind(failure)
            .bind(scope.environment.as_str())
            .bind(scope.slot)
            .bind(site_text(scope))
            .execute(&self.durable)
            .await
            .doing("note a reset that failed")?;
        Ok(())
    }

    /// Forgets a reset that has succeeded.
    pub async fn complete_asked_reset(&self, scope: &ResetScope) -> Result<(), StoreError> {
        sqlx::query("DELETE FROM asked_resets WHERE environment = ? AND slot = ? AND site = ?")
            .bind(scope.environment.as_str())
            .bind(scope.slot)
            .bind(site_text(scope))
            .execute(&self.durable)
            .await
            .doing("note a reset that is done")?;
        Ok(())
    }

    /// Records that the resets that an earlier daemon had not ended have failed, and returns all failures.
    pub async fn interrupt_asked_resets(&self, failure: &str) -> Result<Vec<(ResetScope, String)>, StoreError> {
        const DOING: &str = "read the resets that were asked for";
        sqlx::query("UPDATE asked_resets SET failure = ? WHERE failure IS NULL")
            .bind(failure)
            .execute(&self.durable)
            .await
            .doing(DOING)?;
        let query = "SELECT environment, slot, site, failure FROM asked_resets ORDER BY environment, slot, site";
        let rows = sqlx::query(query).fetch_all(&self.quick).await.doing(DOING)?;
        let failures = rows.iter().map(|row| {
            let site: &str = row.get("site");
            let site = match site {
                "" => None,
                name => Some(parsed("the name of a site", name, SiteName::parse)?),
            };
            let environment = parsed("the name of an environment", row.get("environment"), EnvironmentName::parse)?;
            Ok((ResetScope { environment, slot: row.get("slot"), site }, row.get("failure")))
        });
        failures.collect()
    }
}
