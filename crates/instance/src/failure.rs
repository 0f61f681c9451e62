//! Failures of operations, and the hints that tell a person how to resolve them.

use crate::proof::ProofError;
use crate::standby_error::StandbyError;
use arenad_baseline::BaselineError;
use arenad_launch::{LaunchError, RemoveError};
use arenad_model::cause::{Cause, SHORTEN_FILE};
use arenad_model::error::describe;
use arenad_model::instance::{InstanceFailure, InstanceId, Refused};
use arenad_reset::ResetError;
use arenad_store::StoreError;
use arenad_telemetry::supervised::Panicked;

/// The reason why an operation failed or was cancelled.
#[derive(Debug, thiserror::Error)]
pub(super) enum OperationFailure {
    /// A later request cancelled the operation.
    #[error("something else was asked for")]
    Superseded,
    /// The baseline could not be made.
    #[error("make the baseline")]
    Baseline(#[from] BaselineError),
    /// A snapshot could not be taken.
    #[error("take the snapshot")]
    Snapshot(#[source] BaselineError),
    /// The containers could not be brought back to the snapshot.
    #[error("bring the site back to its snapshot")]
    Reset(#[from] ResetError),
    /// The objects of the instance could not be removed.
    #[error(transparent)]
    Remove(#[from] RemoveError),
    /// The requested snapshot does not exist.
    #[error("find snapshot {0}")]
    NoSnapshot(String),
    /// The generation whose state was to be copied does not serve any more.
    #[error("copy generation {0}, which does not serve any more")]
    OtherGeneration(u64),
    /// The state of a running episode could not be copied.
    #[error("copy the state of the episode")]
    Copy(#[source] BaselineError),
    /// The instance differs from its snapshot, or could not be compared with it.
    #[error("prove that the site equals its snapshot")]
    Proof(#[from] ProofError),
    /// The operation panicked, which is a defect of arenad.
    #[error(transparent)]
    Panicked(#[from] Panicked),
    /// The store could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The site does not start from its new baseline; the old generation continues to serve.
    #[error("start the site from its new baseline, beside the old one, which goes on serving: {}", describe(.0))]
    Beside(Box<StandbyError>),
    /// The instance is in a state that rules the step out.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// A snapshot could not be taken, and then the instance could not be started again.
    #[error("{}; start the site again", describe(taking))]
    NotRestarted {
        /// The failure to take the snapshot.
        taking: Box<OperationFailure>,
        /// The failure to start the site.
        #[source]
        cause: Box<OperationFailure>,
    },
}

impl OperationFailure {
    /// Whether the same operation may succeed later although no one changes anything.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Store(_) => true,
            Self::Reset(ResetError::Launch(LaunchError::Engine(error))) => error.is_transient(),
            _ => false,
        }
    }

    /// Returns the cause, if a person can take specific action against it.
    fn cause(&self) -> Option<Cause> {
        match self {
            Self::Baseline(error) => error.cause().or(Some(Cause::Baseline)),
            Self::Snapshot(error) | Self::Copy(error) => error.cause(),
            Self::Reset(error) => Cause::stated_by_program(error.log()).or_else(|| error.cause()),
            Self::Remove(error) => error.cause(),
            Self::Proof(error) => error.cause(),
            Self::Store(error) => error.cause(),
            Self::Beside(error) => error.cause(),
            Self::NotRestarted { taking, cause } => taking.cause().or_else(|| cause.cause()),
            Self::Superseded
            | Self::NoSnapshot(_)
            | Self::OtherGeneration(_)
            | Self::Panicked(_)
            | Self::Refused(_) => None,
        }
    }

    /// Whether an image of the snapshot is missing.
    pub(super) fn is_missing_image(&self) -> bool {
        matches!(self, Self::Reset(ResetError::Launch(LaunchError::Engine(error))) if error.is_not_found())
    }
}

/// Returns the cause chain on one line and a hint.
pub(super) fn of(failure: &OperationFailure, id: &InstanceId) -> InstanceFailure {
    let mut reason = describe(failure);
    if let OperationFailure::Reset(error) = failure {
        reason.push_str(error.log());
    }
    let hint = match failure {
        OperationFailure::Snapshot(BaselineError::KeptElsewhere { id: kept, .. }) => {
            format!("`arenad snapshot rm {kept}` removes that one, or take this one on that engine")
        }
        OperationFailure::Baseline(BaselineError::NotClean { service, .. })
        | OperationFailure::Snapshot(BaselineError::NotClean { service, .. })
        | OperationFailure::Copy(BaselineError::NotClean { service, .. }) => format!(
            "give `{service}` in the Compose file `init: true` if its command ignores SIGTERM as the first process of a container, \
             a `stop_signal` that its server ends at, or a longer `stop_grace_period`"
        ),
        _ => hint(failure.cause(), id),
    };
    InstanceFailure { hint, reason }
}

/// Returns the next step for a person.
pub fn hint(cause: Option<Cause>, id: &InstanceId) -> String {
    let InstanceId { environment, site, .. } = id;
    match cause {
        Some(Cause::NoSpace) => {
            format!("free some disk space (`docker system df` shows what Docker holds), then `arenad reset {site}`")
        }
        Some(Cause::EngineUnreachable) => {
            "start Docker (`systemctl start docker`, or `scripts/engine.sh` where there is no systemd)".to_owned()
        }
        Some(Cause::Paused) => format!("`docker unpause` the container, or `arenad reset {site}`"),
        Some(Cause::OutOfMemory) => {
            format!("raise `mem_limit` of the service in the Compose file or free memory, then `arenad reset {site}`")
        }
        Some(Cause::NotFetched) => format!(
            "`arenad images pull {environment} {site}` fetches it; `arenad images load {environment} --from FILE|DIR` takes one that is there"
        ),
        Some(Cause::NotPulled) => {
            "build the base image with `scripts/base-image.sh`, or load the image with `docker load`".to_owned()
        }
        Some(Cause::NotAsSnapshot) => format!(
            "if what differs changes by itself and does not matter, declare it `volatile`; if it should not differ, the snapshot is \
             damaged: `arenad down {site}`, `arenad snapshot rm` it, `arenad up {environment} {site}`"
        ),
        Some(Cause::FileTooLarge) => SHORTEN_FILE.to_owned(),
        Some(Cause::TooDeep) => format!("remove the folder within the site, or `arenad reset {site}`"),
        Some(Cause::Baseline) => format!("correct the definition or the image, then `arenad up {environment} {site}`"),
        None => format!("`arenad logs {site}` shows why; `arenad reset {site}` starts it afresh"),
    }
}

/// Returns the hint for a failed baseline whose containers are kept.
pub(super) fn hint_of_kept(hint: &str, id: &InstanceId) -> String {
    format!(
        "`arenad shell {}/{}` looks into the kept containers, which `arenad prune` or the next `arenad up` removes; then {hint}",
        id.environment, id.site
    )
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::PathBuf;
    use std::time::Duration;

    use super::*;
    use arenad_baseline::ImageError;
    use arenad_baseline::steps::StepError;
    use arenad_digest::{ContentDifferences, ItemDifference, ItemKind};
    use arenad_engine::{ContainerState, EngineError};
    use arenad_launch::CommandError;
    use arenad_model::ids::{EnvironmentName, ServiceName, SiteName};
    use arenad_probes::{NotReady, ProbeFailure};
    use arenad_storage::StorageError;

    fn id() -> InstanceId {
        let environment = EnvironmentName::parse("mini").expect("a name");
        InstanceId::serving(&environment, &SiteName::parse("shop").expect("a name"))
    }

    fn service() -> ServiceName {
        ServiceName::parse("web").expect("a name")
    }

    fn refused(message: &str) -> EngineError {
        EngineError::Refused { doing: "start web".to_owned(), status: 500, message: message.to_owned() }
    }

    fn not_ready(cause: NotReady, log: &str) -> OperationFailure {
        ResetError::NotReady { cause, log: log.to_owned() }.into()
    }

    fn image(cause: ImageError) -> OperationFailure {
        BaselineError::Image { service: service(), cause }.into()
    }

    fn timed_out(cause: Option<Cause>) -> NotReady {
        let last = ProbeFailure { probe: "home".to_owned(), reason: "status 500".to_owned(), cause };
        NotReady::TimedOut { waited: Duration::from_secs(1), last }
    }

    fn ended(oom_killed: bool) -> NotReady {
        NotReady::Ended { service: "web".to_owned(), code: 137, oom_killed }
    }

    fn unreachable() -> EngineError {
        EngineError::Unreachable { endpoint: "unix:///x".to_owned(), cause: "connection refused".into() }
    }

    fn pulled(message: &str) -> EngineError {
        EngineError::NotFound { doing: "pull image x".to_owned(), message: message.to_owned() }
    }

    fn full() -> io::Error {
        io::ErrorKind::StorageFull.into()
    }

    #[track_caller]
    fn assert_hint(failure: &OperationFailure, beginning: &str) {
        let hint = of(failure, &id()).hint;
        assert!(hint.starts_with(beginning), "{failure}: {hint}");
    }

    #[test]
    fn a_full_disk_has_its_hint_wherever_it_shows() {
        let hint = "free some disk space (`docker system df` shows what Docker holds), then `arenad reset shop`";
        let path = || PathBuf::from("/x");
        assert_hint(&ResetError::Launch(refused("mkdir /x: no space left on device").into()).into(), hint);
        assert_hint(
            &ResetError::State(StorageError::NoRoom { doing: "clone", path: path(), cause: full() }).into(),
            hint,
        );
        let archive = LaunchError::Archive { doing: "write", path: path(), cause: full() };
        assert_hint(&OperationFailure::Snapshot(archive.into()), hint);
        assert_hint(&not_ready(ended(false), "\n    web | mysqld: Disk is full writing './x'"), hint);
        let said =
            CommandError::Failed { command: "fill".to_owned(), code: 1, said: ": No space left on device".to_owned() };
        let (step, log) = ("fill".to_owned(), String::new());
        assert_hint(&BaselineError::Configure { step, cause: StepError::Command(said).into(), log }.into(), hint);
    }

    #[test]
    fn an_engine_that_is_away_has_its_hint_wherever_it_shows() {
        let hint = "start Docker (`systemctl start docker`";
        assert_hint(&ResetError::Launch(unreachable().into()).into(), hint);
        assert_hint(&RemoveError::Engine(unreachable()).into(), hint);
        assert_hint(&image(ImageError::Pull(unreachable())), hint);
        assert_hint(&OperationFailure::Beside(Box::new(unreachable().into())), hint);
        assert_hint(&not_ready(unreachable().into(), ""), hint);
    }

    #[test]
    fn containers_that_were_paused_or_killed_have_their_hints() {
        let message = "Container 5 is paused, unpause the container before exec".to_owned();
        let paused = EngineError::Conflict { doing: "run a command".to_owned(), message };
        let hint = "`docker unpause` the container, or `arenad reset shop`";
        assert_hint(&ResetError::Writers(paused.into()).into(), hint);
        assert_hint(&not_ready(timed_out(Some(Cause::Paused)), ""), hint);
        let address = LaunchError::NoAddress { service: service(), state: ContainerState::Paused };
        assert_hint(&ResetError::Launch(address).into(), hint);
        assert_hint(&not_ready(ended(true), ""), "raise `mem_limit` of the service in the Compose file");
        assert_hint(&not_ready(ended(false), ""), "`arenad logs shop` shows why");
    }

    #[test]
    fn what_is_missing_before_a_baseline_can_be_made_has_its_hints() {
        let archive = ImageError::NotLoaded { reference: "x".to_owned(), archive: "x.tar".to_owned() };
        assert_hint(&image(archive), "`arenad images pull mini shop` fetches it");
        let data = BaselineError::NoData { service: service(), path: PathBuf::from("/x") };
        assert_hint(&data.into(), "`arenad images pull mini shop` fetches it");
        let base = "build the base image with `scripts/base-image.sh`";
        assert_hint(&image(ImageError::Pull(pulled("manifest unknown"))), base);
        assert_hint(&image(ImageError::Pull(refused("toomanyrequests"))), base);
        let build = EngineError::Build { doing: "build x".to_owned(), message: "pull access denied for y".to_owned() };
        assert_hint(&image(ImageError::Engine(build)), base);
        assert_hint(
            &image(ImageError::Vanished("x".to_owned())),
            "correct the definition or the image, then `arenad up mini shop`",
        );
    }

    #[test]
    fn differences_and_folders_that_are_too_deep_have_their_hints() {
        let difference = ItemDifference {
            store: "db".to_owned(),
            kind: ItemKind::Table,
            name: "x".to_owned(),
            before: None,
            now: None,
        };
        let comparison = ContentDifferences { differences: vec![difference], omitted: 0 };
        assert_hint(&ProofError::Differs(comparison).into(), "if what differs changes by itself");
        let deep = BaselineError::State(StorageError::TooDeep(PathBuf::from("/x")));
        assert_hint(&OperationFailure::Snapshot(deep), "remove the folder within the site, or `arenad reset shop`");
    }

    #[test]
    fn snapshots_that_are_kept_elsewhere_or_not_clean_have_their_hints() {
        let text = |text: &str| text.to_owned();
        let kept = BaselineError::KeptElsewhere { id: text("ab12"), name: text("n"), endpoint: text("e") };
        assert_hint(&OperationFailure::Snapshot(kept), "`arenad snapshot rm ab12` removes that one");
        let killed = || BaselineError::NotClean { service: service(), what: text("it was killed") };
        assert_hint(&OperationFailure::Snapshot(killed()), "give `web` in the Compose file `init: true`");
        assert_hint(&killed().into(), "give `web` in the Compose file `init: true`");
    }

    #[test]
    fn a_site_that_is_not_started_again_has_the_hint_of_what_came_first() {
        let taking = Box::new(OperationFailure::Snapshot(StorageError::TooDeep(PathBuf::from("/x")).into()));
        let failure = OperationFailure::NotRestarted { taking, cause: Box::new(not_ready(ended(true), "")) };
        assert_hint(&failure, "remove the folder within the site");
        assert_eq!(
            failure.to_string(),
            "take the snapshot: look through /x: a folder in it is deeper than any path may be long; start the site again"
        );
    }
}
