//! The texts of predictions and targets, and their F1. Source: `src/action_prediction/metric.py` and `dataloader.py`.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use crate::text::python;
use crate::text::raised::Raised;

/// The ASCII punctuation of Python's `string.punctuation`.
const PUNCTUATION: &str = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";

/// A reply after parsing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedReply {
    /// The letter of the chosen element; `A` is none of them.
    pub choice: String,
    /// The operation and its value, such as `TYPE new york`.
    pub action: String,
}

/// How the F1 treats punctuation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum F1Version {
    /// Of the multiple choice: tokens stay as they are.
    MultipleChoice,
    /// Of the generation: tokens that are part of the ASCII punctuation, taken as one text, are left out.
    Generation,
}

/// `calculate_f1`: the F1 of the sets of tokens.
#[must_use]
pub fn calculate_f1(prediction: &str, label: &str, version: F1Version) -> f64 {
    let tokens = |text: &str| -> BTreeSet<String> {
        let counts = |token: &&str| version == F1Version::MultipleChoice || !PUNCTUATION.contains(*token);
        python::split(text).filter(counts).map(str::to_owned).collect()
    };
    let (prediction, label) = (tokens(prediction), tokens(label));
    match (prediction.is_empty(), label.is_empty()) {
        (true, true) => return 1.0,
        (true, false) | (false, true) => return 0.0,
        (false, false) => {}
    }
    #[expect(clippy::cast_precision_loss, reason = "texts have fewer than 2^52 tokens")]
    let (common, own, expected) =
        (prediction.intersection(&label).count() as f64, prediction.len() as f64, label.len() as f64);
    if common == 0.0 {
        return 0.0;
    }
    let (precision, recall) = (common / own, common / expected);
    2.0 * precision * recall / (precision + recall)
}

/// The operation and the value in a text.
fn action(text: &str) -> String {
    static ACTION: LazyLock<Regex> =
        LazyLock::new(|| Regex::new("Action: (CLICK|SELECT|TYPE)").expect("a pattern of ours"));
    let action = ACTION.captures(text).and_then(|found| found.get(1)).map_or("", |found| found.as_str());
    // The rest of the line, which only a line feed ends.
    let value = text.split_once("Value: ").map_or("", |(_, rest)| rest.split('\n').next().unwrap_or_default());
    format!("{} {}", python::strip(action), python::strip(value))
}

/// `postprocess_action`: the choice is the first character of the reply.
///
/// # Errors
///
/// Returns an error for a reply without any character, as Python raises.
pub fn postprocess_action(text: &str) -> Result<ParsedReply, Raised> {
    let text = python::strip(text);
    let choice = text.chars().next().ok_or_else(|| Raised::new("IndexError", "an empty reply".to_owned()))?;
    Ok(ParsedReply { choice: choice.to_string(), action: action(text) })
}

/// `postprocess_action_llm`: the choice is named by `Answer: `, and otherwise none.
#[must_use]
pub fn postprocess_action_free_text(text: &str) -> ParsedReply {
    static CHOICE: LazyLock<Regex> = LazyLock::new(|| Regex::new("Answer: (A|B|C|D|E|F)").expect("a pattern of ours"));
    let text = python::strip(text);
    let choice = CHOICE.captures(text).and_then(|found| found.get(1)).map_or("A", |found| found.as_str());
    ParsedReply { choice: choice.to_owned(), action: action(text) }
}

/// The text that a model should have replied for an operation, if the element is the first choice.
#[must_use]
pub fn target_text(operation: &str, value: &str) -> String {
    let value = if operation == "CLICK" { String::new() } else { format!("Value: {value}") };
    format!("B.\nAction: {operation}\n{value}")
}

/// The operation and value that a prediction is compared with. Only CLICK, SELECT and TYPE have a name there.
#[must_use]
pub fn target_action(operation: &str, value: &str) -> String {
    action(python::strip(&target_text(operation, value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_compared() {
        let f1 = |prediction: &str, label: &str| calculate_f1(prediction, label, F1Version::MultipleChoice);
        assert_eq!(f1("TYPE york new", "TYPE new york"), 1.0);
        assert_eq!(f1("", " "), 1.0);
        assert_eq!(f1("CLICK", "click"), 0.0);
        assert_eq!(calculate_f1("TYPE () x", "TYPE x", F1Version::Generation), 1.0);
        // `!#` does not occur in the punctuation, whose order is that of ASCII.
        assert!(calculate_f1("TYPE !# x", "TYPE x", F1Version::Generation) < 1.0);
    }

    #[test]
    fn a_value_ends_with_its_line() {
        let reply = postprocess_action("B.\nAction: TYPE\nValue:  a\r\nb").expect("a reply");
        assert_eq!((reply.choice.as_str(), reply.action.as_str()), ("B", "TYPE a"));
        assert_eq!(target_action("CLICK", "x"), "CLICK ");
        assert_eq!(target_action("HOVER", "x"), " x");
    }
}
