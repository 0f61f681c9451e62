//! Arguments of the commands for episodes.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};

use super::shared::{Malformed, duration};
use arenad_api::EpisodeRecording;

#[derive(Debug, Subcommand)]
#[command(disable_help_subcommand = true)]
pub enum EpisodeCommand {
    /// Start an episode: get a slot of each site, all or none
    Start(EpisodeStartArgs),
    /// List the live episodes, with their sites, owners and labels
    #[command(visible_alias = "list")]
    Ls(EpisodeLsArgs),
    /// Show an episode: its state, its sites, and how it ended
    Show(EpisodeIdArgs),
    /// Extend the time to live of an episode, from now on
    Extend(EpisodeExtendArgs),
    /// List what an episode has changed on its sites, with the rows of tables
    Changes(EpisodeChangesArgs),
    /// Keep the states of an episode's sites for a later comparison by `changes`
    Look(EpisodeLookArgs),
    /// Freeze an episode while its sites are judged
    Freeze(EpisodeIdArgs),
    /// End the freeze of an episode
    Unfreeze(EpisodeIdArgs),
    /// Start further episodes from the present state of one, which goes on
    Fork(EpisodeForkArgs),
    /// Write the recorded requests of an episode that runs or has ended
    Export(EpisodeExportArgs),
    /// End episodes, or withdraw their requests; their sites are brought back to their baselines
    End(EpisodeEndArgs),
}

/// The options that describe an episode.
#[derive(Debug, Clone, Args)]
pub struct EpisodeTermsArgs {
    /// Native task, which determines sites and snapshots
    #[arg(short, long, value_name = "TASK")]
    pub task: Option<String>,
    /// File that contains the task [default: the files in environments/NAME/tasks/, next to the environment file]
    #[arg(short, long, value_name = "FILE", requires = "task")]
    pub file: Option<PathBuf>,
    /// Environment, if several have a site of that name, or the task
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
    /// Snapshot from which a site starts, instead of its baseline; may be repeated
    #[arg(long = "snapshot", value_name = "SITE=SNAPSHOT", value_parser = snapshot)]
    pub snapshots: Vec<(String, String)>,
    /// Number of the slot of a site, instead of any slot; may be repeated
    #[arg(long = "slot", value_name = "SITE=NUMBER", value_parser = slot)]
    pub slots: Vec<(String, u32)>,
    /// Stop waiting for slots after this time, such as 90s or 10m [default: 60s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub wait: Option<Duration>,
    /// Person or program that the episode is counted for [default: `default`]
    #[arg(long, value_name = "NAME")]
    pub owner: Option<String>,
    /// Label by which the episode is found; may be repeated
    #[arg(short, long = "label", value_name = "KEY=VALUE", value_parser = label)]
    pub labels: Vec<(String, String)>,
    /// Requests to record; the record is kept after the end of the episode [default: none]
    #[arg(long, value_name = "REQUESTS", value_parser = recording())]
    pub record: Option<EpisodeRecording>,
    /// Replay whose recorded hosts the episode reaches through the proxy; may be repeated
    #[arg(long = "replay", value_name = "REPLAY")]
    pub replays: Vec<String>,
}

/// Returns the parser of the requests to record.
fn recording() -> impl TypedValueParser<Value = EpisodeRecording> {
    let all = [EpisodeRecording::All, EpisodeRecording::Writes, EpisodeRecording::Nothing];
    PossibleValuesParser::new(all.map(EpisodeRecording::word)).map(move |word| {
        // Only these words are possible.
        all.into_iter().find(|known| known.word() == word).unwrap_or(EpisodeRecording::Nothing)
    })
}

#[derive(Debug, Args)]
pub struct EpisodeStartArgs {
    /// Sites, as SITE or ENVIRONMENT/SITE [default: the sites of the task, else all sites of the environment]
    #[arg(value_name = "SITE")]
    pub sites: Vec<String>,
    /// Sites in the form that `arenad run` takes
    #[arg(short, long = "sites", value_name = "SITE", value_delimiter = ',', hide = true, conflicts_with = "sites")]
    pub listed: Vec<String>,
    #[command(flatten)]
    pub terms: EpisodeTermsArgs,
    /// End the episode after this time without a heartbeat [default: 10m]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub ttl: Option<Duration>,
    /// Key that repetitions of the request have in common; they get the same episode
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// Return before the episode has its slots
    #[arg(short, long)]
    pub detach: bool,
}

#[derive(Debug, Args)]
pub struct EpisodeLsArgs {
    /// Only episodes with this label; may be repeated
    #[arg(short, long = "label", value_name = "KEY=VALUE", value_parser = label)]
    pub labels: Vec<(String, String)>,
    /// Only episodes of this owner
    #[arg(long, value_name = "NAME")]
    pub owner: Option<String>,
    /// Also list episodes that have ended
    #[arg(short, long)]
    pub all: bool,
}

#[derive(Debug, Args)]
pub struct EpisodeIdArgs {
    /// Id of the episode
    #[arg(value_name = "EPISODE")]
    pub episode: String,
}

/// Compares the sites of a running episode with the states from which it started. Parts that the definition declares
/// volatile, and sites that all episodes share, are left out.
#[derive(Debug, Args)]
pub struct EpisodeChangesArgs {
    /// Id of the episode
    #[arg(value_name = "EPISODE")]
    pub episode: String,
    /// Sites of the episode [default: all of them]
    #[arg(value_name = "SITE")]
    pub sites: Vec<String>,
    /// Also show the values of rows, and the differences of text files
    #[arg(long)]
    pub values: bool,
    /// Compare with this look instead of the starting points
    #[arg(long, value_name = "LOOK")]
    pub since: Option<u64>,
    /// Compare the states at this look instead of the present states
    #[arg(long, value_name = "LOOK")]
    pub until: Option<u64>,
}

/// Prints the number of the look, for `arenad episode changes --since`. The sites are only read. Looks end with the
/// episode.
#[derive(Debug, Args)]
pub struct EpisodeLookArgs {
    /// Id of the episode
    #[arg(value_name = "EPISODE")]
    pub episode: String,
}

#[derive(Debug, Args)]
pub struct EpisodeExtendArgs {
    /// Id of the episode
    #[arg(value_name = "EPISODE")]
    pub episode: String,
    /// Time after which the episode ends without another extension [default: its time to live]
    #[arg(value_name = "DURATION", value_parser = duration)]
    pub by: Option<Duration>,
}

#[derive(Debug, Args)]
pub struct EpisodeForkArgs {
    /// Id of the episode
    #[arg(value_name = "EPISODE")]
    pub episode: String,
    /// Number of episodes to start
    #[arg(short, long, value_name = "NUMBER", default_value = "1")]
    pub n: NonZeroU32,
    /// Longest wait for slots; 0 fails at once if there are none [default: 60s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub wait: Option<Duration>,
    /// Person or program that the episodes are counted for [default: that of the parent]
    #[arg(long, value_name = "NAME")]
    pub owner: Option<String>,
    /// Label of the episodes, in addition to those of the parent; may be repeated
    #[arg(short, long = "label", value_name = "KEY=VALUE", value_parser = label)]
    pub labels: Vec<(String, String)>,
    /// Requests to record; the record is kept after the end of the episode [default: as for the parent]
    #[arg(long, value_name = "REQUESTS", value_parser = recording())]
    pub record: Option<EpisodeRecording>,
    /// End the episodes after this time without a heartbeat [default: that of the parent]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub ttl: Option<Duration>,
    /// Key that repetitions of the request have in common; they get the same episodes
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// Return before the episodes have their slots
    #[arg(short, long)]
    pub detach: bool,
}

#[derive(Debug, Args)]
pub struct EpisodeEndArgs {
    /// Ids of the episodes
    #[arg(value_name = "EPISODE", required = true)]
    pub episodes: Vec<String>,
}

/// The form in which the requests of an episode are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// One file in the format HAR 1.2
    Har,
    /// A folder that `webarena-verified eval-tasks` scores
    WebarenaVerified,
}

#[derive(Debug, Args)]
#[command(after_help = EXPORT_NOTES)]
pub struct EpisodeExportArgs {
    /// Id of the episode
    #[arg(value_name = "EPISODE")]
    pub episode: String,
    /// Form of the output
    #[arg(long, value_enum, default_value_t = ExportFormat::Har)]
    pub format: ExportFormat,
    /// Folder to write to [default: standard output for a HAR, else the working directory]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Number of the task, for webarena-verified [default: the label `task`]
    #[arg(short, long, value_name = "NUMBER")]
    pub task: Option<u32>,
    /// File with the agent's response, for webarena-verified
    #[arg(long, value_name = "FILE")]
    pub response: Option<PathBuf>,
}

const EXPORT_NOTES: &str = "\
`--format webarena-verified` writes DIR/TASK/agent_response.json, network.har and run_config.json. The configuration \
has all addresses of the sites, so that episodes of all slots are scored together. An agent_response.json that exists \
is kept if there is no --response.";

/// Runs a command with an episode of its own: pristine sites that no other client uses. The episode ends with the
/// command, and with this process, however that ends.
#[derive(Debug, Args)]
#[command(after_help = RUN_NOTES)]
pub struct RunArgs {
    /// Sites, separated by commas, as SITE or ENVIRONMENT/SITE [default: the sites of the task, else all sites of the
    /// environment]
    #[arg(short, long, value_name = "SITE", value_delimiter = ',')]
    pub sites: Vec<String>,
    #[command(flatten)]
    pub terms: EpisodeTermsArgs,
    /// End the episode after this time without a connection to the daemon [default: 60s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub ttl: Option<Duration>,
    /// Run the command this many times at once, each with an episode of its own
    #[arg(short, long, value_name = "NUMBER", default_value = "1")]
    pub n: NonZeroUsize,
    /// Set HTTP_PROXY, http_proxy, NO_PROXY and no_proxy, so that all http:// requests of the command's clients go
    /// through the episode proxy, except those to this host
    #[arg(long)]
    pub proxy_env: bool,
    /// Use the URLs at the own ports of the episode's slots in all variables, for clients that take no proxy
    #[arg(long, conflicts_with = "proxy_env")]
    pub ports: bool,
    /// Record all requests, and write them to DIR/EPISODE.har when the command has ended
    #[arg(long, value_name = "DIR")]
    pub har: Option<PathBuf>,
    /// Command to run, with its arguments
    #[arg(value_name = "COMMAND", last = true, required = true)]
    pub command: Vec<String>,
}

const RUN_NOTES: &str = "\
The command has the variables of `arenad env`, with `todo` for sites that the episode does not have, and:
  ARENAD_EPISODE         the id of the episode
  ARENAD_EPISODE_TOKEN   the token with which a client on TCP keeps the episode alive and ends it
  ARENAD_URL_<SITE>      the URL of each site, such as ARENAD_URL_SHOPPING
  ARENAD_PORT_URL_<SITE> the URL at the own port of the site's slot, if it has one
  ARENAD_RUN             the number of the run, from 1
  ARENAD_PROXY_SERVER, ARENAD_PROXY_USERNAME, ARENAD_PROXY_PASSWORD
                         the episode proxy, for clients that take them apart, such as Playwright
  ARENAD_PROXY_URL       the same in one URL
If a site has a slot without a public port, all URLs lead through the episode proxy: the command must use it. With \
--ports they lead to the own ports of slots instead.

Exit codes:
   75  void: the environment failed the episode; repeat the run
  126  the command cannot be run
  127  the command does not exist
Otherwise that of the command, or 128 and the number of the signal that ended it; of several runs the first that is \
not 0. Before the command runs, the codes are those of all commands.";

fn pair(text: &str, example: &str) -> Result<(String, String), Malformed> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() && !value.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("`{text}` is not of the form {example}").into()),
    }
}

fn snapshot(text: &str) -> Result<(String, String), Malformed> {
    pair(text, "SITE=SNAPSHOT, such as shopping=full-basket")
}

fn slot(text: &str) -> Result<(String, u32), Malformed> {
    let (site, number) = pair(text, "SITE=NUMBER, such as shopping=1")?;
    let number = number.parse().ok().filter(|number| *number > 0);
    let number = number.ok_or_else(|| Malformed::from(format!("`{text}` has no number of a slot, from 1")))?;
    Ok((site, number))
}

fn label(text: &str) -> Result<(String, String), Malformed> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("`{text}` is not of the form KEY=VALUE, such as run=7").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_split_at_the_first_sign_and_checked() {
        assert_eq!(label("task=a=b").ok(), Some(("task".to_owned(), "a=b".to_owned())));
        assert_eq!(label("note=").ok(), Some(("note".to_owned(), String::new())));
        assert!(label("note").is_err() && label("=x").is_err());
        assert_eq!(slot("mini/shopping=2").ok(), Some(("mini/shopping".to_owned(), 2)));
        for wrong in ["shopping", "shopping=", "shopping=0", "shopping=one", "shopping=-1"] {
            assert!(slot(wrong).is_err(), "{wrong}");
        }
        assert!(snapshot("shopping=").is_err());
    }
}
