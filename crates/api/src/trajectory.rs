//! The JSON of the steps of an agent, by which benchmarks with key nodes judge an episode.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One step of an agent: the page before its action, and the action. The body of `POST /v1/episodes/{id}/observations`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrajectoryStep {
    /// The address of the page.
    pub url: String,
    /// The HTML of the page; null if it is not known.
    #[serde(default)]
    pub html: Option<String>,
    /// A CSS selector or an XPath of the element that the action is performed on; null without an element.
    #[serde(default)]
    pub selector: Option<String>,
    /// The text that the action types, or the label of its element.
    #[serde(default)]
    pub element_value: Option<String>,
    /// A text that the agent keeps or answers with.
    #[serde(default)]
    pub text_content: Option<String>,
    /// Whether the agent says that its task is done.
    #[serde(default)]
    pub done: bool,
}

/// The answer to `GET /v1/episodes/{id}/observations`: a trajectory as `arenad eval --benchmark webcanvas` reads it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Trajectory {
    /// The steps, in order.
    pub steps: Vec<TrajectoryStep>,
    /// The page after the last action, without its HTML; null if the daemon does not know it.
    pub after: Option<TrajectoryStep>,
    /// Whether the agent has said that its task is done.
    pub declared_done: bool,
}
