//! Arguments of the commands for the daemon, its host and the shell.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::time::Duration;

use clap::Args;

use super::shared::{DaemonArgs, DefinitionArgs, EngineArgs, container_memory, duration, size};
use arenad_model::subnet::Subnet;

#[derive(Debug, Args)]
pub struct DoctorArgs {
    #[command(flatten)]
    pub definition: DefinitionArgs,
    #[command(flatten)]
    pub engine: EngineArgs,
    /// Address block from which the networks of instances are allocated
    #[arg(long, env = "ARENAD_SUBNETS", value_name = "CIDR", default_value_t = Subnet::DEFAULT_BLOCK)]
    pub subnets: Subnet,
}

#[derive(Debug, Args)]
pub struct ServeArgs {
    #[command(flatten)]
    pub engine: EngineArgs,
    #[command(flatten)]
    pub daemon: DaemonArgs,
    /// Also serve the API on this TCP address, without TLS; requires a token
    #[arg(long, env = "ARENAD_LISTEN", value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,
    /// Accept addresses for `--listen` and `--proxy` that are not loopback addresses, because clients reach them through
    /// a TLS proxy
    #[arg(long, env = "ARENAD_BEHIND_TLS_PROXY")]
    pub behind_tls_proxy: bool,
    /// Number of standbys that boot at the same time on this host
    #[arg(long, env = "ARENAD_STANDBY_BOOTS", value_name = "NUMBER", default_value = "1")]
    pub standby_boots: NonZeroUsize,
    /// Memory that standbys leave free for everything else on this host, such as 2g
    #[arg(long, env = "ARENAD_MEMORY_RESERVE", value_name = "SIZE", value_parser = size, default_value = "512m")]
    pub memory_reserve: u64,
    /// Memory limit of each container whose service has no `mem_limit`, such as 4g [default: half of the host's memory]
    #[arg(long, env = "ARENAD_CONTAINER_MEMORY", value_name = "SIZE", value_parser = container_memory)]
    pub container_memory: Option<u64>,
    /// Remove the records of ended episodes that are older than this, such as 12h or 7d
    #[arg(long, env = "ARENAD_RECORD_AGE", value_name = "DURATION", value_parser = duration, default_value = "7d")]
    pub record_age: Duration,
    /// Remove the oldest records of ended episodes when all records are larger than this, such as 500m or 5g
    #[arg(long, env = "ARENAD_RECORD_SIZE", value_name = "SIZE", value_parser = size, default_value = "5g")]
    pub record_size: u64,
    /// Group that may use the socket, in addition to its owner
    #[arg(long, value_name = "GID")]
    pub socket_group: Option<u32>,
    /// Detach from the terminal; `arenad up` passes this option
    #[arg(long, hide = true)]
    pub background: bool,
}

#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// Shell that runs the script
    pub shell: clap_complete::Shell,
}

/// The arguments that a shell's completion script passes.
#[derive(Debug, Args)]
pub struct CompleteArgs {
    /// Words of the command line after `arenad`; the last one is being typed
    #[arg(value_name = "WORD", trailing_var_arg = true, allow_hyphen_values = true, num_args = 0..)]
    pub words: Vec<String>,
}
