//! What several commands take.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use arenad_engine::docker::MEMORY_MIN;
use arenad_model::subnet::Subnet;

/// Which definition is meant.
#[derive(Debug, Clone, Args)]
pub struct DefinitionArgs {
    /// The environment: the name of environments/NAME.yaml [default: mini]
    #[arg(value_name = "ENVIRONMENT", conflicts_with = "named")]
    pub environment: Option<String>,
    /// The same, as other commands take it
    #[arg(id = "named", short = 'e', long = "environment", value_name = "NAME")]
    pub named: Option<String>,
    /// An environment file, instead of a name
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["environment", "named"])]
    pub file: Option<PathBuf>,
    /// The folder that holds environments/ and compose/ [default: the nearest such folder from here upwards]
    #[arg(long, env = "ARENAD_ROOT", value_name = "DIR")]
    pub root: Option<PathBuf>,
}

impl DefinitionArgs {
    /// The environment's name, in whichever form it was given.
    pub fn name(&self) -> Option<&str> {
        self.environment.as_deref().or(self.named.as_deref())
    }
}

/// How long to wait.
#[derive(Debug, Clone, Args)]
pub struct WaitArgs {
    /// Return when the work has begun
    #[arg(short, long)]
    pub detach: bool,
    /// Give up waiting after this long, such as 90s or 10m; the work goes on
    #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with = "detach")]
    pub wait_timeout: Option<Duration>,
}

/// Where containers run.
#[derive(Debug, Clone, Args)]
pub struct EngineArgs {
    /// The Docker engine
    #[arg(long, env = "DOCKER_HOST", value_name = "ADDRESS", default_value = "unix:///var/run/docker.sock")]
    pub engine: String,
}

/// What a daemon is started with. Commands that start one only for their own question leave these to the environment's
/// variables, which the daemon reads itself.
#[derive(Debug, Clone, Args)]
pub struct DaemonArgs {
    /// The block of addresses that instance networks are cut from
    #[arg(long, env = "ARENAD_SUBNETS", value_name = "CIDR", default_value_t = Subnet::DEFAULT_BLOCK)]
    pub subnets: Subnet,
    /// How many images are built, and how many sites boot, at once [default: the number of processors, at least 2]
    #[arg(long, env = "ARENAD_PARALLEL", value_name = "NUMBER")]
    pub parallel: Option<NonZeroUsize>,
}

arenad_model::text_error! {
    /// The form of an argument's value that was expected.
    pub(crate) struct Malformed;
}

pub(super) fn size(text: &str) -> Result<u64, Malformed> {
    arenad_definition::size(text).ok_or_else(|| format!("`{text}` is not a size such as 20G or 512m").into())
}

/// Parses a memory limit of a container. The engine refuses one that is too small.
pub(super) fn container_memory(text: &str) -> Result<u64, Malformed> {
    let bytes = size(text)?;
    if bytes < MEMORY_MIN {
        return Err(format!("no container runs in `{text}` of memory; the least is {}m", MEMORY_MIN >> 20).into());
    }
    Ok(bytes)
}

pub(super) fn duration(text: &str) -> Result<Duration, Malformed> {
    if let Ok(seconds) = text.parse::<u64>() {
        return Ok(Duration::from_secs(seconds));
    }
    humantime::parse_duration(text).map_err(|_| format!("`{text}` is not a duration such as 90s or 10m").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_limit_that_no_container_runs_in_is_refused() {
        assert_eq!(container_memory("6m").ok(), Some(6 << 20));
        assert_eq!(container_memory("4g").ok(), Some(4 << 30));
        for text in ["5m", "0", "half"] {
            assert!(container_memory(text).is_err(), "{text}");
        }
    }
}
