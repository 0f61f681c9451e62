//! The page and the element that an action was chosen on, for trajectories: seen before the action is performed.
//!
//! Source of the values: WebCanvas, whose actions carry the typed text, or the label of the element.

use serde_json::Value as Json;

use crate::action::Action;
use crate::listed::SELECTOR;
use arenad_api::browser::REDACTED;

/// The page before an action, and the element of the action.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActedPage {
    /// The address of the page.
    pub url: String,
    /// The HTML of the page; `None` if it is longer than 2 Mi UTF-16 units.
    pub html: Option<String>,
    /// A CSS selector that only the action's element matches; `None` without an element in the page itself.
    pub selector: Option<String>,
    /// The typed text, or the label of the element. A text in a field for passwords is `[redacted]`.
    pub value: Option<String>,
}

/// The length of a page's HTML from which on it is left out, in UTF-16 units.
const HTML_MAX: usize = 2 << 20;

impl ActedPage {
    /// Reads what [`page_script`] returned.
    pub(crate) fn of_page(page: &Json) -> Self {
        let text = |key: &str| page[key].as_str().map(str::to_owned);
        Self { url: text("url").unwrap_or_default(), html: text("html"), ..Self::default() }
    }

    /// Adds what the function of [`element_function`] returned.
    pub(crate) fn with_element(self, element: &Json, action: &Action) -> Self {
        let text = |key: &str| element[key].as_str().map(str::to_owned);
        let value = match action {
            Action::Type { .. } if element["isSecret"] == true => Some(REDACTED.to_owned()),
            Action::Type { text, .. } => Some(text.strip_suffix('\n').unwrap_or(text).to_owned()),
            _ => text("label"),
        };
        Self { selector: text("selector"), value, ..self }
    }
}

/// Returns the address and the HTML of a page.
pub(crate) fn page_script() -> String {
    format!(
        "(() => {{ const html = document.documentElement ? document.documentElement.outerHTML : ''; \
         return {{ url: location.href, html: html.length > {HTML_MAX} ? null : html }}; }})()"
    )
}

/// Returns a function that returns a selector of the element, its label, and whether it is a field for passwords. An
/// element in a frame or in a shadow tree has no selector in the page.
pub(crate) fn element_function() -> String {
    format!(
        "function () {{
            {SELECTOR}
            const element = this.nodeType === 1 ? this : this.parentElement;
            if (!element) return {{}};
            const isInPage = element.getRootNode() === document && window === window.top;
            const named = name => element.getAttribute(name);
            const text = (element.innerText || '').replace(/[\\n\\t]/g, '').trim();
            const submit = element.type === 'submit' ? element.value || 'submit' : '';
            const label = text || named('title') || named('placeholder') || named('aria-label') ||
                named('aria-checked') || submit;
            return {{
                selector: isInPage ? selector(element) : null, label: label || null,
                isSecret: element.type === 'password',
            }};
        }}"
    )
}
