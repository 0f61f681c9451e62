//! One page of the site, from its own context to the value of an expression.

use std::time::Duration;

use serde_json::{Value as Json, json};
use tokio::time::Instant;

use super::cdp::{Cdp, CdpError, Events};
use super::gate::Gate;
use super::script::evaluate;
use crate::accounts::{Cookie, Session};
use crate::domain::locator::{JsLocator, Value, json_text};
use crate::locators::{LocateError, Scene};

/// How long a context gets to go away.
const CLOSE_PATIENCE: Duration = Duration::from_secs(5);

/// What can be seen of a page, and what it says of how it was seen.
type Seen = (Value, Vec<(&'static str, String)>);

/// Why a page has no value.
pub(super) enum PageFault {
    Locate(LocateError),
    Cdp(CdpError),
    /// It hangs, and so does its end.
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

/// Opens a page, evaluates the expression, and removes all of it again.
pub(super) async fn look(
    cdp: &Cdp,
    client: &reqwest::Client,
    scene: &Scene<'_>,
    path: &str,
    locator: &JsLocator,
    session: Option<&Session>,
    deadline: Instant,
) -> Result<Seen, PageFault> {
    let gate = Gate::open(client.clone(), scene.place.clone(), session).await;
    let gate = gate.map_err(|error| LocateError::Unavailable(format!("open a port for the browser: {error}")))?;
    let context = cdp
        .call(
            None,
            "Target.createBrowserContext",
            // Without the bypass list the browser would go to its own loopback without asking.
            json!({ "disposeOnDetach": true, "proxyServer": format!("http://{}", gate.address()), "proxyBypassList": "<-loopback>" }),
        )
        .await?;
    let context = text(&context, "browserContextId");
    let seen = tokio::time::timeout_at(deadline, visit(cdp, &gate, &context, scene, path, locator, session, deadline)).await;
    let close = cdp.call(None, "Target.disposeBrowserContext", json!({ "browserContextId": context }));
    let closed = tokio::time::timeout(CLOSE_PATIENCE, close).await;
    match seen {
        Ok(Err(PageFault::Cdp(CdpError::Refused { .. }))) if gate.fault().is_some() => {
            Err(LocateError::Unavailable(gate.fault().unwrap_or_default()).into())
        }
        Ok(seen) => seen,
        Err(_) if closed.is_err() => Err(PageFault::Stuck),
        Err(_) => Err(LocateError::TimedOut { limit: Duration::ZERO }.into()),
    }
}

#[expect(clippy::too_many_arguments, reason = "the parts of one look, named where it begins")]
async fn visit(
    cdp: &Cdp,
    gate: &Gate,
    context: &str,
    scene: &Scene<'_>,
    path: &str,
    locator: &JsLocator,
    session: Option<&Session>,
    deadline: Instant,
) -> Result<Seen, PageFault> {
    let cookies: Vec<Json> = session.iter().flat_map(|session| &session.cookies).map(cookie).collect();
    let (target, _, _) = tokio::try_join!(
        cdp.call(None, "Target.createTarget", json!({ "url": "about:blank", "browserContextId": context })),
        cdp.call(None, "Storage.setCookies", json!({ "browserContextId": context, "cookies": cookies })),
        cdp.call(None, "Browser.setDownloadBehavior", json!({ "behavior": "deny", "browserContextId": context })),
    )?;
    let attached = json!({ "targetId": text(&target, "targetId"), "flatten": true });
    let attached = cdp.call(None, "Target.attachToTarget", attached).await?;
    let page = text(&attached, "sessionId");
    let mut events = cdp.listen(&page);
    tokio::try_join!(
        cdp.call(Some(&page), "Page.enable", json!({})),
        cdp.call(Some(&page), "Inspector.enable", json!({})),
    )?;
    let url = format!("http://{}:{}{path}", scene.place.host, scene.place.port);
    // A dialog stops everything else on the page, the load included, so dialogs are answered all the while.
    let work = async {
        let navigated = cdp.call(Some(&page), "Page.navigate", json!({ "url": url })).await?;
        if let Some(reason) = navigated["errorText"].as_str() {
            let reason = gate.fault().unwrap_or_else(|| reason.to_owned());
            return Err(LocateError::Unavailable(format!("open {url}: {reason}")).into());
        }
        if let Some(fault) = gate.fault() {
            return Err(LocateError::Unavailable(format!("open {url}: {fault}")).into());
        }
        Ok::<_, PageFault>(())
    };
    let mut page = Page { cdp, session: &page, events: &mut events };
    page.during(work, true).await?;
    let left = || deadline.saturating_duration_since(Instant::now());
    if let Some(selector) = &locator.wait_for {
        let script = appears(selector);
        page.during(async { Ok(evaluate(cdp, Some(page_id(&attached)), &script, left()).await??) }, false).await?;
    }
    for expression in &locator.prepare {
        // Their errors do not count, but what they do to the page does.
        let _ = page.during(async { Ok(evaluate(cdp, Some(page_id(&attached)), expression, left()).await??) }, false).await;
    }
    let value =
        page.during(async { Ok(evaluate(cdp, Some(page_id(&attached)), &locator.expression, left()).await??) }, false).await?;
    let place = page.during(async { Ok(evaluate(cdp, Some(page_id(&attached)), "location.href", left()).await??) }, false).await;
    let place = place.ok().and_then(|place| place.text()).unwrap_or(url);
    Ok((value, vec![("url", place)]))
}

fn page_id(attached: &Json) -> &str {
    attached["sessionId"].as_str().unwrap_or_default()
}

struct Page<'a> {
    cdp: &'a Cdp,
    session: &'a str,
    events: &'a mut Events,
}

impl Page<'_> {
    /// Does some work while the page's events are heard; if `loads`, until the page has loaded too.
    async fn during<T>(
        &mut self,
        work: impl Future<Output = Result<T, PageFault>>,
        loads: bool,
    ) -> Result<T, PageFault> {
        let mut work = std::pin::pin!(work);
        let mut done = None;
        let mut is_loaded = !loads;
        loop {
            if is_loaded && let Some(done) = done.take() {
                return Ok(done);
            }
            tokio::select! {
                biased;
                event = self.events.next() => {
                    let event = event.ok_or(CdpError::Gone)?;
                    match event.method.as_str() {
                        "Page.loadEventFired" => is_loaded = true,
                        "Page.javascriptDialogOpening" => self.dismiss(),
                        "Inspector.targetCrashed" => {
                            return Err(LocateError::Failed("the page crashed".to_owned()).into());
                        }
                        _ => {}
                    }
                }
                result = &mut work, if done.is_none() => done = Some(result?),
            }
        }
    }

    /// Answers a dialog with no. A page that opens one after the other is ended by the deadline.
    fn dismiss(&self) {
        let (cdp, session) = (self.cdp.clone(), self.session.to_owned());
        tokio::spawn(async move {
            let _ = cdp.call(Some(&session), "Page.handleJavaScriptDialog", json!({ "accept": false })).await;
        });
    }
}

fn text(answer: &Json, key: &str) -> String {
    answer[key].as_str().unwrap_or_default().to_owned()
}

/// A promise that is kept when an element is there.
fn appears(selector: &str) -> String {
    let selector = json_text(selector);
    format!(
        "new Promise(found => {{ const look = () => document.querySelector({selector}) && (watch.disconnect(), found(true)); \
         const watch = new MutationObserver(look); watch.observe(document, {{ childList: true, subtree: true, attributes: true }}); look(); }})"
    )
}

fn cookie(cookie: &Cookie) -> Json {
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
