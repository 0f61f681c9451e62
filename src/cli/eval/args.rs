//! The options of `arenad eval`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};

use crate::cli::args::Malformed;
use arenad_evaluation::placeholder;
use arenad_verdict::Benchmark;
use arenad_verdict::Profile;

/// Judges one episode (--task), every result in a folder (--results), or what was seen before (--from).
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").args(["task", "results", "from"]).required(true)), after_help = AFTER)]
pub struct EvalArgs {
    /// The task: its number, or `shopping/35` of VisualWebArena
    #[arg(long, value_name = "ID", requires = "benchmark")]
    pub task: Option<String>,
    /// A folder of results of WebArena, BrowserGym, AgentLab or WebArena-Verified
    #[arg(long, value_name = "DIR")]
    pub results: Option<PathBuf>,
    /// Evidence that --evidence wrote, or a folder of it: judged again, without sites
    #[arg(long, value_name = "FILE|DIR")]
    pub from: Option<PathBuf>,
    /// webarena, visualwebarena or webarena-verified; of results that do not say
    #[arg(long, value_name = "NAME", value_parser = benchmark)]
    pub benchmark: Option<Benchmark>,
    /// The benchmark's task file, a folder that has it, or one of rendered tasks
    #[arg(long, env = "ARENAD_BENCHMARK_DATA", value_name = "FILE|DIR")]
    pub tasks: Option<PathBuf>,
    /// The environment whose sites are looked at [default: the only one that is up and has the task's sites]
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
    /// Where a site was, such as SHOPPING=http://localhost:7770; may be repeated
    #[arg(long = "site", value_name = "NAME=URL", value_parser = site)]
    pub sites: Vec<(String, String)>,
    /// What the agent answered; of webarena-verified the JSON of its answer
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub answer: Option<String>,
    /// A file with what it answered
    #[arg(long, value_name = "FILE", conflicts_with = "answer")]
    pub answer_file: Option<PathBuf>,
    /// The URL of the page where it ended
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// The traffic of its browser: a HAR, or a trace.zip of Playwright [default for webarena-verified with --environment: what its
    /// gateway has recorded]
    #[arg(long, visible_alias = "trace", value_name = "FILE")]
    pub har: Option<PathBuf>,
    /// Its browser, for tasks that look at the page where it ended: http://HOST:PORT
    #[arg(long, value_name = "ADDRESS")]
    pub cdp: Option<String>,
    /// As whom a site is looked at, such as shopping=customer; may be repeated
    #[arg(long = "account", value_name = "SITE=NAME", value_parser = pair)]
    pub accounts: Vec<(String, String)>,
    /// Whose rules: those of the published code, those without its holes, or both
    #[arg(long, value_enum, default_value_t = Profiles::Compat)]
    pub profile: Profiles,
    /// Who judges what only meaning decides: off, recorded:FILE, or the URL of an OpenAI-compatible endpoint
    #[arg(long, env = "ARENAD_JUDGE", value_name = "JUDGE", default_value = "off")]
    pub judge: String,
    /// The endpoint's model
    #[arg(long, env = "ARENAD_JUDGE_MODEL", value_name = "NAME")]
    pub judge_model: Option<String>,
    /// The endpoint's key
    #[arg(long, env = "ARENAD_JUDGE_KEY", value_name = "KEY", hide_env_values = true)]
    pub judge_key: Option<String>,
    /// A file with the endpoint's key
    #[arg(long, env = "ARENAD_JUDGE_KEY_FILE", value_name = "FILE", conflicts_with = "judge_key")]
    pub judge_key_file: Option<PathBuf>,
    /// Where an endpoint's replies are kept, so that nothing is paid for twice [default: judge/ in the state directory]
    #[arg(long, value_name = "DIR")]
    pub judge_folder: Option<PathBuf>,
    /// Pictures that VisualWebArena's tasks compare with: its repository, or a folder of what was fetched
    #[arg(long, value_name = "DIR")]
    pub pictures: Option<PathBuf>,
    /// Write all that was seen to this file; of several episodes, to a file each in this folder
    #[arg(long, value_name = "FILE|DIR")]
    pub evidence: Option<PathBuf>,
    /// How many results are judged at once [default: the number of processors]
    #[arg(long, value_name = "NUMBER")]
    pub jobs: Option<NonZeroUsize>,
}

const AFTER: &str = "Exit codes: of one episode 0 passed, 5 failed, 6 undecided (inconclusive, needs_judge, unsupported); of several 0, \
                     or 1 if a result cannot be read. With `--profile both` the strict verdict counts.";

/// Whose rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Profiles {
    /// The published code's, quirks included
    Compat,
    /// Without its holes
    Strict,
    /// Both, side by side
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
        _ => return Err(format!("`{url}` is no URL; expected such as SHOPPING=http://localhost:7770").into()),
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
