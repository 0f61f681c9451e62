//! ROUGE-L and the normalisation of answers. Source: the package rouge-score 0.1.2, and `src/evaluation_class.py`.

use std::cell::OnceCell;

use super::porter::stem;
use crate::text::python;

/// `normalize_answer`: lower case, without ASCII punctuation, single blanks.
#[must_use]
pub fn normalize_answer(text: &str) -> String {
    let bare: String = text.to_lowercase().chars().filter(|c| !c.is_ascii_punctuation()).collect();
    python::split(&bare).collect::<Vec<_>>().join(" ")
}

/// The tokens of rouge-score: runs of ASCII letters and digits, stemmed if they are longer than three characters.
#[must_use]
pub fn tokenize(text: &str) -> Vec<String> {
    let text = text.to_lowercase();
    let words = text.split(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit())).filter(|word| !word.is_empty());
    words.map(|word| if word.len() > 3 { stem(word) } else { word.to_owned() }).collect()
}

/// ROUGE-L as an F1 score; 1 for equal texts.
#[must_use]
pub fn rouge(prediction: &str, label: &str) -> f64 {
    Prediction::new(prediction).rouge(label)
}

/// A text that is compared with several labels. It is split into tokens once, if at all.
pub(super) struct Prediction<'a> {
    text: &'a str,
    tokens: OnceCell<Vec<String>>,
}

impl<'a> Prediction<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, tokens: OnceCell::new() }
    }

    /// ROUGE-L as an F1 score; 1 for equal texts.
    pub(super) fn rouge(&self, label: &str) -> f64 {
        if self.text == label {
            return 1.0;
        }
        let (prediction, label) = (self.tokens.get_or_init(|| tokenize(self.text)), tokenize(label));
        if prediction.is_empty() || label.is_empty() {
            return 0.0;
        }
        #[expect(clippy::cast_precision_loss, reason = "texts have fewer than 2^52 tokens")]
        let (common, own, expected) =
            (longest_common(prediction, &label) as f64, prediction.len() as f64, label.len() as f64);
        let (precision, recall) = (common / own, common / expected);
        if precision + recall > 0.0 { 2.0 * precision * recall / (precision + recall) } else { 0.0 }
    }
}

/// The length of the longest common subsequence.
fn longest_common(one: &[String], other: &[String]) -> usize {
    let mut row = vec![0; other.len() + 1];
    for word in one {
        let mut diagonal = 0;
        for (at, candidate) in other.iter().enumerate() {
            let above = row[at + 1];
            row[at + 1] = if word == candidate { diagonal + 1 } else { above.max(row[at]) };
            diagonal = above;
        }
    }
    row[other.len()]
}
