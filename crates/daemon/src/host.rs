//! The state of the host: whether the engine answers, and whether its disk has free space.

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use arenad_api::{Condition, ConditionKind, ConditionStatus};
use arenad_doctor as doctor;
use arenad_doctor::judge::capacity::{LEAST_FREE_BYTES, LEAST_FREE_FILES};
use arenad_engine::Engine;
use arenad_model::error::describe;
use arenad_storage::trial::{self, FreeSpace};

/// The time between two looks at the host.
const INTERVAL: Duration = Duration::from_secs(3);

/// The state of the host at the last look.
#[derive(Debug, Clone)]
pub struct HostReport {
    /// Whether the engine answers.
    pub engine: Condition,
    /// Whether the disk has enough free space.
    pub disk: Condition,
}

fn condition(
    kind: ConditionKind,
    before: Option<&Condition>,
    status: ConditionStatus,
    reason: &str,
    message: String,
) -> Condition {
    let since = before.filter(|before| before.status == status).map(|before| before.last_transition_time.clone());
    Condition {
        kind,
        status,
        reason: reason.to_owned(),
        message,
        last_transition_time: since.unwrap_or_else(|| Timestamp::now().to_string()),
    }
}

/// Determines the state of the host once.
pub(crate) async fn look(engine: &dyn Engine, folders: &[PathBuf], before: Option<&HostReport>) -> HostReport {
    let engine = match engine.ping().await {
        Ok(()) => condition(
            ConditionKind::EngineReachable,
            before.map(|b| &b.engine),
            ConditionStatus::True,
            "Answers",
            String::new(),
        ),
        Err(error) => {
            let found = doctor::away(engine.endpoint(), &error).and_then(|finding| finding.cure);
            let cure = found.unwrap_or_else(|| "see whether Docker is well: its log says more".to_owned());
            let message = format!("{}; {cure}", describe(&error));
            condition(
                ConditionKind::EngineReachable,
                before.map(|b| &b.engine),
                ConditionStatus::False,
                "Unreachable",
                message,
            )
        }
    };
    let full: Vec<String> = folders.iter().filter_map(|folder| shortage(folder)).collect();
    let disk = if full.is_empty() {
        condition(ConditionKind::DiskSpace, before.map(|b| &b.disk), ConditionStatus::True, "Enough", String::new())
    } else {
        let message = format!("{}; free some space (`docker system df` shows what Docker holds)", full.join(", "));
        condition(ConditionKind::DiskSpace, before.map(|b| &b.disk), ConditionStatus::False, "Low", message)
    };
    HostReport { engine, disk }
}

/// Returns a message if too little space is free below a folder. A folder that cannot be read yields none, because the
/// engine may be on another machine.
fn shortage(folder: &Path) -> Option<String> {
    shortage_of(trial::room(folder).ok()?, folder)
}

fn shortage_of(room: FreeSpace, folder: &Path) -> Option<String> {
    if room.free_bytes < LEAST_FREE_BYTES {
        return Some(format!("only {} MiB are free below {}", room.free_bytes >> 20, folder.display()));
    }
    // A file system may have free bytes but no free inodes.
    let files = room.free_files.filter(|files| *files < LEAST_FREE_FILES)?;
    Some(format!("only {files} more files can be made below {}", folder.display()))
}

/// Determines the state of the host periodically until cancelled.
pub(crate) async fn watch(
    engine: std::sync::Arc<dyn Engine>,
    folders: Vec<PathBuf>,
    report: watch::Sender<HostReport>,
    cancel: CancellationToken,
) {
    let mut timer = tokio::time::interval(INTERVAL);
    timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            () = cancel.cancelled() => return,
            _ = timer.tick() => {}
        }
        let before = report.borrow().clone();
        let now = look(engine.as_ref(), &folders, Some(&before)).await;
        if now.engine.status != before.engine.status {
            tracing::warn!(status = now.engine.status.word(), "{}: {}", now.engine.reason, now.engine.message);
        }
        report.send_replace(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_bytes_and_too_few_files_are_told() {
        let told = |free_bytes, free_files| {
            shortage_of(FreeSpace { free_bytes, total_bytes: 1 << 40, free_files }, Path::new("/x"))
        };
        assert_eq!(told(LEAST_FREE_BYTES, Some(LEAST_FREE_FILES)), None);
        assert_eq!(told(1 << 40, None), None, "a file system without a number of files");
        assert_eq!(told(5 << 20, Some(1)).as_deref(), Some("only 5 MiB are free below /x"));
        assert_eq!(told(1 << 40, Some(17)).as_deref(), Some("only 17 more files can be made below /x"));
    }
}
