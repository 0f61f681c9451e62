//! Looking at sites: how they are, what they say, what happens.

use std::time::Duration;

use clap::Args;

use super::shared::duration;

#[derive(Debug, Args)]
pub struct StatusArgs {
    /// The sites, as SITE or ENVIRONMENT/SITE, or an environment [default: everything that is up]
    #[arg(value_name = "SITE")]
    pub sites: Vec<String>,
    /// The environment, where several have a site of that name; without sites, all of its sites
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
    /// Show titles, whole addresses, snapshots and where the last reset's time went
    #[arg(short, long)]
    pub verbose: bool,
    /// Show it again and again
    #[arg(short, long)]
    pub watch: bool,
}

#[derive(Debug, Args)]
pub struct PsArgs {
    /// The sites, as SITE or ENVIRONMENT/SITE, or an environment [default: everything that is up]
    #[arg(value_name = "SITE")]
    pub sites: Vec<String>,
    /// The environment, where several have a site of that name; without sites, all of its sites
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
}

#[derive(Debug, Args)]
pub struct HealthArgs {
    /// The sites, as SITE or ENVIRONMENT/SITE, or an environment [default: everything that is up]
    #[arg(value_name = "SITE")]
    pub names: Vec<String>,
    /// The environment, where several have a site of that name; without sites, all of its sites
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
    /// How many rounds of each kind are counted
    #[arg(short = 'n', long, default_value_t = 100, value_name = "ROUNDS", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
}

#[derive(Debug, Args)]
pub struct LogsArgs {
    /// The sites, as SITE or ENVIRONMENT/SITE
    #[arg(value_name = "SITE", required = true)]
    pub sites: Vec<String>,
    /// The environment, where several have a site of that name
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
    /// One service only
    #[arg(long, value_name = "NAME")]
    pub service: Option<String>,
    /// Wait for more
    #[arg(short, long)]
    pub follow: bool,
    /// The last lines only
    #[arg(short = 'n', long, value_name = "LINES")]
    pub tail: Option<u32>,
    /// Only what is newer than this, such as 10m
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub since: Option<Duration>,
    /// Begin each line with its time
    #[arg(short, long)]
    pub timestamps: bool,
}

#[derive(Debug, Args)]
pub struct EventsArgs {
    /// Of these sites only, as SITE or ENVIRONMENT/SITE, or of an environment
    #[arg(value_name = "SITE")]
    pub sites: Vec<String>,
    /// The environment, where several have a site of that name; without sites, all of its sites
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
    /// Wait for more
    #[arg(short, long)]
    pub follow: bool,
    /// How many of the past
    #[arg(short = 'n', long, default_value_t = 50, value_name = "EVENTS")]
    pub limit: u32,
    /// Only what is newer than this, such as 10m
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub since: Option<Duration>,
    /// Only what came after the event of this number
    #[arg(long, value_name = "SEQ", conflicts_with = "since")]
    pub after: Option<i64>,
}
