//! A browser that shows nothing yet, so that it can be made before anyone needs it.

use serde_json::{Value as Json, json};

use crate::error::BrowserFault;
use crate::pool::BrowserSeat;
use crate::tab::{Tab, limited};
use arenad_api::StorageCookie;
use arenad_chromium::Cdp;

/// A browser context; dropping it removes it with all of its pages.
pub(crate) struct BrowserContext {
    cdp: Cdp,
    pub(crate) id: String,
}

impl BrowserContext {
    /// Makes a context, all of whose requests go to the proxy if there is one.
    pub(crate) async fn make(cdp: &Cdp, proxy: Option<&str>) -> Result<Self, BrowserFault> {
        let mut wanted = json!({ "disposeOnDetach": true });
        if let Some(proxy) = proxy {
            wanted["proxyServer"] = json!(proxy);
            // Without the bypass list the browser would connect to its own loopback directly.
            wanted["proxyBypassList"] = json!("<-loopback>");
        }
        let made = limited(cdp, None, "Target.createBrowserContext", wanted).await?;
        let id = made["browserContextId"].as_str().unwrap_or_default().to_owned();
        Ok(Self { cdp: cdp.clone(), id })
    }

    /// Sets cookies, which must be done before a page that needs them is opened.
    pub(crate) async fn set_cookies(&self, cookies: &[StorageCookie]) -> Result<(), BrowserFault> {
        if cookies.is_empty() {
            return Ok(());
        }
        let cookies: Vec<Json> = cookies.iter().map(cookie).collect();
        let wanted = json!({ "browserContextId": self.id, "cookies": cookies });
        limited(&self.cdp, None, "Storage.setCookies", wanted).await.map(drop)
    }

    /// Returns the ids and the addresses of its tabs, in the order in which the browser lists them.
    pub(crate) async fn tabs(&self) -> Result<Vec<(String, String)>, BrowserFault> {
        let mut answer = limited(&self.cdp, None, "Target.getTargets", json!({})).await?;
        let Json::Array(targets) = answer["targetInfos"].take() else { return Ok(Vec::new()) };
        let is_own = |target: &&Json| target["browserContextId"] == self.id.as_str() && target["type"] == "page";
        let text = |target: &Json, key: &str| target[key].as_str().unwrap_or_default().to_owned();
        Ok(targets.iter().filter(is_own).map(|target| (text(target, "targetId"), text(target, "url"))).collect())
    }
}

impl Drop for BrowserContext {
    fn drop(&mut self) {
        self.cdp.tell("Target.disposeBrowserContext", json!({ "browserContextId": self.id }));
    }
}

/// Returns a cookie in the form of `Network.CookieParam`, which is that of Playwright except for cookies of the session.
fn cookie(cookie: &StorageCookie) -> Json {
    let mut known = json!(cookie);
    if let Some(fields) = known.as_object_mut().filter(|_| cookie.expires < 0) {
        fields.remove("expires");
    }
    known
}

/// A browser with one empty tab. Its process is the part that takes time; the rest of its settings follow when an episode
/// gets it. Dropping it closes it.
pub struct BlankBrowser {
    // The order of the fields is that of their ends: the place in the process is free when the pages are gone.
    pub(crate) tab: Tab,
    pub(crate) context: BrowserContext,
    pub(crate) seat: BrowserSeat,
}

impl BlankBrowser {
    /// Makes a browser whose requests all go to the proxy at `proxy`, such as `http://127.0.0.1:7500`, which must ask for no
    /// credentials.
    pub async fn make(seat: BrowserSeat, proxy: &str) -> Result<Self, BrowserFault> {
        let cdp = seat.cdp().clone();
        let context = BrowserContext::make(&cdp, Some(proxy)).await?;
        let no_downloads = json!({ "behavior": "deny", "browserContextId": context.id });
        limited(&cdp, None, "Browser.setDownloadBehavior", no_downloads).await?;
        let tab = Tab::open(&cdp, &context.id).await?;
        Ok(Self { tab, context, seat })
    }

    /// Returns the user of the browser's processes, as the host sees it; `None` if it is not known.
    pub fn user(&self) -> Option<u32> {
        self.seat.user()
    }

    /// Whether the process of the browser has ended, or its page has crashed.
    pub fn is_lost(&self) -> bool {
        self.seat.cdp().is_gone() || self.tab.is_crashed()
    }
}
