//! A browser that is open, from its reset to its end.

use arenad_agent_browser::{
    ActedPage, ActionError, BrowserFault, BrowserSettings, EpisodeBrowser, Observation, StepOutcome, Viewport,
};
use arenad_api::browser::{PageElements, PageSnapshot};
use arenad_gateway::Proxy;
use arenad_locators::js::LivePage;

/// An open browser, with the port of its proxy.
pub(super) struct BrowserSession {
    browser: EpisodeBrowser,
    proxy: Proxy,
    step: u64,
    answer: Option<String>,
}

/// The page that a browser shows, as it was observed last.
pub(crate) struct ObservedBrowser {
    pub(crate) observation: Observation,
    /// The number of actions since the reset.
    pub(crate) step: u64,
    /// The reason why the last action failed, if it did.
    pub(crate) error: Option<ActionError>,
    /// The answer of `stop`.
    pub(crate) answer: Option<String>,
    pub(crate) viewport: Viewport,
    /// The page that the last action was chosen on, if the browser tells it.
    pub(crate) acted: Option<ActedPage>,
    /// Whether the caller wants the elements.
    pub(crate) lists_elements: bool,
}

impl BrowserSession {
    /// Observes a browser for the first time. `error` is the reason why its address could not be opened, if it could not.
    pub(super) async fn begin(
        browser: EpisodeBrowser,
        proxy: Proxy,
        error: Option<ActionError>,
    ) -> Result<(Self, ObservedBrowser), BrowserFault> {
        let mut session = Self { browser, proxy, step: 0, answer: None };
        let observation = session.browser.observe().await?;
        let observed = session.observed(observation, error);
        Ok((session, observed))
    }

    fn observed(&self, observation: Observation, error: Option<ActionError>) -> ObservedBrowser {
        let BrowserSettings { viewport, lists_elements, .. } = *self.browser.settings();
        let answer = self.answer.clone();
        ObservedBrowser { observation, step: self.step, error, answer, viewport, acted: None, lists_elements }
    }

    pub(super) async fn step(&mut self, action: &str, on: Option<&str>) -> Result<ObservedBrowser, BrowserFault> {
        let outcome = match on {
            Some(selector) => self.browser.step_on(action, selector).await?,
            None => self.browser.step(action).await?,
        };
        let StepOutcome { observation, error, answer, acted } = outcome;
        self.step += 1;
        self.answer = answer;
        Ok(ObservedBrowser { acted, ..self.observed(observation, error) })
    }

    pub(super) async fn observe(&mut self) -> Result<ObservedBrowser, BrowserFault> {
        let observation = self.browser.observe().await?;
        Ok(self.observed(observation, None))
    }

    pub(super) async fn listed(&self) -> Result<PageElements, BrowserFault> {
        self.browser.listed().await
    }

    pub(super) async fn snapshot(&self, selector: Option<&str>) -> Result<PageSnapshot, BrowserFault> {
        self.browser.snapshot(selector).await
    }

    /// Whether the agent has ended its task.
    pub(super) fn is_stopped(&self) -> bool {
        self.answer.is_some()
    }

    /// Returns the page that the agent is on.
    pub(super) fn live_page(&self) -> Option<LivePage> {
        self.browser.current_session().map(|(cdp, session)| LivePage::Tab { cdp, session })
    }

    /// Whether the browser can no longer be used.
    pub(super) fn is_lost(&self) -> bool {
        self.browser.is_lost()
    }

    /// Returns the reason why the browser is lost.
    pub(super) fn fault(&self) -> BrowserFault {
        self.browser.loss()
    }

    /// Closes the browser and its port.
    pub(super) async fn close(self) {
        drop(self.browser);
        self.proxy.close().await;
    }
}
