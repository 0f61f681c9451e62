//! The lock of the state directory, which one daemon at a time holds.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use tokio::time::Instant;

use arenad_instance::shared::StateDir;

use crate::{StartError, closed};

/// The time for which a lock may be held by a process that has ended. The kernel releases it after the last thread of a
/// killed daemon has ended, which takes a while on a busy machine; and commands hold it for an instant while they look.
const RELEASE_LIMIT: Duration = Duration::from_secs(10);

const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Creates the state directory, closed to other users, and locks it.
pub(super) async fn lock(state_dir: &StateDir, group: Option<u32>) -> Result<File, StartError> {
    let failed = |cause| StartError::StateDir { path: state_dir.path().to_owned(), cause };
    closed::claim(state_dir, group).map_err(failed)?;
    let path = state_dir.lock();
    let file = File::options().create(true).truncate(false).read(true).write(true).open(&path).map_err(failed)?;
    let deadline = Instant::now() + RELEASE_LIMIT;
    while flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        let pid = std::fs::read_to_string(&path).unwrap_or_default().trim().to_owned();
        if is_alive(&pid) || Instant::now() >= deadline {
            return Err(StartError::Running { path: state_dir.path().to_owned(), pid });
        }
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
    std::fs::write(&path, format!("{}\n", std::process::id())).map_err(failed)?;
    Ok(file)
}

/// Returns whether a process runs. One that is ending has no arguments any more.
fn is_alive(pid: &str) -> bool {
    let is_number = !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit());
    let arguments = Path::new("/proc").join(pid).join("cmdline");
    is_number && std::fs::read(arguments).is_ok_and(|arguments| !arguments.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a state directory whose lock names a process and is held by this one.
    fn held_by(pid: u32) -> (tempfile::TempDir, StateDir, File) {
        let folder = tempfile::tempdir().expect("a folder");
        let state_dir = StateDir::new(folder.path().join("state"));
        std::fs::create_dir(state_dir.path()).expect("the state directory");
        std::fs::write(state_dir.lock(), format!("{pid}\n")).expect("the lock");
        let holder = File::open(state_dir.lock()).expect("the lock");
        flock(&holder, FlockOperation::NonBlockingLockShared).expect("no other holds it");
        (folder, state_dir, holder)
    }

    #[tokio::test]
    async fn the_lock_of_a_daemon_that_has_ended_is_waited_for() {
        let mut ended = std::process::Command::new("true").spawn().expect("a process");
        ended.wait().expect("its end");
        let (_folder, state_dir, holder) = held_by(ended.id());
        let locking = lock(&state_dir, None);
        tokio::pin!(locking);
        let early = tokio::time::timeout(Duration::from_millis(200), &mut locking).await;
        assert!(early.is_err(), "it is still held");
        drop(holder);
        locking.await.expect("the lock");
        let named = std::fs::read_to_string(state_dir.lock()).expect("the lock");
        assert_eq!(named.trim(), std::process::id().to_string());
    }

    #[tokio::test(start_paused = true)]
    async fn the_lock_of_a_daemon_that_runs_is_not_waited_for() {
        let (_folder, state_dir, _holder) = held_by(std::process::id());
        let begun = Instant::now();
        let refused = lock(&state_dir, None).await.expect_err("it is held");
        assert_eq!(begun.elapsed(), Duration::ZERO);
        assert!(refused.to_string().ends_with(&format!("(pid {})", std::process::id())), "{refused}");
    }
}
