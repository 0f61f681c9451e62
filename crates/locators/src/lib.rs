//! Running locators: reading one value from an instance, with evidence of how it was found.
//!
//! ```text
//!   text ─► domain::locator ─► Locators::locate(scene, locator) ─► Located: value + evidence
//!                                 │ sql   account, guard, read-only transaction, server's own time limit
//!                                 │ http  the entry only, an account's session, then JSONPath, jq, CSS, header
//!                                 │ js    a warm browser, a context of its own, no address but the site's
//!                                 │ exec  fixed arguments, no shell
//!                                 │ file  the engine's archive of a container
//!                                 └ trace recorded traffic that whoever asks has
//! ```
//! Called by the daemon, which knows what is up. Judges nothing: that is the evaluators' work. Every locator ends in time,
//! and what it reads is bounded. What is evaluated on texts that a site controls, by engines that cannot be stopped from
//! inside (jq, SQLite), runs in a process of its own: see [`arenad_confined`].

mod error;
mod exec;
mod file;
pub mod http;
pub mod js;
pub mod json_query;
mod mounted;
mod outcome;
mod scene;
mod sessions;
pub mod sql;
mod trace;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use self::js::Browser;
use self::sessions::Sessions;
use arenad_engine::Engine;
use arenad_model::locator::{Locator, LocatorKind, Value};
use arenad_site_client::SiteClient;

pub use error::LocateError;
pub use scene::Scene;

/// How long statements, commands, files and requests may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How long an expression may take, the page's load included.
const JS_TIMEOUT: Duration = Duration::from_secs(30);

/// How long the kinds get to clean up behind what took too long.
const SLACK: Duration = Duration::from_secs(8);

/// The most that a locator reads, in bytes.
pub const SIZE_MAX: usize = 4 << 20;

/// A value and how it was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Located {
    /// The value.
    pub value: Value,
    /// How it was found.
    pub evidence: Evidence,
}

/// How a value was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// What ran, such as the statement with its places.
    pub ran: String,
    /// The instance that was asked.
    pub instance: String,
    /// Its generation.
    pub generation: u64,
    /// From the request to the value.
    pub took: Duration,
    /// What else was seen, such as the status of an answer.
    pub notes: Vec<(&'static str, String)>,
}

/// What the kinds find.
struct Found {
    value: Value,
    ran: String,
    notes: Vec<(&'static str, String)>,
}

/// Runs locators.
pub struct Locators {
    engine: Arc<dyn Engine>,
    http: SiteClient,
    sessions: Sessions,
    /// Where databases are copied to.
    copies: PathBuf,
    browser: Browser,
}

/// Ends and removes what locators of a daemon that was killed have left in their folder.
pub fn end_remains(folder: &Path) {
    // There is none at first.
    let _ = std::fs::remove_dir_all(copies(folder));
    js::end_remains(&browser(folder));
}

fn copies(folder: &Path) -> PathBuf {
    folder.join("databases")
}

fn browser(folder: &Path) -> PathBuf {
    folder.join("browser")
}

impl Locators {
    /// Prepares everything; nothing is started before it is needed. `http` looks at sites, `folder` is
    /// where the browser and copies of databases are kept.
    ///
    /// Errors: the client that carries browsers' requests could not be made.
    pub fn new(engine: Arc<dyn Engine>, http: SiteClient, folder: PathBuf) -> Result<Self, reqwest::Error> {
        Ok(Self {
            engine,
            sessions: Sessions::default(),
            copies: copies(&folder),
            browser: Browser::new(browser(&folder), js::client()?),
            http,
        })
    }

    /// Reads a value.
    ///
    /// Errors: see [`LocateError`]; `TimedOut` at the locator's limit at the latest. Cancellation: safe; what runs on the
    /// site's servers ends by their own time limits.
    pub async fn locate(&self, scene: &Scene<'_>, locator: &Locator) -> Result<Located, LocateError> {
        let begun = Instant::now();
        let usual = if matches!(locator.kind, LocatorKind::Js(_)) { JS_TIMEOUT } else { TIMEOUT };
        let limit = locator.timeout.unwrap_or(usual);
        let work = async {
            match &locator.kind {
                LocatorKind::Sql(sql) => sql::run(self.engine.as_ref(), &self.copies, scene, sql, limit).await,
                LocatorKind::Http(locator) => {
                    let session = self.sessions.of(&self.http, scene, locator.account.as_deref()).await?;
                    http::run(&self.http, scene, locator, session.as_deref(), limit).await
                }
                LocatorKind::Js(locator) => {
                    let session = self.sessions.of(&self.http, scene, locator.account.as_deref()).await?;
                    self.browser.run(scene, locator, session.as_deref(), limit).await
                }
                LocatorKind::Exec(locator) => exec::run(self.engine.as_ref(), scene, locator, limit).await,
                LocatorKind::File(locator) => file::run(self.engine.as_ref(), scene, locator).await,
                LocatorKind::Trace(locator) => trace::run(scene, locator, limit).await,
            }
        };
        // The kinds stop by themselves, and know better what took so long; this is for whatever they overlook.
        let found = tokio::time::timeout(limit + SLACK, work).await;
        let found = found.unwrap_or(Err(LocateError::TimedOut { limit }))?;
        let evidence = Evidence {
            ran: found.ran,
            instance: scene.instance.clone(),
            generation: scene.incarnation.generation,
            took: begun.elapsed(),
            notes: found.notes,
        };
        Ok(Located { value: found.value, evidence })
    }

    /// Ends the browser, if one runs.
    pub async fn close(&self) {
        self.browser.close().await;
    }
}
