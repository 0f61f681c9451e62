//! One page of the site, from its own context to the value of an expression.

use std::time::Duration;

use serde_json::{Value as Json, json};
use tokio::time::Instant;

use super::gate::Gate;
use super::script::{EvaluatedValue, evaluate};
use crate::{LocateError, Scene};
use arenad_accounts::{BrowserCookie, LoginSession};
use arenad_chromium::{Cdp, CdpError, CdpEvents};
use arenad_model::locator::{JsLocator, json_text};

/// Time within which a context that has exceeded its limit must be removed.
const CLOSE_PATIENCE: Duration = Duration::from_secs(5);

/// The reason why a page has no value.
#[derive(Debug)]
pub(super) enum PageFault {
    Locate(LocateError),
    Cdp(CdpError),
    /// The page hangs, and so does its removal.
    Stuck,
}

impl From<CdpError> for PageFault {
    fn from(error: CdpError) -> Self {
        Self::Cdp(error)
    }
}

impl From<LocateError> for PageFault {
    fn from(error: LocateError) -> Self {
        Self::Locate(error)
    }
}

/// An empty page in a context of its own, which shares nothing with others and is removed when the page is dropped.
pub(super) struct BrowserPage {
    context: BrowserContext,
    gate: Gate,
    session: String,
    events: CdpEvents,
}

/// A browser context; dropping it removes it with all of its pages.
struct BrowserContext {
    cdp: Cdp,
    id: String,
}

impl Drop for BrowserContext {
    fn drop(&mut self) {
        self.cdp.tell("Target.disposeBrowserContext", json!({ "browserContextId": self.id }));
    }
}

impl BrowserPage {
    /// Prepares a page before it is known what the page will show, because a new process takes longer than most pages.
    /// `user` is the user of the browser's processes, if known.
    pub(super) async fn prepare(cdp: &Cdp, client: &reqwest::Client, user: Option<u32>) -> Result<Self, PageFault> {
        let gate = Gate::open(client.clone(), user).await;
        let gate = gate.map_err(|error| LocateError::Unavailable(format!("open a port for the browser: {error}")))?;
        let proxy = format!("http://{}", gate.address());
        // Without the bypass list the browser would connect to its own loopback directly.
        let wanted = json!({ "disposeOnDetach": true, "proxyServer": proxy, "proxyBypassList": "<-loopback>" });
        let made = cdp.call(None, "Target.createBrowserContext", wanted).await?;
        let context = BrowserContext { cdp: cdp.clone(), id: text(&made, "browserContextId") };
        let no_downloads = json!({ "behavior": "deny", "browserContextId": context.id });
        let (target, _) = tokio::try_join!(
            cdp.call(None, "Target.createTarget", json!({ "url": "about:blank", "browserContextId": context.id })),
            cdp.call(None, "Browser.setDownloadBehavior", no_downloads),
        )?;
        let attached = json!({ "targetId": text(&target, "targetId"), "flatten": true });
        let attached = cdp.call(None, "Target.attachToTarget", attached).await?;
        let session = text(&attached, "sessionId");
        let events = cdp.listen(&session);
        tokio::try_join!(
            cdp.call(Some(&session), "Page.enable", json!({})),
            cdp.call(Some(&session), "Inspector.enable", json!({})),
        )?;
        Ok(Self { context, gate, session, events })
    }

    /// Opens a path of the site with an account's session and evaluates the expression.
    pub(super) async fn look(
        mut self,
        scene: &Scene<'_>,
        path: &str,
        locator: &JsLocator,
        session: Option<&LoginSession>,
        deadline: Instant,
    ) -> Result<EvaluatedValue, PageFault> {
        self.gate.lead(scene.place.clone(), session);
        let url = format!("http://{}:{}{path}", scene.place.host, scene.place.port);
        match tokio::time::timeout_at(deadline, self.visit(&url, locator, session, deadline)).await {
            Ok(Err(PageFault::Cdp(CdpError::Refused { .. }))) if self.gate.fault().is_some() => {
                Err(unreachable(&url, &self.gate.fault().unwrap_or_default()))
            }
            Ok(seen) => seen,
            Err(_) => {
                let context = json!({ "browserContextId": self.context.id });
                let close = self.context.cdp.call(None, "Target.disposeBrowserContext", context);
                match tokio::time::timeout(CLOSE_PATIENCE, close).await {
                    Ok(_) => Err(LocateError::TimedOut { limit: Duration::ZERO }.into()),
                    Err(_) => Err(PageFault::Stuck),
                }
            }
        }
    }

    async fn visit(
        &mut self,
        url: &str,
        locator: &JsLocator,
        session: Option<&LoginSession>,
        deadline: Instant,
    ) -> Result<EvaluatedValue, PageFault> {
        let cdp = self.context.cdp.clone();
        let cookies: Vec<Json> = session.iter().flat_map(|session| &session.cookies).map(cookie).collect();
        if !cookies.is_empty() {
            let cookies = json!({ "browserContextId": self.context.id, "cookies": cookies });
            cdp.call(None, "Storage.setCookies", cookies).await?;
        }
        let id = self.session.clone();
        let navigated = self.during(cdp.call(Some(&id), "Page.navigate", json!({ "url": url })), true).await??;
        if let Some(fault) = self.gate.fault() {
            return Err(unreachable(url, &fault));
        }
        if let Some(reason) = navigated["errorText"].as_str() {
            return Err(LocateError::Failed(format!("open {url}: {reason}")).into());
        }
        let left = || deadline.saturating_duration_since(Instant::now());
        if let Some(selector) = &locator.wait_for {
            self.during(evaluate(&cdp, Some(&id), &appears(selector), left()), false).await???;
        }
        for expression in &locator.prepare {
            // Errors of these expressions do not count, but their effects on the page do.
            let _ = self.during(evaluate(&cdp, Some(&id), expression, left()), false).await??;
        }
        let found = self.during(evaluate(&cdp, Some(&id), &locator.expression, left()), false).await?;
        // Checked even if the expression has a value, because it read the proxy's error instead of the site.
        if let Some(fault) = self.gate.fault() {
            return Err(unreachable(url, &fault));
        }
        Ok(found??)
    }

    /// Runs `work` while the page's events are handled, because an open dialog blocks everything else on the page. If
    /// `loads` is set, it also waits until the page has loaded, unless the work fails.
    async fn during<T: MayFail>(&mut self, work: impl Future<Output = T>, loads: bool) -> Result<T, PageFault> {
        let mut work = std::pin::pin!(work);
        let mut done: Option<T> = None;
        let mut is_loaded = !loads;
        loop {
            if done.as_ref().is_some_and(|done| is_loaded || done.has_failed())
                && let Some(done) = done.take()
            {
                return Ok(done);
            }
            tokio::select! {
                biased;
                event = self.events.next() => match event.ok_or(CdpError::Gone)?.method.as_str() {
                    "Page.loadEventFired" => is_loaded = true,
                    // A page that opens one dialog after another is ended by the deadline.
                    "Page.javascriptDialogOpening" => {
                        let no = json!({ "accept": false });
                        self.context.cdp.tell_session(&self.session, "Page.handleJavaScriptDialog", no);
                    }
                    "Inspector.targetCrashed" => return Err(LocateError::Failed("the page crashed".to_owned()).into()),
                    _ => {}
                },
                result = &mut work, if done.is_none() => done = Some(result),
            }
        }
    }
}

/// Work whose result shows whether it failed.
trait MayFail {
    fn has_failed(&self) -> bool;
}

impl MayFail for Result<Json, CdpError> {
    fn has_failed(&self) -> bool {
        // A navigation that failed never fires the load event.
        self.as_ref().map_or(true, |answer| answer["errorText"].is_string())
    }
}

impl MayFail for Result<Result<EvaluatedValue, LocateError>, CdpError> {
    fn has_failed(&self) -> bool {
        !matches!(self, Ok(Ok(_)))
    }
}

fn unreachable(url: &str, reason: &str) -> PageFault {
    LocateError::Unavailable(format!("open {url}: {reason}")).into()
}

fn text(answer: &Json, key: &str) -> String {
    answer[key].as_str().unwrap_or_default().to_owned()
}

/// Returns the expression of a promise that resolves when a matching element exists.
fn appears(selector: &str) -> String {
    let selector = json_text(selector);
    format!(
        "new Promise(found => {{ const look = () => document.querySelector({selector}) && (watch.disconnect(), found(true)); \
         const watch = new MutationObserver(look); watch.observe(document, {{ childList: true, subtree: true, attributes: true }}); look(); }})"
    )
}

fn cookie(cookie: &BrowserCookie) -> Json {
    let mut known = json!({
        "name": cookie.name,
        "value": cookie.value.expose(),
        "domain": cookie.domain,
        "path": cookie.path,
        "httpOnly": cookie.http_only,
        "secure": cookie.secure,
    });
    if let Some(same_site) = &cookie.same_site {
        known["sameSite"] = json!(same_site);
    }
    if let Some(expires) = cookie.expires {
        known["expires"] = json!(expires.as_second());
    }
    known
}
