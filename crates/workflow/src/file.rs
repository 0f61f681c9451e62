//! The file of a workflow.

use std::collections::BTreeMap;

use arenad_api::browser::{PageElement, REDACTED};
use serde::{Deserialize, Serialize};

/// A recorded way to do a task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workflow {
    /// The `index` of the task whose key nodes the steps reach.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub task: String,
    /// The instruction of the task.
    pub title: String,
    /// The sites of an episode that the workflow runs in.
    pub sites: Vec<String>,
    /// The accounts that are signed in from the beginning: for each site, the name of an account or null for the first.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub accounts: BTreeMap<String, Option<String>>,
    /// The address that is opened first.
    pub start: String,
    /// The actions, in order.
    pub steps: Vec<WorkflowStep>,
    /// The address after the last action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// The key nodes that the recording reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reached: Vec<ReachedNode>,
}

/// A key node that a recording reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReachedNode {
    /// The position of the node in the task, from 0.
    pub node: usize,
    /// The position of the step at which it was reached, from 0.
    pub step: usize,
}

/// An action, and the page that it was performed on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkflowStep {
    /// The kind of the action.
    pub action: StepAction,
    /// The address of the page before the action.
    pub url: String,
    /// The element of the action; null without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub element: Option<PageElement>,
    /// The typed text, the chosen option, the pressed keys, the opened address, or the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// The kind of an action, by its name in WebArena's notation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepAction {
    /// Clicks the centre of the element.
    Click,
    /// Moves the mouse to the element.
    Hover,
    /// Types the value into the element.
    Type,
    /// Chooses the option `value` of the element.
    Select,
    /// Presses the keys `value`, such as `Enter`.
    Press,
    /// Opens the address `value`.
    Goto,
    /// Goes back in the history.
    GoBack,
    /// Ends the task with the answer `value`.
    Stop,
}

/// A file that is not a workflow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkflowError {
    /// The file is not JSON, or lacks a field.
    #[error("the workflow is malformed: {0}")]
    Malformed(String),
    /// A step lacks its element or its value.
    #[error("step {step} of the workflow has no `{field}`, which the action `{action}` needs")]
    Missing {
        /// The number of the step, from 1.
        step: usize,
        /// `element` or `value`.
        field: &'static str,
        /// The name of the action.
        action: &'static str,
    },
}

impl StepAction {
    /// Returns the name of the action in WebArena's notation.
    pub fn name(self) -> &'static str {
        match self {
            Self::Click => "click",
            Self::Hover => "hover",
            Self::Type => "type",
            Self::Select => "select",
            Self::Press => "press",
            Self::Goto => "goto",
            Self::GoBack => "go_back",
            Self::Stop => "stop",
        }
    }

    /// Whether the action is performed on an element.
    pub fn has_element(self) -> bool {
        matches!(self, Self::Click | Self::Hover | Self::Type | Self::Select)
    }

    fn has_value(self) -> bool {
        matches!(self, Self::Type | Self::Select | Self::Press | Self::Goto | Self::Stop)
    }
}

impl Workflow {
    /// Reads the file of a workflow.
    ///
    /// Errors: names the field or the step at fault.
    pub fn read(text: &str) -> Result<Self, WorkflowError> {
        let workflow: Self = serde_json::from_str(text).map_err(|error| WorkflowError::Malformed(error.to_string()))?;
        for (step, WorkflowStep { action, element, value, .. }) in (1..).zip(&workflow.steps) {
            let missing = |field| WorkflowError::Missing { step, field, action: action.name() };
            if action.has_element() && element.is_none() {
                return Err(missing("element"));
            }
            if action.has_value() && value.is_none() {
                return Err(missing("value"));
            }
        }
        Ok(workflow)
    }

    /// Returns the position of the first step that typed a password. Recordings do not keep it, so that the workflow cannot
    /// be replayed.
    pub fn secret_step(&self) -> Option<usize> {
        let is_secret =
            |step: &WorkflowStep| step.action == StepAction::Type && step.value.as_deref() == Some(REDACTED);
        self.steps.iter().position(is_secret)
    }

    /// Returns the step at which the recording reached a key node.
    pub fn step_of(&self, node: usize) -> Option<usize> {
        self.reached.iter().find(|reached| reached.node == node).map(|reached| reached.step)
    }
}

impl WorkflowStep {
    /// Returns the action in WebArena's notation. Its element has the id `1`.
    pub fn notation(&self) -> String {
        let value = self.value.as_deref().unwrap_or_default();
        match self.action {
            StepAction::Click | StepAction::Hover => format!("{} [1]", self.action.name()),
            // The last field says that Enter is not pressed afterwards.
            StepAction::Type => format!("type [1] [{value}] [0]"),
            StepAction::Select => format!("select [1] [{value}]"),
            StepAction::Press | StepAction::Goto | StepAction::Stop => format!("{} [{value}]", self.action.name()),
            StepAction::GoBack => "go_back".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_written_in_the_notation_of_agents() {
        let step = |action, value: &str| {
            let value = (!value.is_empty()).then(|| value.to_owned());
            WorkflowStep { action, url: String::new(), element: None, value }.notation()
        };
        assert_eq!(step(StepAction::Click, ""), "click [1]");
        assert_eq!(step(StepAction::Type, "red shoes"), "type [1] [red shoes] [0]");
        assert_eq!(step(StepAction::Select, "Newest"), "select [1] [Newest]");
        assert_eq!(step(StepAction::Press, "Enter"), "press [Enter]");
        assert_eq!(step(StepAction::Stop, "$5"), "stop [$5]");
        assert_eq!(step(StepAction::GoBack, ""), "go_back");
    }

    #[test]
    fn a_typed_password_is_noticed() {
        let step = |action, value: &str| WorkflowStep {
            action,
            url: String::new(),
            element: None,
            value: Some(value.to_owned()),
        };
        let workflow = |steps| Workflow { steps, ..Workflow::default() };
        let steps = vec![step(StepAction::Type, "ann"), step(StepAction::Type, "[redacted]")];
        assert_eq!(workflow(steps).secret_step(), Some(1));
        assert_eq!(workflow(vec![step(StepAction::Stop, "[redacted]")]).secret_step(), None);
    }

    #[test]
    fn a_step_without_what_its_action_needs_is_named() {
        let workflow = |step: &str| {
            let text = format!(r#"{{"title": "t", "sites": ["s"], "start": "http://s/", "steps": [{step}]}}"#);
            Workflow::read(&text).map_err(|error| error.to_string())
        };
        let element = r#""element": {"selector": "a", "tag": "a"}"#;
        assert!(workflow(&format!(r#"{{"action": "click", "url": "u", {element}}}"#)).is_ok());
        let said = workflow(r#"{"action": "click", "url": "u"}"#).expect_err("it has no element");
        assert_eq!(said, "step 1 of the workflow has no `element`, which the action `click` needs");
        let said = workflow(&format!(r#"{{"action": "type", "url": "u", {element}}}"#)).expect_err("it has no text");
        assert!(said.contains("no `value`"), "{said}");
        let said = workflow(r#"{"action": "clack", "url": "u"}"#).expect_err("there is no such action");
        assert!(said.contains("unknown variant `clack`") && said.contains("line 1"), "{said}");
    }
}
