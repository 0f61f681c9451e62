//! The elements that the last observation shows, by which actions name them.

use std::collections::HashMap;

/// A rectangle in the coordinates of the viewport, in CSS pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// The distance of the left edge from that of the viewport.
    pub x: f64,
    /// The distance of the upper edge from that of the viewport.
    pub y: f64,
    /// The width, which may be 0.
    pub width: f64,
    /// The height, which may be 0.
    pub height: f64,
}

/// The bounds that WebArena gives the root of a page, so that it is always in the viewport.
pub(crate) const ROOT: Bounds = Bounds { x: 0.0, y: 0.0, width: 10.0, height: 10.0 };

/// The part of an element that the viewport must show. Source: `IN_VIEWPORT_RATIO_THRESHOLD`.
const IN_VIEWPORT: f64 = 0.6;

impl Bounds {
    /// Returns the point that a click on the element hits.
    pub fn center(&self) -> (f64, f64) {
        (self.x + self.width / 2.0, self.y + self.height / 2.0)
    }

    /// Whether WebArena shows an element with these bounds if only the viewport is observed.
    ///
    /// Its ratio multiplies by the height instead of dividing by it, so tall elements always pass and flat ones need
    /// more. Agents were trained on the result.
    pub(crate) fn is_shown_in(&self, (width, height): (f64, f64)) -> bool {
        if self.width == 0.0 || self.height == 0.0 {
            return false;
        }
        let overlap = |start: f64, length: f64, end: f64| ((start + length).min(end) - start.max(0.0)).max(0.0);
        let overlaps = (overlap(self.x, self.width, width), overlap(self.y, self.height, height));
        // The order of the operations is that of the source, for equal rounding.
        overlaps.0 * overlaps.1 / self.width * self.height >= IN_VIEWPORT
    }
}

/// An element that an observation shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Element {
    /// The id of its DOM node in the browser; `None` for one without a node.
    pub backend_node: Option<i64>,
    /// The bounds; `None` if it has none.
    pub bounds: Option<Bounds>,
    /// Its line in the observation, without the indentation.
    pub text: String,
}

/// Elements by the ids that the observation gives them.
pub type Elements = HashMap<String, Element>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_is_shown_by_webarenas_ratio() {
        let viewport = (1280.0, 720.0);
        let is_shown = |x, y, width, height| Bounds { x, y, width, height }.is_shown_in(viewport);
        assert!(is_shown(0.0, 0.0, 100.0, 20.0));
        assert!(!is_shown(0.0, 720.0, 100.0, 20.0), "below the viewport");
        assert!(!is_shown(-200.0, 0.0, 100.0, 20.0), "left of it");
        assert!(!is_shown(0.0, 0.0, 0.0, 20.0) && !is_shown(0.0, 0.0, 20.0, 0.0));
        // One pixel of twenty is visible: an area of 5 %, and a "ratio" of 20.
        assert!(is_shown(0.0, 719.0, 100.0, 20.0));
        // Half a pixel of a line of half a pixel: the whole area, and a "ratio" of 0.25.
        assert!(!is_shown(0.0, 0.0, 100.0, 0.5));
    }
}
