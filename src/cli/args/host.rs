//! The daemon, the host it runs on, and the shell.

use std::net::SocketAddr;
use std::num::NonZeroUsize;

use clap::Args;

use super::shared::{DaemonArgs, DefinitionArgs, EngineArgs, container_memory, size};
use arenad_model::subnet::Subnet;

#[derive(Debug, Args)]
pub struct DoctorArgs {
    #[command(flatten)]
    pub definition: DefinitionArgs,
    #[command(flatten)]
    pub engine: EngineArgs,
    /// The block of addresses that instance networks are cut from
    #[arg(long, env = "ARENAD_SUBNETS", value_name = "CIDR", default_value_t = Subnet::DEFAULT_BLOCK)]
    pub subnets: Subnet,
}

#[derive(Debug, Args)]
pub struct ServeArgs {
    #[command(flatten)]
    pub engine: EngineArgs,
    #[command(flatten)]
    pub daemon: DaemonArgs,
    /// Offer the API on this TCP address too, without TLS; wants a token
    #[arg(long, env = "ARENAD_LISTEN", value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,
    /// The address of `--listen` is reached through a proxy that adds TLS; without this, only loopback addresses are accepted
    #[arg(long, env = "ARENAD_BEHIND_TLS_PROXY", requires = "listen")]
    pub behind_tls_proxy: bool,
    /// How many standbys boot at once on this host
    #[arg(long, env = "ARENAD_STANDBY_BOOTS", value_name = "NUMBER", default_value = "1")]
    pub standby_boots: NonZeroUsize,
    /// How much memory standbys leave to everything else on this host, such as 2g
    #[arg(long, env = "ARENAD_MEMORY_RESERVE", value_name = "SIZE", value_parser = size, default_value = "512m")]
    pub memory_reserve: u64,
    /// The memory limit of each container whose service has no mem_limit, such as 4g [default: half of the host's memory]
    #[arg(long, env = "ARENAD_CONTAINER_MEMORY", value_name = "SIZE", value_parser = container_memory)]
    pub container_memory: Option<u64>,
    /// The group that may use the socket, besides its owner
    #[arg(long, value_name = "GID")]
    pub socket_group: Option<u32>,
    /// Started by `arenad up`: detach from the terminal
    #[arg(long, hide = true)]
    pub background: bool,
}

#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// What a shell's completion script passes on.
#[derive(Debug, Args)]
pub struct CompleteArgs {
    /// The words of the command line after `arenad`; the last one is being typed
    #[arg(value_name = "WORD", trailing_var_arg = true, allow_hyphen_values = true, num_args = 0..)]
    pub words: Vec<String>,
}
