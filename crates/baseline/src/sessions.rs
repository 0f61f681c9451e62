//! Log-ins while a baseline is made. The accounts' sessions become part of its state, so they are valid after every
//! reset, until the site's own expiry ends them.

use super::BaselineParts;
use arenad_accounts::{self as accounts, LoginSession, VisitAddress};
use arenad_launch::Incarnation;
use arenad_model::event::EventKind;
use arenad_model::site::Site;
use arenad_model::snapshot::Snapshot;
use arenad_store::StoreError;

/// The host and port at which the sessions of a site's accounts are valid.
pub fn place(site: &Site) -> String {
    format!("{}:{}", site.public.host, site.public.port)
}

/// Logs in with every account whose definition says how. If a log-in fails, an event says so, and the account logs in
/// when its session is requested.
pub(crate) async fn sign_in(
    parts: &BaselineParts,
    site: &Site,
    incarnation: &Incarnation,
    stage: &(dyn Fn(&str) + Send + Sync),
) -> Vec<(String, LoginSession)> {
    let Some(entry) = incarnation.socket(&site.entry.service, site.entry.port) else { return Vec::new() };
    let place = VisitAddress { host: site.public.host.clone(), port: site.public.port, entry };
    let mut sessions = Vec::new();
    for account in &site.accounts {
        let Some(login) = &account.login else { continue };
        stage(&format!("baseline: signing in as {}", account.name));
        match accounts::log_in(parts.prober.http(), &place, account, login).await {
            Ok(session) => sessions.push((account.name.clone(), session)),
            Err(failure) => {
                let message =
                    format!("the account {} of {} has no session in the baseline: {failure}", account.name, site.name);
                parts.events.note(EventKind::AccountNoSession, None, &message).await;
            }
        }
    }
    sessions
}

/// Stores the sessions with the snapshot that they are part of.
pub(crate) async fn keep(
    parts: &BaselineParts,
    site: &Site,
    snapshot: &Snapshot,
    sessions: &[(String, LoginSession)],
) -> Result<(), StoreError> {
    for (account, session) in sessions {
        parts.store.save_session(&snapshot.id, account, &place(site), session).await?;
    }
    Ok(())
}
