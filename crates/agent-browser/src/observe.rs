//! Observations of a page: what an agent is shown.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::join_all;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use crate::ax_tree::{self, AxNode, ROOT_ROLE};
use crate::browser::BrowserSettings;
use crate::dom_tree::{self, DomSnapshot};
use crate::elements::{Bounds, Elements, ROOT};
use crate::error::BrowserFault;
use crate::marks;
use crate::tab::Tab;

/// The form of the text of an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ObservationKind {
    /// The accessibility tree ([`crate::ax_tree`]).
    #[default]
    AccessibilityTree,
    /// The DOM tree ([`crate::dom_tree`]).
    Html,
    /// A list of numbered elements, and a screenshot with boxes around them ([`crate::marks`]).
    SetOfMarks,
    /// No text, for agents that see only the screenshot.
    Nothing,
}

/// A tab, as an observation lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedTab {
    /// The title of its page.
    pub title: String,
    /// The address of its page.
    pub url: String,
}

/// The page as an agent sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// The list of tabs and the tree, as WebArena's text; the list of marked elements for [`ObservationKind::SetOfMarks`];
    /// empty for [`ObservationKind::Nothing`].
    pub text: String,
    /// The elements of the text.
    pub elements: Elements,
    /// The viewport as PNG in base64, if it was asked for, or if it has marks.
    pub screenshot: Option<String>,
    /// The tabs, in the order in which they were opened.
    pub tabs: Vec<ObservedTab>,
    /// The index of the current tab.
    pub current: usize,
}

impl Observation {
    /// Returns the address of the current page.
    pub fn url(&self) -> &str {
        self.tabs.get(self.current).map_or("", |tab| tab.url.as_str())
    }
}

/// The most nodes of a page that is observed. A node takes about a kilobyte in the browser's answers.
const NODES_MAX: u64 = 100_000;

/// The most characters of text and attributes of a page that is observed.
const CHARACTERS_MAX: u64 = 8 << 20;

/// Returns the number of nodes in the page, and that of the characters of its text and attributes.
const SIZE: &str = "(() => {
    let nodes = 0, characters = 0;
    const walker = document.createTreeWalker(document, NodeFilter.SHOW_ALL);
    while (walker.nextNode() && nodes <= 100000) {
        nodes += 1;
        characters += (walker.currentNode.nodeValue || '').length;
        for (const attribute of walker.currentNode.attributes || []) characters += attribute.value.length;
    }
    return [nodes, characters];
})()";

/// The most arguments of one call. The engine has a limit of its own, which is higher.
const ARGUMENTS_MAX: usize = 8192;

/// Returns the bounds of its arguments, as WebArena's code asks for them; null for a node without bounds.
const BOUNDS: &str = "function (...nodes) {
    return nodes.map(node => {
        try {
            let rect;
            if (node.nodeType === 3) {
                const range = document.createRange();
                range.selectNode(node);
                rect = range.getBoundingClientRect();
            } else {
                rect = node.getBoundingClientRect();
            }
            return [rect.x, rect.y, rect.width, rect.height];
        } catch (error) {
            return null;
        }
    });
}";

/// Returns the line that lists the tabs.
pub(crate) fn tabs_line(tabs: &[ObservedTab], current: usize) -> String {
    let shown = tabs.iter().enumerate().map(|(index, tab)| match index == current {
        true => format!("Tab {index} (current): {}", tab.title),
        false => format!("Tab {index}: {}", tab.title),
    });
    shown.collect::<Vec<_>>().join(" | ")
}

/// The content of a page: its text without the list of tabs, its elements, and its picture.
pub(crate) type PageContent = (String, Elements, Option<String>);

/// Observes a page, as its browser's settings say.
pub(crate) async fn content(tab: &Tab, settings: &BrowserSettings) -> Result<PageContent, BrowserFault> {
    let kind = settings.observation;
    if kind != ObservationKind::Nothing {
        check_size(tab).await?;
    }
    if kind == ObservationKind::SetOfMarks {
        return with_marks(tab, settings).await;
    }
    let (text, elements) = tree(tab, kind, settings.is_viewport_only).await?;
    let screenshot = match settings.has_screenshot {
        true => Some(screenshot(tab).await?),
        false => None,
    };
    Ok((text, elements, screenshot))
}

/// Returns the tree of a page, and the elements in it.
async fn tree(tab: &Tab, kind: ObservationKind, is_viewport_only: bool) -> Result<(String, Elements), BrowserFault> {
    let viewport = match is_viewport_only {
        true => Some(screen(tab).await?),
        false => None,
    };
    match kind {
        ObservationKind::Nothing | ObservationKind::SetOfMarks => Ok((String::new(), Elements::new())),
        ObservationKind::AccessibilityTree => {
            let mut answer = tab.call("Accessibility.getFullAXTree", json!({})).await?;
            let nodes: Vec<AxNode> = read(answer["nodes"].take())?;
            let wanted: Vec<_> =
                nodes.iter().map(|node| node.backend_node.filter(|_| node.role() != Some(ROOT_ROLE))).collect();
            let mut bounds = bounds(tab, &wanted).await?;
            for (node, bounds) in nodes.iter().zip(&mut bounds) {
                if node.role() == Some(ROOT_ROLE) {
                    *bounds = Some(ROOT);
                }
            }
            Ok(ax_tree::written(&nodes, &bounds, viewport))
        }
        ObservationKind::Html => {
            let wanted = json!({ "computedStyles": [], "includeDOMRects": false, "includePaintOrder": false });
            let snapshot: DomSnapshot = read(tab.call("DOMSnapshot.captureSnapshot", wanted).await?)?;
            let nodes = snapshot.nodes();
            let wanted = nodes.into_iter().flat_map(|nodes| nodes.backend_node_id.iter().zip(&nodes.parent_index));
            let wanted: Vec<_> = wanted.map(|(id, parent)| Some(*id).filter(|_| *parent != -1)).collect();
            let mut bounds = bounds(tab, &wanted).await?;
            if let Some(root) = bounds.first_mut() {
                *root = Some(ROOT);
            }
            Ok(dom_tree::written(&snapshot, &bounds, viewport))
        }
    }
}

/// Marks the elements of a page.
async fn with_marks(tab: &Tab, settings: &BrowserSettings) -> Result<PageContent, BrowserFault> {
    // The order is that of the source: a page that moves has its boxes where its elements are when the agent acts.
    let plain = screenshot(tab).await?;
    let page = marks::marked(&marks::rows(tab).await?, settings.viewport);
    let boxes = page.boxes;
    let drawn = tokio::task::spawn_blocking(move || {
        let png = STANDARD.decode(plain).map_err(|error| error.to_string())?;
        let marked = marks::drawn(&png, &boxes).map_err(|error| error.to_string())?;
        Ok(STANDARD.encode(marked))
    });
    let unread = |reason: String| BrowserFault::Refused(format!("the screenshot is not understood: {reason}"));
    let drawn = drawn.await.map_err(|error| unread(error.to_string()))?.map_err(unread)?;
    Ok((page.text, page.elements, Some(drawn)))
}

/// Refuses pages whose trees would be larger than the browser's connection carries.
async fn check_size(tab: &Tab) -> Result<(), BrowserFault> {
    let size = tab.evaluate(SIZE).await?;
    let (nodes, characters) = (size[0].as_u64().unwrap_or_default(), size[1].as_u64().unwrap_or_default());
    if nodes > NODES_MAX || characters > CHARACTERS_MAX {
        return Err(BrowserFault::TooLarge { nodes, characters });
    }
    Ok(())
}

/// Returns the size of the screen, which WebArena takes for that of the viewport.
async fn screen(tab: &Tab) -> Result<(f64, f64), BrowserFault> {
    let size = tab.evaluate("[screen.width, screen.height]").await?;
    Ok((size[0].as_f64().unwrap_or_default(), size[1].as_f64().unwrap_or_default()))
}

/// Returns the bounds of DOM nodes, in the same order.
async fn bounds(tab: &Tab, nodes: &[Option<i64>]) -> Result<Vec<Option<Bounds>>, BrowserFault> {
    const GROUP: &str = "arenad-bounds";
    let world = tab.world().await?;
    let asked = nodes.iter().enumerate().filter_map(|(index, node)| Some((index, (*node)?)));
    // All of them are sent before the first answer arrives.
    let found = join_all(asked.map(|(index, node)| {
        let wanted = json!({ "backendNodeId": node, "objectGroup": GROUP, "executionContextId": world });
        async move { (index, tab.call("DOM.resolveNode", wanted).await) }
    }))
    .await;
    let mut objects = Vec::with_capacity(found.len());
    for (index, answer) in found {
        match answer {
            Ok(mut answer) => objects.push((index, json!({ "objectId": answer["object"]["objectId"].take() }))),
            // The page has no objects for some nodes, such as those of pseudo-elements.
            Err(BrowserFault::Refused(_)) => {}
            Err(fault) => return Err(fault),
        }
    }
    let mut bounds = vec![None; nodes.len()];
    for objects in objects.chunks(ARGUMENTS_MAX) {
        let arguments: Vec<&Json> = objects.iter().map(|(_, object)| object).collect();
        let wanted = json!({
            "functionDeclaration": BOUNDS, "executionContextId": world, "arguments": arguments, "returnByValue": true,
        });
        let mut answer = tab.call("Runtime.callFunctionOn", wanted).await?;
        let found: Vec<Option<[f64; 4]>> = read(answer["result"]["value"].take())?;
        for ((index, _), found) in objects.iter().zip(found) {
            bounds[*index] = found.map(|[x, y, width, height]| Bounds { x, y, width, height });
        }
    }
    tab.call("Runtime.releaseObjectGroup", json!({ "objectGroup": GROUP })).await?;
    Ok(bounds)
}

/// Returns the viewport as PNG in base64.
async fn screenshot(tab: &Tab) -> Result<String, BrowserFault> {
    let mut answer = tab.call("Page.captureScreenshot", json!({ "format": "png" })).await?;
    match answer["data"].take() {
        Json::String(data) => Ok(data),
        _ => Err(BrowserFault::Refused("the screenshot is not understood".to_owned())),
    }
}

/// Reads an answer of the browser.
pub(crate) fn read<T: for<'de> Deserialize<'de>>(value: Json) -> Result<T, BrowserFault> {
    serde_json::from_value(value)
        .map_err(|error| BrowserFault::Refused(format!("an answer is not understood: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tabs_are_listed_as_webarena_lists_them() {
        let tab = |title: &str| ObservedTab { title: title.to_owned(), url: String::new() };
        assert_eq!(tabs_line(&[tab("One Stop Market"), tab("")], 1), "Tab 0: One Stop Market | Tab 1 (current): ");
        assert_eq!(tabs_line(&[tab("x")], 0), "Tab 0 (current): x");
    }
}
