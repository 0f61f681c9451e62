//! Locators on what is up: the instance as it is at this moment, and the proof that it was still the same afterwards.

use std::collections::BTreeMap;

use super::instance::{AskError, InstanceHandle, Report};
use super::shared::Shared;
use crate::accounts::Place;
use crate::domain::ids::ServiceName;
use crate::domain::locator::Locator;
use crate::engine::EngineHandle;
use crate::launch::Incarnation;
use crate::locators::{LocateError, Located, Scene};

/// Why nothing was found.
#[derive(Debug, thiserror::Error)]
pub enum LocatingError {
    /// The instance does not serve.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// The site was reset while it was looked at, so what was found may be of either time.
    #[error("{0} was reset while it was looked at")]
    Reset(String),
    /// The locator found nothing.
    #[error(transparent)]
    Locate(#[from] LocateError),
}

/// What whoever asks has in mind.
#[derive(Debug, Clone, Default)]
pub struct Look {
    /// The path of the page that a locator without one means.
    pub page: Option<String>,
    /// The CDP address of the agent's browser.
    pub live: Option<String>,
}

/// Runs a locator on an instance. `host` is the host name of public URLs.
pub async fn locate(
    shared: &Shared,
    handle: &InstanceHandle,
    host: &str,
    locator: &Locator,
    look: Look,
) -> Result<Located, LocatingError> {
    let report = handle.report();
    let incarnation = incarnation(&report);
    let entry = incarnation.socket(&handle.site.entry.service, handle.site.entry.port);
    let Some(entry) = entry.filter(|_| report.state.serves()) else {
        return Err(AskError::NotUp { instance: handle.id.to_string(), state: report.state.name() }.into());
    };
    let scene = Scene {
        site: &handle.site,
        place: Place { host: host.to_owned(), port: handle.site.public.port, entry },
        incarnation: &incarnation,
        instance: handle.id.to_string(),
        page: look.page,
        live: look.live,
    };
    let found = shared.locators.locate(&scene, locator).await;
    if handle.report().generation != report.generation {
        return Err(LocatingError::Reset(handle.site.name.to_string()));
    }
    Ok(found?)
}

/// The containers that a report names.
fn incarnation(report: &Report) -> Incarnation {
    let mut containers = BTreeMap::new();
    let mut addresses = BTreeMap::new();
    for (service, (id, address)) in &report.containers {
        let Ok(service) = ServiceName::parse(service) else { continue };
        containers.insert(service.clone(), EngineHandle(id.clone()));
        addresses.extend(address.map(|address| (service, address)));
    }
    Incarnation { generation: report.generation, containers, addresses, started_at: report.since.as_second() }
}
