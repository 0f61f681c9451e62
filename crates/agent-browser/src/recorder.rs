//! The recorder of a person's actions in a browser that the person sees.
//!
//! A script in an isolated world of each page tells clicks, typed texts, chosen options and Enter. It needs no extension,
//! and pages cannot see it. The browser reaches sites through a proxy that asks for credentials, which the recorder gives.

use std::collections::HashMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value as Json, json};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::blank::BrowserContext;
use crate::error::BrowserFault;
use crate::listed::{DESCRIBE, SELECTOR};
use crate::tab::limited;
use arenad_api::StorageCookie;
use arenad_api::browser::{PageElement, REDACTED};
use arenad_chromium::{Cdp, CdpEvents};

/// The time between two looks for tabs that pages have opened or the person has closed.
const LOOK: Duration = Duration::from_millis(200);

/// The name of the isolated world, and of the function in it by which the script tells.
const WORLD: &str = "arenadRecorder";

/// A proxy, and the credentials that it asks for.
#[derive(Clone)]
pub struct RecorderProxy {
    /// The address, such as `http://127.0.0.1:7500`.
    pub server: String,
    /// The name that the proxy knows.
    pub username: String,
    /// The secret that belongs to the name.
    pub password: String,
}

/// An action of a person.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RecordedAction {
    /// `click`, `type`, `select` or `press`.
    pub action: String,
    /// The address of the page before the action.
    pub url: String,
    /// The element; `None` for keys.
    pub element: Option<PageElement>,
    /// The typed text, the chosen option or the keys. A text in a field for passwords is `[redacted]`.
    pub value: Option<String>,
}

/// A recording of a person's actions. Dropping it closes its tabs.
pub struct Recorder {
    cdp: Cdp,
    context: BrowserContext,
    proxy: Option<RecorderProxy>,
    tabs: HashMap<String, AbortHandle>,
    sender: mpsc::UnboundedSender<RecordedAction>,
    actions: mpsc::UnboundedReceiver<RecordedAction>,
    last_url: String,
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.tabs.values().for_each(AbortHandle::abort);
    }
}

impl Recorder {
    /// Opens a window with these cookies only, whose requests go through the proxy, and shows an address in it.
    ///
    /// Errors: the browser's refusal.
    pub async fn open(
        cdp: Cdp,
        proxy: Option<RecorderProxy>,
        cookies: &[StorageCookie],
        url: &str,
    ) -> Result<Self, BrowserFault> {
        let context = BrowserContext::make(&cdp, proxy.as_ref().map(|proxy| proxy.server.as_str())).await?;
        context.set_cookies(cookies).await?;
        let (sender, actions) = mpsc::unbounded_channel();
        let mut recorder = Self { cdp, context, proxy, tabs: HashMap::new(), sender, actions, last_url: String::new() };
        let wanted = json!({ "url": "about:blank", "browserContextId": recorder.context.id, "newWindow": true });
        let target = limited(&recorder.cdp, None, "Target.createTarget", wanted).await?;
        let target = target["targetId"].as_str().unwrap_or_default().to_owned();
        let session = recorder.attach(target).await?;
        limited(&recorder.cdp, Some(&session), "Page.navigate", json!({ "url": url })).await?;
        Ok(recorder)
    }

    /// Returns the next action, or `None` when the person has closed all tabs of the window.
    ///
    /// Cancellation: no action is lost.
    pub async fn next(&mut self) -> Option<RecordedAction> {
        loop {
            tokio::select! {
                biased;
                action = self.actions.recv() => return action,
                () = tokio::time::sleep(LOOK) => {}
            }
            if !self.look_for_tabs().await.unwrap_or(false) {
                // Actions that were told with the last page come first.
                return self.actions.try_recv().ok();
            }
        }
    }

    /// Returns the address of the page that was looked at last.
    pub fn last_url(&self) -> &str {
        &self.last_url
    }

    /// Attaches to new tabs. Returns whether there is a tab.
    async fn look_for_tabs(&mut self) -> Result<bool, BrowserFault> {
        let open = self.context.tabs().await?;
        self.tabs.retain(|tab, task| {
            let is_open = open.iter().any(|(target, _)| target == tab);
            if !is_open {
                task.abort();
            }
            is_open
        });
        for (target, url) in &open {
            if !self.tabs.contains_key(target) {
                // A tab may be closed again meanwhile.
                let _ = self.attach(target.clone()).await;
            }
            self.last_url.clone_from(url);
        }
        Ok(!open.is_empty())
    }

    /// Installs the recorder in a tab, also in the page that it shows already. Returns the session of the tab.
    async fn attach(&mut self, target: String) -> Result<String, BrowserFault> {
        let wanted = json!({ "targetId": target, "flatten": true });
        let attached = limited(&self.cdp, None, "Target.attachToTarget", wanted).await?;
        let session = attached["sessionId"].as_str().unwrap_or_default().to_owned();
        let events = self.cdp.listen(&session);
        let tab = TabRecorder {
            cdp: self.cdp.clone(),
            session: session.clone(),
            proxy: self.proxy.clone(),
            sender: self.sender.clone(),
        };
        let call = |method, params| limited(&self.cdp, Some(&session), method, params);
        call("Page.enable", json!({})).await?;
        call("Runtime.enable", json!({})).await?;
        call("Runtime.addBinding", json!({ "name": WORLD, "executionContextName": WORLD })).await?;
        if self.proxy.is_some() {
            call("Fetch.enable", json!({ "handleAuthRequests": true })).await?;
        }
        self.tabs.insert(target, tokio::spawn(tab.follow(events)).abort_handle());
        let wanted = json!({ "source": script(), "worldName": WORLD, "runImmediately": true });
        call("Page.addScriptToEvaluateOnNewDocument", wanted).await?;
        Ok(session)
    }
}

/// The events of one tab.
struct TabRecorder {
    cdp: Cdp,
    session: String,
    proxy: Option<RecorderProxy>,
    sender: mpsc::UnboundedSender<RecordedAction>,
}

impl TabRecorder {
    async fn follow(self, mut events: CdpEvents) {
        while let Some(event) = events.next().await {
            let params = &event.params;
            match event.method.as_str() {
                "Runtime.bindingCalled" => self.told(params),
                "Fetch.requestPaused" => {
                    let wanted = json!({ "requestId": params["requestId"] });
                    self.cdp.tell_session(&self.session, "Fetch.continueRequest", wanted);
                }
                "Fetch.authRequired" => {
                    let response = match &self.proxy {
                        // Only the proxy gets the credentials, and a site does not.
                        Some(proxy) if params["authChallenge"]["source"] == "Proxy" => json!({
                            "response": "ProvideCredentials", "username": proxy.username, "password": proxy.password,
                        }),
                        _ => json!({ "response": "Default" }),
                    };
                    let wanted = json!({ "requestId": params["requestId"], "authChallengeResponse": response });
                    self.cdp.tell_session(&self.session, "Fetch.continueWithAuth", wanted);
                }
                _ => {}
            }
        }
    }

    fn told(&self, params: &Json) {
        let Some(Ok(action)) = params["payload"].as_str().map(serde_json::from_str::<RecordedAction>) else { return };
        // Without a receiver the recording has ended.
        let _ = self.sender.send(action);
    }
}

/// Returns the script that tells the actions on a page.
fn script() -> String {
    format!(
        "(() => {{
            {SELECTOR}{DESCRIBE}
            const TEXTS = 'input:not([type=button]):not([type=checkbox]):not([type=file]):not([type=image])' +
                ':not([type=radio]):not([type=range]):not([type=reset]):not([type=submit]), textarea';
            let typed = new WeakMap();
            let enter = 0;
            const tell = (action, element, value) => {WORLD}(JSON.stringify({{
                action, url: location.href, element: element && describe(element), value,
            }}));
            const text = field => {{
                if (typed.get(field) === field.value) return;
                typed.set(field, field.value);
                tell('type', field, field.type === 'password' ? '{REDACTED}' : field.value);
            }};
            addEventListener('click', event => {{
                if (!event.isTrusted || !(event.target instanceof Element)) return;
                // Enter in a form clicks its button, and a click on a label clicks its field.
                if (event.detail === 0 && Date.now() - enter < 500) return;
                const element = event.target.closest(LISTED) || event.target;
                if (element.matches(TEXTS) || element.matches('select, option')) return;
                if (element.localName === 'label' && element.control) return;
                tell('click', element);
            }}, true);
            addEventListener('change', event => {{
                const field = event.target;
                if (!(field instanceof Element)) return;
                if (field.localName === 'select') {{
                    const [option] = field.selectedOptions;
                    if (option) tell('select', field, option.label.trim().replace(/\\s+/g, ' '));
                }} else if (field.matches(TEXTS)) {{
                    text(field);
                }}
            }}, true);
            addEventListener('keydown', event => {{
                if (!event.isTrusted || event.key !== 'Enter' || event.isComposing) return;
                const field = event.target;
                if (!(field instanceof Element) || !field.matches(TEXTS)) return;
                if (field.localName === 'textarea') return;
                text(field);
                enter = Date.now();
                tell('press', null, 'Enter');
            }}, true);
        }})()"
    )
}
