//! Arguments of the commands that show states, containers, probe results, logs and events.

use std::time::Duration;

use clap::Args;

use super::shared::duration;

#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Sites, as SITE or ENVIRONMENT/SITE, or an environment [default: everything that is up]
    #[arg(value_name = "SITE")]
    pub sites: Vec<String>,
    /// Environment, if several have a site of that name; without sites, all sites of that environment
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
    /// Show titles, complete URLs, snapshots and the stages of the last reset
    #[arg(short, long)]
    pub verbose: bool,
    /// Refresh the output every second until interrupted
    #[arg(short, long)]
    pub watch: bool,
}

#[derive(Debug, Args)]
pub struct PsArgs {
    /// Sites or slots, as SITE, ENVIRONMENT/SITE or SITE:SLOT, or an environment [default: everything that is up]
    #[arg(value_name = "SITE")]
    pub sites: Vec<String>,
    /// Environment, if several have a site of that name; without sites, all sites of that environment
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
}

#[derive(Debug, Args)]
pub struct HealthArgs {
    /// Sites or slots, as SITE, ENVIRONMENT/SITE or SITE:SLOT, or an environment [default: everything that is up]
    #[arg(value_name = "SITE")]
    pub names: Vec<String>,
    /// Environment, if several have a site of that name; without sites, all sites of that environment
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
    /// Number of rounds of each kind to evaluate
    #[arg(short = 'n', long, default_value_t = 100, value_name = "ROUNDS", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
}

#[derive(Debug, Args)]
pub struct LogsArgs {
    /// Sites or slots, as SITE, ENVIRONMENT/SITE or SITE:SLOT
    #[arg(value_name = "SITE", required = true)]
    pub sites: Vec<String>,
    /// Environment, if several have a site of that name
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
    /// Show the logs of this service only
    #[arg(long, value_name = "NAME")]
    pub service: Option<String>,
    /// Keep printing new lines as they arrive
    #[arg(short, long)]
    pub follow: bool,
    /// Number of lines to show from the end of the logs
    #[arg(short = 'n', long, value_name = "LINES")]
    pub tail: Option<u32>,
    /// Show only lines that are newer than this, such as 10m
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub since: Option<Duration>,
    /// Begin each line with its timestamp
    #[arg(short, long)]
    pub timestamps: bool,
}

#[derive(Debug, Args)]
pub struct EventsArgs {
    /// Show only events of these sites, as SITE or ENVIRONMENT/SITE, or of an environment
    #[arg(value_name = "SITE")]
    pub sites: Vec<String>,
    /// Environment, if several have a site of that name; without sites, all sites of that environment
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
    /// Keep printing new events as they occur
    #[arg(short, long)]
    pub follow: bool,
    /// Maximum number of past events to show
    #[arg(short = 'n', long, default_value_t = 50, value_name = "EVENTS")]
    pub limit: u32,
    /// Show only events that are newer than this, such as 10m
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub since: Option<Duration>,
    /// Show only events after the event with this sequence number
    #[arg(long, value_name = "SEQ", conflicts_with = "since")]
    pub after: Option<i64>,
}
