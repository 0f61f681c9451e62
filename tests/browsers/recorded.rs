//! Trees as WebArena's own code writes them, from recorded answers of a browser (`tests/vectors/browser/record.py`).

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

use arenad_agent_browser::ax_tree::{self, AxNode, ROOT_ROLE};
use arenad_agent_browser::dom_tree::{self, DomSnapshot};
use arenad_agent_browser::{Bounds, Elements};
use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::Value;

/// The size of the screen on which the pages were recorded.
const SCREEN: (f64, f64) = (1280.0, 720.0);

/// The bounds that WebArena gives the root of a page.
const ROOT: Bounds = Bounds { x: 0.0, y: 0.0, width: 10.0, height: 10.0 };

#[derive(Deserialize)]
struct Recorded {
    kind: String,
    viewport: bool,
    seen: Value,
    bounds: HashMap<String, Option<[f64; 4]>>,
    text: String,
}

impl Recorded {
    fn bounds_of(&self, node: Option<i64>) -> Option<Bounds> {
        let [x, y, width, height] = (*self.bounds.get(&node?.to_string())?)?;
        Some(Bounds { x, y, width, height })
    }

    fn written(&self) -> (String, Elements) {
        let viewport = self.viewport.then_some(SCREEN);
        if self.kind == "html" {
            let snapshot: DomSnapshot = serde_json::from_value(self.seen.clone()).expect("a snapshot");
            let nodes = snapshot.nodes().expect("nodes");
            let bounds = nodes.backend_node_id.iter().zip(&nodes.parent_index).map(|(id, parent)| match parent {
                -1 => Some(ROOT),
                _ => self.bounds_of(Some(*id)),
            });
            let bounds: Vec<_> = bounds.collect();
            return dom_tree::written(&snapshot, &bounds, viewport);
        }
        let nodes: Vec<AxNode> = serde_json::from_value(self.seen.clone()).expect("nodes");
        let bounds = nodes.iter().map(|node| match node.role() {
            Some(ROOT_ROLE) => Some(ROOT),
            _ => self.bounds_of(node.backend_node),
        });
        let bounds: Vec<_> = bounds.collect();
        ax_tree::written(&nodes, &bounds, viewport)
    }
}

/// Returns the text of a file of vectors; `None` for another file. Those of sites are compressed.
fn vectors(path: &Path) -> Option<String> {
    let file = std::fs::File::open(path).expect("a file");
    let mut text = String::new();
    let read = match path.extension()?.to_str()? {
        "json" => std::io::BufReader::new(file).read_to_string(&mut text),
        "gz" => GzDecoder::new(file).read_to_string(&mut text),
        _ => return None,
    };
    read.expect("a text");
    Some(text)
}

/// Compares the trees of a folder, and returns their number.
fn compare(folder: &str) -> usize {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/browser").join(folder);
    let mut compared = 0;
    for entry in std::fs::read_dir(folder).expect("the vectors").flatten() {
        let path = entry.path();
        let Some(text) = vectors(&path) else { continue };
        let recorded: Vec<Recorded> = serde_json::from_str(&text).expect("vectors");
        for recorded in recorded {
            let (_, expected) = recorded.text.split_once("\n\n").expect("tabs and a tree");
            let (text, elements) = recorded.written();
            let name = format!("{}, {}, viewport only: {}", path.display(), recorded.kind, recorded.viewport);
            assert_eq!(text, expected, "{name}");
            assert!(!elements.is_empty(), "{name}");
            compared += 1;
        }
    }
    compared
}

#[test]
fn trees_equal_those_of_webarenas_own_code() {
    assert_eq!(compare(""), 12, "three pages with all roles and properties");
}

#[test]
fn trees_of_sites_equal_those_of_webarenas_own_code() {
    let compared = compare("mini");
    assert_eq!(compared, 4 * 20, "twenty pages of six sites of `mini`");
}
