//! Set-of-Marks: numbered boxes around the elements of a page, and the list that names them.
//!
//! ```text
//!   page ── rows (seen) ──► marked: numbers, lines, places of labels ──► picture: the screenshot with boxes
//! ```
//! Source: `ImageObservationProcessor` in `browser_env/processors.py` of VisualWebArena, whose observation `image_som` this
//! is. Its code passes the rows through CSV and pandas, which drops some texts ([`is_missing`]). `marked` does no I/O.

mod digits;
mod picture;
mod seen;

use std::collections::HashSet;

pub use picture::{PictureError, drawn};
pub(crate) use seen::rows;

use crate::browser::Viewport;
use crate::elements::{Bounds, Element, Elements};
use crate::python::is_space;

/// An element of a page that may get a mark, or whose text is listed.
#[derive(Debug, Clone, PartialEq)]
pub struct MarkRow {
    /// The name of the element, such as `A`.
    pub tag: String,
    /// The place of the element in the viewport.
    pub bounds: Bounds,
    /// The alternative text of a picture, without quotation marks.
    pub alt: String,
    /// The text in the element, without quotation marks.
    pub text: String,
    /// Whether the element can be clicked on or typed into, as far as its selector says.
    pub is_interactable: bool,
}

/// A page with its marks.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MarkedPage {
    /// The lines `[id] [TAG] [text]`.
    pub text: String,
    /// The elements by id. Those that are too small for a box are among them.
    pub elements: Elements,
    /// The boxes in the order in which they are drawn.
    pub boxes: Vec<MarkBox>,
}

/// A box around an element, with its label.
#[derive(Debug, Clone, PartialEq)]
pub struct MarkBox {
    /// The number of the element.
    pub id: usize,
    /// The color of the box and the label: red, green and blue.
    pub color: [u8; 3],
    /// The rectangle around the element.
    pub frame: Edges,
    /// The filled rectangle behind the number.
    pub label: Edges,
}

/// The edges of a rectangle in the viewport, in CSS pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Edges {
    /// The distance of the left edge from that of the viewport.
    pub left: f64,
    /// The distance of the upper edge from that of the viewport.
    pub top: f64,
    /// The distance of the right edge from the left one of the viewport.
    pub right: f64,
    /// The distance of the lower edge from the upper one of the viewport.
    pub bottom: f64,
}

/// The colors, one after the other. Source: `axes.prop_cycle` of matplotlib.
const COLORS: [[u8; 3]; 10] = [
    [0x1f, 0x77, 0xb4],
    [0xff, 0x7f, 0x0e],
    [0x2c, 0xa0, 0x2c],
    [0xd6, 0x27, 0x28],
    [0x94, 0x67, 0xbd],
    [0x8c, 0x56, 0x4b],
    [0xe3, 0x77, 0xc2],
    [0x7f, 0x7f, 0x7f],
    [0xbc, 0xbd, 0x22],
    [0x17, 0xbe, 0xcf],
];

/// The part of the viewport's area that a marked element has at most.
const AREA_MAX: f64 = 0.8;

/// The least width and height of an element that gets a box and a line.
const SIDE_MIN: f64 = 8.0;

/// The most characters of an element's text in a line.
const TEXT_MAX: usize = 200;

/// The size of the font of labels, which is also the height of a line.
pub(crate) const FONT_SIZE: f64 = 16.0;

/// The width of a digit: that of Source Code Pro at this size, in the 64ths of a pixel that the source measures.
pub(crate) const DIGIT_WIDTH: f64 = 614.0 / 64.0;

/// The room between a number and the edge of its label.
pub(crate) const PADDING: f64 = 2.0;

/// Texts that pandas takes for missing values. Source: `STR_NA_VALUES` in `pandas/_libs/parsers.pyx` of pandas 2.0.
const MISSING: [&str; 19] = [
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA",
    "NULL", "NaN", "None", "n/a", "nan", "null",
];

fn is_missing(text: &str) -> bool {
    MISSING.contains(&text)
}

impl Edges {
    fn of(bounds: Bounds) -> Self {
        let Bounds { x, y, width, height } = bounds;
        Self { left: x, top: y, right: x + width, bottom: y + height }
    }

    fn is_within(&self, (width, height): (f64, f64)) -> bool {
        self.left >= 0.0 && self.top >= 0.0 && self.right <= width && self.bottom <= height
    }

    /// Whether two labels overlap by more than their padding.
    fn overlaps(&self, other: &Self) -> bool {
        const ROOM: f64 = PADDING * 2.0;
        !(self.right < other.left + ROOM
            || self.left > other.right - ROOM
            || self.top > other.bottom - ROOM
            || self.bottom < other.top + ROOM)
    }
}

impl MarkRow {
    /// Whether the element is at least partly in the viewport, and does not fill most of it.
    fn is_shown_in(&self, (width, height): (f64, f64)) -> bool {
        let Edges { left, top, right, bottom } = Edges::of(self.bounds);
        let is_inside = bottom >= 0.0 && top <= height && right >= 0.0 && left <= width;
        is_inside && self.bounds.width * self.bounds.height <= AREA_MAX * width * height
    }

    fn content(&self) -> String {
        let mut content = String::new();
        if self.tag == "IMG" && !is_missing(&self.alt) {
            content.push_str(&self.alt);
        }
        if !is_missing(&self.text) {
            let text = self.text.trim_matches(is_space).chars().filter(|c| !matches!(c, '\n' | '\t'));
            content.extend(text.take(TEXT_MAX));
        }
        content
    }
}

/// Numbers the elements that the viewport shows, and lists them.
pub fn marked(rows: &[MarkRow], viewport: Viewport) -> MarkedPage {
    let viewport = (f64::from(viewport.width), f64::from(viewport.height));
    let (mut lines, mut seen) = (Vec::<String>::new(), HashSet::new());
    let mut page = MarkedPage::default();
    let mut id = 0;
    for row in rows.iter().filter(|row| row.is_shown_in(viewport)) {
        let content = row.content();
        if !row.is_interactable {
            // Some pages have style sheets in their text.
            let is_style = content.starts_with('.') && content.contains('{');
            if !content.is_empty() && !is_style && seen.insert(content.clone()) {
                lines.push(format!("[] [StaticText] [{content}]"));
            }
            continue;
        }
        id += 1;
        let mut text = String::new();
        if row.bounds.width >= SIDE_MIN && row.bounds.height >= SIDE_MIN {
            let frame = Edges::of(row.bounds);
            let label = label(id, &frame, viewport, &page.boxes);
            page.boxes.push(MarkBox { id, color: COLORS[(id - 1) % COLORS.len()], frame, label });
            text = format!("[{id}] [{}] [{content}]", row.tag);
            lines.push(text.clone());
            // The source compares whole lines with the content, so this hardly ever removes one.
            if !seen.insert(content.clone()) {
                lines.retain(|line| line.trim_matches(is_space) != content);
            }
        }
        page.elements.insert(id.to_string(), Element { backend_node: None, bounds: Some(row.bounds), text });
    }
    page.text = lines.join("\n");
    page
}

/// Returns the place of a label: the first one that is in the viewport and overlaps no other label, or else the last one.
fn label(id: usize, frame: &Edges, viewport: (f64, f64), boxes: &[MarkBox]) -> Edges {
    let Edges { left, top, right, bottom } = *frame;
    let (above, inner) = (top - FONT_SIZE, right - FONT_SIZE - 2.0 * PADDING);
    let places = [(left - FONT_SIZE, above), (left, above), (right, above), (inner, above), (left - FONT_SIZE, bottom)];
    let places = places.into_iter().chain([(left, bottom), (inner, bottom)]);
    let width = DIGIT_WIDTH * id.to_string().len() as f64;
    let mut labels = places.map(|(x, y)| Edges {
        left: x - PADDING,
        top: y - PADDING,
        right: x + width + PADDING,
        bottom: y + FONT_SIZE + PADDING,
    });
    let last = labels.clone().next_back();
    let is_free = |label: &Edges| label.is_within(viewport) && !boxes.iter().any(|other| label.overlaps(&other.label));
    labels.find(is_free).or(last).expect("a constant list of places")
}

#[cfg(test)]
mod tests {
    use super::*;

    const VIEWPORT: Viewport = Viewport { width: 1000, height: 500 };

    fn row(tag: &str, [x, y, width, height]: [f64; 4], text: &str) -> MarkRow {
        let bounds = Bounds { x, y, width, height };
        let (tag, text) = (tag.to_owned(), text.to_owned());
        MarkRow { is_interactable: tag != "P", tag, bounds, alt: String::new(), text }
    }

    #[test]
    fn elements_are_numbered_and_texts_are_listed_once() {
        let page = marked(
            &[
                row("A", [10.0, 30.0, 80.0, 20.0], "  Home\n\tpage  "),
                row("P", [10.0, 60.0, 80.0, 20.0], "Home page"),
                row("P", [10.0, 60.0, 80.0, 20.0], "Only today"),
                row("P", [10.0, 60.0, 80.0, 20.0], "Only today"),
                row("P", [10.0, 60.0, 80.0, 20.0], ".a { color: red }"),
                row("INPUT", [10.0, 90.0, 80.0, 20.0], ""),
            ],
            VIEWPORT,
        );
        let lines: Vec<&str> = page.text.lines().collect();
        assert_eq!(
            lines,
            ["[1] [A] [Homepage]", "[] [StaticText] [Home page]", "[] [StaticText] [Only today]", "[2] [INPUT] []"]
        );
        assert_eq!(page.elements["2"].bounds.map(|bounds| bounds.center()), Some((50.0, 100.0)));
        assert_eq!(page.elements["2"].text, "[2] [INPUT] []");
    }

    #[test]
    fn elements_outside_of_the_viewport_or_as_large_as_it_have_no_number() {
        let page = marked(
            &[
                row("A", [10.0, 501.0, 80.0, 20.0], "below"),
                row("A", [10.0, -21.0, 80.0, 20.0], "above"),
                row("A", [0.0, 0.0, 1000.0, 401.0], "large"),
                // Too small for a box: the number is used up, and actions may name it.
                row("A", [10.0, 10.0, 7.0, 20.0], "small"),
                row("A", [10.0, 499.0, 80.0, 20.0], "at the edge"),
            ],
            VIEWPORT,
        );
        assert_eq!(page.text, "[2] [A] [at the edge]");
        assert_eq!((page.elements.len(), page.elements["1"].text.as_str(), page.boxes.len()), (2, "", 1));
        assert_eq!((page.boxes[0].id, page.boxes[0].color), (2, COLORS[1]));
    }

    #[test]
    fn texts_that_pandas_takes_for_missing_are_left_out_and_long_ones_are_cut() {
        let mut picture = row("IMG", [10.0, 60.0, 80.0, 20.0], "");
        picture.alt = "A chair".to_owned();
        let mut unnamed = picture.clone();
        unnamed.alt = "NA".to_owned();
        let long = "ä".repeat(300);
        let rows =
            [picture, unnamed, row("A", [10.0, 90.0, 80.0, 20.0], "None"), row("A", [0.0, 0.0, 9.0, 9.0], &long)];
        let cut = "ä".repeat(200);
        let expected = format!("[1] [IMG] [A chair]\n[2] [IMG] []\n[3] [A] []\n[4] [A] [{cut}]");
        assert_eq!(marked(&rows, VIEWPORT).text, expected);
    }

    #[test]
    fn labels_are_in_the_viewport_and_apart_where_there_is_room() {
        let place = |page: &MarkedPage, index: usize| (page.boxes[index].label.left, page.boxes[index].label.top);
        let page = marked(
            &[
                row("A", [100.0, 100.0, 80.0, 20.0], ""),
                // This one touches the upper edge of the viewport.
                row("A", [300.0, 0.0, 80.0, 20.0], ""),
                // The first label is in the way of this one's first place.
                row("A", [102.0, 102.0, 80.0, 20.0], ""),
            ],
            VIEWPORT,
        );
        assert_eq!(place(&page, 0), (82.0, 82.0));
        assert_eq!(place(&page, 1), (282.0, 18.0));
        assert_eq!(place(&page, 2), (100.0, 84.0));
        // No place is free: the last one is taken.
        let crowded =
            marked(&[row("A", [0.0, 0.0, 900.0, 444.0], ""), row("A", [0.0, 0.0, 10.0, 490.0], "")], VIEWPORT);
        assert_eq!(place(&crowded, 1), (-12.0, 488.0));
    }
}
