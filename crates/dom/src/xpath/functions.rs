//! The functions of XPath 1.0.

use super::evaluate::Context;
use super::value::{Item, Value};
use crate::tree::Tree;

/// Calls a function by its name.
pub(super) fn call(tree: &Tree, name: &str, values: Vec<Value>, context: Context) -> Result<Value, String> {
    let count = values.len();
    let wrong = || format!("`{name}()` does not take {count} arguments of these kinds, or does not exist");
    let own = || Value::Nodes(vec![context.item]);
    let first_or_own = || values.first().cloned().unwrap_or_else(own);
    let text = |at: usize| values.get(at).map(|value| value.text(tree)).unwrap_or_default();
    Ok(match (name, count) {
        #[expect(clippy::cast_precision_loss, reason = "positions are small")]
        ("position", 0) => Value::Number(context.position as f64),
        #[expect(clippy::cast_precision_loss, reason = "positions are small")]
        ("last", 0) => Value::Number(context.size as f64),
        ("count" | "sum", 1) => {
            let Value::Nodes(nodes) = &values[0] else { return Err(wrong()) };
            let sum: f64 = match name {
                "count" => nodes.iter().map(|_| 1.0).sum(),
                _ => nodes.iter().map(|node| super::value::number_of(&node.text(tree))).sum(),
            };
            Value::Number(sum)
        }
        ("id", 1) => {
            let ids = match &values[0] {
                Value::Nodes(nodes) => nodes.iter().map(|node| node.text(tree)).collect::<Vec<_>>().join(" "),
                other => other.text(tree),
            };
            let ids: Vec<&str> = ids.split_ascii_whitespace().collect();
            let mut nodes = Vec::new();
            for id in ids {
                let has_id = |node: &crate::tree::NodeId| tree.attribute(*node, "id") == Some(id);
                nodes.extend(tree.descendants(Tree::DOCUMENT).find(has_id).map(Item::Node));
            }
            nodes.sort_unstable();
            nodes.dedup();
            Value::Nodes(nodes)
        }
        ("name" | "local-name" | "namespace-uri", 0 | 1) => {
            let Value::Nodes(nodes) = first_or_own() else { return Err(wrong()) };
            let found = nodes.first().map(|node| node.name(tree)).unwrap_or_default();
            Value::Text(if name == "namespace-uri" { String::new() } else { found.to_owned() })
        }
        ("string", 0 | 1) => Value::Text(first_or_own().text(tree)),
        ("concat", 2..) => Value::Text((0..count).map(text).collect()),
        ("starts-with", 2) => Value::Boolean(text(0).starts_with(&text(1))),
        ("contains", 2) => Value::Boolean(text(0).contains(&text(1))),
        ("substring-before", 2) => {
            Value::Text(text(0).split_once(&text(1)).map(|(before, _)| before.to_owned()).unwrap_or_default())
        }
        ("substring-after", 2) => {
            Value::Text(text(0).split_once(&text(1)).map(|(_, after)| after.to_owned()).unwrap_or_default())
        }
        ("substring", 2 | 3) => {
            let begin = round(values[1].number(tree));
            let end = values.get(2).map_or(f64::INFINITY, |length| begin + round(length.number(tree)));
            let kept = (1u32..).map(f64::from).zip(text(0).chars().collect::<Vec<_>>());
            Value::Text(kept.filter(|(at, _)| *at >= begin && *at < end).map(|(_, c)| c).collect())
        }
        #[expect(clippy::cast_precision_loss, reason = "texts are shorter than 2^52 characters")]
        ("string-length", 0 | 1) => Value::Number(first_or_own().text(tree).chars().count() as f64),
        ("normalize-space", 0 | 1) => {
            let whole = first_or_own().text(tree);
            let words: Vec<&str> = whole.split([' ', '\t', '\n', '\r']).filter(|word| !word.is_empty()).collect();
            Value::Text(words.join(" "))
        }
        ("translate", 3) => {
            let (from, to): (Vec<char>, Vec<char>) = (text(1).chars().collect(), text(2).chars().collect());
            let replace = |c: char| match from.iter().position(|known| *known == c) {
                Some(at) => to.get(at).copied(),
                None => Some(c),
            };
            Value::Text(text(0).chars().filter_map(replace).collect())
        }
        ("boolean", 1) => Value::Boolean(values[0].boolean()),
        ("not", 1) => Value::Boolean(!values[0].boolean()),
        ("true", 0) => Value::Boolean(true),
        ("false", 0) => Value::Boolean(false),
        ("lang", 1) => {
            let node = match context.item {
                Item::Node(node) | Item::Attribute(node, _) => node,
            };
            let wanted = text(0).to_ascii_lowercase();
            let own = std::iter::once(node).chain(tree.ancestors(node));
            let found = own.into_iter().find_map(|node| tree.attribute(node, "xml:lang"));
            Value::Boolean(found.is_some_and(|lang| {
                let lang = lang.to_ascii_lowercase();
                lang.strip_prefix(wanted.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
            }))
        }
        ("number", 0 | 1) => Value::Number(first_or_own().number(tree)),
        ("floor", 1) => Value::Number(values[0].number(tree).floor()),
        ("ceiling", 1) => Value::Number(values[0].number(tree).ceil()),
        ("round", 1) => Value::Number(round(values[0].number(tree))),
        _ => return Err(wrong()),
    })
}

/// Halves are rounded up.
fn round(number: f64) -> f64 {
    (number + 0.5).floor()
}
