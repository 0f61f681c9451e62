//! The command line. Its doc comments are the help texts.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};

use crate::domain::subnet::Subnet;

/// Runs the sites that web agents are tested on, and resets them to proven snapshots between episodes.
#[derive(Debug, Parser)]
#[command(name = "arenad", version, disable_help_subcommand = true, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, or `doctor` found a problem, 2 wrong usage or definition, 3 not ready (status, health), \
                          4 busy, 5 not done (check, eval), 6 undecided (check, eval), 124 --wait-timeout ran out, 130 interrupted";

/// Options of every command.
#[derive(Debug, Clone, Args)]
pub struct Global {
    /// Print JSON instead of text
    #[arg(long, global = true)]
    pub json: bool,
    /// Where the daemon keeps its files [default: /var/lib/arenad for root, else ~/.local/state/arenad]
    #[arg(long, global = true, env = "ARENAD_STATE_DIR", value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// The daemon's address: unix:///path or http://host:port [default: the socket in the state directory]
    #[arg(long, global = true, env = "ARENAD_HOST", value_name = "ADDRESS")]
    pub host: Option<String>,
    /// The token for a daemon on TCP
    #[arg(long, global = true, env = "ARENAD_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    pub token: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Bring sites up and wait until they are ready
    Up(UpArgs),
    /// Take sites down and remove everything of them
    Down(DownArgs),
    /// Bring sites back to their snapshots
    Reset(ResetArgs),
    /// Compare sites with their snapshots and name what differs
    Verify(VerifyArgs),
    /// Say what is up, how it is, and what to do about it
    Status(StatusArgs),
    /// Show what the health probes of sites have seen
    Health(HealthArgs),
    /// Say what is in the way of sites on this host, and what to do about it; needs neither daemon nor engine
    Doctor(DoctorArgs),
    /// List the containers of sites
    Ps,
    /// Show the logs of a site's containers
    Logs(LogsArgs),
    /// Show what happened
    Events(EventsArgs),
    /// Print the variables that benchmarks read
    Env(EnvArgs),
    /// Print a definition as arenad understands it
    Config(ConfigArgs),
    /// Check a definition; needs neither daemon nor Docker
    Validate(DefinitionArgs),
    /// List, take, compare, export, import and remove snapshots
    #[command(subcommand)]
    Snapshot(SnapshotCommand),
    /// Sign in to a site and print the session
    Login(LoginArgs),
    /// Read a value of a site: from its database, its pages, its files
    Locate(LocateArgs),
    /// Print what the gateway has recorded of sites' traffic, as HAR
    Har(HarArgs),
    /// Judge what an agent did, by a benchmark's rules: one episode, a folder of results, or evidence
    Eval(Box<super::eval::args::EvalArgs>),
    /// Say whether an agent did what a native task asks for
    Check(CheckArgs),
    /// Check, list and show native tasks; render those of benchmarks
    #[command(subcommand)]
    Tasks(TasksCommand),
    /// What cannot be stopped from inside; started by the daemon
    #[command(name = crate::locators::confined::COMMAND, hide = true)]
    ConfinedLocator {
        /// The processor time that it may take
        seconds: u64,
    },
    /// List, fetch, load and verify images and data that no build makes
    #[command(subcommand)]
    Images(ImagesCommand),
    /// Show what takes room on disk: snapshots, instances, images, archives
    Df(DfArgs),
    /// Remove snapshots and images that nothing needs; named snapshots stay
    Prune(PruneArgs),
    /// Make and look at the file system that copies of sites' state are made on
    #[command(subcommand)]
    Storage(StorageCommand),
    /// Open a site in the browser
    Open(OpenArgs),
    /// Run the daemon in the foreground
    Serve(ServeArgs),
    /// Print a shell's completion script
    Completions(CompletionsArgs),
    /// Print the JSON Schema of a definition file, for editors
    Schema(SchemaArgs),
    /// Print arenad's version
    Version,
}

/// Which definition is meant.
#[derive(Debug, Clone, Args)]
pub struct DefinitionArgs {
    /// The environment: the name of environments/NAME.yaml
    #[arg(value_name = "ENVIRONMENT")]
    pub environment: Option<String>,
    /// An environment file, instead of a name
    #[arg(short, long, value_name = "FILE", conflicts_with = "environment")]
    pub file: Option<PathBuf>,
    /// The folder that holds environments/ and compose/ [default: the nearest such folder from here upwards]
    #[arg(long, env = "ARENAD_ROOT", value_name = "DIR")]
    pub root: Option<PathBuf>,
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

#[derive(Debug, Args)]
pub struct UpArgs {
    /// The environment (default: mini), then its sites (default: all)
    #[arg(value_name = "ENVIRONMENT] [SITE")]
    pub names: Vec<String>,
    /// An environment file, instead of a name; then all names are sites
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The folder that holds environments/ and compose/ [default: the nearest such folder from here upwards]
    #[arg(long, env = "ARENAD_ROOT", value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Print what would be done, in order, and do nothing
    #[arg(long, conflicts_with_all = ["detach", "wait_timeout"])]
    pub dry_run: bool,
    /// Start them even where memory, space or processors do not suffice
    #[arg(long)]
    pub force: bool,
    /// What to do where copies of sites' state would be full copies, when the daemon is started
    #[arg(long, env = "ARENAD_STORAGE", value_enum, default_value_t = StorageChoice::Ask, value_name = "CHOICE")]
    pub storage: StorageChoice,
    #[command(flatten)]
    pub wait: WaitArgs,
    #[command(flatten)]
    pub engine: EngineArgs,
}

/// What to do where copies of sites' state would be full copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StorageChoice {
    /// Make a file system for them, as `storage init` does, where that is possible
    Auto,
    /// Offer that on a terminal; elsewhere say what copies cost
    Ask,
    /// Make full copies
    Plain,
}

#[derive(Debug, Args)]
pub struct DoctorArgs {
    #[command(flatten)]
    pub definition: DefinitionArgs,
    #[command(flatten)]
    pub engine: EngineArgs,
}

#[derive(Debug, Args)]
pub struct DownArgs {
    /// The sites; all if none is named
    #[arg(value_name = "SITE")]
    pub sites: Vec<String>,
    /// One environment only
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
    /// Remove snapshots, built images and the daemon's files too
    #[arg(long)]
    pub purge: bool,
    /// Do not ask before --purge
    #[arg(short, long)]
    pub yes: bool,
    #[command(flatten)]
    pub engine: EngineArgs,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("which").args(["sites", "all"]).required(true)))]
pub struct ResetArgs {
    /// The sites
    #[arg(value_name = "SITE")]
    pub sites: Vec<String>,
    /// All sites
    #[arg(short, long)]
    pub all: bool,
    /// Leave sites alone that are proven to be as their snapshots
    #[arg(long)]
    pub if_dirty: bool,
    /// Go to this snapshot instead of the baseline: its name or id
    #[arg(long, value_name = "SNAPSHOT", conflicts_with_all = ["all", "if_dirty"])]
    pub to: Option<String>,
    /// The environment, where several have a site of that name
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
    #[command(flatten)]
    pub wait: WaitArgs,
}

#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// The sites; all that declare stores, if none is named
    #[arg(value_name = "SITE")]
    pub sites: Vec<String>,
    /// The environment, where several have a site of that name
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
}

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
}

/// The forms of `arenad env`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EnvFormat {
    /// `export NAME='value'`, for eval
    Shell,
    /// `NAME=value`, for .env files
    Dotenv,
    /// One JSON object
    Json,
}

/// Who reads the variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EnvReader {
    /// SHOPPING, REDDIT, …
    Webarena,
    /// WA_SHOPPING, WA_REDDIT, …; AgentLab reads them too
    Browsergym,
    /// Both
    All,
}

#[derive(Debug, Args)]
pub struct EnvArgs {
    #[command(flatten)]
    pub definition: DefinitionArgs,
    /// The form
    #[arg(long, value_enum, default_value_t = EnvFormat::Shell)]
    pub format: EnvFormat,
    /// Who reads the variables
    #[arg(long = "for", value_enum, default_value_t = EnvReader::All, value_name = "READER")]
    pub reader: EnvReader,
}

#[derive(Debug, Args)]
pub struct ConfigArgs {
    #[command(flatten)]
    pub definition: DefinitionArgs,
    /// List the variables that were used and where each value comes from
    #[arg(long)]
    pub variables: bool,
}

#[derive(Debug, Subcommand)]
pub enum SnapshotCommand {
    /// List snapshots
    #[command(visible_alias = "list")]
    Ls,
    /// Stop a site cleanly, store its state, start it again
    Take(TakeArgs),
    /// Say in which tables and files two snapshots of a site differ
    Diff(DiffArgs),
    /// Write a snapshot into one file, from which another machine can take it
    Export(ExportArgs),
    /// Take a snapshot from a file; goes on where an earlier attempt was cut off
    Import(ImportArgs),
    /// Remove a snapshot that nothing uses
    Rm(RmArgs),
}

#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Its id, the beginning of its id, or its name
    #[arg(value_name = "SNAPSHOT")]
    pub snapshot: String,
    /// The file to make [default: SITE-SNAPSHOT.snapshot.tar.zst in the present folder]
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub engine: EngineArgs,
}

#[derive(Debug, Args)]
pub struct ImportArgs {
    /// A file that `snapshot export` has written
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// What to call the snapshot [default: the name that it had]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    #[command(flatten)]
    pub engine: EngineArgs,
}

#[derive(Debug, Args)]
pub struct TakeArgs {
    /// The site
    #[arg(value_name = "SITE")]
    pub site: String,
    /// What to call the snapshot
    #[arg(long, value_name = "NAME")]
    pub name: String,
    /// The environment, where several have a site of that name
    #[arg(short, long, value_name = "ENVIRONMENT")]
    pub environment: Option<String>,
    #[command(flatten)]
    pub wait: WaitArgs,
}

#[derive(Debug, Args)]
pub struct DiffArgs {
    /// What to compare with: id, beginning of an id, or name
    #[arg(value_name = "FROM")]
    pub from: String,
    /// The other one
    #[arg(value_name = "TO")]
    pub to: String,
}

#[derive(Debug, Args)]
pub struct RmArgs {
    /// Ids, beginnings of ids, or names
    #[arg(value_name = "SNAPSHOT", required = true)]
    pub snapshots: Vec<String>,
}

/// The forms of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SessionFormat {
    /// A storage state, for Playwright and BrowserGym
    Playwright,
    /// A cookie file, for curl and wget
    Netscape,
    /// Request headers, one on a line
    Header,
}

#[derive(Debug, Args)]
pub struct LoginArgs {
    /// The site; with --check, all sites if none is named
    #[arg(value_name = "SITE", required_unless_present = "check")]
    pub site: Option<String>,
    /// The account: its name in the definition [default: the only one that can sign in]
    #[arg(short, long, value_name = "NAME")]
    pub account: Option<String>,
    /// The environment, where several have a site of that name
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
    /// The form [default: playwright]
    #[arg(long, value_enum, conflicts_with_all = ["check", "json"])]
    pub format: Option<SessionFormat>,
    /// Write to a file, which nobody else may read
    #[arg(short, long, value_name = "FILE", conflicts_with = "check")]
    pub output: Option<PathBuf>,
    /// Sign in with every account and say whether it works
    #[arg(long)]
    pub check: bool,
}

#[derive(Debug, Args)]
#[command(after_help = LOCATORS)]
pub struct LocateArgs {
    /// The site
    #[arg(value_name = "SITE")]
    pub site: String,
    /// What is to be read
    #[arg(value_name = "LOCATOR")]
    pub locator: String,
    /// An argument for a place such as `{sku}` in the locator; may be repeated
    #[arg(short, long = "argument", value_name = "NAME=TEXT", value_parser = argument)]
    pub arguments: Vec<(String, String)>,
    /// The path of the page for a `js:` locator that names none [default: the one of the site's URL]
    #[arg(long, value_name = "PATH")]
    pub page: Option<String>,
    /// The agent's browser, for `js: … @ live`: http://HOST:PORT
    #[arg(long, value_name = "ADDRESS")]
    pub cdp: Option<String>,
    /// The traffic of its browser, for `trace: …`: a HAR [default: what the gateway has recorded]
    #[arg(long, value_name = "FILE")]
    pub har: Option<PathBuf>,
    /// The environment, where several have a site of that name
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
}

const LOCATORS: &str = "Locators:
  sql(DATABASE): SELECT …                      options: rows, timeout=5s; arguments as {name}
  http: GET /path as ACCOUNT | jsonpath: $.x   or jq: .x, css: h1, header: Location, status, body
  js: document.title @ /path as ACCOUNT        options: wait='#id'; or @ live, with --cdp
  exec: SERVICE: command …                     no shell
  file: SERVICE: /path
  trace: POST /path* | jsonpath: $.body.x      the last such request that was recorded; or (all), jq: .x, count
  helper: NAME('text', …)                      what the environment file calls so";

fn argument(text: &str) -> Result<(String, String), String> {
    let is_name = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    match text.split_once('=') {
        Some((name, value)) if is_name(name) => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected a name of lower-case letters and `_`, `=`, and a text, such as `sku=B00-1`".to_owned()),
    }
}

/// Prints the requests that reached sites since their latest reset, where `public: { record: … }` has them recorded. Passwords,
/// tokens and sessions are taken out; what pages show is not.
#[derive(Debug, Args)]
pub struct HarArgs {
    /// The sites [default: all of the environment]
    #[arg(value_name = "SITE")]
    pub sites: Vec<String>,
    /// The environment, where several are up
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
    /// Write to this file, instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Which task is meant.
#[derive(Debug, Clone, Args)]
pub struct TaskChoice {
    /// The file that has the task [default: those in environments/NAME/tasks/ of the folder that the environment is of]
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The environment, where several are up
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, after_help = CHECK_CODES)]
pub struct CheckArgs {
    #[command(subcommand)]
    pub command: Option<CheckCommand>,
    /// The task, or a file with one task
    #[arg(value_name = "TASK|FILE", required_unless_present = "from")]
    pub task: Option<String>,
    #[command(flatten)]
    pub choice: TaskChoice,
    /// What `arenad check begin` said; `-` for standard input
    #[arg(long, value_name = "FILE")]
    pub begun: Option<PathBuf>,
    /// What the agent said in the end [default: nothing]
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true, allow_hyphen_values = true)]
    pub answer: String,
    /// Where it ended [default: where its browser is, if --cdp is given]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// The agent's browser: http://HOST:PORT
    #[arg(long, value_name = "ADDRESS")]
    pub cdp: Option<String>,
    /// Write all that was seen to this file
    #[arg(long, value_name = "FILE")]
    pub evidence: Option<PathBuf>,
    /// Judge by what --evidence wrote, without sites and daemon; the task is the one of the files as they are now
    #[arg(long, value_name = "FILE", conflicts_with_all = ["begun", "answer", "url", "cdp", "evidence"])]
    pub from: Option<PathBuf>,
}

const CHECK_CODES: &str = "Exit codes: 0 the agent did it, 5 it did not, 6 nothing can be said; 1 and 2 as everywhere";

#[derive(Debug, Subcommand)]
pub enum CheckCommand {
    /// Capture the values of an episode's beginning that the check will want
    Begin(CheckBeginArgs),
}

#[derive(Debug, Args)]
pub struct CheckBeginArgs {
    /// The task, or a file with one task
    #[arg(value_name = "TASK|FILE")]
    pub task: String,
    #[command(flatten)]
    pub choice: TaskChoice,
    /// Bring the task's sites to where it starts first
    #[arg(long)]
    pub reset: bool,
    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum TasksCommand {
    /// Say everything that is wrong with task files; needs neither daemon nor Docker, but with --live
    Lint(TasksLintArgs),
    /// List the tasks of an environment
    #[command(visible_alias = "list")]
    Ls(TasksLsArgs),
    /// Show a task: where it starts, what it asks for, and how it is checked
    Show(TasksShowArgs),
    /// Write a benchmark's task files with this environment's URLs, as its generate_test_data.py does
    Render(super::tasks::render::RenderArgs),
}

#[derive(Debug, Args)]
pub struct TasksLintArgs {
    /// A task file, a folder of them, or an environment's name [default: mini]
    #[arg(value_name = "FILE|DIR|ENVIRONMENT")]
    pub what: Option<String>,
    /// Also make every check on sites that stand where the tasks start: one that passes there, or cannot be made, is wrong
    #[arg(long)]
    pub live: bool,
    /// The folder that holds environments/ and compose/ [default: the nearest such folder from here upwards]
    #[arg(long, env = "ARENAD_ROOT", value_name = "DIR")]
    pub root: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct TasksLsArgs {
    /// The environment [default: mini]
    #[arg(value_name = "ENVIRONMENT")]
    pub environment: Option<String>,
    /// The folder that holds environments/ and compose/ [default: the nearest such folder from here upwards]
    #[arg(long, env = "ARENAD_ROOT", value_name = "DIR")]
    pub root: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct TasksShowArgs {
    /// The task
    #[arg(value_name = "TASK")]
    pub task: String,
    /// The environment [default: mini]
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
    /// The folder that holds environments/ and compose/ [default: the nearest such folder from here upwards]
    #[arg(long, env = "ARENAD_ROOT", value_name = "DIR")]
    pub root: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum ImagesCommand {
    /// Say what is needed, what is there, and how large it is
    #[command(visible_alias = "list")]
    Ls(ImagesLsArgs),
    /// Fetch from mirrors and registries what is missing, and load it
    Pull(ImagesPullArgs),
    /// Load archives into the engine, and put data where it belongs
    Load(ImagesLoadArgs),
    /// Read archives again and compare them and the engine's images
    Verify(ImagesVerifyArgs),
}

/// Which images and data are meant.
#[derive(Debug, Args)]
pub struct ImagesChoice {
    /// The environment (default: mini), then sites, images or data (default: all)
    #[arg(value_name = "ENVIRONMENT] [NAME")]
    pub names: Vec<String>,
    /// An environment file, instead of a name; then all names are sites, images or data
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The folder that holds environments/ and compose/ [default: the nearest such folder from here upwards]
    #[arg(long, env = "ARENAD_ROOT", value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// The Docker engine
    #[arg(long, env = "DOCKER_HOST", value_name = "ADDRESS", default_value = "unix:///var/run/docker.sock")]
    pub engine: String,
}

/// What is done with what is there, and with what is left over.
#[derive(Debug, Clone, Args)]
pub struct ImagesWriteArgs {
    /// Let an image take its name from another one that the engine has
    #[arg(long)]
    pub replace: bool,
    /// Remove each archive when what was in it is there
    #[arg(long)]
    pub discard: bool,
    /// Do not ask first whether there is room
    #[arg(long)]
    pub ignore_space: bool,
}

#[derive(Debug, Args)]
pub struct ImagesLsArgs {
    #[command(flatten)]
    pub choice: ImagesChoice,
}

#[derive(Debug, Args)]
pub struct ImagesPullArgs {
    #[command(flatten)]
    pub choice: ImagesChoice,
    #[command(flatten)]
    pub write: ImagesWriteArgs,
    /// Turn to the next mirror when nothing has arrived for this long
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "60s")]
    pub stall_timeout: Duration,
    /// Give a mirror up after so many fruitless attempts in a row
    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub tries: u32,
}

#[derive(Debug, Args)]
pub struct ImagesLoadArgs {
    #[command(flatten)]
    pub choice: ImagesChoice,
    #[command(flatten)]
    pub write: ImagesWriteArgs,
    /// An archive, or a folder of archives under their own names [default: what `pull` has fetched]
    #[arg(long, value_name = "FILE|DIR")]
    pub from: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct ImagesVerifyArgs {
    #[command(flatten)]
    pub choice: ImagesChoice,
    /// An archive, or a folder of archives under their own names [default: what `pull` has fetched]
    #[arg(long, value_name = "FILE|DIR")]
    pub from: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct DfArgs {
    #[command(flatten)]
    pub engine: EngineArgs,
}

#[derive(Debug, Args)]
pub struct PruneArgs {
    /// Also unused baselines that were taken longer ago, such as 7d: the next `up` makes them anew
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub older: Option<Duration>,
    /// Also unused baselines, the oldest first, until snapshots take no more than this, such as 20G
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub keep_bytes: Option<u64>,
    /// Remove without asking
    #[arg(short, long)]
    pub yes: bool,
    #[command(flatten)]
    pub engine: EngineArgs,
}

#[derive(Debug, Subcommand)]
pub enum StorageCommand {
    /// Make a file with XFS in it, where files can share their blocks, and keep sites' state there; needs root
    Init(StorageInitArgs),
    /// Say where sites' state is kept, what copies of it cost, and how much room is left
    Status,
}

#[derive(Debug, Args)]
pub struct StorageInitArgs {
    /// How large it may become, such as 50G; it takes as much as is in it [default: 20G, or half of what is free]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub size: Option<u64>,
    /// The file to make [default: stores.xfs in the state directory]
    #[arg(long, value_name = "FILE")]
    pub path: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct OpenArgs {
    /// The site
    #[arg(value_name = "SITE")]
    pub site: String,
    /// The environment, where several have a site of that name
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
    /// Print the URL only
    #[arg(long)]
    pub print: bool,
}

/// Where containers run.
#[derive(Debug, Clone, Args)]
pub struct EngineArgs {
    /// The Docker engine
    #[arg(long, env = "DOCKER_HOST", value_name = "ADDRESS", default_value = "unix:///var/run/docker.sock")]
    pub engine: String,
    /// The block of addresses that instance networks are cut from
    #[arg(long, env = "ARENAD_SUBNETS", value_name = "CIDR", default_value_t = Subnet::DEFAULT_BLOCK)]
    pub subnets: Subnet,
    /// How many images are built, and how many sites boot, at once [default: the number of processors, at least 2]
    #[arg(long, env = "ARENAD_PARALLEL", value_name = "NUMBER")]
    pub parallel: Option<NonZeroUsize>,
}

#[derive(Debug, Args)]
pub struct ServeArgs {
    #[command(flatten)]
    pub engine: EngineArgs,
    /// Offer the API on this TCP address too; wants a token
    #[arg(long, env = "ARENAD_LISTEN", value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,
    /// How many standbys boot at once on this host
    #[arg(long, env = "ARENAD_STANDBY_BOOTS", value_name = "NUMBER", default_value = "1")]
    pub standby_boots: NonZeroUsize,
    /// How much memory standbys leave to everything else on this host, such as 2g
    #[arg(long, env = "ARENAD_MEMORY_RESERVE", value_name = "SIZE", value_parser = size, default_value = "512m")]
    pub memory_reserve: u64,
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

/// The files that have schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SchemaFile {
    /// environments/NAME.yaml
    Environment,
    /// compose/NAME.yaml
    Compose,
    /// environments/NAME/tasks/*.yaml
    Tasks,
}

#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// Which file
    pub file: SchemaFile,
}

fn size(text: &str) -> Result<u64, String> {
    crate::definition::size(text).ok_or_else(|| format!("`{text}` is not a size such as 20G or 512m"))
}

fn duration(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse::<u64>() {
        return Ok(Duration::from_secs(seconds));
    }
    humantime::parse_duration(text).map_err(|_| format!("`{text}` is not a duration such as 90s or 10m"))
}
