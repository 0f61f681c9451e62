//! Arguments of the commands for the daemon, its host and the shell.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::time::Duration;

use clap::Args;

use super::shared::{DaemonArgs, DefinitionArgs, EngineArgs, Malformed, container_memory, duration, size};
use arenad_daemon::slots::DEFAULT_EPISODE_LIMIT;
use arenad_model::episode::ids::Owner;
use arenad_model::episode::life::LONGEST_TTL;
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
    /// Address of the environment service for trainers that use OpenEnv, such as 127.0.0.1:8010. It has no credentials
    #[arg(long, env = "ARENAD_OPENENV", value_name = "ADDRESS:PORT")]
    pub openenv: Option<SocketAddr>,
    /// Accept addresses for `--listen`, `--proxy`, `--compat` and `--openenv` that are not loopback addresses, because
    /// clients reach them through a TLS proxy
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
    /// Most episodes that owners have at once, separated by commas: NUMBER for each owner, OWNER=NUMBER for one [default:
    /// 1000]
    #[arg(long, env = "ARENAD_QUOTA", value_name = "QUOTA", value_delimiter = ',', value_parser = quota)]
    pub quota: Vec<EpisodeQuota>,
    /// Most requests for episodes that wait for slots; further ones are refused with 429
    #[arg(long, env = "ARENAD_QUEUE_LIMIT", value_name = "NUMBER", default_value_t = DEFAULT_EPISODE_LIMIT)]
    pub queue_limit: NonZeroUsize,
    /// Most requests of one owner that wait for slots [default: half of --queue-limit]
    #[arg(long, env = "ARENAD_OWNER_QUEUE_LIMIT", value_name = "NUMBER")]
    pub owner_queue_limit: Option<NonZeroUsize>,
    /// Longest time to live that an episode may ask for, from 1m to 30d
    #[arg(long, env = "ARENAD_TTL_LIMIT", value_name = "DURATION", value_parser = ttl_limit, default_value = "24h")]
    pub ttl_limit: Duration,
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

/// The most episodes at once of an owner, or of each owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EpisodeQuota {
    /// The owner; `None` for each owner without a quota of its own.
    pub owner: Option<Owner>,
    /// The number of episodes.
    pub most: usize,
}

fn quota(text: &str) -> Result<EpisodeQuota, Malformed> {
    let (owner, number) = match text.split_once('=') {
        Some((owner, number)) => (Some(Owner::parse(owner).map_err(|error| error.to_string())?), number),
        None => (None, text),
    };
    let most = number.parse().map_err(|_| format!("`{text}` is neither a number such as 8 nor of the form ann=8"))?;
    Ok(EpisodeQuota { owner, most })
}

/// The least limit of times to live, which leaves room for the shortest time that `arenad run` asks for by itself.
const LEAST_TTL_LIMIT: Duration = Duration::from_secs(60);

fn ttl_limit(text: &str) -> Result<Duration, Malformed> {
    let limit = duration(text)?;
    if (LEAST_TTL_LIMIT..=LONGEST_TTL).contains(&limit) {
        return Ok(limit);
    }
    Err(format!("`{text}` is not between 1m and 30d").into())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_are_of_each_owner_or_of_one() {
        let ann = Owner::parse("team/ann").expect("valid");
        assert_eq!(quota("8").ok(), Some(EpisodeQuota { owner: None, most: 8 }));
        assert_eq!(quota("team/ann=0").ok(), Some(EpisodeQuota { owner: Some(ann), most: 0 }));
        for wrong in ["", "ann", "ann=", "=8", "a b=8", "ann=8=9", "-1"] {
            assert!(quota(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_limit_of_times_to_live_leaves_room_for_episodes() {
        assert_eq!(ttl_limit("1m").ok(), Some(LEAST_TTL_LIMIT));
        assert_eq!(ttl_limit("30d").ok(), Some(LONGEST_TTL));
        for wrong in ["59s", "0", "31d", "long"] {
            assert!(ttl_limit(wrong).is_err(), "{wrong}");
        }
    }
}
