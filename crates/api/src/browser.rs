//! The JSON of the browser of an episode.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The value of a text that was typed into a field for passwords: the mark that secrets have in records.
pub const REDACTED: &str = "[redacted]";

/// The body of `POST /v1/episodes/{id}/browser/reset`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BrowserResetRequest {
    /// The address that the browser opens. ` |AND| ` separates the addresses of several tabs. Default: an empty tab.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The accounts that are signed in, by site; null is the only account of the site that can sign in.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub accounts: BTreeMap<String, Option<String>>,
    /// The size of the viewport. Default: 1280 x 720.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub viewport: Option<BrowserViewport>,
    /// The form of the text: `accessibility_tree`, `html`, `set_of_marks` or `none`. Default: `accessibility_tree`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observation: Option<BrowserObservationKind>,
    /// Whether the text leaves out what the viewport does not show.
    #[serde(default)]
    pub current_viewport_only: bool,
    /// Whether observations have a screenshot. Those of `set_of_marks` have one in any case.
    #[serde(default)]
    pub screenshot: bool,
    /// Whether observations have the bounds of their elements.
    #[serde(default)]
    pub elements: bool,
    /// Whether each action is recorded as a step of the episode's trajectory, with the page and the element that it was
    /// chosen on.
    #[serde(default)]
    pub trajectory: bool,
    /// The files that the agent can upload: their content in base64 by name. At most 32 files with 8 MiB.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
}

/// The size of a viewport, in CSS pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BrowserViewport {
    /// The width, from 100 to 4096.
    pub width: u32,
    /// The height, from 100 to 4096.
    pub height: u32,
}

/// The form of the text of an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BrowserObservationKind {
    /// The accessibility tree, as WebArena writes it.
    AccessibilityTree,
    /// The DOM tree, as WebArena writes it.
    Html,
    /// A list of numbered elements, and boxes with the numbers on the screenshot, as in VisualWebArena.
    SetOfMarks,
    /// No text, for agents that see only the screenshot.
    None,
}

/// The body of `POST /v1/episodes/{id}/browser/step`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BrowserStepRequest {
    /// The action, such as `click [12]` or `stop [$5]`.
    pub action: String,
    /// A CSS selector: the action is performed on the first element that it matches, whatever the id in the action means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
}

/// The answer to `GET /v1/episodes/{id}/browser/elements`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PageElements {
    /// The address of the current page.
    pub url: String,
    /// The title of the page.
    pub title: String,
    /// The HTTP status of the page; 0 if the browser does not tell it.
    pub status: u16,
    /// The elements that people act on, in the order of the page, at most 2,000.
    pub elements: Vec<PageElement>,
}

/// The answer to `GET /v1/episodes/{id}/browser/snapshot`: the whole content of a page.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PageSnapshot {
    /// The address of the current page.
    pub url: String,
    /// The title of the page.
    pub title: String,
    /// The page and its resources as MHTML; null if the resources take more than 16 MiB.
    pub mhtml: Option<String>,
    /// The nodes of the page with their bounds, as `DOMSnapshot.captureSnapshot` of the DevTools protocol describes them.
    pub dom: serde_json::Value,
    /// The `backendNodeId` of the element that the selector matches; null without one.
    pub element: Option<i64>,
    /// The scripts, style sheets, images and fonts that the page has loaded, without those beyond the first 16 MiB.
    pub resources: Vec<PageResource>,
}

/// A file that a page has loaded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PageResource {
    /// The address of the file.
    pub url: String,
    /// The content, which is text or base64.
    pub content: String,
    /// Whether the content is base64.
    pub is_base64: bool,
}

/// An element of a page that people act on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PageElement {
    /// A CSS selector that only this element matches.
    pub selector: String,
    /// The tag, in lower case.
    pub tag: String,
    /// The attribute `id`; empty without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// The role: that of the attribute `role`, or the usual one of the tag.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub role: String,
    /// The label that people read, cut to 200 characters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The address of a link, as the page writes it; empty without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub href: String,
    /// The text around the element, cut to 200 characters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub near: String,
}

/// The answer to a reset or a step of a browser, and to `GET /v1/episodes/{id}/browser`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BrowserStep {
    /// The id of the episode.
    pub episode: String,
    /// The number of actions since the reset.
    pub step: u64,
    /// The page as the agent sees it.
    pub observation: BrowserObservation,
    /// The address of the current page.
    pub url: String,
    /// The tabs, in the order in which they were opened.
    pub tabs: Vec<BrowserTab>,
    /// The size of the viewport.
    pub viewport: BrowserViewport,
    /// The reason why the last action failed; null if it did not.
    pub error: Option<BrowserActionError>,
    /// Whether the agent has ended its task with `stop`.
    pub done: bool,
    /// The answer of `stop`; null before it.
    pub answer: Option<String>,
}

/// The page as an agent sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BrowserObservation {
    /// The list of tabs, and the tree with the ids of elements; for `set_of_marks`, the list of elements; empty for `none`.
    pub text: String,
    /// The viewport as PNG in base64, with boxes for `set_of_marks`; null unless the reset asked for it.
    #[serde(default)]
    pub screenshot: Option<String>,
    /// The elements by id; null unless the reset asked for them.
    #[serde(default)]
    pub elements: Option<BTreeMap<String, BrowserElement>>,
}

/// An element that an observation shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BrowserElement {
    /// Its line in the observation.
    pub text: String,
    /// Left edge, upper edge, width and height in the viewport, in CSS pixels; null if it has none.
    pub bounds: Option<[f64; 4]>,
}

/// A tab of a browser.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BrowserTab {
    /// The title of its page.
    pub title: String,
    /// The address of its page.
    pub url: String,
    /// Whether it is the current one.
    pub is_current: bool,
}

/// The reason why an action failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BrowserActionError {
    /// `parse` if the text is not an action, and `execution` otherwise.
    pub kind: BrowserErrorKind,
    /// The words of WebArena's code, which agents are used to.
    pub message: String,
    /// Advice for people; null if there is none.
    pub hint: Option<String>,
}

/// The part of a step that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BrowserErrorKind {
    /// The text is not an action.
    Parse,
    /// The action could not be performed.
    Execution,
}
