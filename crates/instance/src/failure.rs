//! What went wrong, in words for the person who must do something about it.

use crate::baseline::BaselineError;
use crate::proof::ProofError;
use arenad_launch::{LaunchError, RemoveError};
use arenad_model::error::describe;
use arenad_model::instance::{InstanceId, Refused, Trouble};
use arenad_reset::ResetError;
use arenad_store::StoreError;
use arenad_telemetry::supervised::Panicked;

/// Why an operation did not come to its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// Something else was asked for.
    #[error("something else was asked for")]
    Superseded,
    /// There is no baseline.
    #[error("make the baseline")]
    Baseline(#[from] BaselineError),
    /// A snapshot could not be taken.
    #[error("take the snapshot")]
    Snapshot(#[source] BaselineError),
    /// The containers could not be brought back.
    #[error("bring the site back to its snapshot")]
    Reset(#[from] ResetError),
    /// What is left of the instance could not be removed.
    #[error(transparent)]
    Remove(#[from] RemoveError),
    /// The snapshot that was asked for is gone.
    #[error("find snapshot {0}")]
    NoSnapshot(String),
    /// What was made is not as its snapshot, or cannot be compared with it.
    #[error("prove that the site is as its snapshot")]
    Proof(#[from] ProofError),
    /// A mistake of ours.
    #[error(transparent)]
    Panicked(#[from] Panicked),
    /// The store refused something.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The site does not start from its new baseline; the old one serves.
    #[error("start the site from its new baseline, beside the old one, which goes on serving: {0}")]
    Beside(String),
    /// The instance's state rules the step out.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// A snapshot was not taken, and the instance could not be started again.
    #[error("{reason}; start the site again")]
    NotRestarted {
        /// Why there is no snapshot.
        reason: String,
        /// Why the site does not run.
        #[source]
        cause: Box<Failure>,
    },
}

impl Failure {
    /// Whether the same may succeed later without anyone changing anything.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Store(_) => true,
            Self::Reset(ResetError::Launch(LaunchError::Engine(error))) => error.is_transient(),
            _ => false,
        }
    }

    /// Whether an image of the snapshot is gone.
    pub(super) fn is_missing_image(&self) -> bool {
        matches!(self, Self::Reset(ResetError::Launch(LaunchError::Engine(error))) if error.is_not_found())
    }
}

/// The cause chain on one line, and what to do next.
pub(super) fn of(failure: &Failure, id: &InstanceId) -> Trouble {
    let mut reason = describe(failure);
    if let Failure::Reset(ResetError::NotReady { log, .. } | ResetError::Start { log, .. }) = failure {
        reason.push_str(log);
    }
    if let Failure::Snapshot(BaselineError::KeptElsewhere { id: kept, .. }) = failure {
        let hint = format!("`arenad snapshot rm {kept}` removes that one, or take this one on that engine");
        return Trouble { hint, reason };
    }
    if let Failure::Baseline(BaselineError::NotClean { service, .. })
    | Failure::Snapshot(BaselineError::NotClean { service, .. }) = failure
    {
        let hint = format!(
            "give `{service}` in the Compose file `init: true` if its command ignores SIGTERM as the first process of a container, \
             a `stop_signal` that its server ends at, or a longer `stop_grace_period`"
        );
        return Trouble { hint, reason };
    }
    Trouble { hint: hint(&reason, id), reason }
}

/// The next step for a person, from what the reason says.
pub(super) fn hint(reason: &str, id: &InstanceId) -> String {
    let site = &id.site;
    let lower = reason.to_lowercase();
    let has = |text: &str| lower.contains(text);
    if has("no space left") || has("disk full") || has("disk is full") || has("disk quota") {
        "free some disk space (`docker system df` shows what Docker holds), then `arenad reset ".to_owned()
            + site.as_str()
            + "`"
    } else if has("reach the docker engine") {
        "start Docker (`systemctl start docker`, or `scripts/engine.sh` where there is no systemd)".to_owned()
    } else if has("paused") {
        format!("`docker unpause` the container, or `arenad reset {site}`")
    } else if has("killed for want of memory") {
        format!("raise `mem_limit` of the service in the Compose file or free memory, then `arenad reset {site}`")
    } else if has("loaded from the archive") || has("find the data") {
        let environment = &id.environment;
        format!(
            "`arenad images pull {environment} {site}` fetches it; `arenad images load {environment} --from FILE|DIR` takes one that is there"
        )
    } else if has("pull access denied") || has("pull image") || has("manifest unknown") {
        "build the base image with `scripts/base-image.sh`, or load the image with `docker load`".to_owned()
    } else if has("not as its snapshot") {
        let environment = &id.environment;
        format!(
            "if what differs changes by itself and does not matter, declare it `volatile`; if it should not differ, the snapshot is \
             damaged: `arenad down {site}`, `arenad snapshot rm` it, `arenad up {environment} {site}`"
        )
    } else if has("deeper than any path") {
        format!("remove the folder within the site, or `arenad reset {site}`")
    } else if has("make the baseline") {
        format!("correct the definition or the image, then `arenad up {} {site}`", id.environment)
    } else {
        format!("`arenad logs {site}` shows why; `arenad reset {site}` starts it afresh")
    }
}

/// The next step where the containers of a baseline that could not be made are still there.
pub(super) fn hint_of_kept(hint: &str, id: &InstanceId) -> String {
    format!(
        "`arenad shell {}/{}` looks into the kept containers, which `arenad prune` or the next `arenad up` removes; then {hint}",
        id.environment, id.site
    )
}
