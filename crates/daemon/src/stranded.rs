//! Environments that are wanted up and that a new daemon could not take up again: another process holds a port by now,
//! or the kept definition no longer holds. Their containers are left as they are; the daemon tries again every minute,
//! `arenad up` at once, and `arenad down` removes them like any others.

use std::collections::BTreeMap;
use std::sync::Mutex;

use jiff::Timestamp;

use super::environments::EnvironmentError;
use arenad_model::error::describe;
use arenad_model::instance::Trouble;
use arenad_model::site::Environment;
use arenad_store::StoredInstance;

/// One such environment.
#[derive(Debug, Clone)]
pub struct Stranded {
    /// Its name.
    pub name: String,
    /// Its definition, if it still holds.
    pub definition: Option<Environment>,
    /// The rows of the sites that are wanted up.
    pub instances: Vec<StoredInstance>,
    /// What is in the way.
    pub trouble: Trouble,
    /// Since when.
    pub since: Timestamp,
}

impl Stranded {
    /// Describes what is in the way.
    pub fn new(
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
            trouble: Trouble {
                reason: describe(error),
                hint: format!("{first}, then `arenad up {name}`; `arenad down` removes what is left of it"),
            },
            since: Timestamp::now(),
        }
    }
}

impl Stranded {
    /// One whose containers are on an engine that is not in use.
    pub fn on_other_engine(
        name: &str,
        definition: Option<Environment>,
        instances: Vec<StoredInstance>,
        endpoint: &str,
    ) -> Self {
        Self {
            name: name.to_owned(),
            definition,
            instances,
            trouble: Trouble {
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
pub struct AllStranded(Mutex<BTreeMap<String, Stranded>>);

impl AllStranded {
    fn with<T>(&self, change: impl FnOnce(&mut BTreeMap<String, Stranded>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// Keeps one; returns whether its trouble is news.
    pub fn keep(&self, stranded: Stranded) -> bool {
        self.with(|all| match all.get(&stranded.name) {
            Some(known) if known.trouble == stranded.trouble => false,
            _ => {
                all.insert(stranded.name.clone(), stranded);
                true
            }
        })
    }

    /// It is up again, or gone.
    pub fn forget(&self, name: &str) {
        self.with(|all| all.remove(name));
    }

    /// One by its name.
    pub fn get(&self, name: &str) -> Option<Stranded> {
        self.with(|all| all.get(name).cloned())
    }

    /// All of them.
    pub fn list(&self) -> Vec<Stranded> {
        self.with(|all| all.values().cloned().collect())
    }
}
