//! The variables that a definition may use, and the record of those that it did use.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use arenad_model::site::Secret;

/// A variable that a definition used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariableUse {
    /// Name of the variable, without `$`.
    pub name: String,
    /// Value of the variable. It may be a password, so debug output hides it.
    pub value: Secret,
    /// Source of the value.
    pub origin: VariableOrigin,
}

/// The source of a variable's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum VariableOrigin {
    /// The environment of the caller.
    Shell,
    /// The file `.env` beside the Compose file.
    DotEnv,
    /// The selected option of a choice.
    Choice,
    /// The default that the definition itself gives.
    Default,
}

/// The available variables. The caller's take precedence over those of `.env`, which take precedence over those of
/// choices.
#[derive(Debug)]
pub(crate) struct DefinitionVariables<'a> {
    given: &'a BTreeMap<String, String>,
    dotenv: RefCell<BTreeMap<String, String>>,
    chosen: RefCell<BTreeMap<String, (String, VariableOrigin)>>,
    used: RefCell<BTreeSet<(String, VariableOrigin, String)>>,
}

impl<'a> DefinitionVariables<'a> {
    pub(crate) fn new(given: &'a BTreeMap<String, String>, dotenv: BTreeMap<String, String>) -> Self {
        Self { given, dotenv: RefCell::new(dotenv), chosen: RefCell::default(), used: RefCell::default() }
    }

    /// Returns the value of a variable and records its use.
    pub(crate) fn look_up(&self, name: &str) -> Option<String> {
        let (value, origin) = match self.given.get(name) {
            Some(value) => (value.clone(), VariableOrigin::Shell),
            None => match self.dotenv.borrow().get(name) {
                Some(value) => (value.clone(), VariableOrigin::DotEnv),
                None => self.chosen.borrow().get(name)?.clone(),
            },
        };
        self.record(name, origin, &value);
        Some(value)
    }

    /// Adds a variable of `.env`. A variable of the caller with the same name takes precedence.
    pub(crate) fn define(&self, name: String, value: String) {
        self.dotenv.borrow_mut().insert(name, value);
    }

    /// Adds a variable that an option of a choice sets, or the choice's own variable with its default. Variables of the
    /// caller and of `.env` take precedence.
    pub(crate) fn choose(&self, name: &str, value: String, origin: VariableOrigin) {
        self.chosen.borrow_mut().insert(name.to_owned(), (value, origin));
    }

    /// Records that a definition used its own default.
    pub(crate) fn record_default(&self, name: &str, value: &str) {
        self.record(name, VariableOrigin::Default, value);
    }

    /// Discards the recorded uses. Variables that only `.env` uses do not count as used by the definition.
    pub(crate) fn forget_uses(&self) {
        self.used.borrow_mut().clear();
    }

    /// Returns the used variables, sorted by name.
    pub(crate) fn uses(&self) -> Vec<VariableUse> {
        let used = self.used.borrow();
        used.iter()
            .map(|(name, origin, value)| VariableUse {
                name: name.clone(),
                value: Secret::new(value.clone()),
                origin: *origin,
            })
            .collect()
    }

    fn record(&self, name: &str, origin: VariableOrigin, value: &str) {
        let entry = (name.to_owned(), origin, value.to_owned());
        self.used.borrow_mut().insert(entry);
    }
}
