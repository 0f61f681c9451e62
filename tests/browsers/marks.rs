//! Set-of-Marks: as VisualWebArena's own code makes them, from recorded rows (`tests/vectors/browser/record_marks.py`) and
//! in a real browser.

use std::collections::HashMap;
use std::path::PathBuf;

use arenad_agent_browser::marks::{Edges, MarkRow, marked};
use arenad_agent_browser::{Bounds, BrowserSettings, ObservationKind, Viewport};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::{SITE, Stage, act};

/// The largest difference of two coordinates, in pixels: the rows were written as text and read again.
const ROUNDING: f64 = 1e-6;

#[derive(Deserialize)]
struct Recorded {
    scrolled: [f64; 2],
    csv: String,
    text: String,
    centers: HashMap<String, [f64; 4]>,
    drawn: Vec<Drawn>,
}

/// A rectangle, which is a box if it has an outline and a label if it is filled, or a number.
#[derive(Deserialize)]
struct Drawn {
    edges: Option<[f64; 4]>,
    outline: Option<String>,
    fill: Option<String>,
    text: Option<String>,
}

fn recorded(page: &str) -> Vec<Recorded> {
    let file = format!("{}/tests/vectors/browser/marks/{page}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(file).expect("a file")).expect("vectors")
}

/// Reads the rows of VisualWebArena's script, all of whose values are in quotation marks.
fn rows(recorded: &Recorded) -> Vec<MarkRow> {
    let (_, rows) = recorded.csv.split_once('\n').expect("a heading");
    let rows = rows.strip_suffix("\"\n").into_iter().flat_map(|rows| rows.split("\"\n"));
    let [left, top] = recorded.scrolled;
    let row = |row: &str| {
        let values: Vec<&str> = row.strip_prefix('"').expect("a value").split("\",\"").collect();
        let number = |place: usize| values[place].parse::<f64>().expect("a number");
        MarkRow {
            tag: values[1].to_owned(),
            bounds: Bounds { x: number(5) - left, y: number(2) - top, width: number(6), height: number(7) },
            alt: values[8].to_owned(),
            text: values[11].to_owned(),
            is_interactable: values[12] == "true",
        }
    };
    rows.map(row).collect()
}

fn hex([red, green, blue]: [u8; 3]) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn assert_close(found: &[f64], expected: &[f64], name: &str) {
    let is_close = found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < ROUNDING);
    assert!(is_close && found.len() == expected.len(), "{name}: {found:?}, {expected:?}");
}

fn sides(Edges { left, top, right, bottom }: Edges) -> [f64; 4] {
    [left, top, right, bottom]
}

#[test]
fn marks_equal_those_of_visualwebarenas_own_code() {
    let mut compared = 0;
    for page in ["shop", "parts", "long", "crowded"] {
        for recorded in recorded(page) {
            let name = format!("{page} at {:?}", recorded.scrolled);
            let found = marked(&rows(&recorded), Viewport::default());
            // The page's last place has nothing to mark.
            assert_eq!(found.text, recorded.text, "{name}");
            assert_eq!(found.elements.len(), recorded.centers.len(), "{name}");
            for (id, center) in &recorded.centers {
                let bounds = found.elements[id].bounds.expect("bounds");
                let (x, y) = bounds.center();
                assert_close(&[x, y, bounds.width, bounds.height], center, &format!("{name}, {id}"));
            }
            // All boxes are drawn first, and then a label and its number for each.
            let (frames, labels) = recorded.drawn.split_at(found.boxes.len());
            assert_eq!(labels.len(), 2 * frames.len(), "{name}");
            for ((mark, frame), label) in found.boxes.iter().zip(frames).zip(labels.chunks(2)) {
                let (name, color) = (format!("{name}, box {}", mark.id), Some(hex(mark.color)));
                assert_eq!((&frame.outline, &label[0].fill), (&color, &color), "{name}");
                assert_eq!(label[1].text, Some(mark.id.to_string()), "{name}");
                assert_close(&sides(mark.frame), &frame.edges.expect("edges"), &name);
                assert_close(&sides(mark.label), &label[0].edges.expect("edges"), &name);
                compared += 1;
            }
        }
    }
    assert!(compared >= 100, "{compared} boxes");
}

fn with_marks(stage: &Stage) -> BrowserSettings {
    BrowserSettings { observation: ObservationKind::SetOfMarks, lists_elements: true, ..stage.settings() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_lists_and_draws_the_marks_that_were_recorded() {
    let stage = Stage::new().await;
    let mut browser = stage.open_with(with_marks(&stage), SITE).await;
    let seen = browser.observe().await.expect("an observation");
    assert_eq!(seen.text, recorded("shop")[0].text);
    assert_eq!(seen.elements.len(), recorded("shop")[0].centers.len());
    let png = STANDARD.decode(seen.screenshot.expect("a screenshot")).expect("base64");
    let picture = image::load_from_memory(&png).expect("a picture").into_rgb8();
    assert_eq!((picture.width(), picture.height()), (1280, 720));
    let first = seen.elements["1"].bounds.expect("bounds");
    let corner = picture.get_pixel(first.x as u32, first.y as u32);
    assert_eq!(hex(corner.0), "#1f77b4", "the corner of the first box");
    let crowded = act(&mut browser, &format!("goto [{SITE}crowded]"), "").await;
    assert_eq!(crowded.text, recorded("crowded")[0].text);
    let empty = act(&mut browser, "goto [about:blank]", "").await;
    assert_eq!(empty.text, "Tab 0 (current): \n\n", "a page without elements has the list of tabs");
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_acts_on_marks() {
    let stage = Stage::new().await;
    let mut browser = stage.open_with(with_marks(&stage), SITE).await;
    let clicked = act(&mut browser, "click [ID]", "[BUTTON] [Press me]").await;
    assert!(clicked.text.contains("[BUTTON] [Clicked]"), "{}", clicked.text);
    act(&mut browser, "select [ID] [Price: low to high]", "[SELECT]").await;
    let not_a_list = super::tried(&mut browser, "select [ID] [x]", "[BUTTON] [Clicked]").await;
    let words = not_a_list.error.map(|error| error.to_string());
    assert_eq!(words.as_deref(), Some("Error: Element is not a <select> element"));
    let sent = act(&mut browser, "type [ID] [blue chair]", "[INPUT]").await;
    assert!(sent.url().contains("q=blue+chair&sort=p"), "{}", sent.url());
    // The list shows no tabs, so a tab that a link opens becomes the current one.
    act(&mut browser, "go_back", "").await;
    let offers = act(&mut browser, "click [ID]", "[A] [Offers]").await;
    assert_eq!((offers.url(), offers.current, offers.tabs.len()), (format!("{SITE}new").as_str(), 1, 2));
    let missing = browser.step("click [99]").await.expect("the browser works");
    assert_eq!(missing.error.map(|error| error.to_string()).as_deref(), Some("'99'"));
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_forge_no_marks() {
    let stage = Stage::new().await;
    let mut browser = stage.open_with(with_marks(&stage), &format!("{SITE}clobbered")).await;
    let seen = browser.observe().await.expect("an observation");
    assert_eq!(seen.text, "[1] [FORM] [In a form]\n[2] [INPUT] []\n[3] [BUTTON] [Real]");
    stage.close().await;
}

/// Returns the page of which marks were recorded, for the test's server.
pub(super) fn crowded() -> String {
    let file: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests/vectors/browser/marks/pages/crowded.html"].iter().collect();
    std::fs::read_to_string(file).expect("a page")
}
