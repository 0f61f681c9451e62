//! Observations of a page: what an agent is shown.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use crate::ax_tree::{self, AxNode, ROOT_ROLE};
use crate::bounds;
use crate::browser::BrowserSettings;
use crate::dom_tree;
use crate::elements::{Elements, ROOT};
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

/// Returns the number of nodes in the page, that of the characters of its text and attributes, and a hash of all that, the
/// state of its fields and the places of its elements.
const FINGERPRINT: &str = "(() => {
    // A form may have fields whose names are those of properties, so these are taken from the prototypes.
    const getter = (type, name) => {
        const { get } = Object.getOwnPropertyDescriptor(type.prototype, name);
        return object => get.call(object);
    };
    const type = getter(Node, 'nodeType'), value = getter(Node, 'nodeValue');
    const attributes = getter(Element, 'attributes'), shadow = getter(Element, 'shadowRoot');
    const active = getter(Document, 'activeElement')(document);
    let nodes = 0, characters = 0, hash = 0;
    const mix = number => { hash = Math.imul(hash, 31) + number | 0; };
    const read = text => {
        characters += text.length;
        if (characters <= 8388608) for (let i = 0; i < text.length; i++) mix(text.charCodeAt(i));
    };
    const visit = root => {
        const walker = Document.prototype.createTreeWalker.call(document, root, NodeFilter.SHOW_ALL);
        while (walker.nextNode() && nodes <= 100000) {
            const node = walker.currentNode;
            nodes += 1;
            mix(type(node));
            if (type(node) !== 1) { read(value(node) || ''); continue; }
            for (const attribute of attributes(node)) read(attribute.value);
            const rect = Element.prototype.getBoundingClientRect.call(node);
            for (const side of [rect.x, rect.y, rect.width, rect.height]) mix(side * 64);
            if (node === active) mix(1);
            if (node instanceof HTMLInputElement) { read(node.value); mix(node.checked); }
            if (node instanceof HTMLTextAreaElement) read(node.value);
            if (node instanceof HTMLSelectElement) mix(node.selectedIndex);
            if (shadow(node)) visit(shadow(node));
        }
    };
    visit(document);
    return [nodes, characters, hash];
})()";

/// The number of a page's nodes, that of their characters, and a hash of its content. As long as it is the same, so is the
/// observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) struct PageFingerprint(u64, u64, i64);

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
            // One after the other without a pause, so that the page has little time to change between them.
            let (answer, snapshot) =
                tokio::try_join!(tab.call("Accessibility.getFullAXTree", json!({})), bounds::snapshot(tab))?;
            let nodes: Vec<AxNode> = read({ answer }["nodes"].take())?;
            let wanted: Vec<_> =
                nodes.iter().map(|node| node.backend_node.filter(|_| node.role() != Some(ROOT_ROLE))).collect();
            let mut bounds = bounds::of_nodes(tab, &snapshot, &wanted).await?;
            for (node, bounds) in nodes.iter().zip(&mut bounds) {
                if node.role() == Some(ROOT_ROLE) {
                    *bounds = Some(ROOT);
                }
            }
            Ok(ax_tree::written(&nodes, &bounds, viewport))
        }
        ObservationKind::Html => {
            let snapshot = bounds::snapshot(tab).await?;
            let nodes = snapshot.nodes();
            let wanted = nodes.into_iter().flat_map(|nodes| nodes.backend_node_id.iter().zip(&nodes.parent_index));
            let wanted: Vec<_> = wanted.map(|(id, parent)| Some(*id).filter(|_| *parent != -1)).collect();
            let mut bounds = bounds::of_nodes(tab, &snapshot, &wanted).await?;
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

/// Returns the fingerprint of a page.
///
/// Errors: also `TooLarge`, for pages whose trees would be larger than the browser's connection carries.
pub(crate) async fn fingerprint(tab: &Tab) -> Result<PageFingerprint, BrowserFault> {
    let fingerprint: PageFingerprint = read(tab.evaluate(FINGERPRINT).await?)?;
    let PageFingerprint(nodes, characters, _) = fingerprint;
    if nodes > NODES_MAX || characters > CHARACTERS_MAX {
        return Err(BrowserFault::TooLarge { nodes, characters });
    }
    Ok(fingerprint)
}

/// Returns the size of the screen, which WebArena takes for that of the viewport.
async fn screen(tab: &Tab) -> Result<(f64, f64), BrowserFault> {
    let size = tab.evaluate("[screen.width, screen.height]").await?;
    Ok((size[0].as_f64().unwrap_or_default(), size[1].as_f64().unwrap_or_default()))
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
