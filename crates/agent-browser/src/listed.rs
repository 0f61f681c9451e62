//! The scripts that list the elements of a page that people act on, with everything by which they are found again after
//! the page has changed (`arenad_api::browser::PageElements`).

use serde_json::Value as Json;

/// A function of scripts: returns a CSS selector that only the element matches.
pub(crate) const SELECTOR: &str = "
    const selector = element => {
        const steps = [];
        for (let step = element; step.parentElement; step = step.parentElement) {
            steps.unshift(`${step.localName}:nth-child(${[...step.parentElement.children].indexOf(step) + 1})`);
        }
        return ['html', ...steps].join(' > ');
    };
";

/// Functions of scripts: `describe` an element, and the selector `LISTED` of those that people act on. They need
/// [`SELECTOR`].
pub(crate) const DESCRIBE: &str = "
    const ROLES = {
        a: 'link', button: 'button', select: 'combobox', textarea: 'textbox', summary: 'button', option: 'option',
    };
    const FIELDS = {
        button: 'button', checkbox: 'checkbox', image: 'button', number: 'spinbutton', radio: 'radio', range: 'slider',
        reset: 'button', search: 'searchbox', submit: 'button',
    };
    const LISTED = 'a[href], button, input:not([type=hidden]), select, textarea, summary, label, [role], [onclick], ' +
        '[tabindex], [contenteditable]';
    const AROUND = 'li, tr, p, fieldset, article, form, section, dialog, nav, header, footer, main, body';
    const cut = text => (text || '').replace(/\\s+/g, ' ').trim().slice(0, 200);
    const named = (element, name) => element.getAttribute(name) || '';
    const role = element =>
        named(element, 'role') || (element.localName === 'input' ? FIELDS[element.type] || 'textbox' : '') ||
        ROLES[element.localName] || '';
    const name = element => {
        const labelled = named(element, 'aria-labelledby').split(/\\s+/).filter(id => id)
            .map(id => document.getElementById(id)).filter(found => found).map(found => found.innerText).join(' ');
        const labels = [...element.labels || []].map(label => label.innerText).join(' ');
        const button = ['button', 'reset', 'submit'].includes(element.type) ? element.value : '';
        const text = ['input', 'select', 'textarea'].includes(element.localName) ? '' : element.innerText;
        const picture = element.querySelector('img[alt]');
        return cut(labelled || named(element, 'aria-label') || labels || button || text || named(element, 'alt') ||
            named(element, 'title') || named(element, 'placeholder') || (picture && picture.alt) ||
            named(element, 'name'));
    };
    const near = element => {
        const own = cut(element.innerText);
        for (let around = element.parentElement; around; around = around.parentElement) {
            const text = around.matches(AROUND) ? cut(around.innerText) : '';
            if (text && text !== own) return text;
        }
        return '';
    };
    const describe = element => ({
        selector: selector(element), tag: element.localName, id: named(element, 'id'), role: role(element),
        name: name(element), href: named(element, 'href').slice(0, 2000), near: near(element),
    });
";

/// Returns a script that returns the page and its elements. An element without a box cannot be acted on, and is left out.
pub(crate) fn script() -> String {
    format!(
        "(() => {{
            {SELECTOR}{DESCRIBE}
            const elements = [];
            for (const element of document.querySelectorAll(LISTED)) {{
                if (elements.length === 2000) break;
                if (element.getClientRects().length) elements.push(describe(element));
            }}
            const [navigation] = performance.getEntriesByType('navigation');
            const status = navigation ? navigation.responseStatus || 0 : 0;
            return {{ url: location.href, title: document.title, status, elements }};
        }})()"
    )
}

/// Returns an expression for the first element that a selector matches, or null, also for an invalid selector.
pub(crate) fn found_by(selector: &str) -> String {
    format!(
        "(() => {{ try {{ return document.querySelector({}); }} catch (error) {{ return null; }} }})()",
        Json::from(selector)
    )
}

/// Scrolls the element into view and returns its box, or that of its first line: the centre of the whole box of a link that
/// is broken into lines may be beside the link.
pub(crate) const BOX: &str = "function () {
    this.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
    const boxes = [...this.getClientRects()].filter(box => box.width && box.height);
    const box = boxes[0] || this.getBoundingClientRect();
    return [box.x, box.y, box.width, box.height];
}";
