//! The record of a replay: what was seen at each step.

use arenad_api::browser::PageElements;
use url::Url;

use crate::find::ElementSight;

/// The state of the page that a recorded action belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageSight {
    /// It has the address of the recording.
    Same,
    /// It has another address.
    Redirected {
        /// The address of the recording.
        from: String,
        /// The address of the page that is shown.
        to: String,
    },
    /// The site answered with an error.
    Failed {
        /// The address of the page.
        url: String,
        /// The HTTP status of the page.
        status: u16,
    },
}

impl PageSight {
    /// Whether the recorded element can be looked for.
    pub fn is_shown(&self) -> bool {
        !matches!(self, Self::Failed { .. })
    }
}

/// Compares the page that is shown with the one of the recording. Query and fragment may differ.
pub fn page_sight(recorded: &str, page: &PageElements) -> PageSight {
    if page.status >= 400 {
        return PageSight::Failed { url: page.url.clone(), status: page.status };
    }
    match place(recorded) == place(&page.url) {
        true => PageSight::Same,
        false => PageSight::Redirected { from: recorded.to_owned(), to: page.url.clone() },
    }
}

/// Returns host and path of an address, without a slash at the end.
fn place(url: &str) -> (String, String) {
    match Url::parse(url) {
        Ok(parsed) => {
            (parsed.host_str().unwrap_or_default().to_owned(), parsed.path().trim_end_matches('/').to_owned())
        }
        Err(_) => (String::new(), url.to_owned()),
    }
}

/// A step of a replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayedStep {
    /// The page before the action.
    pub page: PageSight,
    /// The element of the action; `None` without one, or if the page was not shown.
    pub element: Option<ElementSight>,
    /// The reason why the action failed, if it was tried and failed.
    pub error: Option<String>,
}

impl ReplayedStep {
    /// Whether the action was performed.
    pub fn is_done(&self) -> bool {
        let is_found = match &self.element {
            None => true,
            Some(sight) => matches!(sight, ElementSight::Same | ElementSight::Moved { .. }),
        };
        self.page.is_shown() && is_found && self.error.is_none()
    }

    /// Whether the action was performed although something has changed.
    pub fn has_drifted(&self) -> bool {
        let has_moved = matches!(self.element, Some(ElementSight::Moved { .. }));
        self.is_done() && (has_moved || self.page != PageSight::Same)
    }
}

/// A replay of a workflow. It ends with the first step that could not be done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replay {
    /// The steps that were begun.
    pub steps: Vec<ReplayedStep>,
    /// The reason why the first page was not shown, if it was not.
    pub unreachable: Option<String>,
}

impl Replay {
    /// Returns the position of the step that could not be done.
    pub fn broken_at(&self) -> Option<usize> {
        self.steps.iter().position(|step| !step.is_done())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_compared_by_host_and_path() {
        let shown = |url: &str, status| PageElements { url: url.to_owned(), status, ..PageElements::default() };
        let recorded = "http://shop.test/cart?session=1";
        assert_eq!(page_sight(recorded, &shown("http://shop.test/cart/?session=2#top", 200)), PageSight::Same);
        assert_eq!(page_sight(recorded, &shown("http://shop.test/cart", 0)), PageSight::Same);
        let moved = page_sight(recorded, &shown("http://shop.test/basket", 200));
        let (from, to) = (recorded.to_owned(), "http://shop.test/basket".to_owned());
        assert_eq!(moved, PageSight::Redirected { from, to });
        let failed = page_sight(recorded, &shown("http://shop.test/cart", 404));
        assert_eq!(failed, PageSight::Failed { url: "http://shop.test/cart".to_owned(), status: 404 });
        assert!(moved.is_shown() && !failed.is_shown());
    }
}
