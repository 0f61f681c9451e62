//! Options that several commands share.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use arenad_engine::docker::MEMORY_MIN;
use arenad_model::subnet::Subnet;

/// The options that select a definition.
#[derive(Debug, Clone, Args)]
pub struct DefinitionArgs {
    /// Environment: the NAME of environments/NAME.yaml [default: mini]
    #[arg(value_name = "ENVIRONMENT", conflicts_with = "named")]
    pub environment: Option<String>,
    /// Environment, the same as the argument ENVIRONMENT
    #[arg(id = "named", short = 'e', long = "environment", value_name = "NAME")]
    pub named: Option<String>,
    /// Path of an environment file, instead of a name
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["environment", "named"])]
    pub file: Option<PathBuf>,
    /// Folder that contains environments/ and compose/, or a folder below it [default: found from the working directory
    /// upwards, in ARENAD_PATH, or beside the program]
    #[arg(long, env = "ARENAD_ROOT", value_name = "DIR")]
    pub root: Option<PathBuf>,
}

impl DefinitionArgs {
    /// Returns the environment's name, from the argument or from the option.
    pub fn name(&self) -> Option<&str> {
        self.environment.as_deref().or(self.named.as_deref())
    }
}

/// The options that determine whether and how long a command waits for its operations.
#[derive(Debug, Clone, Args)]
pub struct WaitArgs {
    /// Return as soon as the work has started
    #[arg(short, long)]
    pub detach: bool,
    /// Stop waiting after this time, such as 90s or 10m; the work continues
    #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with = "detach")]
    pub wait_timeout: Option<Duration>,
}

/// The option that selects the engine, which runs the containers.
#[derive(Debug, Clone, Args)]
pub struct EngineArgs {
    /// Address of the Docker engine
    #[arg(long, env = "DOCKER_HOST", value_name = "ADDRESS", default_value = "unix:///var/run/docker.sock")]
    pub engine: String,
}

/// The settings of a daemon that a command starts. Commands that start a daemon for a single request do not offer these
/// options; the daemon then reads the environment variables itself.
#[derive(Debug, Clone, Args)]
pub struct DaemonArgs {
    /// Address block from which the networks of instances are allocated
    #[arg(long, env = "ARENAD_SUBNETS", value_name = "CIDR", default_value_t = Subnet::DEFAULT_BLOCK)]
    pub subnets: Subnet,
    /// Number of images to build, and of sites to boot, at the same time [default: the number of processors, at least
    /// 2]
    #[arg(long, env = "ARENAD_PARALLEL", value_name = "NUMBER")]
    pub parallel: Option<NonZeroUsize>,
    /// Address of the episode proxy, or `none` [default: 127.0.0.1:7500, unless another program uses it]
    #[arg(long, env = "ARENAD_PROXY", value_name = "ADDRESS:PORT", value_parser = port_address)]
    pub proxy: Option<PortAddress>,
    /// Address at which BrowserGym and other harnesses reset sites, or `none` [default: 127.0.0.1:7565, unless another
    /// program uses it]
    #[arg(long, env = "ARENAD_COMPAT", value_name = "ADDRESS:PORT", value_parser = port_address)]
    pub compat: Option<PortAddress>,
}

/// The address of a port that the daemon offers besides the API, or the choice of none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortAddress {
    /// The daemon listens on the address.
    Listen(SocketAddr),
    /// The daemon does not offer the port.
    Nothing,
}

impl std::fmt::Display for PortAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Listen(address) => address.fmt(f),
            Self::Nothing => f.write_str("none"),
        }
    }
}

/// Parses an address to listen on, or `none`.
pub fn port_address(text: &str) -> Result<PortAddress, Malformed> {
    if text == "none" {
        return Ok(PortAddress::Nothing);
    }
    let address =
        text.parse().map_err(|_| format!("`{text}` is neither an address such as 127.0.0.1:7500 nor `none`"))?;
    Ok(PortAddress::Listen(address))
}

arenad_model::text_error! {
    /// States the form that the value of an argument must have.
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
