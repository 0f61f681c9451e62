//! Comparison of structures: lists with or without regard to order, objects by their keys.
//!
//! Source: `webarena_verified/core/evaluation/value_comparator.py`.

use super::failure::ReadingFailure;
use super::node::ValueNode;
use super::reading::ReadingOptions;
use arenad_verdict::Profile;

/// A difference from the expected value, under the benchmark's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueMismatch {
    /// The benchmark's name, such as `retrieved_data_array_values_mismatch`.
    pub name: String,
    /// The place and the expected value, in words.
    pub message: String,
}

/// The rules of a comparison.
#[derive(Debug, Clone, Copy)]
pub(super) struct ComparisonRules<'a> {
    /// The way in which the expected values were read.
    pub reading: &'a ReadingOptions<'a>,
    /// Whether the order of lists counts.
    pub is_ordered: bool,
    /// Whether objects may have keys beyond the expected ones.
    pub may_have_more_keys: bool,
    /// A key whose value is ignored.
    pub ignored_key: Option<&'a str>,
}

/// State of a traversal. Python has only one empty tuple, and the benchmark mistakes the second one that it meets for a
/// structure that contains itself.
#[derive(Clone, Copy, Default)]
struct Met {
    empty_tuple: bool,
}

impl ComparisonRules<'_> {
    /// Returns the differences.
    ///
    /// # Errors
    ///
    /// Returns an error if the benchmark's code raises, or if its result is unknown.
    pub(super) fn differences(
        &self,
        actual: &ValueNode,
        expected: &ValueNode,
        name: &str,
    ) -> Result<Vec<ValueMismatch>, ReadingFailure> {
        self.compare(actual, expected, name, &mut Met::default())
    }

    fn compare(
        &self,
        actual: &ValueNode,
        expected: &ValueNode,
        path: &str,
        met: &mut Met,
    ) -> Result<Vec<ValueMismatch>, ReadingFailure> {
        if matches!(actual, ValueNode::Tuple(items) if items.is_empty()) && self.reading.profile == Profile::Compat {
            if met.empty_tuple {
                return Err(ReadingFailure::raised(format!("a second empty list, at {path}, is taken for a circle")));
            }
            met.empty_tuple = true;
        }
        let one = |what: &str, message: String| Ok(vec![ValueMismatch { name: format!("{path}_{what}"), message }]);
        match (expected, actual) {
            (ValueNode::None, ValueNode::None) => Ok(Vec::new()),
            (ValueNode::None, _) | (_, ValueNode::None) => {
                one("none_mismatch", format!("expected {}, got {}", expected.to_json(), actual.to_json()))
            }
            (ValueNode::Object(expected), ValueNode::Object(actual)) => self.objects(actual, expected, path, met),
            (ValueNode::Object(_), other) => {
                one("invalid_format", format!("expected an object, got {}", other.to_json()))
            }
            (
                ValueNode::Tuple(expected) | ValueNode::List(expected),
                ValueNode::Tuple(actual) | ValueNode::List(actual),
            ) => {
                if self.is_ordered {
                    self.in_order(actual, expected, path, met)
                } else if self.reading.profile == Profile::Strict {
                    self.matched(actual, expected, path)
                } else {
                    self.in_any_order(actual, expected, path, met)
                }
            }
            (ValueNode::Tuple(_) | ValueNode::List(_), other) => {
                one("invalid_format", format!("expected a list, got {}", other.to_json()))
            }
            (expected, actual) => {
                if expected.is_same(actual, self.reading)? {
                    Ok(Vec::new())
                } else {
                    one("mismatch", format!("expected {}, got {}", expected.to_json(), actual.to_json()))
                }
            }
        }
    }

    /// Assigns to each expected item the first free actual item that equals it.
    fn in_any_order(
        &self,
        actual: &[ValueNode],
        expected: &[ValueNode],
        path: &str,
        met: &mut Met,
    ) -> Result<Vec<ValueMismatch>, ReadingFailure> {
        let mut is_taken = vec![false; actual.len()];
        let mut missing = 0;
        for (index, expected) in expected.iter().enumerate() {
            let mut found = None;
            for (at, actual) in actual.iter().enumerate().filter(|(at, _)| !is_taken[*at]) {
                let mut trial = *met;
                if self.compare(actual, expected, &format!("{path}[{index}]"), &mut trial)?.is_empty() {
                    *met = trial;
                    found = Some(at);
                    break;
                }
            }
            match found {
                Some(at) => is_taken[at] = true,
                None => missing += 1,
            }
        }
        let extra = is_taken.iter().filter(|is_taken| !**is_taken).count();
        Ok(mismatch(path, expected.len(), missing, extra))
    }

    /// Assigns as many expected items as possible to equal actual items. If values are equal within a tolerance, the
    /// first item that fits may be the only one that fits another.
    fn matched(
        &self,
        actual: &[ValueNode],
        expected: &[ValueNode],
        path: &str,
    ) -> Result<Vec<ValueMismatch>, ReadingFailure> {
        let mut fits = vec![Vec::new(); expected.len()];
        for (index, expected) in expected.iter().enumerate() {
            for (at, actual) in actual.iter().enumerate() {
                let differences = self.compare(actual, expected, &format!("{path}[{index}]"), &mut Met::default())?;
                if differences.is_empty() {
                    fits[index].push(at);
                }
            }
        }
        let mut owner = vec![None; actual.len()];
        let pairs = (0..expected.len())
            .filter(|index| assign(*index, &fits, &mut owner, &mut vec![false; actual.len()]))
            .count();
        Ok(mismatch(path, expected.len(), expected.len() - pairs, actual.len() - pairs))
    }

    fn in_order(
        &self,
        actual: &[ValueNode],
        expected: &[ValueNode],
        path: &str,
        met: &mut Met,
    ) -> Result<Vec<ValueMismatch>, ReadingFailure> {
        let mut differences = Vec::new();
        for (index, (actual, expected)) in actual.iter().zip(expected).enumerate() {
            differences.extend(self.compare(actual, expected, &format!("{path}[{index}]"), met)?);
        }
        if actual.len() != expected.len() {
            let missing = expected.len().saturating_sub(actual.len());
            let extra = actual.len().saturating_sub(expected.len());
            differences.extend(mismatch(path, expected.len(), missing, extra));
        }
        Ok(differences)
    }

    fn objects(
        &self,
        actual: &[(String, ValueNode)],
        expected: &[(String, ValueNode)],
        path: &str,
        met: &mut Met,
    ) -> Result<Vec<ValueMismatch>, ReadingFailure> {
        if expected.is_empty() {
            return Err(ReadingFailure::raised(format!("the object expected at {path} has no keys")));
        }
        fn get<'a>(entries: &'a [(String, ValueNode)], key: &str) -> Option<&'a ValueNode> {
            entries.iter().find(|(name, _)| name == key).map(|(_, node)| node)
        }
        let missing: Vec<&str> =
            expected.iter().map(|(key, _)| key.as_str()).filter(|key| get(actual, key).is_none()).collect();
        let extra: Vec<&str> =
            actual.iter().map(|(key, _)| key.as_str()).filter(|key| get(expected, key).is_none()).collect();
        let mut differences = Vec::new();
        if !missing.is_empty() || (!extra.is_empty() && !self.may_have_more_keys) {
            let message = format!("missing keys: {missing:?}; unexpected keys: {extra:?}");
            differences.push(ValueMismatch { name: format!("{path}_keys_mismatch"), message });
        }
        for (key, expected) in expected.iter().filter(|(key, _)| Some(key.as_str()) != self.ignored_key) {
            if let Some(actual) = get(actual, key) {
                differences.extend(self.compare(actual, expected, &format!("{path}.{key}"), met)?);
            }
        }
        Ok(differences)
    }
}

/// Assigns an actual item to an expected one, and reassigns other items if necessary.
fn assign(index: usize, fits: &[Vec<usize>], owner: &mut [Option<usize>], is_seen: &mut Vec<bool>) -> bool {
    for at in &fits[index] {
        if std::mem::replace(&mut is_seen[*at], true) {
            continue;
        }
        if owner[*at].is_none_or(|other| assign(other, fits, owner, is_seen)) {
            owner[*at] = Some(index);
            return true;
        }
    }
    false
}

fn mismatch(path: &str, all: usize, missing: usize, extra: usize) -> Vec<ValueMismatch> {
    if missing == 0 && extra == 0 {
        return Vec::new();
    }
    let message = format!("{} of {all} expected items found, {extra} unexpected", all - missing);
    vec![ValueMismatch { name: format!("{path}_array_values_mismatch"), message }]
}
