//! The daemon's periodic duties: named here, done elsewhere.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use cron::Cron;
use futures_util::StreamExt;
use jiff::Timestamp;
use tokio::sync::watch;

use super::environments::Environments;
use super::host::{self, HostReport};
use super::shared::Shared;
use crate::engine::labels;
use crate::probes::describe;
use crate::storage::Storage;

/// When left-over things are looked for.
const RECONCILE: &str = "* * * * *";

/// When old events and resets are forgotten.
const FORGET: &str = "17 * * * *";

/// How often the state root's trash is emptied: each reset leaves the state of the past there.
const EMPTY_TRASH_EVERY: Duration = Duration::from_secs(5);

/// How many events are kept: weeks of ordinary use.
const EVENTS_KEPT: u32 = 100_000;

/// How many resets are kept.
const RESETS_KEPT: u32 = 100_000;

/// How many health rounds of each instance and kind are kept: nearly an hour of shallow ones, days of deep ones.
const ROUNDS_KEPT: u32 = 1_000;

/// The pause before the engine's events are listened to again.
const RELISTEN: Duration = Duration::from_secs(1);

/// Starts the duties; they end with the daemon.
pub fn spawn(
    shared: &Arc<Shared>,
    environments: &Arc<Environments>,
    report: watch::Sender<HostReport>,
    folders: Vec<PathBuf>,
) {
    let cancel = shared.shutdown.clone();
    shared.tasks.spawn(host::watch(shared.engine.clone(), folders, report, cancel));
    shared.tasks.spawn(listen(shared.clone(), environments.clone()));
    if let Some(storage) = shared.storage.clone() {
        shared.tasks.spawn(empty_trash(shared.clone(), storage));
    }
    let reconciled = environments.clone();
    shared.tasks.spawn(on_schedule(shared.clone(), RECONCILE, move || {
        let environments = reconciled.clone();
        async move {
            environments.reconcile(false).await;
            if let Err(error) = environments.restore().await {
                tracing::warn!(error = describe(&error), "environments could not be taken up again");
            }
        }
    }));
    let forgetful = shared.clone();
    shared.tasks.spawn(on_schedule(shared.clone(), FORGET, move || {
        let store = forgetful.store.clone();
        async move {
            let forgotten = async {
                store.prune_events(EVENTS_KEPT).await?;
                store.prune_resets(RESETS_KEPT).await?;
                store.prune_rounds(ROUNDS_KEPT).await
            };
            if let Err(error) = forgotten.await {
                tracing::warn!(error = describe(&error), "old rows could not be forgotten");
            }
        }
    }));
}

/// Does a duty whenever its schedule says, never twice at once, and never to make up for times that were missed.
async fn on_schedule<F, Fut>(shared: Arc<Shared>, schedule: &'static str, duty: F)
where
    F: Fn() -> Fut + Send,
    Fut: Future<Output = ()> + Send,
{
    let schedule = Cron::from_str(schedule).expect("the schedules above are valid");
    loop {
        let pause = pause_until_next(&schedule);
        tokio::select! {
            () = shared.shutdown.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        tokio::select! {
            () = shared.shutdown.cancelled() => return,
            () = duty() => {}
        }
    }
}

/// Removes what the state root has in its trash, again and again.
async fn empty_trash(shared: Arc<Shared>, storage: Storage) {
    loop {
        if let Err(error) = storage.empty_trash().await {
            tracing::warn!(error = describe(&error), "the state root's trash could not be emptied");
        }
        tokio::select! {
            () = shared.shutdown.cancelled() => return,
            () = tokio::time::sleep(EMPTY_TRASH_EVERY) => {}
        }
    }
}

/// The time from now to the schedule's next, in UTC. A schedule without a next time is looked at again in an hour.
fn pause_until_next(schedule: &Cron) -> Duration {
    let now = Timestamp::now();
    let zoned = now.to_zoned(jiff::tz::TimeZone::UTC);
    match schedule.find_next_occurrence(&zoned, false) {
        Ok(next) => Duration::try_from(next.timestamp().duration_since(now)).unwrap_or_default(),
        Err(_) => Duration::from_secs(3600),
    }
}

/// Passes the engine's events on; listens again when the stream breaks off.
async fn listen(shared: Arc<Shared>, environments: Arc<Environments>) {
    loop {
        let mut events = shared.engine.events(labels::INSTALLATION, &shared.installation);
        loop {
            let event = tokio::select! {
                () = shared.shutdown.cancelled() => return,
                event = events.next() => event,
            };
            match event {
                Some(Ok(event)) => environments.tell(&event),
                Some(Err(_)) | None => break,
            }
        }
        tokio::select! {
            () = shared.shutdown.cancelled() => return,
            () = tokio::time::sleep(RELISTEN) => {}
        }
    }
}
