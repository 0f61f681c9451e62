//! Arguments of the commands that read from sites: sessions, values and recorded traffic.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::shared::Malformed;

/// The output formats of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SessionFormat {
    /// Storage state, for Playwright and BrowserGym
    Playwright,
    /// Cookie file, for curl and wget
    Netscape,
    /// Request headers, one per line
    Header,
}

#[derive(Debug, Args)]
pub struct LoginArgs {
    /// Site, as SITE or ENVIRONMENT/SITE; with --check, all sites if none is named
    #[arg(value_name = "SITE", required_unless_present = "check")]
    pub site: Option<String>,
    /// Account, by its name in the definition [default: the only one that can sign in]
    #[arg(short, long, value_name = "NAME")]
    pub account: Option<String>,
    /// Environment, if several have a site of that name
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
    /// Format of the session [default: playwright]
    #[arg(long, value_enum, conflicts_with_all = ["check", "json"])]
    pub format: Option<SessionFormat>,
    /// Write to this file, which only the current user can read
    #[arg(short, long, value_name = "FILE", conflicts_with = "check")]
    pub output: Option<PathBuf>,
    /// Sign in with every account and report whether each succeeds
    #[arg(long)]
    pub check: bool,
}

#[derive(Debug, Args)]
#[command(after_help = LOCATORS)]
pub struct LocateArgs {
    /// Site, as SITE or ENVIRONMENT/SITE
    #[arg(value_name = "SITE")]
    pub site: String,
    /// Locator of the value
    #[arg(value_name = "LOCATOR")]
    pub locator: String,
    /// Value for a placeholder such as `{sku}` in the locator; may be repeated
    #[arg(short, long = "argument", value_name = "NAME=TEXT", value_parser = argument)]
    pub arguments: Vec<(String, String)>,
    /// Path of the page for a `js:` locator that names none [default: the path of the site's URL]
    #[arg(long, value_name = "PATH")]
    pub page: Option<String>,
    /// CDP address of the agent's browser, for `js: … @ live`: http://HOST:PORT
    #[arg(long, value_name = "ADDRESS")]
    pub cdp: Option<String>,
    /// HAR file with the traffic of the agent's browser, for `trace: …` [default: the traffic that the gateway has
    /// recorded]
    #[arg(long, value_name = "FILE")]
    pub har: Option<PathBuf>,
    /// Environment, if several have a site of that name
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
}

const LOCATORS: &str = "Locators:
  sql(DATABASE): SELECT …                      options: rows, timeout=5s; arguments as {name}
  http: GET /path as ACCOUNT | jsonpath: $.x   or jq: .x, css: h1, header: Location, status, body
  js: document.title @ /path as ACCOUNT        options: wait='#id'; or @ live, with --cdp
  exec: SERVICE: command …                     no shell
  file: SERVICE: /path
  trace: POST /path* | jsonpath: $.body.x      the last matching request; or (all), jq: .x, count
  helper: NAME('text', …)                      a helper that the environment file defines";

fn argument(text: &str) -> Result<(String, String), Malformed> {
    let is_name = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    match text.split_once('=') {
        Some((name, value)) if is_name(name) => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected a name of lower-case letters and `_`, `=`, and a text, such as `sku=B00-1`".into()),
    }
}

/// Prints the requests that reached sites since their latest reset, for sites whose `public: { record: … }` enables
/// recording. Passwords, tokens and sessions are removed; the content of pages is not.
#[derive(Debug, Args)]
pub struct HarArgs {
    /// Sites, as SITE or ENVIRONMENT/SITE [default: all sites of the environment]
    #[arg(value_name = "SITE")]
    pub sites: Vec<String>,
    /// Environment, if several have a site of that name, or if several are up and no site is named
    #[arg(short, long, value_name = "NAME")]
    pub environment: Option<String>,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}
