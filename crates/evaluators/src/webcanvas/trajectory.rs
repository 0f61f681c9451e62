//! Stored trajectories: arenad's own form, and the result files of WebCanvas.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::progress::Observation;

/// A file without the form of a trajectory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the trajectory is malformed at `{place}`; expected {expected}")]
pub struct TrajectoryError {
    /// The field at fault.
    pub place: String,
    /// Description of the expected content.
    pub expected: String,
}

/// The steps of an agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trajectory {
    /// The observations of the steps, in order.
    pub steps: Vec<Observation>,
    /// The state after the last action, which the published code does not look at.
    pub after: Option<Observation>,
    /// Whether the agent said that it was done.
    pub declared_done: bool,
    /// The cost of the agent's tokens in US dollars.
    pub cost_usd: f64,
    /// The `status` that the run recorded.
    pub status: Option<String>,
    /// After each step, the score that the run recorded, in the form `reached / all`.
    pub recorded: Vec<String>,
}

/// A trajectory in the form of arenad.
#[derive(Debug, Serialize, Deserialize)]
struct StoredTrajectory {
    steps: Vec<StoredStep>,
    after: Option<StoredStep>,
    #[serde(default)]
    declared_done: bool,
    #[serde(default)]
    cost_usd: f64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct StoredStep {
    url: String,
    html: Option<String>,
    selector: Option<String>,
    element_value: Option<String>,
    text_content: Option<String>,
}

impl From<StoredStep> for Observation {
    fn from(step: StoredStep) -> Self {
        let StoredStep { url, html, selector, element_value, text_content } = step;
        Self { url, html, selector, element_value, text_content }
    }
}

impl Trajectory {
    /// Reads a trajectory: an object with `steps`, or a result file of WebCanvas with `step_list`.
    ///
    /// # Errors
    ///
    /// Returns an error that names the field at fault.
    pub fn read(text: &str) -> Result<Self, TrajectoryError> {
        let wrong = |place: &str, expected: String| TrajectoryError { place: place.to_owned(), expected };
        let value: Value = serde_json::from_str(text).map_err(|error| wrong("the file", format!("JSON ({error})")))?;
        if let Some(steps) = value["step_list"].as_array() {
            return Ok(Self::of_result(&value, steps));
        }
        let stored: StoredTrajectory = serde_json::from_value(value)
            .map_err(|error| wrong("steps", format!("a list of steps, each with `url` ({error})")))?;
        let steps = stored.steps.into_iter().map(Observation::from).collect();
        let (declared_done, cost_usd) = (stored.declared_done, stored.cost_usd);
        let after = stored.after.map(Observation::from);
        Ok(Self { steps, after, declared_done, cost_usd, status: None, recorded: Vec::new() })
    }

    /// A result file has the address after each action, and no page. The address that an action saw is the one before it.
    fn of_result(result: &Value, list: &[Value]) -> Self {
        let text = |step: &Value, name: &str| step[name].as_str().filter(|text| *text != "None").map(str::to_owned);
        let status = text(result, "status");
        let mut steps = Vec::new();
        let mut before = String::new();
        for step in list {
            let after = text(step, "step_url").unwrap_or_default();
            steps.push(Observation {
                url: std::mem::replace(&mut before, after),
                html: None,
                selector: text(step, "selector"),
                element_value: text(step, "element_value"),
                text_content: text(step, "text_content"),
            });
        }
        let recorded = list.iter().filter_map(|step| text(step, "score")).collect();
        let after = Some(Observation { url: before, ..Observation::default() });
        let declared_done = status.as_deref() == Some("llm_finished");
        Self { steps, after, declared_done, cost_usd: 0.0, status, recorded }
    }
}
