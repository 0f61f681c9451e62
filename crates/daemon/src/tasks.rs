//! The schedule of the daemon's periodic duties, which other modules implement.

use std::str::FromStr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use cron::Cron;
use futures_util::StreamExt;
use jiff::Timestamp;
use tokio::time::Instant;

use super::environments::EnvironmentRegistry;
use super::{looks, trash};
use arenad_engine::labels;
use arenad_instance::shared::SharedParts;
use arenad_model::error::describe;
use arenad_model::flow::Calm;
use arenad_storage::disk::{self, DiskStatus};
use arenad_store::Retention;
use arenad_telemetry::supervised::supervised;

/// The schedule of reconciliation.
static RECONCILE: LazyLock<Cron> = LazyLock::new(|| cron("* * * * *"));

/// The schedule for moving the store's WAL into its database.
static CHECKPOINT: LazyLock<Cron> = LazyLock::new(|| cron("* * * * *"));

/// The schedule on which the state root's own disk returns freed blocks to the disk beneath.
static TRIM: LazyLock<Cron> = LazyLock::new(|| cron("*/15 * * * *"));

/// The schedule for deleting old events, resets and rounds.
static FORGET: LazyLock<Cron> = LazyLock::new(|| cron("17 * * * *"));

/// The schedule for removing looks of generations that do not serve, and rows of removed snapshots.
static FORGET_LOOKS: LazyLock<Cron> = LazyLock::new(|| cron("27 * * * *"));

/// The schedule for removing records of episodes.
static FORGET_RECORDS: LazyLock<Cron> = LazyLock::new(|| cron("37 * * * *"));

fn cron(schedule: &str) -> Cron {
    Cron::from_str(schedule).expect("the schedules above are valid")
}

/// The events and resets that are kept: weeks of ordinary use.
const HISTORY: Retention = Retention { most: 100_000, least: 10_000, age: Duration::from_secs(90 * DAY) };

/// The number of health rounds that are kept of each instance and kind: nearly an hour of shallow ones, days of deep
/// ones.
const ROUNDS_KEPT: u32 = 1_000;

/// The time for which the health rounds of deleted instances are kept.
const ROUNDS_AGE: Duration = Duration::from_secs(30 * DAY);

const DAY: u64 = 24 * 3600;

/// The shortest time between two forwarded events of the same container.
const EVENT_PAUSE: Duration = Duration::from_millis(100);

/// The pause before the daemon subscribes to the engine's events again.
const RELISTEN: Duration = Duration::from_secs(1);

/// Starts the duties, which end with the daemon.
pub(crate) fn spawn(shared: &Arc<SharedParts>, environments: &Arc<EnvironmentRegistry>) {
    let (heard, told) = (shared.clone(), environments.clone());
    shared.tasks.spawn(async move { while supervised(listen(heard.clone(), told.clone())).await.is_err() {} });
    if let Some(storage) = shared.storage.clone() {
        shared.tasks.spawn(trash::empty(shared.clone(), storage));
    }
    let reconciled = environments.clone();
    shared.tasks.spawn(on_schedule(shared.clone(), &RECONCILE, move || {
        let environments = reconciled.clone();
        async move {
            environments.reconcile(false).await;
            if let Err(error) = environments.restore().await {
                tracing::warn!(error = describe(&error), "environments could not be restored");
            }
        }
    }));
    let keeping = shared.clone();
    shared.tasks.spawn(on_schedule(shared.clone(), &CHECKPOINT, move || {
        let store = keeping.store.clone();
        async move {
            if let Err(error) = store.checkpoint().await {
                tracing::warn!(error = describe(&error), "the store's WAL could not be moved");
            }
        }
    }));
    let state_dir = shared.state_dir.path().to_owned();
    if matches!(disk::standing(&state_dir), Ok(DiskStatus::Mounted(_))) {
        shared.tasks.spawn(on_schedule(shared.clone(), &TRIM, move || {
            let state_dir = state_dir.clone();
            async move {
                let trimmed = tokio::task::spawn_blocking(move || disk::trim(&state_dir)).await;
                if let Ok(Err(error)) = trimmed {
                    tracing::warn!(error = describe(&error), "the state root keeps the room of what was removed");
                }
            }
        }));
    }
    let looks = shared.clone();
    shared.tasks.spawn(on_schedule(shared.clone(), &FORGET_LOOKS, move || looks::forget(looks.clone())));
    let recorded = environments.clone();
    shared.tasks.spawn(on_schedule(shared.clone(), &FORGET_RECORDS, move || {
        let records = recorded.records().clone();
        async move { records.remove_old().await }
    }));
    let forgetful = shared.clone();
    shared.tasks.spawn(on_schedule(shared.clone(), &FORGET, move || {
        let store = forgetful.store.clone();
        async move {
            let forgotten = async {
                store.prune_events(HISTORY).await?;
                store.prune_resets(HISTORY).await?;
                store.prune_rounds(ROUNDS_KEPT, ROUNDS_AGE).await
            };
            if let Err(error) = forgotten.await {
                tracing::warn!(error = describe(&error), "old rows could not be forgotten");
            }
        }
    }));
}

/// Runs a duty on a schedule: never twice at once, and without making up for missed times.
async fn on_schedule<F, Fut>(shared: Arc<SharedParts>, schedule: &'static Cron, duty: F)
where
    F: Fn() -> Fut + Send,
    Fut: Future<Output = ()> + Send,
{
    loop {
        let pause = pause_until_next(schedule, shared.clock.now());
        tokio::select! {
            biased;
            () = shared.shutdown.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        tokio::select! {
            biased;
            () = shared.shutdown.cancelled() => return,
            // A failure is in the log already, and the next run may succeed.
            _ = supervised(duty()) => {}
        }
    }
}

/// Returns the time from now to the schedule's next occurrence, in UTC. A schedule without one is checked again after
/// an hour.
fn pause_until_next(schedule: &Cron, now: Timestamp) -> Duration {
    let zoned = now.to_zoned(jiff::tz::TimeZone::UTC);
    match schedule.find_next_occurrence(&zoned, false) {
        Ok(next) => Duration::try_from(next.timestamp().duration_since(now)).unwrap_or_default(),
        Err(_) => Duration::from_secs(3600),
    }
}

/// Forwards the engine's events, and subscribes again when the stream breaks off. If a container restarts in a loop,
/// its events are forwarded only as often as a driver can handle them.
async fn listen(shared: Arc<SharedParts>, environments: Arc<EnvironmentRegistry>) {
    let began = Instant::now();
    let mut calm = Calm::new(EVENT_PAUSE);
    loop {
        let mut events = shared.engine.events(labels::INSTALLATION, &shared.installation);
        loop {
            let due = calm.due().map(|due| began + due);
            let event = tokio::select! {
                biased;
                () = shared.shutdown.cancelled() => return,
                () = until(due) => {
                    calm.pass(began.elapsed()).iter().for_each(|event| environments.tell(event));
                    continue;
                }
                event = events.next() => event,
            };
            match event {
                Some(Ok(event)) => {
                    if let Some(event) = calm.take(event.handle.clone(), event, began.elapsed()) {
                        environments.tell(&event);
                    }
                }
                Some(Err(_)) | None => break,
            }
        }
        // The engine that answers next may be a different one.
        shared.engine_silences.fetch_add(1, Ordering::SeqCst);
        tokio::select! {
            biased;
            () = shared.shutdown.cancelled() => return,
            () = tokio::time::sleep(RELISTEN) => {}
        }
    }
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
