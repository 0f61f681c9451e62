//! The browser in which a workflow is replayed: that of an episode, or one of this process for live sites.

use arenad_agent_browser::{ActedPage, BlankBrowser, BrowserPool, BrowserSettings, EpisodeBrowser, ObservationKind};
use arenad_api::browser::{BrowserResetRequest, BrowserStep, BrowserStepRequest, PageElements, PageSnapshot};
use arenad_api::trajectory::{Trajectory, TrajectoryStep};
use arenad_evaluators::webcanvas::Observation;
use arenad_workflow::Workflow;
use reqwest::Method;
use url::form_urlencoded;

use crate::cli::client::ApiClient;
use crate::cli::failure::CommandFailure;

/// A browser that has opened the first page of a workflow.
pub enum WorkflowBrowser<'a> {
    /// The daemon drives it.
    Episode {
        client: &'a ApiClient,
        /// The address of the episode.
        path: String,
    },
    /// This process drives it.
    Live {
        browser: Box<EpisodeBrowser>,
        seen: Vec<Observation>,
        /// The folder of the browser's process, which goes with it.
        _folder: tempfile::TempDir,
    },
}

/// The reason why the first page was not shown.
pub type Unreachable = Option<String>;

impl<'a> WorkflowBrowser<'a> {
    /// Opens the first page in the browser of an episode. `tells_steps`: whether the daemon records the steps.
    pub async fn of_episode(
        client: &'a ApiClient,
        path: String,
        workflow: &Workflow,
        tells_steps: bool,
    ) -> Result<(Self, Unreachable), CommandFailure> {
        let wanted = BrowserResetRequest {
            url: Some(workflow.start.clone()),
            accounts: workflow.accounts.clone(),
            trajectory: tells_steps,
            ..BrowserResetRequest::default()
        };
        let opened: BrowserStep = client.send(Method::POST, &format!("{path}/browser/reset"), &wanted).await?;
        Ok((Self::Episode { client, path }, opened.error.map(|error| error.message)))
    }

    /// Opens the first page directly, in a browser without cookies.
    pub async fn live(workflow: &Workflow) -> Result<(Self, Unreachable), CommandFailure> {
        let folder = tempfile::Builder::new().prefix("arenad-workflow-").tempdir()?;
        let pool = BrowserPool::new(folder.path().to_owned());
        let seat = pool.seat().await.map_err(|fault| {
            CommandFailure::from(anyhow::Error::from(fault)).hint("`arenad doctor` examines the browser of the host")
        })?;
        let blank = BlankBrowser::make(seat, "direct://").await.map_err(anyhow::Error::from)?;
        let observation = ObservationKind::Nothing;
        let settings = BrowserSettings { observation, tells_acted: true, ..BrowserSettings::default() };
        let opened = EpisodeBrowser::open(blank, settings, Some(&workflow.start)).await;
        let (browser, error) = opened.map_err(anyhow::Error::from)?;
        let browser = Self::Live { browser: Box::new(browser), seen: Vec::new(), _folder: folder };
        Ok((browser, error.map(|error| error.to_string())))
    }

    /// Returns the elements of the current page.
    pub async fn elements(&self) -> Result<PageElements, CommandFailure> {
        match self {
            Self::Episode { client, path } => client.json(Method::GET, &format!("{path}/browser/elements")).await,
            Self::Live { browser, .. } => Ok(browser.listed().await.map_err(anyhow::Error::from)?),
        }
    }

    /// Returns the whole content of the current page, and the node of the element with a selector.
    pub async fn snapshot(&self, selector: Option<&str>) -> Result<PageSnapshot, CommandFailure> {
        match self {
            Self::Episode { client, path } => {
                let mut query = form_urlencoded::Serializer::new(String::new());
                query.extend_pairs(selector.map(|selector| ("selector", selector)));
                client.json(Method::GET, &format!("{path}/browser/snapshot?{}", query.finish())).await
            }
            Self::Live { browser, .. } => Ok(browser.snapshot(selector).await.map_err(anyhow::Error::from)?),
        }
    }

    /// Performs an action. Returns the reason why it failed, if it did.
    pub async fn step(&mut self, action: String, selector: Option<String>) -> Result<Option<String>, CommandFailure> {
        match self {
            Self::Episode { client, path } => {
                let request = BrowserStepRequest { action, selector };
                let stepped: BrowserStep = client.send(Method::POST, &format!("{path}/browser/step"), &request).await?;
                Ok(stepped.error.map(|error| error.message))
            }
            Self::Live { browser, seen, .. } => {
                let outcome = match &selector {
                    Some(selector) => browser.step_on(&action, selector).await,
                    None => browser.step(&action).await,
                };
                let outcome = outcome.map_err(anyhow::Error::from)?;
                if let Some(ActedPage { url, html, selector, value }) = outcome.acted {
                    let text_content = outcome.answer;
                    seen.push(Observation { url, html, selector, element_value: value, text_content });
                }
                Ok(outcome.error.map(|error| error.to_string()))
            }
        }
    }

    /// Returns the steps so far, and the page after the last one.
    pub async fn seen(self) -> Result<Vec<Observation>, CommandFailure> {
        match self {
            Self::Episode { client, path } => {
                let told: Trajectory = client.json(Method::GET, &format!("{path}/observations")).await?;
                let mut seen: Vec<Observation> = told.steps.into_iter().map(observation).collect();
                seen.extend(told.after.map(observation));
                Ok(seen)
            }
            Self::Live { browser, mut seen, .. } => {
                let last = browser.listed().await.map_err(anyhow::Error::from)?;
                seen.push(Observation { url: last.url, ..Observation::default() });
                Ok(seen)
            }
        }
    }
}

fn observation(step: TrajectoryStep) -> Observation {
    let TrajectoryStep { url, html, selector, element_value, text_content, done: _ } = step;
    Observation { url, html, selector, element_value, text_content }
}
