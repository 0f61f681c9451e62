//! Expressions on pages, in one warm headless Chromium.
//!
//! ```text
//!   Browser ──► launch: a process that dies with the daemon, in a cage (bwrap, a control group) or in a container
//!      │            ▲ started when first needed, again when it died, ended when idle; spoken to by a pipe
//!      ├─► page: a context of its own, the account's cookies, load, expression, bounded JSON; then all of it goes
//!      │      └─► gate: the context's proxy, which knows the site's entry and nothing else
//!      └─► live: the agent's own page, looked at through its browser's address and left as it is
//! ```
//! Whatever a page does — dialogs, downloads, endless scripts, a crash — ends with its context, and in time.

mod cage;
mod cdp;
mod cgroup;
mod container;
mod gate;
mod launch;
mod live;
mod page;
mod script;
mod transport;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Mutex;
use tokio::time::Instant;

use self::cdp::{Cdp, CdpError};
use self::launch::Process;
pub(super) use self::launch::end_remains;
pub use self::launch::try_browser;
use self::page::{Page, PageFault};
use super::{Found, LocateError, Scene};
use arenad_accounts::Session;
use arenad_model::locator::{JsLocator, JsPage, Value};

/// How long a browser that nobody uses stays.
const IDLE: Duration = Duration::from_secs(300);

/// How long a page whose time is over gets to be closed.
const STOP_PATIENCE: Duration = Duration::from_secs(6);

/// The browser, running or not.
pub struct Browser {
    folder: PathBuf,
    http: reqwest::Client,
    running: Arc<Mutex<Option<Running>>>,
    /// Counts uses, so that an end that was planned is called off by a later use.
    uses: Arc<AtomicU64>,
}

#[derive(Clone)]
struct Running {
    cdp: Cdp,
    /// The pages that those get who ask next. Locked while they are being prepared: to wait for one is quicker than to make
    /// another beside it. Two, so that the next is there while that of the last is made again.
    spares: [Arc<Mutex<Option<Page>>>; 2],
    /// `None`: it is somebody else's.
    process: Arc<Option<Process>>,
}

impl Running {
    /// A page that has been prepared, the first that is there.
    async fn take_spare(&self) -> Option<Page> {
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

    /// The user whose connections pages' proxies take; `None`: any.
    fn user(&self) -> Option<u32> {
        self.process.as_ref().as_ref().map(Process::user)
    }

    /// Prepares the pages that are missing, after this one has its answer.
    fn prepare_spares(&self, client: reqwest::Client) {
        let missing = self.spares.iter().filter_map(|spare| spare.clone().try_lock_owned().ok());
        let missing: Vec<_> = missing.filter(|spare| spare.is_none()).collect();
        let (cdp, user) = (self.cdp.clone(), self.user());
        tokio::spawn(async move {
            for mut spare in missing {
                // A browser that cannot do it in time is found out by whoever asks next.
                let prepared = tokio::time::timeout(STOP_PATIENCE, Page::prepare(&cdp, &client, user)).await;
                *spare = prepared.ok().and_then(Result::ok);
            }
        });
    }
}

/// Looks at a page of the site through a browser that is spoken to by two pipes, as one is that was started here. Whoever is
/// at their other end may say anything.
///
/// Errors: as of a locator; a browser that goes away is unavailable.
pub async fn look_through(
    (from, to): (impl AsyncRead + Send + 'static, impl AsyncWrite + Send + 'static),
    client: &reqwest::Client,
    scene: &Scene<'_>,
    (path, locator): (&str, &JsLocator),
    limit: Duration,
) -> Result<Value, LocateError> {
    let cdp = Cdp::over(transport::pipe(from, to));
    let deadline = Instant::now() + limit;
    let seen = async { Page::prepare(&cdp, client, None).await?.look(scene, path, locator, None, deadline).await };
    match tokio::time::timeout_at(deadline + STOP_PATIENCE, seen).await.unwrap_or(Err(PageFault::Stuck)) {
        Ok(seen) => Ok(seen.value),
        Err(PageFault::Locate(error)) => Err(error),
        Err(PageFault::Cdp(error)) => Err(LocateError::Unavailable(format!("the browser: {error}"))),
        Err(PageFault::Stuck) => Err(LocateError::TimedOut { limit }),
    }
}

/// The client that carries browsers' requests to sites, bodies streamed. It dials by itself.
///
/// Errors: it could not be made.
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
    /// Nothing is started yet. `folder` is the browser's own; `http` is what carries its requests.
    pub fn new(folder: PathBuf, http: reqwest::Client) -> Self {
        Self { folder, http, running: Arc::default(), uses: Arc::default() }
    }

    pub(super) async fn run(
        &self,
        scene: &Scene<'_>,
        locator: &JsLocator,
        session: Option<&Session>,
        limit: Duration,
    ) -> Result<Found, LocateError> {
        let deadline = Instant::now() + limit;
        if locator.page == JsPage::Live {
            let address = scene.live.as_deref().ok_or_else(|| {
                LocateError::Unavailable("no CDP address of the agent's browser was given".to_owned())
            })?;
            let seen = tokio::time::timeout_at(deadline, live::look(&self.http, address, locator, limit)).await;
            return seen.unwrap_or(Err(LocateError::TimedOut { limit }));
        }
        let path = match &locator.page {
            JsPage::Path(path) => path.clone(),
            JsPage::Given | JsPage::Live => {
                let public = &scene.site.public.path;
                scene.page.clone().unwrap_or_else(|| if public.is_empty() { "/".to_owned() } else { public.clone() })
            }
        };
        // A browser that dies under a page is started again once; a second death is the page's doing. A spare page may
        // have died in its sleep, which says nothing of the browser.
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
                    None => Page::prepare(&running.cdp, &self.http, running.user()).await?,
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
                    return Ok(Found { value: seen.value, ran, notes: vec![("url", seen.url)] });
                }
                Err(PageFault::Cdp(CdpError::Refused { .. })) if was_spare => {}
                Err(PageFault::Locate(LocateError::TimedOut { .. })) => return Err(LocateError::TimedOut { limit }),
                Err(PageFault::Locate(error)) => return Err(error),
                Err(PageFault::Stuck) => {
                    // The page could not even be closed: the browser goes with it.
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

    /// The running browser, started if there is none.
    async fn running(&self) -> Result<Running, LocateError> {
        self.uses.fetch_add(1, Ordering::Relaxed);
        let mut running = self.running.lock().await;
        if let Some(running) = running.as_ref().filter(|running| !running.cdp.is_gone()) {
            return Ok(running.clone());
        }
        // The old one's processes go before the new one gets the folder.
        *running = None;
        let (cdp, process) = launch::start(&self.folder).await.map_err(LocateError::Unavailable)?;
        let fresh = Running { cdp, spares: Default::default(), process: Arc::new(process) };
        *running = Some(fresh.clone());
        Ok(fresh)
    }

    async fn discard(&self, used: &Running) {
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

    /// Ends the browser, and waits until it is gone.
    pub async fn close(&self) {
        *self.running.lock().await = None;
        let folder = self.folder.clone();
        // A browser that stays is found by the next daemon.
        let _ = tokio::task::spawn_blocking(move || end_remains(&folder)).await;
    }
}
