//! Defines the options of `arenad eval`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};

use crate::cli::args::Malformed;
use arenad_evaluation::placeholder;
use arenad_verdict::Benchmark;
use arenad_verdict::Profile;

/// Judges one episode (--task), every result in a folder (--results), stored evidence (--from), or what the agent of an
/// episode has done (--episode).
#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("what").args(["task", "results", "from", "episode"]).required(true).multiple(true)),
    after_help = AFTER
)]
pub struct EvalArgs {
    /// Number of the task, or a name such as `shopping/35` for VisualWebArena and `Abstractive Summary/0` for TurkingBench
    #[arg(long, value_name = "ID", requires = "benchmark")]
    pub task: Option<String>,
    /// Folder with results of WebArena, BrowserGym, AgentLab or WebArena-Verified; for the other benchmarks, a file or
    /// folder with trajectories, answers or predictions
    #[arg(long, value_name = "FILE|DIR", conflicts_with_all = ["task", "from", "episode"])]
    pub results: Option<PathBuf>,
    /// Evidence file that --evidence wrote, or folder of such files, to judge again without sites
    #[arg(long, value_name = "FILE|DIR", conflicts_with_all = ["task", "results", "episode"])]
    pub from: Option<PathBuf>,
    /// Episode to judge: by the recorded steps of its agent for webcanvas, also after its end; for turkingbench by the
    /// database of its site turkle, for all tasks without --task
    #[arg(long, value_name = "ID", requires = "benchmark", conflicts_with_all = ["answer", "answer_file"])]
    pub episode: Option<String>,
    /// Benchmark: webarena, visualwebarena, webarena-verified, webcanvas, turkingbench or mind2web; applies to results that
    /// do not name theirs
    #[arg(long, value_name = "NAME", value_parser = benchmark)]
    pub benchmark: Option<Benchmark>,
    /// Task file of the benchmark, folder that contains it, or folder of rendered tasks
    #[arg(long, env = "ARENAD_BENCHMARK_DATA", value_name = "FILE|DIR")]
    pub tasks: Option<PathBuf>,
    /// Environment whose sites are read [default: the only one that is up and has the task's sites]
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
    /// URL of a site during the episode, such as SHOPPING=http://localhost:7770; may be repeated
    #[arg(long = "site", value_name = "NAME=URL", value_parser = site)]
    pub sites: Vec<(String, String)>,
    /// Answer of the agent; as JSON for webarena-verified, webcanvas, turkingbench and mind2web
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub answer: Option<String>,
    /// File that contains the answer
    #[arg(long, value_name = "FILE", conflicts_with = "answer")]
    pub answer_file: Option<PathBuf>,
    /// URL of the page at which the agent ended
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Traffic of the agent's browser: a HAR file, or a trace.zip of Playwright [default for webarena-verified with
    /// --environment: the traffic that its gateway has recorded]
    #[arg(long, visible_alias = "trace", value_name = "FILE")]
    pub har: Option<PathBuf>,
    /// CDP address of the agent's browser, for tasks that read its final page: http://HOST:PORT
    #[arg(long, value_name = "ADDRESS")]
    pub cdp: Option<String>,
    /// Account with which a site is read, such as shopping=customer; may be repeated
    #[arg(long = "account", value_name = "SITE=NAME", value_parser = pair)]
    pub accounts: Vec<(String, String)>,
    /// Rules to apply: those of the published code, the stricter ones without its loopholes, or both
    #[arg(long, value_enum, default_value_t = Profiles::Compat)]
    pub profile: Profiles,
    /// Judge for questions of meaning: off, recorded:FILE, or the URL of an OpenAI-compatible endpoint
    #[arg(long, env = "ARENAD_JUDGE", value_name = "JUDGE", default_value = "off")]
    pub judge: String,
    /// Model of the judge's endpoint
    #[arg(long, env = "ARENAD_JUDGE_MODEL", value_name = "NAME")]
    pub judge_model: Option<String>,
    /// API key for the judge's endpoint
    #[arg(long, env = "ARENAD_JUDGE_KEY", value_name = "KEY", hide_env_values = true)]
    pub judge_key: Option<String>,
    /// File that contains the API key for the judge's endpoint
    #[arg(long, env = "ARENAD_JUDGE_KEY_FILE", value_name = "FILE", conflicts_with = "judge_key")]
    pub judge_key_file: Option<PathBuf>,
    /// Folder in which the replies of the endpoint are kept for reuse [default: judge/ in the state directory]
    #[arg(long, value_name = "DIR")]
    pub judge_folder: Option<PathBuf>,
    /// Reference pictures of VisualWebArena's tasks: its repository, or a folder of fetched pictures
    #[arg(long, value_name = "DIR")]
    pub pictures: Option<PathBuf>,
    /// Write all observations to this file; for several episodes, write one file for each to this folder
    #[arg(long, value_name = "FILE|DIR")]
    pub evidence: Option<PathBuf>,
    /// Number of results to judge at the same time [default: the number of processors]
    #[arg(long, value_name = "NUMBER")]
    pub jobs: Option<NonZeroUsize>,
}

const AFTER: &str = "Exit codes: for one episode 0 passed, 5 failed, 6 undecided (inconclusive, needs_judge, unsupported); for several 0, \
                     or 1 if a result cannot be read. With `--profile both`, the strict verdict decides.";

/// The profiles whose rules are applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Profiles {
    /// Rules of the published code, including its quirks
    Compat,
    /// Rules without the loopholes of the published code
    Strict,
    /// Both verdicts, side by side
    Both,
}

impl Profiles {
    /// Returns the profiles, in the order in which they are shown.
    pub fn list(self) -> &'static [Profile] {
        match self {
            Self::Compat => &[Profile::Compat],
            Self::Strict => &[Profile::Strict],
            Self::Both => &[Profile::Compat, Profile::Strict],
        }
    }
}

pub fn benchmark(name: &str) -> Result<Benchmark, Malformed> {
    Benchmark::named(name).ok_or_else(|| {
        let known: Vec<&str> = Benchmark::ALL.into_iter().map(Benchmark::name).collect();
        format!("expected {}", known.join(", ")).into()
    })
}

/// Parses the placeholder and the address of a site.
pub fn site(text: &str) -> Result<(String, String), Malformed> {
    let (name, url) = pair(text)?;
    match url::Url::parse(&url) {
        Ok(url) if url.has_host() => {}
        _ => return Err(format!("`{url}` is not a URL; expected for example SHOPPING=http://localhost:7770").into()),
    }
    // Tasks append paths that begin with a slash.
    Ok((placeholder(&name), url.trim_end_matches('/').to_owned()))
}

fn pair(text: &str) -> Result<(String, String), Malformed> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected a name, `=` and a value".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_are_named_as_the_benchmarks_variables() {
        assert_eq!(
            site("shopping_admin=http://h:7780/admin/"),
            Ok(("__SHOPPING_ADMIN__".to_owned(), "http://h:7780/admin".to_owned()))
        );
        assert!(site("SHOPPING").is_err() && site("SHOPPING=h:7770").is_err());
        assert_eq!(benchmark("webarena_verified"), Ok(Benchmark::WebArenaVerified));
        assert!(benchmark("webarean").expect_err("unknown").to_string().contains("visualwebarena"));
    }
}
