//! Evaluation of expressions on pages, in one headless Chromium that stays running between uses.
//!
//! ```text
//!   Browser ──► arenad_chromium: a process that dies with the daemon, in a cage (bwrap, a control group) or in a container
//!      │            ▲ started when first needed, again when it died, ended when idle; commands travel over a pipe
//!      ├─► page: a context of its own, the account's cookies, load, expression, bounded JSON; then all of it goes
//!      │      └─► gate: the context's proxy, which reaches the site's entry and nothing else
//!      └─► live: the agent's own page, read through its browser's address and left unchanged
//! ```
//! All effects of a page (dialogs, downloads, endless scripts, a crash) end with its context, within a time limit.

mod gate;
mod live;
mod page;
mod script;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Mutex;
use tokio::time::Instant;

pub use self::live::LivePage;
use self::page::{BrowserPage, PageFault};
use super::{FoundValue, LocateError, Scene};
use arenad_accounts::LoginSession;
use arenad_chromium::{BrowserProcess, Cdp, CdpError, MESSAGE_MAX};
use arenad_model::locator::{JsLocator, JsPage, Value};

/// Time after which an unused browser is ended.
const IDLE: Duration = Duration::from_secs(300);

/// Time within which a page that has exceeded its limit must be closed.
const STOP_PATIENCE: Duration = Duration::from_secs(6);

/// The browser, which may or may not be running.
pub struct Browser {
    folder: PathBuf,
    http: reqwest::Client,
    running: Arc<Mutex<Option<RunningBrowser>>>,
    /// Number of uses, by which a later use cancels a planned end.
    uses: Arc<AtomicU64>,
}

#[derive(Clone)]
struct RunningBrowser {
    cdp: Cdp,
    /// Prepared pages for the next callers. A slot is locked while its page is being prepared, because waiting for that
    /// page is quicker than preparing another one. Two slots let the next caller find a page while the last one is
    /// being replaced.
    spares: [Arc<Mutex<Option<BrowserPage>>>; 2],
    /// The process, or `None` if arenad did not start the browser.
    process: Arc<Option<BrowserProcess>>,
}

impl RunningBrowser {
    /// Takes a prepared page, preferably one that is ready; otherwise waits for one in preparation.
    async fn take_spare(&self) -> Option<BrowserPage> {
        let ready = self.spares.iter().find_map(|spare| spare.try_lock().ok()?.take());
        if ready.is_some() {
            return ready;
        }
        for spare in &self.spares {
            if let Some(page) = spare.lock().await.take() {
                return Some(page);
            }
        }
        None
    }

    /// Returns the user whose connections the pages' proxies accept; `None` means any user.
    fn user(&self) -> Option<u32> {
        self.process.as_ref().as_ref().map(BrowserProcess::user)
    }

    /// Prepares the missing pages in the background, after a caller has used its page.
    fn prepare_spares(&self, client: reqwest::Client) {
        let missing = self.spares.iter().filter_map(|spare| spare.clone().try_lock_owned().ok());
        let missing: Vec<_> = missing.filter(|spare| spare.is_none()).collect();
        let (cdp, user) = (self.cdp.clone(), self.user());
        tokio::spawn(async move {
            for mut spare in missing {
                // If the browser cannot prepare a page in time, the next caller gets the error.
                let prepared = tokio::time::timeout(STOP_PATIENCE, BrowserPage::prepare(&cdp, &client, user)).await;
                *spare = prepared.ok().and_then(Result::ok);
            }
        });
    }
}

/// Reads a page of the site through a browser that is connected by two pipes, as a browser started here is. The data
/// from the other end is not trusted.
///
/// Errors: as for a locator; a browser that disconnects is `Unavailable`.
pub async fn look_through(
    (from, to): (impl AsyncRead + Send + 'static, impl AsyncWrite + Send + 'static),
    client: &reqwest::Client,
    scene: &Scene<'_>,
    (path, locator): (&str, &JsLocator),
    limit: Duration,
) -> Result<Value, LocateError> {
    let cdp = Cdp::over(arenad_chromium::pipe(from, to, MESSAGE_MAX));
    let deadline = Instant::now() + limit;
    let seen =
        async { BrowserPage::prepare(&cdp, client, None).await?.look(scene, path, locator, None, deadline).await };
    match tokio::time::timeout_at(deadline + STOP_PATIENCE, seen).await.unwrap_or(Err(PageFault::Stuck)) {
        Ok(seen) => Ok(seen.value),
        Err(PageFault::Locate(error)) => Err(error),
        Err(PageFault::Cdp(error)) => Err(LocateError::Unavailable(format!("the browser: {error}"))),
        Err(PageFault::Stuck) => Err(LocateError::TimedOut { limit }),
    }
}

/// Creates the client that carries browsers' requests to sites, with streamed bodies. It connects directly, without a
/// proxy.
///
/// Errors: the client could not be created.
pub fn client() -> Result<reqwest::Client, reqwest::Error> {
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .pool_max_idle_per_host(0)
        .no_proxy()
        .connect_timeout(Duration::from_secs(5))
        .user_agent(concat!("arenad/", env!("CARGO_PKG_VERSION")))
        .build()
}

impl Browser {
    /// Creates a browser that is not yet running. `folder` belongs to the browser alone; `http` carries its requests.
    pub(crate) fn new(folder: PathBuf, http: reqwest::Client) -> Self {
        Self { folder, http, running: Arc::default(), uses: Arc::default() }
    }

    pub(super) async fn run(
        &self,
        scene: &Scene<'_>,
        locator: &JsLocator,
        session: Option<&LoginSession>,
        limit: Duration,
    ) -> Result<FoundValue, LocateError> {
        let deadline = Instant::now() + limit;
        if locator.page == JsPage::Live {
            let page = scene.live.as_ref().ok_or_else(|| {
                LocateError::Unavailable("no CDP address of the agent's browser was given".to_owned())
            })?;
            let seen = tokio::time::timeout_at(deadline, live::look(&self.http, page, locator, limit)).await;
            return seen.unwrap_or(Err(LocateError::TimedOut { limit }));
        }
        let path = match &locator.page {
            JsPage::Path(path) => path.clone(),
            JsPage::Given | JsPage::Live => {
                let public = &scene.site.public.path;
                scene.page.clone().unwrap_or_else(|| if public.is_empty() { "/".to_owned() } else { public.clone() })
            }
        };
        // A browser that dies under a page is restarted once; a second death is the page's fault. A prepared page may
        // have died while unused, which says nothing about the browser.
        let mut has_died = false;
        loop {
            let running = match tokio::time::timeout_at(deadline, self.running()).await {
                Ok(running) => running?,
                Err(_) => return Err(LocateError::Unavailable("the browser does not start in time".to_owned())),
            };
            let spare = tokio::time::timeout_at(deadline, running.take_spare()).await.ok().flatten();
            let was_spare = spare.is_some();
            let seen = async {
                let page = match spare {
                    Some(page) => page,
                    None => BrowserPage::prepare(&running.cdp, &self.http, running.user()).await?,
                };
                page.look(scene, &path, locator, session, deadline).await
            };
            let seen = tokio::time::timeout_at(deadline + STOP_PATIENCE, seen).await.unwrap_or(Err(PageFault::Stuck));
            self.end_when_idle();
            if !running.cdp.is_gone() {
                running.prepare_spares(self.http.clone());
            }
            match seen {
                Ok(seen) => {
                    let ran =
                        format!("{} @ http://{}:{}{path}", locator.expression, scene.place.host, scene.place.port);
                    return Ok(FoundValue { value: seen.value, ran, notes: vec![("url", seen.url)] });
                }
                Err(PageFault::Cdp(CdpError::Refused { .. })) if was_spare => {}
                Err(PageFault::Locate(LocateError::TimedOut { .. })) => return Err(LocateError::TimedOut { limit }),
                Err(PageFault::Locate(error)) => return Err(error),
                Err(PageFault::Stuck) => {
                    // The page could not even be closed, so the browser is ended with it.
                    self.discard(&running).await;
                    return Err(LocateError::TimedOut { limit });
                }
                Err(PageFault::Cdp(CdpError::Gone)) if !has_died => {
                    has_died = true;
                    self.discard(&running).await;
                }
                Err(PageFault::Cdp(error)) => return Err(LocateError::Unavailable(format!("the browser: {error}"))),
            }
        }
    }

    /// Returns the running browser, and starts it if necessary.
    async fn running(&self) -> Result<RunningBrowser, LocateError> {
        self.uses.fetch_add(1, Ordering::Relaxed);
        let mut running = self.running.lock().await;
        if let Some(running) = running.as_ref().filter(|running| !running.cdp.is_gone()) {
            return Ok(running.clone());
        }
        // The processes of the old browser end before the new one uses the folder.
        *running = None;
        let (cdp, process) = arenad_chromium::start(&self.folder, MESSAGE_MAX)
            .await
            .map_err(|none| LocateError::Unavailable(none.to_string()))?;
        let fresh = RunningBrowser { cdp, spares: Default::default(), process: Arc::new(process) };
        *running = Some(fresh.clone());
        Ok(fresh)
    }

    async fn discard(&self, used: &RunningBrowser) {
        let mut running = self.running.lock().await;
        if running.as_ref().is_some_and(|running| running.cdp.is_same(&used.cdp)) {
            *running = None;
        }
    }

    fn end_when_idle(&self) {
        let use_number = self.uses.load(Ordering::Relaxed);
        let (running, uses) = (self.running.clone(), self.uses.clone());
        tokio::spawn(async move {
            tokio::time::sleep(IDLE).await;
            if uses.load(Ordering::Relaxed) == use_number {
                *running.lock().await = None;
            }
        });
    }

    /// Ends the browser and waits until it is gone.
    pub(crate) async fn close(&self) {
        *self.running.lock().await = None;
        let folder = self.folder.clone();
        // If a browser process remains, the next daemon ends it.
        let _ = tokio::task::spawn_blocking(move || arenad_chromium::end_remains(&folder)).await;
    }
}
