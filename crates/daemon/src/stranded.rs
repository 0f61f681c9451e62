//! Environments that should be up and that a new daemon could not restore: another process holds a port now, or the
//! stored definition is no longer valid. Their containers are left unchanged. The daemon tries again every minute and
//! `arenad up` at once; `arenad down` removes them like any others.

use std::collections::BTreeMap;
use std::sync::Mutex;

use jiff::Timestamp;

use super::environments::EnvironmentError;
use arenad_model::error::describe;
use arenad_model::instance::InstanceFailure;
use arenad_model::site::Environment;
use arenad_store::StoredInstance;

/// An environment that could not be restored.
#[derive(Debug, Clone)]
pub(crate) struct Stranded {
    /// The name of the environment.
    pub name: String,
    /// The definition of the environment, if it is still valid.
    pub definition: Option<Environment>,
    /// The rows of the sites that should be up.
    pub instances: Vec<StoredInstance>,
    /// The reason why the environment could not be restored.
    pub trouble: InstanceFailure,
    /// The time when restoring first failed for this reason.
    pub since: Timestamp,
}

impl Stranded {
    /// Returns a stranded environment with the error that prevents its restoration.
    pub(crate) fn new(
        name: &str,
        definition: Option<Environment>,
        instances: Vec<StoredInstance>,
        error: &EnvironmentError,
    ) -> Self {
        let first = match error {
            EnvironmentError::PortsTaken(_) => "stop what holds the port".to_owned(),
            EnvironmentError::Definition(_) => format!("correct environments/{name}.yaml"),
            _ => "see to the cause".to_owned(),
        };
        Self {
            name: name.to_owned(),
            definition,
            instances,
            trouble: InstanceFailure {
                reason: describe(error),
                hint: format!("{first}, then `arenad up {name}`; `arenad down` removes what is left of it"),
            },
            since: Timestamp::now(),
        }
    }
}

impl Stranded {
    /// Returns a stranded environment whose containers are on an engine that is not in use.
    pub(crate) fn on_other_engine(
        name: &str,
        definition: Option<Environment>,
        instances: Vec<StoredInstance>,
        endpoint: &str,
    ) -> Self {
        Self {
            name: name.to_owned(),
            definition,
            instances,
            trouble: InstanceFailure {
                reason: format!("its containers are on another engine, which was at {endpoint}"),
                hint: format!(
                    "start arenad with `--engine {endpoint}`, or `arenad up {name}` to have it on this engine"
                ),
            },
            since: Timestamp::now(),
        }
    }
}

/// The stranded environments, by name.
#[derive(Debug, Default)]
pub(crate) struct AllStranded(Mutex<BTreeMap<String, Stranded>>);

impl AllStranded {
    fn with<T>(&self, change: impl FnOnce(&mut BTreeMap<String, Stranded>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// Adds or updates a stranded environment; returns whether the reason is new.
    pub(crate) fn keep(&self, stranded: Stranded) -> bool {
        self.with(|all| match all.get(&stranded.name) {
            Some(known) if known.trouble == stranded.trouble => false,
            _ => {
                all.insert(stranded.name.clone(), stranded);
                true
            }
        })
    }

    /// Removes an environment that is up again or gone.
    pub(crate) fn forget(&self, name: &str) {
        self.with(|all| all.remove(name));
    }

    /// Returns the stranded environment with the given name.
    pub(crate) fn get(&self, name: &str) -> Option<Stranded> {
        self.with(|all| all.get(name).cloned())
    }

    /// Returns all stranded environments, ordered by name.
    pub(crate) fn list(&self) -> Vec<Stranded> {
        self.with(|all| all.values().cloned().collect())
    }
}
