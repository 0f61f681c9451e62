//! Running locators on serving instances, with a check that the generation was still the same afterwards.

use super::traffic::{self, SiteTraffic};
use arenad_accounts::VisitAddress;
use arenad_gateway::RequestHead;
use arenad_instance::shared::SharedParts;
use arenad_instance::{AskError, InstanceHandle};
use arenad_locators::js::LivePage;
use arenad_locators::{LocateError, LocatorReading, Scene};
use arenad_model::locator::{Locator, LocatorKind, TraceLocator};

/// The reason why a locator returned no value.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LocatingError {
    /// The instance does not serve.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// The site was reset during the reading, so the value may come from either generation.
    #[error("{0} was reset while it was looked at")]
    Reset(String),
    /// The locator failed or found nothing.
    #[error(transparent)]
    Locate(#[from] LocateError),
}

/// Options of one locator request.
#[derive(Debug, Clone, Default)]
pub(crate) struct LocateOptions {
    /// The path of the page for a locator that names none.
    pub page: Option<String>,
    /// The page of the agent.
    pub live: Option<LivePage>,
    /// The traffic of the agent's browser, as the text of a HAR; `None` uses the gateway's recording.
    pub traffic: Option<String>,
}

/// Runs a locator on an instance. `host` is the host name of public URLs.
pub(crate) async fn locate(
    shared: &SharedParts,
    handle: &InstanceHandle,
    host: &str,
    locator: &Locator,
    look: LocateOptions,
) -> Result<LocatorReading, LocatingError> {
    let report = handle.report();
    let not_up = || AskError::NotUp { instance: handle.id.clone(), state: report.state.name() };
    let incarnation = report.incarnation.as_ref().filter(|_| report.state.serves()).ok_or_else(not_up)?;
    let entry = incarnation.socket(&handle.site.entry.service, handle.site.entry.port).ok_or_else(not_up)?;
    let traffic = match (look.traffic, &locator.kind) {
        (None, LocatorKind::Trace(trace)) => recorded(handle, report.generation, trace).await?,
        (given, _) => given,
    };
    let scene = Scene {
        site: &handle.site,
        place: VisitAddress { host: host.to_owned(), port: handle.site.public.port, entry },
        incarnation,
        folders: shared.state_folders(&handle.id, &handle.site, incarnation),
        instance: handle.id.to_string(),
        page: look.page,
        live: look.live,
        traffic: traffic.as_deref(),
    };
    let visit = handle.begin_visit(report.generation)?;
    let look = report.visits.run_until_cancelled(shared.locators.locate(&scene, locator));
    let found = visit.run_until_cancelled(look).await.flatten();
    // A visit that continued after the switch could reach the next generation through the same containers.
    let Some(found) = found else { return Err(LocatingError::Reset(handle.site.name.to_string())) };
    if handle.report().generation != report.generation {
        return Err(LocatingError::Reset(handle.site.name.to_string()));
    }
    Ok(found?)
}

/// Returns the recorded requests that the locator selects, as a HAR; `None` if the gateway records nothing.
async fn recorded(
    handle: &InstanceHandle,
    generation: u64,
    locator: &TraceLocator,
) -> Result<Option<String>, LocatingError> {
    let site = SiteTraffic::of(handle);
    match site.generation() {
        None => return Ok(None),
        Some(recorded) if recorded != generation => return Err(LocatingError::Reset(handle.site.name.to_string())),
        Some(_) => {}
    }
    let locator = locator.clone();
    let work = tokio::task::spawn_blocking(move || {
        let is_meant = |request: &RequestHead| {
            let url = reqwest::Url::parse(&request.url);
            url.is_ok_and(|url| locator.is_meant(request.method.as_str(), url.path(), url.query()))
        };
        traffic::har(&[site], is_meant).to_string()
    });
    let har = work.await.map_err(|error| LocateError::Failed(format!("the recording cannot be read: {error}")))?;
    Ok(Some(har))
}
