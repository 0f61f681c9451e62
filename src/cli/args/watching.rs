//! Looking at sites: how they are, what they say, what happens.

use std::time::Duration;

use clap::Args;

use super::shared::duration;

#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Show it again and again
    #[arg(short, long)]
    pub watch: bool,
}

#[derive(Debug, Args)]
pub struct HealthArgs {
    /// The environment (default: all), then the site (default: all)
    #[arg(value_name = "ENVIRONMENT] [SITE", num_args = 0..=2)]
    pub names: Vec<String>,
    /// How many rounds of each kind are counted
    #[arg(short = 'n', long, default_value_t = 100, value_name = "ROUNDS", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
}

#[derive(Debug, Args)]
pub struct LogsArgs {
    /// The site
    #[arg(value_name = "SITE")]
    pub site: String,
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
