//! What the profile accepts although the published rule refuses it. The list is closed, and `README.md` of this layer has it.

/// A kind of right answer that a published rule for texts refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Leniency {
    /// White space, quotes, a final full stop, the way a number or a unit is written.
    Spelling,
    /// Whole words beside signs that the published tokenizer keeps in one token with them.
    Words,
    /// Markdown or JSON around the answer.
    Markup,
    /// A sentence around the answer that repeats the task, or `Yes, …`.
    Sentence,
    /// A number as an English word.
    NumberWord,
    /// `none`, or `$0.00` where the task asks how much, for zero.
    Zero,
    /// Signs between the digits of a long number, such as that of a telephone.
    Digits,
}

/// How the reason of a check begins that passed by a leniency.
pub(crate) const ACCEPTED: &str = "right, although the published rule refuses it: ";

impl Leniency {
    /// The reason of a check that passed by it.
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
