//! The browser of an agent: a real Chromium on pages of a server in the test, which takes the place of the episode proxy.

mod acted;
mod actions;
mod archived;
mod marks;
mod observations;
mod pages;
mod recorded;
mod uploads;

use arenad_agent_browser::{BlankBrowser, BrowserPool, BrowserSettings, EpisodeBrowser, Observation, StepOutcome};
use arenad_api::StorageCookie;
use tempfile::TempDir;

use self::pages::PageServer;

/// The address of the site, which only the proxy knows.
const SITE: &str = "http://shop.test/";

/// A pool of browsers, and the pages that they show.
struct Stage {
    pool: BrowserPool,
    server: PageServer,
    _folder: TempDir,
}

impl Stage {
    async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let pool = BrowserPool::new(folder.path().join("browsers"));
        Self { pool, server: PageServer::start().await, _folder: folder }
    }

    fn settings(&self) -> BrowserSettings {
        BrowserSettings::default()
    }

    /// Opens a browser at a path of the site.
    async fn open(&self, path: &str) -> EpisodeBrowser {
        self.open_with(self.settings(), &format!("{SITE}{path}")).await
    }

    async fn open_with(&self, settings: BrowserSettings, url: &str) -> EpisodeBrowser {
        let blank = self.blank().await;
        let (browser, error) = EpisodeBrowser::open(blank, settings, Some(url)).await.expect("it opens");
        assert_eq!(error, None, "{url}");
        browser
    }

    /// Makes a browser whose proxy is the server of the pages.
    async fn blank(&self) -> BlankBrowser {
        let seat = self.pool.seat().await.expect("a browser starts");
        BlankBrowser::make(seat, &format!("http://{}", self.server.address)).await.expect("it is made")
    }

    async fn close(self) {
        self.pool.close().await;
        assert_eq!(self.pool.counts().await, (0, 0));
    }
}

/// Returns the id of the element whose line contains a text.
fn id_of(observation: &Observation, text: &str) -> String {
    let line = observation.text.lines().find(|line| line.contains(text));
    let line = line.unwrap_or_else(|| panic!("no {text} in {}", observation.text));
    let id = line.trim_start().strip_prefix('[').and_then(|line| line.split_once(']'));
    id.unwrap_or_else(|| panic!("no id in {line}")).0.to_owned()
}

/// Performs an action that must succeed, on the element whose line contains a text if the action has `ID`.
async fn act(browser: &mut EpisodeBrowser, action: &str, text: &str) -> Observation {
    let StepOutcome { observation, error, .. } = tried(browser, action, text).await;
    assert_eq!(error, None, "{action} {text}");
    observation
}

async fn tried(browser: &mut EpisodeBrowser, action: &str, text: &str) -> StepOutcome {
    let seen = browser.observe().await.expect("an observation");
    let action = if action.contains("ID") { action.replace("ID", &id_of(&seen, text)) } else { action.to_owned() };
    browser.step(&action).await.expect("the browser works")
}

fn cookie(name: &str, value: &str) -> StorageCookie {
    StorageCookie {
        name: name.to_owned(),
        value: value.to_owned(),
        domain: "shop.test".to_owned(),
        path: "/".to_owned(),
        expires: -1,
        http_only: true,
        secure: false,
        same_site: "Lax".to_owned(),
    }
}
