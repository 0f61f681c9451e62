//! One tab: its session, what its events say about it, and when it has come to rest.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value as Json, json};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::browser::{BrowserSettings, Viewport};
use crate::clock;
use crate::error::BrowserFault;
use arenad_chromium::{Cdp, CdpError, CdpEvent, CdpEvents};

/// Time within which the browser must answer a command.
const CALL_LIMIT: Duration = Duration::from_secs(20);

/// Time that a page may load. Source: Playwright's default for navigations.
pub(crate) const LOAD_LIMIT: Duration = Duration::from_secs(30);

/// Time without requests after which a loaded page is at rest.
pub(crate) const QUIET: Duration = Duration::from_millis(150);

/// Time without requests after which a loaded page may be at rest. Most pages that have done nothing for this time do
/// nothing for [`QUIET`] either.
pub(crate) const BRIEFLY_QUIET: Duration = Duration::from_millis(50);

/// Time for which a loaded page may go on with requests. Source: WebArena's `sleep_after_execution`, which always takes
/// that long.
const REST_LIMIT: Duration = Duration::from_secs(2);

/// The most requests of a tab that are remembered.
const REQUESTS_MAX: usize = 10_000;

/// The name of the isolated world of the browser's own scripts: it has the page's document, but none of the changes that
/// the page's scripts have made to the language.
const WORLD: &str = "arenad";

/// The number of times that a script is run again because its page navigated meanwhile.
const NAVIGATIONS_MAX: usize = 5;

/// The state of a tab, as its events have reported it.
#[derive(Debug, Default)]
struct TabState {
    /// The frames that load, each with the number of its load.
    loading: HashMap<String, u64>,
    /// Number of loads that have begun.
    loads: u64,
    requests: HashSet<String>,
    last_event: Option<Instant>,
    /// Number of times that a frame has stopped loading.
    stops: u64,
    /// Number of file choosers that were intercepted.
    choosers: u64,
    chooser: Option<FileChooser>,
    is_crashed: bool,
}

impl TabState {
    fn begin_load(&mut self, frame: &str) {
        self.loads += 1;
        self.loading.insert(frame.to_owned(), self.loads);
    }
}

/// A wait for a page to come to rest.
#[derive(Debug)]
pub(crate) struct Rest {
    begun: Instant,
    /// The time since which the page has loaded.
    loaded: Option<Instant>,
    /// Whether [`LOAD_LIMIT`] has passed without that.
    is_over: bool,
}

impl Rest {
    /// Begins with the end of an action.
    pub(crate) fn begin() -> Self {
        Self { begun: Instant::now(), loaded: None, is_over: false }
    }
}

/// The state in which a wait has left a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rested {
    /// It has loaded, and requests nothing.
    Quiet,
    /// It has loaded, and still requests something after [`REST_LIMIT`].
    Busy,
    /// It still loads after [`LOAD_LIMIT`].
    Loading,
}

/// A file chooser that a page has opened, and that was not shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileChooser {
    /// The id of the frame with the field.
    pub(crate) frame: String,
    /// The id of the field's DOM node.
    pub(crate) node: i64,
}

/// A tab; dropping it leaves the page open, which ends with its context.
pub(crate) struct Tab {
    cdp: Cdp,
    session: String,
    /// The id of the target, which is also that of its main frame.
    pub(crate) target: String,
    state: watch::Receiver<TabState>,
    /// The last load that was waited for until [`LOAD_LIMIT`]. It and those before it are not waited for again.
    given_up: AtomicU64,
    listener: Arc<ListenerTask>,
}

struct ListenerTask(AbortHandle);

impl Drop for ListenerTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Tab {
    /// Opens a tab in a context.
    pub(crate) async fn open(cdp: &Cdp, context: &str) -> Result<Self, BrowserFault> {
        let wanted = json!({ "url": "about:blank", "browserContextId": context });
        let made = limited(cdp, None, "Target.createTarget", wanted).await?;
        let target = made["targetId"].as_str().unwrap_or_default().to_owned();
        Self::attach(cdp, target).await
    }

    /// Attaches to a tab that exists. [`Self::configure`] must follow.
    pub(crate) async fn attach(cdp: &Cdp, target: String) -> Result<Self, BrowserFault> {
        let wanted = json!({ "targetId": target, "flatten": true });
        let attached = limited(cdp, None, "Target.attachToTarget", wanted).await?;
        let session = attached["sessionId"].as_str().unwrap_or_default().to_owned();
        let (sender, state) = watch::channel(TabState::default());
        let listener = tokio::spawn(listen(cdp.clone(), session.clone(), cdp.listen(&session), sender.clone()));
        let tab = Self {
            cdp: cdp.clone(),
            session,
            target,
            state,
            given_up: AtomicU64::new(0),
            listener: Arc::new(ListenerTask(listener.abort_handle())),
        };
        tokio::try_join!(
            tab.call("Page.enable", json!({})),
            tab.call("Inspector.enable", json!({})),
            tab.call("Network.enable", json!({})),
            tab.call("Accessibility.enable", json!({})),
            // Several pages of one process are used at once, and each of them must believe that it has the focus.
            tab.call("Emulation.setFocusEmulationEnabled", json!({ "enabled": true })),
        )?;
        // A page that another one has opened may have begun to load before its events arrive here.
        let stops = tab.state.borrow().stops;
        let ready = tab.evaluate("document.readyState").await?;
        sender.send_if_modified(|state| {
            let is_loading = ready != "complete" && state.stops == stops;
            if is_loading {
                state.begin_load(&tab.target);
            }
            is_loading
        });
        Ok(tab)
    }

    /// Gives the page the settings of its browser.
    pub(crate) async fn configure(&self, settings: &BrowserSettings) -> Result<(), BrowserFault> {
        let Viewport { width, height } = settings.viewport;
        let metrics = json!({
            "width": width, "height": height, "screenWidth": width, "screenHeight": height,
            "deviceScaleFactor": 1, "mobile": false,
        });
        self.call("Emulation.setDeviceMetricsOverride", metrics).await?;
        if !settings.clock_shifts.is_empty() {
            let wanted = json!({ "source": clock::script(&settings.clock_shifts), "runImmediately": true });
            self.call("Page.addScriptToEvaluateOnNewDocument", wanted).await?;
        }
        if settings.reaches_replays {
            tokio::try_join!(
                self.call("Security.setIgnoreCertificateErrors", json!({ "ignore": true })),
                self.call("Network.setBypassServiceWorker", json!({ "bypass": true })),
            )?;
        }
        Ok(())
    }

    /// Sends a command to the page.
    pub(crate) async fn call(&self, method: &'static str, params: Json) -> Result<Json, BrowserFault> {
        self.call_within(method, params, CALL_LIMIT).await
    }

    /// Begins to open an address. Returns the browser's answer, which it gives when the site has answered, or `None` if that
    /// took longer than a page may load; the page that was there stays.
    pub(crate) async fn navigate(&self, url: &str) -> Result<Option<Json>, BrowserFault> {
        match self.call_within("Page.navigate", json!({ "url": url }), LOAD_LIMIT).await {
            Ok(answer) => Ok(Some(answer)),
            Err(BrowserFault::Stuck { .. }) => {
                self.call("Page.stopLoading", json!({})).await?;
                Ok(None)
            }
            Err(fault) => Err(fault),
        }
    }

    async fn call_within(&self, method: &'static str, params: Json, limit: Duration) -> Result<Json, BrowserFault> {
        let mut state = self.state.clone();
        let crashed = async {
            // Without a listener there is no connection, which the command reports.
            if state.wait_for(|state| state.is_crashed).await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            // A page that has crashed answers nothing.
            () = crashed => Err(BrowserFault::Crashed),
            answer = within(&self.cdp, Some(&self.session), method, params, limit) => answer,
        }
    }

    /// Returns the connection to the browser, and the id of the tab's session.
    pub(crate) fn session(&self) -> (Cdp, String) {
        (self.cdp.clone(), self.session.clone())
    }

    /// Returns the id of the isolated world, for scripts that the page's own ones must not disturb.
    pub(crate) async fn world(&self) -> Result<Json, BrowserFault> {
        self.world_of(&self.target).await
    }

    /// Returns the id of the isolated world of a frame.
    pub(crate) async fn world_of(&self, frame: &str) -> Result<Json, BrowserFault> {
        let wanted = json!({ "frameId": frame, "worldName": WORLD });
        let mut made = self.call("Page.createIsolatedWorld", wanted).await?;
        Ok(made["executionContextId"].take())
    }

    /// Evaluates an expression in the isolated world, again if the page navigated meanwhile.
    pub(crate) async fn evaluate(&self, expression: &str) -> Result<Json, BrowserFault> {
        let mut tries = 0;
        loop {
            match self.evaluate_once(expression).await {
                Err(BrowserFault::Refused(_)) if tries < NAVIGATIONS_MAX => tries += 1,
                answer => return answer,
            }
        }
    }

    async fn evaluate_once(&self, expression: &str) -> Result<Json, BrowserFault> {
        let wanted = json!({
            "expression": expression, "contextId": self.world().await?, "returnByValue": true, "userGesture": true,
        });
        let mut answer = self.call("Runtime.evaluate", wanted).await?;
        Ok(answer["result"]["value"].take())
    }

    /// Waits until the page has loaded and has requested nothing for the time `quiet`, but not longer than the limits of
    /// [`Rest`], which count from its beginning.
    pub(crate) async fn rest(&self, rest: &mut Rest, quiet: Duration) -> Result<Rested, BrowserFault> {
        let mut state = self.state.clone();
        loop {
            let now = Instant::now();
            let wake = {
                let seen = state.borrow_and_update();
                if seen.is_crashed {
                    return Err(BrowserFault::Crashed);
                }
                if rest.is_over {
                    return Ok(Rested::Loading);
                }
                let given_up = self.given_up.load(Ordering::Relaxed);
                let is_loading = seen.loading.values().any(|load| *load > given_up);
                rest.loaded = if is_loading { None } else { Some(rest.loaded.unwrap_or(now)) };
                let quiet_from = seen.last_event.map_or(rest.begun, |last| last.max(rest.begun));
                match rest.loaded {
                    None if now >= rest.begun + LOAD_LIMIT => {
                        rest.is_over = true;
                        self.given_up.store(seen.loads, Ordering::Relaxed);
                        return Ok(Rested::Loading);
                    }
                    None => rest.begun + LOAD_LIMIT,
                    Some(_) if seen.requests.is_empty() && now >= quiet_from + quiet => return Ok(Rested::Quiet),
                    Some(since) if now >= since + REST_LIMIT => return Ok(Rested::Busy),
                    Some(since) if seen.requests.is_empty() => (quiet_from + quiet).min(since + REST_LIMIT),
                    Some(since) => since + REST_LIMIT,
                }
            };
            tokio::select! {
                changed = state.changed() => changed.map_err(|_| BrowserFault::Gone)?,
                () = tokio::time::sleep_until(wake) => {}
            }
        }
    }

    /// Returns the time of the last event that the page's rest depends on.
    pub(crate) fn last_event(&self) -> Option<Instant> {
        self.state.borrow().last_event
    }

    /// Returns the number of file choosers that were intercepted.
    pub(crate) fn choosers(&self) -> u64 {
        self.state.borrow().choosers
    }

    /// Waits for the file chooser after this number of them. Returns `None` after `limit`.
    pub(crate) async fn chooser_after(
        &self,
        before: u64,
        limit: Duration,
    ) -> Result<Option<FileChooser>, BrowserFault> {
        let mut state = self.state.clone();
        let opened = state.wait_for(|state| state.choosers > before || state.is_crashed);
        match tokio::time::timeout(limit, opened).await {
            Err(_) => Ok(None),
            Ok(Err(_)) => Err(BrowserFault::Gone),
            Ok(Ok(state)) if state.is_crashed => Err(BrowserFault::Crashed),
            Ok(Ok(state)) => Ok(state.chooser.clone()),
        }
    }

    /// Whether the page has crashed.
    pub(crate) fn is_crashed(&self) -> bool {
        self.state.borrow().is_crashed
    }
}

impl std::fmt::Debug for Tab {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let is_listening = !self.listener.0.is_finished();
        f.debug_struct("Tab").field("target", &self.target).field("is_listening", &is_listening).finish_non_exhaustive()
    }
}

/// Sends a command with the usual time limit.
pub(crate) async fn limited(
    cdp: &Cdp,
    session: Option<&str>,
    method: &'static str,
    params: Json,
) -> Result<Json, BrowserFault> {
    within(cdp, session, method, params, CALL_LIMIT).await
}

async fn within(
    cdp: &Cdp,
    session: Option<&str>,
    method: &'static str,
    params: Json,
    limit: Duration,
) -> Result<Json, BrowserFault> {
    match tokio::time::timeout(limit, cdp.call(session, method, params)).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(CdpError::Gone)) => Err(BrowserFault::Gone),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Err(BrowserFault::Stuck { method, seconds: limit.as_secs() }),
    }
}

/// Follows the events of a session until the browser disconnects.
async fn listen(cdp: Cdp, session: String, mut events: CdpEvents, state: watch::Sender<TabState>) {
    while let Some(event) = events.next().await {
        if event.method == "Page.javascriptDialogOpening" {
            // As Playwright does without a handler: dialogs are dismissed, and a page may be left.
            let accept = event.params["type"] == "beforeunload";
            cdp.tell_session(&session, "Page.handleJavaScriptDialog", json!({ "accept": accept }));
        }
        state.send_if_modified(|state| note(state, &event));
    }
}

/// Notes what an event says, and returns whether that matters.
fn note(state: &mut TabState, event: &CdpEvent) -> bool {
    let text = |key: &str| event.params[key].as_str().unwrap_or_default();
    match event.method.as_str() {
        "Page.frameStartedLoading" => {
            state.begin_load(text("frameId"));
        }
        "Page.frameStoppedLoading" | "Page.frameDetached" => {
            state.loading.remove(text("frameId"));
            state.stops += 1;
        }
        "Network.requestWillBeSent" => {
            // Events of the server and beacons last as long as the page, or longer.
            if matches!(text("type"), "EventSource" | "Ping" | "Media") || state.requests.len() >= REQUESTS_MAX {
                return false;
            }
            state.requests.insert(text("requestId").to_owned());
        }
        "Network.loadingFinished" | "Network.loadingFailed" => {
            if !state.requests.remove(text("requestId")) {
                return false;
            }
        }
        "Page.frameNavigated" if event.params["frame"]["parentId"].is_null() => state.requests.clear(),
        // A page that asks for files without a field, by `showOpenFilePicker`, names no node.
        "Page.fileChooserOpened" => match event.params["backendNodeId"].as_i64() {
            Some(node) => {
                state.chooser = Some(FileChooser { frame: text("frameId").to_owned(), node });
                state.choosers += 1;
            }
            None => return false,
        },
        "Inspector.targetCrashed" => state.is_crashed = true,
        _ => return false,
    }
    state.last_event = Some(Instant::now());
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(method: &str, params: Json) -> CdpEvent {
        CdpEvent { method: method.to_owned(), params }
    }

    fn tab(state: watch::Receiver<TabState>) -> Tab {
        let (_keep, from) = tokio::io::duplex(64);
        let (from, to) = tokio::io::split(from);
        let cdp = Cdp::over(arenad_chromium::pipe(from, to, 1 << 20));
        let listener = Arc::new(ListenerTask(tokio::spawn(async {}).abort_handle()));
        Tab { cdp, session: String::new(), target: String::new(), state, given_up: AtomicU64::new(0), listener }
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_is_at_rest_when_it_has_loaded_and_requests_nothing() {
        let (sender, state) = watch::channel(TabState::default());
        let tell = |method: &str, params: Json| {
            sender.send_if_modified(|state| note(state, &event(method, params)));
        };
        tell("Page.frameStartedLoading", json!({ "frameId": "a" }));
        tell("Network.requestWillBeSent", json!({ "requestId": "1", "type": "Document" }));
        tell("Network.requestWillBeSent", json!({ "requestId": "2", "type": "EventSource" }));
        let tab = tab(state);
        let begun = Instant::now();
        let mut rest = Rest::begin();
        let (rested, ()) = tokio::join!(tab.rest(&mut rest, BRIEFLY_QUIET), async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            tell("Page.frameStoppedLoading", json!({ "frameId": "a" }));
            tokio::time::sleep(Duration::from_millis(400)).await;
            tell("Network.loadingFinished", json!({ "requestId": "1" }));
        });
        assert_eq!(rested, Ok(Rested::Quiet));
        assert_eq!(begun.elapsed().as_millis(), 700 + BRIEFLY_QUIET.as_millis());
        assert_eq!(tab.rest(&mut rest, QUIET).await, Ok(Rested::Quiet));
        assert_eq!(begun.elapsed().as_millis(), 700 + QUIET.as_millis(), "the time that has passed counts");
    }

    #[tokio::test(start_paused = true)]
    async fn requests_without_an_end_delay_a_loaded_page_for_a_limited_time() {
        let (sender, state) = watch::channel(TabState::default());
        sender.send_modify(|state| assert!(state.requests.insert("poll".to_owned())));
        let tab = tab(state);
        let begun = Instant::now();
        let mut rest = Rest::begin();
        assert_eq!(tab.rest(&mut rest, BRIEFLY_QUIET).await, Ok(Rested::Busy));
        assert_eq!(begun.elapsed(), REST_LIMIT);
        assert_eq!(tab.rest(&mut rest, QUIET).await, Ok(Rested::Busy));
        assert_eq!(begun.elapsed(), REST_LIMIT, "a wait that goes on has the same limit");
        sender.send_modify(|state| state.begin_load("a"));
        assert_eq!(tab.rest(&mut Rest::begin(), QUIET).await, Ok(Rested::Loading));
        assert_eq!(begun.elapsed(), REST_LIMIT + LOAD_LIMIT);
        assert_eq!(tab.rest(&mut Rest::begin(), QUIET).await, Ok(Rested::Busy), "the same load is waited for once");
        assert_eq!(begun.elapsed(), REST_LIMIT * 2 + LOAD_LIMIT);
        sender.send_modify(|state| state.begin_load("a"));
        assert_eq!(tab.rest(&mut Rest::begin(), QUIET).await, Ok(Rested::Loading), "another load is waited for");
        sender.send_modify(|state| state.is_crashed = true);
        assert_eq!(tab.rest(&mut Rest::begin(), QUIET).await, Err(BrowserFault::Crashed));
    }
}
