//! Execution of locators: each reads one value from an instance and returns it with evidence of how it was found.
//!
//! ```text
//!   text ─► arenad_model::locator ─► Locators::locate(scene, locator) ─► LocatorReading: value + evidence
//!                                 │ sql   account, guard, read-only transaction, server's own time limit
//!                                 │ http  the entry only, an account's session, then JSONPath, jq, CSS, header
//!                                 │ js    a running browser, a context per page, no address but the site's
//!                                 │ exec  fixed arguments, no shell
//!                                 │ file  the engine's archive of a container
//!                                 └ trace recorded traffic that the caller supplies
//! ```
//! The daemon, which knows the running instances, calls this crate. The crate makes no judgements; the evaluators do.
//! Every locator ends within a time limit, and the amount that it reads is bounded. Queries over text that a site
//! controls, by engines that cannot be stopped from inside (jq, SQLite), run in a process of their own: see
//! [`arenad_confined`].
//!
//! The crate depends on `site-client`, `launch`, `probes` and `accounts` for access to a site. Start reading at
//! [`Locators::locate`].

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

/// Time limit for statements, commands, files and requests that have no limit of their own.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Time limit for an expression without a limit of its own, including the load of its page.
const JS_TIMEOUT: Duration = Duration::from_secs(30);

/// Additional time for a locator to clean up after a timeout.
const SLACK: Duration = Duration::from_secs(8);

/// Maximum number of bytes that a locator reads.
pub const SIZE_MAX: usize = 4 << 20;

/// A value and the evidence of how it was found.
#[derive(Debug, Clone, PartialEq)]
pub struct LocatorReading {
    /// The value that the locator read.
    pub value: Value,
    /// The evidence of how the value was found.
    pub evidence: LocatorEvidence,
}

/// The evidence of how a value was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocatorEvidence {
    /// The statement, request, command or expression that ran, with placeholders for its arguments.
    pub ran: String,
    /// Id of the instance that was read.
    pub instance: String,
    /// Generation of the instance at that time.
    pub generation: u64,
    /// Time from the request to the value.
    pub took: Duration,
    /// Further observations by name, such as the status of a response.
    pub notes: Vec<(&'static str, String)>,
}

/// The result of one kind of locator, before the instance and the duration are added.
struct FoundValue {
    value: Value,
    ran: String,
    notes: Vec<(&'static str, String)>,
}

/// Runs locators of every kind against instances.
pub struct Locators {
    engine: Arc<dyn Engine>,
    http: SiteClient,
    sessions: Sessions,
    /// Folder to which databases are copied.
    copies: PathBuf,
    browser: Browser,
}

/// Removes the database copies, and ends the browser processes, that the locators of a killed daemon have left.
pub fn end_remains(folder: &Path) {
    // The folder does not exist before the first use.
    let _ = std::fs::remove_dir_all(copies(folder));
    arenad_chromium::end_remains(&browser(folder));
}

fn copies(folder: &Path) -> PathBuf {
    folder.join("databases")
}

fn browser(folder: &Path) -> PathBuf {
    folder.join("browser")
}

impl Locators {
    /// Prepares to run locators; processes start only when they are needed. `http` sends requests to sites, and
    /// `folder` holds the browser's files and the copies of databases.
    ///
    /// Errors: the client that carries browsers' requests could not be created.
    pub fn new(engine: Arc<dyn Engine>, http: SiteClient, folder: PathBuf) -> Result<Self, reqwest::Error> {
        Ok(Self {
            engine,
            sessions: Sessions::default(),
            copies: copies(&folder),
            browser: Browser::new(browser(&folder), js::client()?),
            http,
        })
    }

    /// Reads a value from the instance of `scene`.
    ///
    /// Errors: see [`LocateError`]; `TimedOut` at the latest `SLACK` after the locator's limit. Cancellation: safe;
    /// work on the site's servers ends by their own time limits.
    pub async fn locate(&self, scene: &Scene<'_>, locator: &Locator) -> Result<LocatorReading, LocateError> {
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
        // Each kind of locator stops at the limit itself and reports the cause best; this outer limit is a safety net.
        let found = tokio::time::timeout(limit + SLACK, work).await;
        let found = found.unwrap_or(Err(LocateError::TimedOut { limit }))?;
        let evidence = LocatorEvidence {
            ran: found.ran,
            instance: scene.instance.clone(),
            generation: scene.incarnation.generation,
            took: begun.elapsed(),
            notes: found.notes,
        };
        Ok(LocatorReading { value: found.value, evidence })
    }

    /// Ends the browser, if one is running.
    pub async fn close(&self) {
        self.browser.close().await;
    }
}
