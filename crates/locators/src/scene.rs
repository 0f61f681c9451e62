//! The instance and the context in which a locator runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::LocateError;
use super::js::LivePage;
use arenad_accounts::VisitAddress;
use arenad_engine::EngineHandle;
use arenad_launch::Incarnation;
use arenad_model::ids::ServiceName;
use arenad_model::site::{Account, Database, Site};

/// One instance of a site in its current generation, and the caller's options for one locator.
#[derive(Debug, Clone)]
pub struct Scene<'a> {
    /// The site to which the instance belongs.
    pub site: &'a Site,
    /// The site's public address and its entry.
    pub place: VisitAddress,
    /// The containers of the current generation.
    pub incarnation: &'a Incarnation,
    /// Host folders that are mounted into the containers, by service and path in the container.
    pub folders: BTreeMap<(ServiceName, String), PathBuf>,
    /// Id of the instance, for evidence.
    pub instance: String,
    /// Path of the page that [`arenad_model::locator::JsPage::Given`] means; `None` means the path of the site's URL.
    pub page: Option<String>,
    /// The page of the agent.
    pub live: Option<LivePage>,
    /// Traffic of the agent's browser, as the text of a HAR.
    pub traffic: Option<&'a str>,
}

impl Scene<'_> {
    pub(super) fn database(&self, name: Option<&str>) -> Result<&Database, LocateError> {
        let databases = &self.site.databases;
        let known = || {
            let names: Vec<&str> = databases.keys().map(String::as_str).collect();
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        };
        match name {
            Some(name) => databases.get(name).ok_or_else(|| {
                LocateError::Unknown(format!("{} has no database `{name}`; it has {}", self.site.name, known()))
            }),
            None if let Some(only) = self.site.only_database() => Ok(only),
            None if databases.is_empty() => Err(LocateError::Unknown(format!(
                "{} declares no database that `sql:` could ask: `databases` of the site in the environment file",
                self.site.name
            ))),
            None => Err(LocateError::Unknown(format!(
                "`sql:` does not say which database of {} it means: {}; write `sql(NAME): …`",
                self.site.name,
                known()
            ))),
        }
    }

    pub(super) fn account(&self, name: &str) -> Result<&Account, LocateError> {
        self.site.accounts.iter().find(|account| account.name == name).ok_or_else(|| {
            let known: Vec<&str> = self.site.accounts.iter().map(|account| account.name.as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            LocateError::Unknown(format!("{} has no account `{name}`; it has {known}", self.site.name))
        })
    }

    /// Resolves a path in a container to a mounted host folder and the remaining path below it.
    pub(super) fn on_host<'p>(&self, service: &ServiceName, path: &'p str) -> Option<(&Path, &'p str)> {
        self.folders.iter().find_map(|((of, mounted), folder)| {
            let below = path.strip_prefix(mounted.as_str())?.strip_prefix('/')?;
            (of == service).then_some((folder.as_path(), below))
        })
    }

    /// Returns the container of a service; `None` means the service of the site's entry.
    pub(super) fn container(&self, service: Option<&str>) -> Result<(&ServiceName, &EngineHandle), LocateError> {
        let name = service.unwrap_or(self.site.entry.service.as_str());
        let spec = self.site.services.iter().find(|spec| spec.name.as_str() == name).ok_or_else(|| {
            let known: Vec<&str> = self.site.services.iter().map(|spec| spec.name.as_str()).collect();
            LocateError::Unknown(format!("{} has no service `{name}`; it has {}", self.site.name, known.join(", ")))
        })?;
        let handle = self.incarnation.containers.get(&spec.name);
        handle
            .map(|handle| (&spec.name, handle))
            .ok_or_else(|| LocateError::Unavailable(format!("{name} has no container")))
    }
}
