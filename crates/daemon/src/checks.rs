//! Native tasks on the sites that are up: capturing values when an episode begins, and reading values when it ends.
//!
//! Captured values belong to a generation of each site. If a site was reset since, its state says nothing about the
//! agent; the check is then inconclusive, never failed.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use tokio::time::Instant;

use super::answers::origin;
use super::locate::{self, LocateOptions, LocatingError};
use arenad_evaluators::native::{self, Episode, ReadingOutcome, Sight};
use arenad_instance::shared::SharedParts;
use arenad_instance::{AskError, InstanceHandle};
use arenad_locators::js::LivePage;
use arenad_locators::{LocateError, LocatorReading};
use arenad_model::ids::SiteName;
use arenad_model::instance::InstanceId;
use arenad_model::locator::{Arguments, JsLocator, JsPage, Locator, LocatorKind, Value};
use arenad_model::snapshot::SnapshotId;
use arenad_model::task::{Bound, Reading, Task};
use arenad_verdict::Report;

/// The number of readings of one check that run at once. More would only queue: statements at the site's server, pages
/// at the browser.
const AT_ONCE: usize = 4;

/// Captures and checks the values of a task on the sites of one environment.
pub(crate) struct TaskChecker<'a> {
    /// The state that the daemon's parts share.
    pub shared: &'a SharedParts,
    /// The sites of the environment that are up.
    pub handles: &'a [InstanceHandle],
    /// The host name in public URLs.
    pub host: &'a str,
    /// The page of the agent.
    pub live: Option<LivePage>,
}

/// The reason why an episode cannot begin.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BeginError {
    /// A site does not serve.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// The environment has the site, but the site was not brought up.
    #[error("{0} is not up")]
    NotUp(SiteName),
    /// A value could not be captured.
    #[error("capture `{name}`")]
    Capture {
        /// The name of the value.
        name: String,
        /// The error of the locator.
        #[source]
        cause: LocatingError,
    },
    /// A site was reset while values were captured.
    #[error("{0} was reset while values were captured")]
    Reset(SiteName),
}

/// The state of the sites at the beginning of an episode.
#[derive(Debug)]
pub(crate) struct Beginning {
    /// The task's sites, with instance, generation and snapshot.
    pub sites: Vec<(SiteName, SiteGeneration)>,
    /// The captured values, by name.
    pub values: Vec<(String, LocatorReading)>,
}

/// The generation that a site serves at the moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SiteGeneration {
    /// The id of the instance.
    pub instance: InstanceId,
    /// The generation that serves.
    pub generation: u64,
    /// The id of the snapshot that the generation started from.
    pub snapshot: Option<SnapshotId>,
}

/// The facts about an episode that are known when it is over.
#[derive(Debug, Clone)]
pub(crate) struct EpisodeEnd {
    /// The answer that the agent gave.
    pub answer: String,
    /// The URL at which the agent ended, if it is known.
    pub url: Option<String>,
    /// The reason why the URL is unknown although the browser was asked.
    pub no_url: Option<String>,
    /// The generation of each site at the beginning of the episode, if it is known.
    pub generations: BTreeMap<String, u64>,
    /// The values captured at the beginning, by name.
    pub captured: BTreeMap<String, Value>,
}

impl EpisodeEnd {
    /// Returns the facts that the evaluator is given.
    pub(crate) fn episode(&self) -> Episode<'_> {
        let (url, no_url) = (self.url.as_deref(), self.no_url.as_deref());
        Episode { answer: &self.answer, url, no_url, captured: &self.captured }
    }
}

impl TaskChecker<'_> {
    /// Captures the values that a task's check will need.
    pub(crate) async fn begin(&self, task: &Task) -> Result<Beginning, BeginError> {
        let sites = task.sites.iter().map(|site| Ok((site.clone(), self.standing(site)?)));
        let sites = sites.collect::<Result<Vec<_>, BeginError>>()?;
        let looks = task.before.iter().map(|(name, reading)| async move {
            let captured = self.read(reading, &Arguments::default()).await;
            captured.map(|located| (name.clone(), located)).map_err(|trouble| match trouble {
                ValueFailure::Locating(cause) => BeginError::Capture { name: name.clone(), cause },
                ValueFailure::NotUp(site) => BeginError::NotUp(site),
            })
        });
        let looks: Vec<_> = looks.collect();
        let looks: Vec<Result<_, BeginError>> = stream::iter(looks).buffered(AT_ONCE).collect().await;
        let values = looks.into_iter().collect::<Result<Vec<_>, BeginError>>()?;
        for (site, before) in &sites {
            if self.standing(site)?.generation != before.generation {
                return Err(BeginError::Reset(site.clone()));
            }
        }
        Ok(Beginning { sites, values })
    }

    /// Reads every value that the verdict depends on, and judges. Returns the readings together with the report.
    pub(crate) async fn check(&self, task: &Task, ended: &EpisodeEnd) -> (Report, Vec<Sight>) {
        // Without a recorded beginning, all readings must at least come from the same generation.
        let mut generations = ended.generations.clone();
        for site in &task.sites {
            if let Ok(standing) = self.standing(site) {
                generations.entry(site.to_string()).or_insert(standing.generation);
            }
        }
        let texts = ended.captured.iter().filter_map(|(name, value)| Some((name.clone(), value.text()?)));
        let captured = Arguments(texts.collect());
        let (captured, generations) = (&captured, &generations);
        let looks = native::readings(task).into_iter().map(|reading| async move {
            let begun = Instant::now();
            let seen = self.look(reading, captured, generations).await;
            Sight { reading: reading.clone(), seen, took: begun.elapsed() }
        });
        let looks: Vec<_> = looks.collect();
        let sights: Vec<Sight> = stream::iter(looks).buffered(AT_ONCE).collect().await;
        (native::judge(&task.criterion, &ended.episode(), &sights), sights)
    }

    /// Returns the URL of the page that the agent's browser shows; `None` if its page is not known.
    pub(crate) async fn agents_url(&self) -> Result<Option<String>, LocatingError> {
        let Some(handle) = self.handles.first().filter(|_| self.live.is_some()) else { return Ok(None) };
        let js = JsLocator {
            expression: "location.href".to_owned(),
            page: JsPage::Live,
            account: None,
            wait_for: None,
            prepare: Vec::new(),
        };
        let locator = Locator { kind: LocatorKind::Js(js), timeout: Some(Duration::from_secs(10)) };
        let located = self.locate(handle, &locator, None).await?;
        Ok(located.value.text())
    }

    async fn look(
        &self,
        reading: &Reading,
        captured: &Arguments,
        generations: &BTreeMap<String, u64>,
    ) -> ReadingOutcome {
        if let Some(missing) = reading.captured.iter().find(|name| captured.get(name).is_none()) {
            return ReadingOutcome::Unsupported(format!("the captured value `{missing}` is none that can be bound"));
        }
        let site = &reading.site;
        let was_reset = || ReadingOutcome::Unavailable(format!("{site} was reset since the episode began"));
        let is_current = |generation| generations.get(site.as_str()).is_none_or(|begun| *begun == generation);
        if let Ok(standing) = self.standing(site)
            && !is_current(standing.generation)
        {
            return was_reset();
        }
        match self.read(reading, captured).await {
            Ok(located) if is_current(located.evidence.generation) => ReadingOutcome::Value(located.value),
            Ok(_) => was_reset(),
            Err(ValueFailure::NotUp(site)) => ReadingOutcome::Unavailable(format!("{site} is not up")),
            Err(ValueFailure::Locating(LocatingError::Locate(LocateError::Threw(reason)))) => {
                ReadingOutcome::Nothing(reason)
            }
            Err(ValueFailure::Locating(error)) => match &error {
                LocatingError::Ask(_) | LocatingError::Reset(_) => ReadingOutcome::Unavailable(error.to_string()),
                LocatingError::Locate(cause) if cause.is_environment_fault() => {
                    ReadingOutcome::Unavailable(error.to_string())
                }
                LocatingError::Locate(_) => ReadingOutcome::Unsupported(error.to_string()),
            },
        }
    }

    async fn read(&self, reading: &Reading, captured: &Arguments) -> Result<LocatorReading, ValueFailure> {
        let unknown = |error: arenad_model::helper::WrongArguments| LocateError::Unknown(error.to_string());
        let Bound { site, locator, helper, page } =
            reading.bind(captured).map_err(|error| ValueFailure::Locating(LocatingError::Locate(unknown(error))))?;
        let handle = self.handle(&site).ok_or(ValueFailure::NotUp(site))?;
        let mut located = self.locate(handle, &locator, page).await.map_err(ValueFailure::Locating)?;
        if let Some(helper) = helper {
            located.value = helper.gives(located.value, &origin(handle, self.host));
        }
        Ok(located)
    }

    async fn locate(
        &self,
        handle: &InstanceHandle,
        locator: &Locator,
        page: Option<String>,
    ) -> Result<LocatorReading, LocatingError> {
        let look = LocateOptions { page, live: self.live.clone(), traffic: None };
        locate::locate(self.shared, handle, self.host, locator, look).await
    }

    fn handle(&self, site: &SiteName) -> Option<&InstanceHandle> {
        self.handles.iter().find(|handle| handle.site.name == *site)
    }

    fn standing(&self, site: &SiteName) -> Result<SiteGeneration, BeginError> {
        let handle = self.handle(site).ok_or_else(|| BeginError::NotUp(site.clone()))?;
        let report = handle.report();
        if !report.state.serves() {
            return Err(AskError::NotUp { instance: handle.id.clone(), state: report.state.name() }.into());
        }
        Ok(SiteGeneration { instance: handle.id.clone(), generation: report.generation, snapshot: report.snapshot })
    }
}

/// The reason why a value could not be read.
enum ValueFailure {
    NotUp(SiteName),
    Locating(LocatingError),
}
