//! Templates of tasks: `{{name}}` in a text is replaced by the value in an entry of `each`.
//!
//! The replacement is done on the marked tree before the schema check, so that a variable can have a value of any type
//! and every problem still points to its place in the file.

use std::collections::BTreeSet;

use crate::problems::{did_you_mean, quoted_list};
use crate::scope::Scope;
use crate::tree::{DocumentNode, DocumentValue, MappingEntry, Scalar};

/// The key of the template's variables.
pub(super) const EACH: &str = "each";

/// The key of locators, whose arguments are bound.
const LOCATE: &str = "locate";

/// The variables of one task.
pub(super) struct TaskVariables<'a> {
    values: Vec<(&'a str, &'a DocumentNode)>,
}

/// Returns whether a text can be the name of a variable or captured value, which locators write in braces.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

impl<'a> TaskVariables<'a> {
    /// Returns the variables of an entry of `each`.
    pub(super) fn of(entry: Option<&'a DocumentNode>) -> Self {
        let entries = match entry.map(|entry| &entry.value) {
            Some(DocumentValue::Mapping(entries)) => entries.as_slice(),
            _ => &[],
        };
        Self { values: entries.iter().map(|entry| (entry.key.as_str(), &entry.value)).collect() }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.values.iter().map(|(name, _)| *name)
    }

    /// Returns all variables as texts that can be bound. Lists and mappings yield empty texts; a locator that uses one
    /// has been refused.
    pub(super) fn texts(&self) -> Vec<(String, String)> {
        let text = |node: &DocumentNode| node.scalar().map(|scalar| scalar.text.clone()).unwrap_or_default();
        self.values.iter().map(|(name, node)| ((*name).to_owned(), text(node))).collect()
    }

    fn get(&self, name: &str) -> Option<&'a DocumentNode> {
        self.values.iter().find(|(known, _)| *known == name).map(|(_, node)| *node)
    }

    /// Returns a task with its variables filled in, without `each`. The names of the used variables are added to
    /// `used`.
    pub(super) fn fill(&self, task: &DocumentNode, scope: Scope<'_>, used: &mut BTreeSet<String>) -> DocumentNode {
        let DocumentValue::Mapping(entries) = &task.value else { return task.clone() };
        let kept = entries.iter().filter(|entry| entry.key != EACH);
        let filled = kept.map(|entry| self.entry(entry, scope, used)).collect();
        DocumentNode { span: task.span, value: DocumentValue::Mapping(filled) }
    }

    fn entry(&self, entry: &MappingEntry, scope: Scope<'_>, used: &mut BTreeSet<String>) -> MappingEntry {
        let scope = scope.key(&entry.key);
        if let Some((_, name, _)) = variable(&entry.key) {
            scope
                .key_error("variable", format!("`{{{{{name}}}}}` stands in a key"))
                .help("variables stand in values only")
                .report();
        }
        let value = match (entry.key.as_str(), entry.value.scalar()) {
            (LOCATE, Some(scalar)) => {
                self.in_locator(&scalar.text, scope, used);
                entry.value.clone()
            }
            _ => self.node(&entry.value, scope, used),
        };
        MappingEntry { key: entry.key.clone(), key_span: entry.key_span, value }
    }

    fn node(&self, node: &DocumentNode, scope: Scope<'_>, used: &mut BTreeSet<String>) -> DocumentNode {
        let value = match &node.value {
            DocumentValue::Scalar(scalar) => return self.scalar(node, scalar, scope, used),
            DocumentValue::Sequence(items) => DocumentValue::Sequence(
                items.iter().enumerate().map(|(index, item)| self.node(item, scope.index(index), used)).collect(),
            ),
            DocumentValue::Mapping(entries) => {
                DocumentValue::Mapping(entries.iter().map(|entry| self.entry(entry, scope, used)).collect())
            }
        };
        DocumentNode { span: node.span, value }
    }

    fn scalar(
        &self,
        node: &DocumentNode,
        scalar: &Scalar,
        scope: Scope<'_>,
        used: &mut BTreeSet<String>,
    ) -> DocumentNode {
        let mut text = String::new();
        let mut rest = scalar.text.as_str();
        while let Some((before, name, after)) = variable(rest) {
            let Some(value) = self.get(name) else {
                self.unknown(name, scope);
                return node.clone();
            };
            used.insert(name.to_owned());
            if before.is_empty() && after.is_empty() && text.is_empty() {
                return DocumentNode { span: node.span, value: value.value.clone() };
            }
            let Some(value) = value.scalar() else {
                scope
                    .error("variable", format!("`{{{{{name}}}}}` is {}, and stands within a text", value.found()))
                    .expected("a text that is nothing but the variable, or a variable that is a single value")
                    .report();
                return node.clone();
            };
            text.extend([before, &value.text]);
            rest = after;
        }
        if text.is_empty() && rest == scalar.text {
            return node.clone();
        }
        text.push_str(rest);
        DocumentNode { span: node.span, value: DocumentValue::Scalar(Scalar { text, written: None, is_text: true }) }
    }

    /// Checks a locator, in which variables are bound and never inserted as text.
    fn in_locator(&self, text: &str, scope: Scope<'_>, used: &mut BTreeSet<String>) {
        let mut rest = text;
        while let Some((_, name, after)) = variable(rest) {
            // A script may contain doubled braces of its own.
            if self.get(name).is_some() {
                let draft = scope.error("variable", format!("`{{{{{name}}}}}` stands in a locator"));
                draft.help(format!("write `{{{name}}}`: it is bound, never pasted")).report();
            }
            rest = after;
        }
        let template = arenad_model::login::Template::new(text);
        for name in template.places().filter(|name| self.get(name).is_some()) {
            used.insert(name.to_owned());
            if self.get(name).is_some_and(|node| node.scalar().is_none()) {
                let draft = scope.error("variable", format!("`{{{name}}}` is not a single value"));
                draft.expected("a text or a number: that can be bound").report();
            }
        }
    }

    fn unknown(&self, name: &str, scope: Scope<'_>) {
        let known = self.values.iter().map(|(name, _)| *name);
        let expected = match self.values.is_empty() {
            true => "no variable: the task has no `each`".to_owned(),
            false => format!("one of {}", quoted_list(known.clone())),
        };
        scope
            .error("variable", format!("the task has no variable `{name}`"))
            .expected(expected)
            .maybe_help(did_you_mean(name, known))
            .report();
    }
}

/// Returns the first variable of a text, with the text before and after it.
fn variable(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    loop {
        let start = from + text[from..].find("{{")?;
        let inner = &text[start + 2..];
        let end = inner.find("}}");
        match end.map(|end| &inner[..end]).filter(|name| is_name(name)) {
            Some(name) => return Some((&text[..start], name, &inner[name.len() + 2..])),
            None => from = start + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::variable;

    #[test]
    fn variables_are_names_in_doubled_braces() {
        assert_eq!(variable("a {{b_c}} d"), Some(("a ", "b_c", " d")));
        assert_eq!(variable("{{{a}}}"), Some(("{", "a", "}")));
        for text in ["", "{{", "{{}}", "{{A}}", "{{ a }}", "{a}", "{{a}", "é{{a1}}"] {
            assert_eq!(variable(text), None, "{text}");
        }
    }
}
