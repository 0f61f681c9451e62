//! The table of sessions: the accounts that were signed in when a snapshot was taken.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sqlx::Row;

use super::{DaemonStore, Doing, StoreError, json, to_json};
use arenad_accounts::{BrowserCookie, LoginSession};
use arenad_model::site::Secret;

#[derive(Serialize, Deserialize)]
pub(super) struct StoredSession {
    cookies: Vec<StoredCookie>,
    headers: Vec<(String, String)>,
}

#[derive(Serialize, Deserialize)]
struct StoredCookie {
    name: String,
    value: String,
    domain: String,
    path: String,
    expires: Option<i64>,
    http_only: bool,
    secure: bool,
    same_site: Option<String>,
}

impl From<&LoginSession> for StoredSession {
    fn from(session: &LoginSession) -> Self {
        let cookies = session.cookies.iter().map(|cookie| StoredCookie {
            name: cookie.name.clone(),
            value: cookie.value.expose().to_owned(),
            domain: cookie.domain.clone(),
            path: cookie.path.clone(),
            expires: cookie.expires.map(Timestamp::as_second),
            http_only: cookie.http_only,
            secure: cookie.secure,
            same_site: cookie.same_site.clone(),
        });
        let headers = session.headers.iter().map(|(name, value)| (name.clone(), value.expose().to_owned()));
        Self { cookies: cookies.collect(), headers: headers.collect() }
    }
}

impl From<StoredSession> for LoginSession {
    fn from(stored: StoredSession) -> Self {
        let cookies = stored.cookies.into_iter().map(|cookie| BrowserCookie {
            name: cookie.name,
            value: Secret::new(cookie.value),
            domain: cookie.domain,
            path: cookie.path,
            expires: cookie.expires.and_then(|at| Timestamp::from_second(at).ok()),
            http_only: cookie.http_only,
            secure: cookie.secure,
            same_site: cookie.same_site,
        });
        let headers = stored.headers.into_iter().map(|(name, value)| (name, Secret::new(value)));
        Self { cookies: cookies.collect(), headers: headers.collect() }
    }
}

impl DaemonStore {
    /// Saves the session of an account as part of a snapshot.
    pub async fn save_session(
        &self,
        snapshot: &str,
        account: &str,
        place: &str,
        session: &LoginSession,
    ) -> Result<(), StoreError> {
        sqlx::query("INSERT OR REPLACE INTO sessions (snapshot, account, place, session) VALUES (?, ?, ?, ?)")
            .bind(snapshot)
            .bind(account)
            .bind(place)
            .bind(to_json(&StoredSession::from(session)))
            .execute(&self.durable)
            .await
            .doing("keep a session")?;
        Ok(())
    }

    /// Returns the session of an account that is part of a snapshot, if it is valid at the given place.
    pub async fn session(
        &self,
        snapshot: &str,
        account: &str,
        place: &str,
    ) -> Result<Option<LoginSession>, StoreError> {
        let row = sqlx::query("SELECT session FROM sessions WHERE snapshot = ? AND account = ? AND place = ?")
            .bind(snapshot)
            .bind(account)
            .bind(place)
            .fetch_optional(&self.quick)
            .await
            .doing("read a session")?;
        let stored = row.map(|row| json::<StoredSession>("a session", row.get("session"))).transpose()?;
        Ok(stored.map(LoginSession::from))
    }

    /// Copies the sessions of one snapshot to another that was made from it, because its accounts are still signed in
    /// there.
    pub async fn inherit_sessions(&self, from: &str, to: &str) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT OR IGNORE INTO sessions (snapshot, account, place, session) \
             SELECT ?, account, place, session FROM sessions WHERE snapshot = ?",
        )
        .bind(to)
        .bind(from)
        .execute(&self.durable)
        .await
        .doing("keep sessions")?;
        Ok(())
    }
}
