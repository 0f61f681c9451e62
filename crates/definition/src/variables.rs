//! The variables that a definition may use, and the record of those that it did use.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use arenad_model::site::Secret;

/// A variable that a definition used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariableUse {
    /// Name of the variable, without `$`.
    pub name: String,
    /// The value that was put in; hidden from debug output, because passwords travel this way.
    pub value: Secret,
    /// Where the value came from.
    pub origin: VariableOrigin,
}

/// Where a variable's value came from.
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

/// The variables in reach, the caller's before those of `.env`, and these before what choices stand for.
#[derive(Debug)]
pub(crate) struct Variables<'a> {
    given: &'a BTreeMap<String, String>,
    dotenv: RefCell<BTreeMap<String, String>>,
    chosen: RefCell<BTreeMap<String, (String, VariableOrigin)>>,
    used: RefCell<BTreeSet<(String, VariableOrigin, String)>>,
}

impl<'a> Variables<'a> {
    pub(crate) fn new(given: &'a BTreeMap<String, String>, dotenv: BTreeMap<String, String>) -> Self {
        Self { given, dotenv: RefCell::new(dotenv), chosen: RefCell::default(), used: RefCell::default() }
    }

    /// The value of a variable; its use is recorded.
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

    /// Adds a variable of `.env`, unless the caller has one of that name.
    pub(crate) fn define(&self, name: String, value: String) {
        self.dotenv.borrow_mut().insert(name, value);
    }

    /// Adds a variable that a choice stands for, or the choice's own with its default; the caller's and those of
    /// `.env` come first.
    pub(crate) fn choose(&self, name: &str, value: String, origin: VariableOrigin) {
        self.chosen.borrow_mut().insert(name.to_owned(), (value, origin));
    }

    /// Records that a definition fell back to its own default.
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
