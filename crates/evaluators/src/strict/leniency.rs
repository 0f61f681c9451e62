//! The kinds of answers that the profile accepts although the published rule refuses them. The list is closed; the
//! page `docs/reference/evaluators.md` contains it.

/// A kind of right answer that a published rule for texts refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Leniency {
    /// White space, quotes, a final full stop, or the spelling of a number or a unit.
    Spelling,
    /// Whole words next to punctuation that the published tokenizer does not separate from them.
    Words,
    /// Markdown or JSON around the answer.
    Markup,
    /// A sentence around the answer that repeats the task, or `Yes, …`.
    Sentence,
    /// A number as an English word.
    NumberWord,
    /// `none`, or `$0.00` if the task asks for an amount, for zero.
    Zero,
    /// Punctuation between the digits of a long number, such as a telephone number.
    Digits,
}

/// The beginning of the reason of a check that passed because of a leniency.
pub(crate) const ACCEPTED: &str = "right, although the published rule refuses it: ";

impl Leniency {
    /// Returns the reason of a check that passed because of this leniency.
    pub(crate) fn reason(self) -> String {
        let name = match self {
            Self::Spelling => "spelling",
            Self::Words => "whole words",
            Self::Markup => "markup around the answer",
            Self::Sentence => "a sentence around the answer",
            Self::NumberWord => "a number as a word",
            Self::Zero => "another word for zero",
            Self::Digits => "signs between digits",
        };
        format!("{ACCEPTED}{name}")
    }
}
