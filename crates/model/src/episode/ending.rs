//! How episodes end. The texts are for people; the codes are for JSON, metrics and the store.
//!
//! An episode that the environment failed is void: it has a reason and no reward. Every other end is the client's.

use std::fmt;

use crate::instance::InstanceId;

/// How an episode ended, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EpisodeEnding {
    /// The client gave the episode back.
    Released(ReleaseCause),
    /// A time limit passed: the wait for slots, or the time to live.
    Expired(ExpiryCause),
    /// The environment failed the episode. Evaluations of it have no reward.
    Void(VoidReason),
}

/// The way in which a client gave an episode back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseCause {
    /// A request ended the episode, or cancelled the request while it was waiting.
    Client,
    /// The connection that held the episode was closed.
    HoldClosed,
}

/// The time that ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpiryCause {
    /// The request waited for slots as long as its client wanted to.
    Wait,
    /// There was no heartbeat during the time to live.
    Ttl,
}

/// The reason why an episode is void.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VoidReason {
    /// A container of a slot ended on its own.
    ContainerDied {
        /// The slot whose container it was.
        slot: InstanceId,
        /// The exit, such as `exited with code 137 (out of memory)`.
        detail: String,
    },
    /// A slot could not be brought to its starting point.
    ResetFailed {
        /// The slot that was reset.
        slot: InstanceId,
        /// The failure with its causes.
        detail: String,
    },
    /// A slot differed from its starting point.
    ProofFailed {
        /// The slot that was compared.
        slot: InstanceId,
        /// The tables or files that differed.
        detail: String,
    },
    /// The instance of a slot failed in another way, such as its periodic probes.
    InstanceFailed {
        /// The slot whose instance failed.
        slot: InstanceId,
        /// The failure with its causes.
        detail: String,
    },
    /// The container engine did not answer, or answered with another identity.
    EngineLost {
        /// The failure with its causes.
        detail: String,
    },
    /// The host of the episode's slots was lost.
    NodeLost {
        /// The name of the node.
        node: String,
    },
    /// The database of the daemon did not record the grant.
    StoreFailed {
        /// The failure with its causes.
        detail: String,
    },
    /// The browser of the episode failed.
    BrowserFailed {
        /// The failure, as the browser or its connection reported it.
        detail: String,
    },
    /// The slots were not ready within the time limit of the preparation.
    PreparationTimedOut,
    /// The daemon restarted during the preparation.
    DaemonRestarted,
    /// The environment was taken down.
    EnvironmentDown,
}

impl EpisodeEnding {
    /// Returns the cause as a word for JSON, metrics and the store.
    ///
    /// Codes are unique among all causes, so the code alone tells how the episode ended.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Released(ReleaseCause::Client) => "client",
            Self::Released(ReleaseCause::HoldClosed) => "hold_closed",
            Self::Expired(ExpiryCause::Wait) => "wait",
            Self::Expired(ExpiryCause::Ttl) => "ttl",
            Self::Void(reason) => reason.code(),
        }
    }

    /// Returns the end that was stored, or `None` if the parts do not belong together.
    ///
    /// Shape: the arguments are the results of [`Self::code`], [`Self::slot`] and [`Self::detail`].
    pub fn from_parts(code: &str, slot: Option<InstanceId>, detail: &str) -> Option<Self> {
        let detail = detail.to_owned();
        let reason = match (code, slot) {
            ("client", None) => return Some(Self::Released(ReleaseCause::Client)),
            ("hold_closed", None) => return Some(Self::Released(ReleaseCause::HoldClosed)),
            ("wait", None) => return Some(Self::Expired(ExpiryCause::Wait)),
            ("ttl", None) => return Some(Self::Expired(ExpiryCause::Ttl)),
            ("container_died", Some(slot)) => VoidReason::ContainerDied { slot, detail },
            ("reset_failed", Some(slot)) => VoidReason::ResetFailed { slot, detail },
            ("proof_failed", Some(slot)) => VoidReason::ProofFailed { slot, detail },
            ("instance_failed", Some(slot)) => VoidReason::InstanceFailed { slot, detail },
            ("engine_lost", None) => VoidReason::EngineLost { detail },
            ("node_lost", None) => VoidReason::NodeLost { node: detail },
            ("store_failed", None) => VoidReason::StoreFailed { detail },
            ("browser_failed", None) => VoidReason::BrowserFailed { detail },
            ("preparation_timed_out", None) => VoidReason::PreparationTimedOut,
            ("daemon_restarted", None) => VoidReason::DaemonRestarted,
            ("environment_down", None) => VoidReason::EnvironmentDown,
            _ => return None,
        };
        Some(Self::Void(reason))
    }

    /// Returns the slot that failed, if a single one did.
    pub fn slot(&self) -> Option<&InstanceId> {
        match self {
            Self::Void(reason) => reason.slot(),
            Self::Released(_) | Self::Expired(_) => None,
        }
    }

    /// Returns the description of the failure, which is empty if the code says everything.
    pub fn detail(&self) -> &str {
        match self {
            Self::Void(reason) => reason.detail(),
            Self::Released(_) | Self::Expired(_) => "",
        }
    }
}

impl VoidReason {
    /// Returns the reason as a word for JSON, metrics and the store.
    pub fn code(&self) -> &'static str {
        match self {
            Self::ContainerDied { .. } => "container_died",
            Self::ResetFailed { .. } => "reset_failed",
            Self::ProofFailed { .. } => "proof_failed",
            Self::InstanceFailed { .. } => "instance_failed",
            Self::EngineLost { .. } => "engine_lost",
            Self::NodeLost { .. } => "node_lost",
            Self::StoreFailed { .. } => "store_failed",
            Self::BrowserFailed { .. } => "browser_failed",
            Self::PreparationTimedOut => "preparation_timed_out",
            Self::DaemonRestarted => "daemon_restarted",
            Self::EnvironmentDown => "environment_down",
        }
    }

    fn slot(&self) -> Option<&InstanceId> {
        match self {
            Self::ContainerDied { slot, .. }
            | Self::ResetFailed { slot, .. }
            | Self::ProofFailed { slot, .. }
            | Self::InstanceFailed { slot, .. } => Some(slot),
            _ => None,
        }
    }

    fn detail(&self) -> &str {
        match self {
            Self::ContainerDied { detail, .. }
            | Self::ResetFailed { detail, .. }
            | Self::ProofFailed { detail, .. }
            | Self::InstanceFailed { detail, .. }
            | Self::EngineLost { detail }
            | Self::StoreFailed { detail }
            | Self::BrowserFailed { detail } => detail,
            Self::NodeLost { node } => node,
            Self::PreparationTimedOut | Self::DaemonRestarted | Self::EnvironmentDown => "",
        }
    }
}

impl fmt::Display for EpisodeEnding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Released(ReleaseCause::Client) => f.write_str("the client released it"),
            Self::Released(ReleaseCause::HoldClosed) => f.write_str("the connection that held it was closed"),
            Self::Expired(ExpiryCause::Wait) => f.write_str("no slots came free within the time that the client waits"),
            Self::Expired(ExpiryCause::Ttl) => f.write_str("there was no heartbeat within its time to live"),
            Self::Void(reason) => write!(f, "void, because {reason}"),
        }
    }
}

impl fmt::Display for VoidReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ContainerDied { slot, detail } => write!(f, "a container of {slot} died: {detail}"),
            Self::ResetFailed { slot, detail } => write!(f, "the reset of {slot} failed: {detail}"),
            Self::ProofFailed { slot, detail } => write!(f, "{slot} differs from its snapshot: {detail}"),
            Self::InstanceFailed { slot, detail } => write!(f, "{slot} failed: {detail}"),
            Self::EngineLost { detail } => write!(f, "the connection to the engine was lost: {detail}"),
            Self::NodeLost { node } => write!(f, "the node {node} was lost"),
            Self::StoreFailed { detail } => write!(f, "the grant could not be stored: {detail}"),
            Self::BrowserFailed { detail } => write!(f, "its browser failed: {detail}"),
            Self::PreparationTimedOut => f.write_str("its sites were not ready in time"),
            Self::DaemonRestarted => f.write_str("the daemon restarted while the sites were being prepared"),
            Self::EnvironmentDown => f.write_str("the environment was taken down"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_is_read_back_from_its_parts() {
        let slot: InstanceId = "mini/shopping/2".parse().expect("valid");
        let detail = || "exited with code 137 (out of memory)".to_owned();
        let void = [
            VoidReason::ContainerDied { slot: slot.clone(), detail: detail() },
            VoidReason::ResetFailed { slot: slot.clone(), detail: detail() },
            VoidReason::ProofFailed { slot: slot.clone(), detail: detail() },
            VoidReason::InstanceFailed { slot: slot.clone(), detail: detail() },
            VoidReason::EngineLost { detail: detail() },
            VoidReason::NodeLost { node: "node-3".to_owned() },
            VoidReason::StoreFailed { detail: detail() },
            VoidReason::BrowserFailed { detail: detail() },
            VoidReason::PreparationTimedOut,
            VoidReason::DaemonRestarted,
            VoidReason::EnvironmentDown,
        ];
        let others = [
            EpisodeEnding::Released(ReleaseCause::Client),
            EpisodeEnding::Released(ReleaseCause::HoldClosed),
            EpisodeEnding::Expired(ExpiryCause::Wait),
            EpisodeEnding::Expired(ExpiryCause::Ttl),
        ];
        let all: Vec<EpisodeEnding> = void.into_iter().map(EpisodeEnding::Void).chain(others).collect();
        for ending in &all {
            let read = EpisodeEnding::from_parts(ending.code(), ending.slot().cloned(), ending.detail());
            assert_eq!(read.as_ref(), Some(ending));
        }
        let codes: std::collections::BTreeSet<&str> = all.iter().map(EpisodeEnding::code).collect();
        assert_eq!(codes.len(), all.len(), "a code means one end");
        assert_eq!(EpisodeEnding::from_parts("container_died", None, ""), None);
        assert_eq!(EpisodeEnding::from_parts("ttl", Some(slot), ""), None);
    }

    #[test]
    fn the_text_names_the_slot_and_the_cause() {
        let slot = "mini/shopping/2".parse().expect("valid");
        let died = VoidReason::ContainerDied { slot, detail: "exited with code 137 (out of memory)".to_owned() };
        assert_eq!(
            EpisodeEnding::Void(died).to_string(),
            "void, because a container of mini/shopping/2 died: exited with code 137 (out of memory)"
        );
    }
}
