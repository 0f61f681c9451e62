//! The browsers of episodes: which episode has one, and that it ends with the episode.
//!
//! ```text
//!   api ──► EpisodeBrowsers ──► BrowserPool ──► Chromium, one process for several episodes
//!                │                                  │ every request
//!                │                                  ▼
//!                └── a port of the episode proxy for each browser, which stands for the episode's credentials
//! ```
//! The next browser is made ahead (`spare`), and gets its episode's settings and credentials when it is given away.
//!
//! A browser that fails makes its episode void: the agent cannot be blamed for what it could not see. An episode's end
//! closes its browser, and the fence keeps the pages from reaching a site even before that.

mod session;
mod spare;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use self::session::BrowserSession;
use self::spare::SpareBrowser;
use crate::proxy::EpisodeDirectory;
use arenad_agent_browser::{BrowserFault, BrowserPool, BrowserSettings, EpisodeBrowser};
use arenad_api::browser::{PageElements, PageSnapshot};
use arenad_episodes::{EpisodeError, EpisodeHandle};
use arenad_gateway::{OpenError, ProxyClient, ProxyCredentials};
use arenad_instance::shared::SharedParts;
use arenad_locators::js::LivePage;
use arenad_model::episode::ending::VoidReason;
use arenad_model::episode::ids::EpisodeId;
use arenad_model::error::describe;

pub(crate) use self::session::ObservedBrowser;
pub(crate) use self::spare::UnusedBrowser;

/// The most browsers that are open at once. Each takes 50 to 200 MB, by the pages that it shows.
const MOST: usize = 128;

/// The time between two looks at whether a browser is still there.
const LOOK: Duration = Duration::from_secs(1);

/// The reason why a browser did not do what it was told to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BrowserError {
    /// The episode has no browser.
    #[error("the episode has no open browser")]
    NotOpen,
    /// The agent has ended its task.
    #[error("the agent has ended its task with `stop`")]
    Stopped,
    /// As many browsers are open as may be.
    #[error("{MOST} browsers are open, which is the limit")]
    Full,
    /// The port of its proxy could not be opened.
    #[error("open a port for the browser")]
    Port(#[source] OpenError),
    /// No browser could be started. The episode goes on.
    #[error("start a browser: {0}")]
    NotStarted(String),
    /// The browser failed, and the episode is void.
    #[error("the browser of the episode failed: {0}")]
    Failed(BrowserFault),
}

/// The place of an episode's browser. It exists until the episode ends, even while the browser is closed.
#[derive(Default)]
struct BrowserPlace {
    session: tokio::sync::Mutex<Option<BrowserSession>>,
    /// The address and the answer of the last observation.
    last: Mutex<Option<LastPage>>,
}

/// Where an episode's browser is, and what its agent has answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LastPage {
    /// The address of the current page.
    pub(crate) url: String,
    /// The answer of `stop`.
    pub(crate) answer: Option<String>,
}

/// The browsers of all episodes.
pub struct EpisodeBrowsers {
    pool: BrowserPool,
    spare: SpareBrowser,
    directory: Arc<EpisodeDirectory>,
    episodes: EpisodeHandle,
    shared: Arc<SharedParts>,
    places: Mutex<HashMap<EpisodeId, Arc<BrowserPlace>>>,
}

impl EpisodeBrowsers {
    /// Prepares browsers; the first process starts with the first of them. `directory` must not ask for tokens.
    pub fn new(shared: Arc<SharedParts>, episodes: EpisodeHandle, directory: EpisodeDirectory) -> Arc<Self> {
        let pool = BrowserPool::new(shared.state_dir.browsers());
        Arc::new(Self {
            pool,
            spare: SpareBrowser::default(),
            directory: Arc::new(directory),
            episodes,
            shared,
            places: Mutex::default(),
        })
    }

    // Every change is one insertion or removal, so a panic leaves a valid table.
    fn places(&self) -> MutexGuard<'_, HashMap<EpisodeId, Arc<BrowserPlace>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a browser for [`Self::reset`]: the spare one, or a new one.
    pub(crate) async fn unused(&self) -> Result<UnusedBrowser, BrowserError> {
        match self.spare.take() {
            Some(unused) => Ok(unused),
            None => UnusedBrowser::make(&self.pool).await,
        }
    }

    /// Gives an episode a browser, in place of the one that it has, and opens an address in it.
    pub(crate) async fn reset(
        self: &Arc<Self>,
        id: &EpisodeId,
        unused: Result<UnusedBrowser, BrowserError>,
        settings: BrowserSettings,
        url: Option<&str>,
    ) -> Result<ObservedBrowser, BrowserError> {
        let place = self.place(id)?;
        let mut session = place.session.lock().await;
        if let Some(session) = session.take() {
            session.close().await;
        }
        let opened = match unused {
            Ok(unused) => self.open(id, unused, settings, url).await,
            Err(error) => Err(error),
        };
        let (opened, observed) = match opened {
            Ok(opened) => opened,
            Err(BrowserError::Failed(fault)) => return Err(self.fail(id, fault).await),
            Err(error) => return Err(error),
        };
        note(&place, &observed);
        *session = Some(opened);
        let (browsers, shutdown) = (self.clone(), self.shared.shutdown.clone());
        let keep = async move { shutdown.run_until_cancelled(browsers.spare.keep(&browsers.pool)).await };
        self.shared.tasks.spawn(keep);
        Ok(observed)
    }

    async fn open(
        &self,
        id: &EpisodeId,
        unused: UnusedBrowser,
        settings: BrowserSettings,
        url: Option<&str>,
    ) -> Result<(BrowserSession, ObservedBrowser), BrowserError> {
        let UnusedBrowser { blank, port } = unused;
        let user = blank.user();
        let client = ProxyClient {
            credentials: ProxyCredentials { episode: id.to_string(), token: String::new() },
            admits: Arc::new(move |peer, here| {
                user.is_none_or(|user| arenad_agent_browser::belongs_to(user, peer, here))
            }),
        };
        let directory = self.directory.clone();
        let proxy = self.shared.gateway.open_proxy_for(port, directory, client).map_err(BrowserError::Port)?;
        let opened = match EpisodeBrowser::open(blank, settings, url).await {
            Ok((browser, error)) => BrowserSession::begin(browser, proxy.clone(), error).await,
            Err(fault) => Err(fault),
        };
        match opened {
            Ok(opened) => Ok(opened),
            Err(fault) => {
                proxy.close().await;
                Err(BrowserError::Failed(fault))
            }
        }
    }

    /// Performs an action in the browser of an episode, on the element that `on` selects, if it is given.
    pub(crate) async fn step(
        &self,
        id: &EpisodeId,
        action: &str,
        on: Option<&str>,
    ) -> Result<ObservedBrowser, BrowserError> {
        let place = self.find(id).ok_or(BrowserError::NotOpen)?;
        let mut guard = place.session.lock().await;
        let session = guard.as_mut().ok_or(BrowserError::NotOpen)?;
        if session.is_stopped() {
            return Err(BrowserError::Stopped);
        }
        let stepped = session.step(action, on).await;
        self.observed(id, &place, &mut guard, stepped).await
    }

    /// Observes the current page again.
    pub(crate) async fn observe(&self, id: &EpisodeId) -> Result<ObservedBrowser, BrowserError> {
        let place = self.find(id).ok_or(BrowserError::NotOpen)?;
        let mut guard = place.session.lock().await;
        let observed = guard.as_mut().ok_or(BrowserError::NotOpen)?.observe().await;
        self.observed(id, &place, &mut guard, observed).await
    }

    async fn observed(
        &self,
        id: &EpisodeId,
        place: &BrowserPlace,
        session: &mut Option<BrowserSession>,
        observed: Result<ObservedBrowser, BrowserFault>,
    ) -> Result<ObservedBrowser, BrowserError> {
        let observed = self.answered(id, session, observed).await?;
        note(place, &observed);
        Ok(observed)
    }

    /// Returns the elements of the current page that people act on.
    pub(crate) async fn listed(&self, id: &EpisodeId) -> Result<PageElements, BrowserError> {
        let place = self.find(id).ok_or(BrowserError::NotOpen)?;
        let mut guard = place.session.lock().await;
        let listed = guard.as_mut().ok_or(BrowserError::NotOpen)?.listed().await;
        self.answered(id, &mut guard, listed).await
    }

    /// Returns the whole content of the current page, and the id in it of the element that a selector matches.
    pub(crate) async fn snapshot(&self, id: &EpisodeId, selector: Option<&str>) -> Result<PageSnapshot, BrowserError> {
        let place = self.find(id).ok_or(BrowserError::NotOpen)?;
        let mut guard = place.session.lock().await;
        let snapshot = guard.as_mut().ok_or(BrowserError::NotOpen)?.snapshot(selector).await;
        self.answered(id, &mut guard, snapshot).await
    }

    /// Closes a browser that has failed.
    async fn answered<T>(
        &self,
        id: &EpisodeId,
        session: &mut Option<BrowserSession>,
        answer: Result<T, BrowserFault>,
    ) -> Result<T, BrowserError> {
        match answer {
            Ok(answer) => Ok(answer),
            Err(fault) => {
                if let Some(session) = session.take() {
                    session.close().await;
                }
                Err(self.fail(id, fault).await)
            }
        }
    }

    /// Closes the browser of an episode. Returns whether it was open.
    pub(crate) async fn close(&self, id: &EpisodeId) -> bool {
        let Some(place) = self.find(id) else { return false };
        let session = place.session.lock().await.take();
        match session {
            Some(session) => {
                session.close().await;
                true
            }
            None => false,
        }
    }

    /// Returns the last page of an episode's browser, and the agent's answer.
    pub(crate) fn last_page(&self, id: &EpisodeId) -> Option<LastPage> {
        let place = self.find(id)?;
        place.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the page of an episode's browser, to be read while the episode is evaluated.
    pub(crate) async fn live_page(&self, id: &EpisodeId) -> Option<LivePage> {
        let place = self.find(id)?;
        let session = place.session.lock().await;
        session.as_ref().and_then(BrowserSession::live_page)
    }

    /// Closes all browsers and ends their processes.
    pub(crate) async fn close_all(&self) {
        self.places().clear();
        self.spare.close();
        self.pool.close().await;
    }

    fn find(&self, id: &EpisodeId) -> Option<Arc<BrowserPlace>> {
        self.places().get(id).cloned()
    }

    /// Returns the place of an episode's browser. A new one is watched until the episode ends.
    fn place(self: &Arc<Self>, id: &EpisodeId) -> Result<Arc<BrowserPlace>, BrowserError> {
        let mut places = self.places();
        if let Some(place) = places.get(id) {
            return Ok(place.clone());
        }
        if places.len() >= MOST {
            return Err(BrowserError::Full);
        }
        let place = Arc::new(BrowserPlace::default());
        places.insert(id.clone(), place.clone());
        let (browsers, id, shutdown) = (self.clone(), id.clone(), self.shared.shutdown.clone());
        let watch = async move { shutdown.run_until_cancelled(browsers.watch(&id)).await };
        self.shared.tasks.spawn(watch);
        Ok(place)
    }

    /// Follows an episode to its end, and closes its browser then. An idle browser that dies makes the episode void.
    async fn watch(&self, id: &EpisodeId) {
        let mut seen = None;
        loop {
            let lost = async {
                loop {
                    tokio::time::sleep(LOOK).await;
                    // A browser at work notices its death itself.
                    let place = self.find(id);
                    let Some(place) = &place else { continue };
                    if let Ok(mut session) = place.session.try_lock()
                        && let Some(lost) = session.take_if(|session| session.is_lost())
                    {
                        break lost;
                    }
                }
            };
            tokio::select! {
                changed = self.episodes.changed(id, seen) => match changed {
                    Ok(view) if view.state.ending().is_none() => seen = Some(view.state.status()),
                    Ok(_) | Err(_) => break,
                },
                session = lost => {
                    let fault = session.fault();
                    session.close().await;
                    self.fail(id, fault).await;
                }
            }
        }
        self.close(id).await;
        self.places().remove(id);
    }

    /// Makes an episode void, because its browser failed.
    async fn fail(&self, id: &EpisodeId, fault: BrowserFault) -> BrowserError {
        tracing::warn!(episode.id = %id, %fault, "the browser of episode {id} failed");
        let reason = VoidReason::BrowserFailed { detail: fault.to_string() };
        match self.episodes.fail(id, reason).await {
            // It may have ended meanwhile.
            Ok(()) | Err(EpisodeError::Refused(_) | EpisodeError::Stopping) => {}
            Err(error) => tracing::error!(episode.id = %id, error = describe(&error), "episode {id} is not void yet"),
        }
        BrowserError::Failed(fault)
    }
}

fn note(place: &BrowserPlace, observed: &ObservedBrowser) {
    let url = observed.observation.url().to_owned();
    let last = LastPage { url, answer: observed.answer.clone() };
    *place.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(last);
}
