//! What a site knows: sessions of its accounts, and values of its state.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::shared::Malformed;

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
    /// The site, as SITE or ENVIRONMENT/SITE; with --check, all sites if none is named
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
    /// The site, as SITE or ENVIRONMENT/SITE
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

fn argument(text: &str) -> Result<(String, String), Malformed> {
    let is_name = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    match text.split_once('=') {
        Some((name, value)) if is_name(name) => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected a name of lower-case letters and `_`, `=`, and a text, such as `sku=B00-1`".into()),
    }
}

/// Prints the requests that reached sites since their latest reset, where `public: { record: … }` has them recorded. Passwords,
/// tokens and sessions are taken out; what pages show is not.
#[derive(Debug, Args)]
pub struct HarArgs {
    /// The sites, as SITE or ENVIRONMENT/SITE [default: all of the environment]
    #[arg(value_name = "SITE")]
    pub sites: Vec<String>,
    /// The environment, where several have a site of that name, or no site is named and several are up
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
    /// Write to this file, instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}
