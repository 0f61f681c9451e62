//! Templates of tasks. Source: `process_template` and `populate_html_template` in Turkle's `models.py`.

use std::sync::LazyLock;

use arenad_dom::{Tree, css, soup};
use regex::Regex;

use crate::text::raised::Raised;

/// The parts of a template that Turkle looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// Names of the placeholders, each once, in alphabetical order.
    pub fieldnames: Vec<String>,
    /// Whether there is a button to submit; Turkle appends one otherwise.
    pub has_submit_button: bool,
}

/// `process_template`.
///
/// # Errors
///
/// Returns an error if the template has no field for responses, which Turkle refuses.
pub fn process_template(html: &str) -> Result<Template, Raised> {
    let tree =
        soup::try_parse(html).ok_or_else(|| Raised::new("ParserRejectedMarkup", "malformed markup".to_owned()))?;
    let is_field = |name: &str| matches!(name, "input" | "select" | "textarea");
    if !tree.descendants(Tree::DOCUMENT).any(|node| tree.name(node).is_some_and(is_field)) {
        let what = "the template has no input, select or textarea".to_owned();
        return Err(Raised::new("ValidationError", what));
    }
    let submit = css::select_one(&tree, "input[type=submit]");
    Ok(Template { fieldnames: placeholders(html), has_submit_button: matches!(submit, Ok(Some(_))) })
}

/// Python's `\w+`, which has no marks, unlike Rust's.
static NAME: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\A[\p{L}\p{N}_]+\z").expect("a valid pattern"));

/// The names in `${name}`, which have letters, digits and underscores.
#[must_use]
pub fn placeholders(html: &str) -> Vec<String> {
    let mut names: Vec<String> = html
        .split("${")
        .skip(1)
        .filter_map(|rest| rest.split_once('}'))
        .map(|(name, _)| name)
        .filter(|name| NAME.is_match(name))
        .map(str::to_owned)
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// `populate_html_template`: replaces placeholders in the order of the columns. A value may contain placeholders of later
/// columns, and is not escaped.
#[must_use]
pub fn populate_html_template(template: &str, fields: &[(String, String)]) -> String {
    fields.iter().fold(template.to_owned(), |html, (name, value)| html.replace(&format!("${{{name}}}"), value))
}
