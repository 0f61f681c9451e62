//! The elements of a page that may get marks.

use serde::Deserialize;

use super::MarkRow;
use crate::elements::Bounds;
use crate::error::BrowserFault;
use crate::observe::read;
use crate::tab::Tab;

/// Returns the elements that the selectors find, each as `[tag, x, y, width, height, alt, text, interactable]`, in the
/// order of the document.
///
/// The selectors are those of the source. Elements outside of the viewport, and the ends of long texts, are left out here
/// already: texts are repeated in each element around them. Methods are called on prototypes, because fields of a form
/// hide those of the form.
const ROWS: &str = r#"(() => {
    const interactable = [
        'a[href]:not(:has(img))', 'a[href] img', 'button', 'input:not([type="hidden"])', 'textarea', 'select',
        '[tabindex]:not([tabindex="-1"])', '[contenteditable="true"]', '[role="button"]', '[role="link"]',
        '[role="checkbox"]', '[role="menuitem"]', '[role="tab"]', '[draggable="true"]', '.btn',
        'a[href="/notifications"]', 'a[href="/submit"]', '.fa.fa-star.is-rating-item', 'input[type="checkbox"]',
    ].join(', ');
    const texts = ['p', 'span', 'div:not(:has(*))', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'li', 'article'];
    const all = [interactable, ...texts.map(text => `:not(${interactable}):not(style) > ${text}`)].join(', ');
    const TEXT_MAX = 4096;
    const SPACE = /^[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/;
    const getter = (owner, name) => Object.getOwnPropertyDescriptor(owner.prototype, name).get;
    const textContent = getter(Node, 'textContent'), tagName = getter(Element, 'tagName');
    const { getBoundingClientRect, getAttribute, matches } = Element.prototype;
    let room = 8 << 20;
    const shortened = text => {
        text = text.replaceAll('"', '');
        if (text.length > TEXT_MAX) text = text.replace(SPACE, '').slice(0, TEXT_MAX);
        room -= text.length;
        return room < 0 ? '' : text.toWellFormed();
    };
    const rows = [];
    for (const element of Document.prototype.querySelectorAll.call(document, all)) {
        const rect = getBoundingClientRect.call(element);
        if (rect.width === 0 || rect.height === 0) continue;
        if (rect.bottom < 0 || rect.right < 0 || rect.top > innerHeight || rect.left > innerWidth) continue;
        const alt = shortened(getAttribute.call(element, 'alt') || ''), text = shortened(textContent.call(element));
        const tag = tagName.call(element), marked = matches.call(element, interactable);
        rows.push([tag, rect.x, rect.y, rect.width, rect.height, alt, text, marked]);
    }
    return rows;
})()"#;

#[derive(Deserialize)]
struct SeenRow(String, f64, f64, f64, f64, String, String, bool);

/// Returns the elements of the current page that may get marks.
pub(crate) async fn rows(tab: &Tab) -> Result<Vec<MarkRow>, BrowserFault> {
    let rows: Vec<SeenRow> = read(tab.evaluate(ROWS).await?)?;
    let row = |SeenRow(tag, x, y, width, height, alt, text, is_interactable)| MarkRow {
        tag,
        bounds: Bounds { x, y, width, height },
        alt,
        text,
        is_interactable,
    };
    Ok(rows.into_iter().map(row).collect())
}
