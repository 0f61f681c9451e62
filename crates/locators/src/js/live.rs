//! The agent's own page, read through its browser's address or by its tab. Apart from the effects of the locator's expressions,
//! reading changes nothing on the page.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use reqwest::Url;
use serde::Deserialize;

use super::script::evaluate;
use crate::{FoundValue, LocateError};
use arenad_chromium::{Cdp, CdpError, MESSAGE_MAX};
use arenad_model::locator::{JsLocator, Value};
use arenad_probes::innermost;

/// Maximum size of the list of pages, in bytes: each page takes a few hundred bytes, and addresses may be long.
const LIST_MAX: usize = 4 << 20;

/// A page of a browser, as `/json/list` describes it.
#[derive(Debug, Deserialize)]
struct CdpTarget {
    #[serde(rename = "type")]
    kind: String,
    #[serde(rename = "webSocketDebuggerUrl")]
    address: Option<String>,
}

/// The page of an agent.
#[derive(Clone)]
pub enum LivePage {
    /// The page that a browser at a CDP address shows: the visible one; of several, the most recently used.
    Address(String),
    /// A tab of a browser that this process drives.
    Tab {
        /// The connection to the browser.
        cdp: Cdp,
        /// The id of the tab's session.
        session: String,
    },
}

impl fmt::Debug for LivePage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => f.debug_tuple("Address").field(address).finish(),
            Self::Tab { session, .. } => f.debug_struct("Tab").field("session", session).finish_non_exhaustive(),
        }
    }
}

/// Evaluates the expression on the page that the agent is on.
pub(super) async fn look(
    client: &reqwest::Client,
    page: &LivePage,
    locator: &JsLocator,
    limit: Duration,
) -> Result<FoundValue, LocateError> {
    match page {
        LivePage::Address(address) => look_at(client, address, locator, limit).await,
        LivePage::Tab { cdp, session } => read(cdp, Some(session), locator, limit).await,
    }
}

fn gone(error: CdpError) -> LocateError {
    LocateError::Unavailable(format!("the agent's browser: {error}"))
}

/// Evaluates the expression in the session of a page.
async fn read(
    cdp: &Cdp,
    session: Option<&str>,
    locator: &JsLocator,
    limit: Duration,
) -> Result<FoundValue, LocateError> {
    for expression in &locator.prepare {
        // Errors of these expressions do not count.
        let _ = evaluate(cdp, session, expression, limit).await.map_err(gone)?;
    }
    let seen = evaluate(cdp, session, &locator.expression, limit).await.map_err(gone)?;
    let seen = seen.map_err(|error| match error {
        LocateError::TimedOut { .. } => LocateError::TimedOut { limit },
        other => other,
    })?;
    let ran = format!("{} @ {}", locator.expression, seen.url);
    Ok(FoundValue { value: seen.value, ran, notes: vec![("url", seen.url)] })
}

/// Evaluates the expression on the page that the browser at an address shows.
async fn look_at(
    client: &reqwest::Client,
    address: &str,
    locator: &JsLocator,
    limit: Duration,
) -> Result<FoundValue, LocateError> {
    let browser = browser(address)?;
    let pages = pages(client, &browser).await?;
    for page in &pages {
        let Some(address) = &page.address else { continue };
        let address = through(address, &browser);
        let unreachable =
            |error: std::io::Error| LocateError::Unavailable(format!("reach the agent's page at {address}: {error}"));
        let cdp = Cdp::connect(&address, MESSAGE_MAX).await.map_err(unreachable)?;
        if pages.len() > 1 {
            let shown = evaluate(&cdp, None, "document.visibilityState === 'visible'", limit).await.map_err(gone)?;
            if shown.is_ok_and(|shown| shown.value != Value::Bool(true)) {
                continue;
            }
        }
        return read(&cdp, None, locator, limit).await;
    }
    Err(LocateError::Unavailable(format!("the agent's browser at {address} shows no page")))
}

/// Parses the browser's address: `http://HOST:PORT`, or the WebSocket address that the browser prints.
fn browser(address: &str) -> Result<Url, LocateError> {
    let wrong = || LocateError::Unknown(format!("`{address}` is not a CDP address such as http://127.0.0.1:9222"));
    let mut url = Url::parse(address).map_err(|_| wrong())?;
    if matches!(url.scheme(), "ws" | "http") && url.host_str().is_some() {
        url = Url::parse(&format!(
            "http://{}:{}/",
            url.host_str().unwrap_or_default(),
            url.port_or_known_default().unwrap_or(80)
        ))
        .map_err(|_| wrong())?;
        return Ok(url);
    }
    Err(wrong())
}

async fn pages(client: &reqwest::Client, browser: &Url) -> Result<Vec<CdpTarget>, LocateError> {
    let unreachable = |error: reqwest::Error| {
        LocateError::Unavailable(format!("ask the agent's browser at {browser}: {}", innermost(&error)))
    };
    let list = browser.join("json/list").map_err(|error| LocateError::Unknown(error.to_string()))?;
    let mut request = client.get(list);
    // Chromium accepts only IP addresses and `localhost` as the host.
    if browser.host_str().is_some_and(|host| host.parse::<IpAddr>().is_err()) {
        request = request.header("host", "localhost");
    }
    let mut answer = request.send().await.map_err(unreachable)?;
    let mut list = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(unreachable)? {
        list.extend_from_slice(&piece);
        if list.len() > LIST_MAX {
            let what = format!("its list of pages has more than {} MiB", LIST_MAX >> 20);
            return Err(LocateError::Unavailable(format!("ask the agent's browser at {browser}: {what}")));
        }
    }
    let targets: Vec<CdpTarget> = serde_json::from_slice(&list)
        .map_err(|error| LocateError::Unavailable(format!("ask the agent's browser at {browser}: {error}")))?;
    Ok(targets.into_iter().filter(|target| target.kind == "page").collect())
}

/// Rewrites a page's address to the host and port by which its browser is reached, because the browser reports the
/// address that it sees itself.
fn through(address: &str, browser: &Url) -> String {
    let path = Url::parse(address).map(|url| url.path().to_owned()).unwrap_or_default();
    format!("ws://{}:{}{path}", browser.host_str().unwrap_or_default(), browser.port_or_known_default().unwrap_or(80))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_may_be_named_by_either_address() {
        for address in ["http://127.0.0.1:9222", "ws://127.0.0.1:9222/devtools/browser/abc"] {
            let browser = browser(address).expect("an address");
            assert_eq!(browser.as_str(), "http://127.0.0.1:9222/");
            assert_eq!(through("ws://localhost/devtools/page/1", &browser), "ws://127.0.0.1:9222/devtools/page/1");
        }
        assert!(browser("127.0.0.1:9222").is_err());
        assert!(browser("file:///etc/passwd").is_err());
    }
}
