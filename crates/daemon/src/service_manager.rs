//! Notifications to systemd: that the daemon is ready or stopping, and, for its watchdog, that the driver of every site
//! still reads its inbox. Without `NOTIFY_SOCKET` and `WATCHDOG_USEC` nothing is sent.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use sd_notify::NotifyState;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use crate::environments::EnvironmentRegistry;

/// Notifies systemd that the daemon serves clients.
pub(crate) fn notify_ready() {
    send(NotifyState::Ready);
}

/// Notifies systemd that the daemon is stopping on purpose.
pub(crate) fn notify_stopping() {
    send(NotifyState::Stopping);
}

/// Answers systemd's watchdog twice per period as long as every driver responds. If a driver is stuck, systemd restarts
/// the daemon, which adopts the containers.
pub(crate) async fn answer_watchdog(environments: Arc<EnvironmentRegistry>, shutdown: CancellationToken) {
    let Some(period) = sd_notify::watchdog_enabled() else { return };
    let mut ticks = interval(period / 2);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            () = shutdown.cancelled() => return,
            _ = ticks.tick() => {}
        }
        let stuck = stuck_drivers(&environments, period / 4).await;
        if stuck.is_empty() {
            send(NotifyState::Watchdog);
        } else {
            tracing::error!(
                instances = stuck.join(", "),
                "drivers do not read their inboxes; the watchdog is not answered"
            );
        }
    }
}

/// Returns the ids of the instances whose drivers do not respond within the limit, sorted.
async fn stuck_drivers(environments: &EnvironmentRegistry, limit: Duration) -> Vec<String> {
    let looks = environments.instances().into_iter().map(|handle| async move {
        let is_attended = timeout(limit, handle.is_attended()).await.unwrap_or(false);
        (!is_attended).then(|| handle.id.to_string())
    });
    let mut stuck: Vec<String> = join_all(looks).await.into_iter().flatten().collect();
    stuck.sort();
    stuck
}

fn send(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::warn!(%error, "systemd was not notified");
    }
}
