//! Sessions of accounts, which are reused while they are valid: a log-in costs a password hash and leaves traces on the
//! site.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::{LocateError, Scene};
use arenad_accounts::{self as accounts, LoginSession};
use arenad_site_client::SiteClient;

/// Time for which a session is used. Sites keep sessions for hours; the shorter time bounds how long a changed password
/// goes unnoticed.
const GOOD_FOR: Duration = Duration::from_secs(300);

#[derive(Default)]
pub(super) struct Sessions(Mutex<HashMap<(String, String), Kept>>);

struct Kept {
    generation: u64,
    since: Instant,
    session: Arc<LoginSession>,
}

impl Sessions {
    /// Returns the account's session on the instance, signing in if necessary, or `None` without an account.
    pub(super) async fn of(
        &self,
        client: &SiteClient,
        scene: &Scene<'_>,
        account: Option<&str>,
    ) -> Result<Option<Arc<LoginSession>>, LocateError> {
        let Some(account) = account else { return Ok(None) };
        let account = scene.account(account)?;
        let login = account.login.as_ref().ok_or_else(|| {
            LocateError::Unknown(format!(
                "the definition does not say how {} of {} signs in",
                account.name, scene.site.name
            ))
        })?;
        let key = (scene.instance.clone(), account.name.clone());
        let generation = scene.incarnation.generation;
        if let Some(kept) = self.lock().get(&key).filter(|kept| kept.is_good(generation)) {
            return Ok(Some(kept.session.clone()));
        }
        let session = accounts::log_in(client, &scene.place, account, login).await.map_err(|failure| {
            LocateError::Unavailable(format!("sign in to {} as {}: {failure}", scene.site.name, account.name))
        })?;
        let session = Arc::new(session);
        self.lock().insert(key, Kept { generation, since: Instant::now(), session: session.clone() });
        Ok(Some(session))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<(String, String), Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn is_good(&self, generation: u64) -> bool {
        self.generation == generation && self.since.elapsed() < GOOD_FOR
    }
}
