//! The bounds of the nodes of a page, as WebArena's code asks for them.
//!
//! WebArena asks for each node by itself, which takes most of the time of an observation. Here one script lists the bounds
//! of all nodes in document order, and a snapshot of the browser says which ids these nodes have. If the page has changed
//! between the two, they do not match, and each node is asked for as WebArena does. So are nodes that scripts cannot
//! reach, such as those of pseudo-elements.

use std::collections::{HashMap, HashSet};

use futures_util::future::join_all;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use crate::dom_tree::DomSnapshot;
use crate::elements::Bounds;
use crate::error::BrowserFault;
use crate::observe::read;
use crate::tab::Tab;

/// The most arguments of one call. The engine has a limit of its own, which is higher.
const ARGUMENTS_MAX: usize = 8192;

/// Returns the bounds of its arguments; null for a node without bounds.
const EACH: &str = "function (...nodes) {
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

/// Returns the names of all nodes in document order, and their bounds by [`EACH`]'s rules, four numbers a node. Elements of a
/// page may have the names of properties, so these are taken from the prototypes.
const WALK: &str = "(() => {
    const getter = name => Object.getOwnPropertyDescriptor(Node.prototype, name).get;
    const name = getter('nodeName'), type = getter('nodeType');
    const walker = Document.prototype.createTreeWalker.call(document, document, NodeFilter.SHOW_ALL);
    const names = [], bounds = [], range = new Range();
    for (let node = document; node; node = walker.nextNode()) {
        names.push(name.call(node));
        let rect = null;
        if (type.call(node) === 3) {
            range.selectNode(node);
            rect = range.getBoundingClientRect();
        } else if (type.call(node) === 1) {
            rect = Element.prototype.getBoundingClientRect.call(node);
        }
        if (rect) bounds.push(rect.x, rect.y, rect.width, rect.height);
        else bounds.push(null, null, null, null);
    }
    return [names.join('\\n'), bounds];
})()";

/// The names and bounds of the nodes that scripts reach, in document order.
#[derive(Debug, Deserialize)]
struct WalkedPage(String, Vec<Option<f64>>);

/// The bounds of nodes by their ids in the browser; `None` for a node without bounds.
type KnownBounds = HashMap<i64, Option<Bounds>>;

/// Takes a snapshot of a page, without styles.
pub(crate) async fn snapshot(tab: &Tab) -> Result<DomSnapshot, BrowserFault> {
    let wanted = json!({ "computedStyles": [], "includeDOMRects": false, "includePaintOrder": false });
    read(tab.call("DOMSnapshot.captureSnapshot", wanted).await?)
}

/// Returns the bounds of DOM nodes, in the same order. `snapshot` is one of the page as it is now.
pub(crate) async fn of_nodes(
    tab: &Tab,
    snapshot: &DomSnapshot,
    nodes: &[Option<i64>],
) -> Result<Vec<Option<Bounds>>, BrowserFault> {
    let known = matched(snapshot, &read(tab.evaluate(WALK).await?)?).unwrap_or_default();
    let mut bounds: Vec<_> = nodes.iter().map(|node| known.get(&(*node)?).copied().flatten()).collect();
    let asked = nodes.iter().enumerate().filter_map(|(index, node)| Some((index, (*node)?)));
    let unknown: Vec<(usize, i64)> = asked.filter(|(_, node)| !known.contains_key(node)).collect();
    if !unknown.is_empty() {
        ask_each(tab, &unknown, &mut bounds).await?;
    }
    Ok(bounds)
}

/// Says which nodes of a snapshot have which bounds. `None` if the page has changed between snapshot and walk.
fn matched(snapshot: &DomSnapshot, walked: &WalkedPage) -> Option<KnownBounds> {
    let nodes = snapshot.nodes()?;
    let WalkedPage(names, bounds) = walked;
    let roots = nodes.shadow_root_type.index.iter().chain(&nodes.pseudo_type.index);
    let mut hidden: HashSet<i64> = roots.copied().collect();
    let mut names = names.split('\n');
    let mut bounds = bounds.chunks_exact(4);
    let mut known = KnownBounds::new();
    for (index, (parent, id)) in nodes.parent_index.iter().zip(&nodes.backend_node_id).enumerate() {
        let number = i64::try_from(index).ok()?;
        // The order is that of the document, so a parent is known before its children.
        if hidden.contains(parent) {
            hidden.insert(number);
        }
        if hidden.contains(&number) {
            continue;
        }
        if names.next()? != snapshot.text(nodes.node_name.get(index)) {
            return None;
        }
        let found = match bounds.next()? {
            [Some(x), Some(y), Some(width), Some(height)] => {
                Some(Bounds { x: *x, y: *y, width: *width, height: *height })
            }
            _ => None,
        };
        known.insert(*id, found);
    }
    names.next().is_none().then_some(known)
}

/// Asks for each of the nodes, which have their index in `bounds`.
async fn ask_each(tab: &Tab, nodes: &[(usize, i64)], bounds: &mut [Option<Bounds>]) -> Result<(), BrowserFault> {
    const GROUP: &str = "arenad-bounds";
    let world = tab.world().await?;
    // All of them are sent before the first answer arrives.
    let found = join_all(nodes.iter().map(|(index, node)| {
        let wanted = json!({ "backendNodeId": node, "objectGroup": GROUP, "executionContextId": world });
        async move { (*index, tab.call("DOM.resolveNode", wanted).await) }
    }))
    .await;
    let mut objects = Vec::with_capacity(found.len());
    for (index, answer) in found {
        match answer {
            Ok(mut answer) => objects.push((index, json!({ "objectId": answer["object"]["objectId"].take() }))),
            // The page has no objects for some nodes.
            Err(BrowserFault::Refused(_)) => {}
            Err(fault) => return Err(fault),
        }
    }
    for objects in objects.chunks(ARGUMENTS_MAX) {
        let arguments: Vec<&Json> = objects.iter().map(|(_, object)| object).collect();
        let wanted = json!({
            "functionDeclaration": EACH, "executionContextId": world, "arguments": arguments, "returnByValue": true,
        });
        let mut answer = tab.call("Runtime.callFunctionOn", wanted).await?;
        let found: Vec<Option<[f64; 4]>> = read(answer["result"]["value"].take())?;
        for ((index, _), found) in objects.iter().zip(found) {
            bounds[*index] = found.map(|[x, y, width, height]| Bounds { x, y, width, height });
        }
    }
    tab.call("Runtime.releaseObjectGroup", json!({ "objectGroup": GROUP })).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page with a heading, and an input whose inner nodes only the browser sees.
    fn snapshot() -> DomSnapshot {
        serde_json::from_value(json!({
            "documents": [{ "nodes": {
                "parentIndex": [-1, 0, 1, 2, 1, 4, 5],
                "nodeName": [0, 1, 2, 3, 4, 5, 6],
                "backendNodeId": [11, 12, 13, 14, 15, 16, 17],
                "shadowRootType": { "index": [5], "value": [7] },
                "pseudoType": { "index": [], "value": [] },
            } }],
            "strings": ["#document", "BODY", "H1", "#text", "INPUT", "#document-fragment", "DIV", "user-agent"],
        }))
        .expect("a snapshot")
    }

    fn walked(names: &str) -> WalkedPage {
        let bounds =
            (0..names.split('\n').count()).flat_map(|number| [Some(number as f64), Some(0.0), Some(1.0), Some(2.0)]);
        WalkedPage(names.to_owned(), bounds.collect())
    }

    #[test]
    fn nodes_that_scripts_reach_have_the_bounds_of_the_walk() {
        let known = matched(&snapshot(), &walked("#document\nBODY\nH1\n#text\nINPUT")).expect("a match");
        let mut ids: Vec<_> = known.iter().map(|(id, bounds)| (*id, bounds.map(|bounds| bounds.x))).collect();
        ids.sort_by_key(|(id, _)| *id);
        assert_eq!(ids, [(11, Some(0.0)), (12, Some(1.0)), (13, Some(2.0)), (14, Some(3.0)), (15, Some(4.0))]);
    }

    #[test]
    fn a_page_that_has_changed_meanwhile_does_not_match() {
        for names in [
            "#document\nBODY\nH1\n#text",
            "#document\nBODY\nH1\n#text\nINPUT\nP",
            "#document\nBODY\nH2\n#text\nINPUT",
            "",
        ] {
            assert_eq!(matched(&snapshot(), &walked(names)), None, "{names:?}");
        }
        assert_eq!(matched(&DomSnapshot::default(), &walked("#document")), None);
        assert_eq!(matched(&snapshot(), &WalkedPage("#document\nBODY\nH1\n#text\nINPUT".to_owned(), Vec::new())), None);
    }

    #[test]
    fn a_node_without_bounds_is_known_to_have_none() {
        let mut page = walked("#document\nBODY\nH1\n#text\nINPUT");
        page.1[..4].fill(None);
        let known = matched(&snapshot(), &page).expect("a match");
        assert_eq!((known[&11], known[&12].is_some()), (None, true));
    }
}
