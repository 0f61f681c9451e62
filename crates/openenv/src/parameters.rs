//! The parameters of a reset, and the action of a step.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use crate::frame::{ErrorFrame, FieldError};

/// The parameters of a reset that have a meaning here. All others are ignored: trainers send every column of their data
/// set.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResetParameters {
    /// A label of the episode, by which the client finds it again.
    pub episode_id: Option<String>,
    /// A number that distinguishes repetitions. Resets are the same for every number.
    pub seed: Option<u64>,
    /// The name of a native task, or of a benchmark's, such as `webarena/27`.
    pub task: Option<String>,
    /// The name of the environment.
    pub environment: Option<String>,
    /// The sites, in addition to those of the task.
    pub sites: Vec<String>,
    /// The address that the browser opens, in place of the task's start.
    pub url: Option<String>,
    /// The accounts that are signed in, by site, in addition to those of the task.
    pub accounts: BTreeMap<String, Option<String>>,
    /// The snapshots from which sites start, by site.
    pub injected_state: BTreeMap<String, String>,
    /// The form of observations.
    pub observation: WantedObservation,
    /// The size of the viewport.
    pub viewport: Option<ViewportSize>,
    /// Whether observations leave out what the viewport does not show.
    pub current_viewport_only: bool,
    /// Whether observations have a screenshot.
    pub screenshot: bool,
    /// Whether each action is recorded as a step of the episode's trajectory.
    pub trajectory: bool,
    /// The files that the agent can upload: their content in base64, by name.
    pub files: BTreeMap<String, String>,
    /// The reward of steps before the last one. Without it they have none.
    pub step_reward: Option<f64>,
}

/// The form of the text of observations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WantedObservation {
    /// The accessibility tree of the page.
    #[default]
    AccessibilityTree,
    /// The DOM tree of the page.
    Html,
    /// A list of numbered elements, and boxes with the numbers on the screenshot.
    SetOfMarks,
    /// No text, for agents that see only the screenshot.
    Nothing,
}

/// The size of a viewport, in CSS pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewportSize {
    /// The width of the page's visible part.
    pub width: u32,
    /// The height of the page's visible part.
    pub height: u32,
}

/// Reads the fields of an object, and collects the problems.
struct FieldReader<'a> {
    data: &'a Map<String, Json>,
    errors: Vec<FieldError>,
}

impl FieldReader<'_> {
    /// Returns a field that is neither missing nor null, if `read` understands it.
    fn field<T>(
        &mut self,
        name: &str,
        kind: &'static str,
        wanted: &str,
        read: impl Fn(&Json) -> Option<T>,
    ) -> Option<T> {
        let value = self.data.get(name).filter(|value| !value.is_null())?;
        let found = read(value);
        if found.is_none() {
            self.errors.push(FieldError::wrong(name, kind, wanted));
        }
        found
    }

    fn text(&mut self, name: &str) -> Option<String> {
        self.field(name, "string_type", "a valid string", |value| value.as_str().map(str::to_owned))
    }

    fn flag(&mut self, name: &str) -> bool {
        self.field(name, "bool_type", "a valid boolean", Json::as_bool).unwrap_or_default()
    }
}

impl ResetParameters {
    /// Reads the parameters.
    ///
    /// Errors: the frame with all fields that were not understood.
    pub fn read(data: &Map<String, Json>) -> Result<Self, ErrorFrame> {
        let mut fields = FieldReader { data, errors: Vec::new() };
        let texts = |value: &Json| -> Option<BTreeMap<String, String>> {
            let pairs = value.as_object()?.iter();
            pairs.map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
        };
        let accounts = |value: &Json| -> Option<BTreeMap<String, Option<String>>> {
            let pairs = value.as_object()?.iter();
            let account = |value: &Json| match value {
                Json::Null => Some(None),
                value => value.as_str().map(|name| Some(name.to_owned())),
            };
            pairs.map(|(key, value)| Some((key.clone(), account(value)?))).collect()
        };
        let list = |value: &Json| -> Option<Vec<String>> {
            value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
        };
        let side = |value: &Json| value.as_u64().and_then(|side| u32::try_from(side).ok());
        let viewport =
            |value: &Json| Some(ViewportSize { width: side(&value["width"])?, height: side(&value["height"])? });
        let kind = |value: &Json| match value.as_str()? {
            "accessibility_tree" => Some(WantedObservation::AccessibilityTree),
            "html" => Some(WantedObservation::Html),
            "set_of_marks" => Some(WantedObservation::SetOfMarks),
            "none" => Some(WantedObservation::Nothing),
            _ => None,
        };
        let words = "'accessibility_tree', 'html', 'set_of_marks' or 'none'";
        let read = Self {
            episode_id: fields.text("episode_id"),
            seed: fields.field("seed", "int_type", "a valid integer, 0 or greater", Json::as_u64),
            task: fields.text("task"),
            environment: fields.text("environment"),
            sites: fields.field("sites", "list_type", "a list of strings", list).unwrap_or_default(),
            url: fields.text("url"),
            accounts: fields
                .field("accounts", "dict_type", "a dictionary of names by site", accounts)
                .unwrap_or_default(),
            injected_state: fields
                .field("injected_state", "dict_type", "a dictionary of snapshots by site", texts)
                .unwrap_or_default(),
            observation: fields.field("observation", "literal_error", words, kind).unwrap_or_default(),
            viewport: fields.field("viewport", "dict_type", "a dictionary with width and height", viewport),
            current_viewport_only: fields.flag("current_viewport_only"),
            screenshot: fields.flag("screenshot"),
            trajectory: fields.flag("trajectory"),
            files: fields.field("files", "dict_type", "a dictionary of contents by name", texts).unwrap_or_default(),
            step_reward: fields.field("step_reward", "float_type", "a valid number", Json::as_f64),
        };
        if fields.errors.is_empty() { Ok(read) } else { Err(ErrorFrame::invalid(&fields.errors)) }
    }
}

/// The content of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum StepAction {
    /// An action of the browser, such as `click [12]`.
    Browser(String),
    /// Asks which tools there are.
    ListTools,
    /// Calls a tool, which stands for an action.
    CallTool {
        /// The name of the tool.
        name: String,
        /// The arguments, by name.
        arguments: Map<String, Json>,
    },
}

impl StepAction {
    /// Reads the action of a step.
    ///
    /// Errors: the frame with all fields that were not understood.
    pub fn read(data: &Map<String, Json>) -> Result<Self, ErrorFrame> {
        Self::of(data).map_err(|errors| ErrorFrame::invalid(&errors))
    }

    fn of(data: &Map<String, Json>) -> Result<Self, Vec<FieldError>> {
        let known: &[&str] = match data.get("type").and_then(Json::as_str) {
            Some("list_tools") => &["type"],
            Some("call_tool") => &["type", "tool_name", "arguments"],
            _ => &["action"],
        };
        let is_known = |key: &str| key == "metadata" || known.contains(&key);
        let mut errors: Vec<FieldError> =
            data.keys().filter(|key| !is_known(key)).map(|key| FieldError::extra(key)).collect();
        if data.get("metadata").is_some_and(|metadata| !metadata.is_object()) {
            errors.push(FieldError::wrong("metadata", "dict_type", "a valid dictionary"));
        }
        let mut text = |name: &str| match data.get(name) {
            Some(Json::String(text)) => text.clone(),
            Some(_) => {
                errors.push(FieldError::wrong(name, "string_type", "a valid string"));
                String::new()
            }
            None => {
                errors.push(FieldError::missing(name));
                String::new()
            }
        };
        let action = match known {
            ["type"] => Self::ListTools,
            ["action"] => Self::Browser(text("action")),
            _ => {
                let name = text("tool_name");
                match data.get("arguments") {
                    None => Self::CallTool { name, arguments: Map::new() },
                    Some(Json::Object(arguments)) => Self::CallTool { name, arguments: arguments.clone() },
                    Some(_) => {
                        errors.push(FieldError::wrong("arguments", "dict_type", "a valid dictionary"));
                        Self::ListTools
                    }
                }
            }
        };
        if errors.is_empty() { Ok(action) } else { Err(errors) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: Json) -> Map<String, Json> {
        value.as_object().expect("an object").clone()
    }

    #[test]
    fn columns_of_a_data_set_are_ignored_and_known_fields_are_checked() {
        let read = ResetParameters::read(&map(json!({
            "seed": 7, "episode_id": "row-1", "task": "shopping.order.1", "prompt": "x", "solution": [1],
            "injected_state": { "shopping": "full-basket" }, "accounts": { "shopping": null },
            "viewport": { "width": 640, "height": 480 }, "observation": "html", "url": null, "step_reward": 0,
            "files": { "photo.jpg": "/9j/" },
        })))
        .expect("parameters");
        assert_eq!((read.seed, read.task.as_deref()), (Some(7), Some("shopping.order.1")));
        assert_eq!(read.injected_state["shopping"], "full-basket");
        assert_eq!((&read.accounts["shopping"], read.step_reward), (&None, Some(0.0)));
        assert_eq!(read.files["photo.jpg"], "/9j/");
        assert_eq!(read.viewport, Some(ViewportSize { width: 640, height: 480 }));
        assert_eq!(read.observation, WantedObservation::Html);
        assert_eq!(ResetParameters::read(&Map::new()), Ok(ResetParameters::default()));
        let marks = ResetParameters::read(&map(json!({ "observation": "set_of_marks" }))).expect("parameters");
        assert_eq!(marks.observation, WantedObservation::SetOfMarks);
        let wrong = map(json!({ "seed": -1, "task": 3, "sites": [1], "observation": "smell" }));
        let errors = ResetParameters::read(&wrong).expect_err("errors").more["errors"].clone();
        let fields: Vec<&str> =
            errors.as_array().expect("a list").iter().filter_map(|error| error["loc"][0].as_str()).collect();
        assert_eq!(fields, ["seed", "task", "sites", "observation"]);
    }

    #[test]
    fn an_action_is_a_text_or_a_call_of_a_tool() {
        let read = |data: Json| StepAction::read(&map(data));
        assert_eq!(read(json!({ "action": "new_tab", "metadata": {} })), Ok(StepAction::Browser("new_tab".to_owned())));
        assert_eq!(read(json!({ "type": "list_tools" })), Ok(StepAction::ListTools));
        let call = read(json!({ "type": "call_tool", "tool_name": "click", "arguments": { "id": "12" } }));
        assert!(matches!(call, Ok(StepAction::CallTool { name, .. }) if name == "click"));
        for wrong in [
            json!({}),
            json!({ "action": 3 }),
            json!({ "action": "new_tab", "extra": 1 }),
            json!({ "action": "new_tab", "metadata": 1 }),
            json!({ "type": "call_tool" }),
            json!({ "type": "call_tool", "tool_name": "click", "arguments": "x" }),
        ] {
            assert!(read(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
