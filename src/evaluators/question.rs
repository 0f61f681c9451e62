//! What evaluators ask for, and what they are told. They do no I/O themselves: someone else looks, and keeps what was seen
//! as evidence, so that an episode can be judged again without its sites.

use serde_json::Value;

/// Something that an evaluator wants to know.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Question {
    /// The HTML of a page, as the browser has it. The answer is a text.
    Content {
        /// The page.
        place: Place,
    },
    /// What a JavaScript expression gives on a page.
    Script {
        /// The page.
        place: Place,
        /// Expressions that are run before, whose errors do not count.
        prepare: Vec<String>,
        /// The expression.
        expression: String,
    },
    /// What a helper of the benchmark finds, on a page or through the site's interface.
    Helper {
        /// The page that `__page__` means.
        place: Place,
        /// The helper.
        call: Call,
    },
    /// Whether two texts mean the same. The answer is a truth value.
    Judge(Comparison),
}

/// A page.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Place {
    /// The page where the agent ended, as it is, not loaded again.
    Last,
    /// The page at a URL.
    Url(String),
    /// The page whose URL a helper finds.
    Found(Call),
}

/// A call of a helper: a name of a fixed list, and texts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Call {
    /// The helper's name.
    pub name: String,
    /// Its arguments, without `__page__`.
    pub arguments: Vec<String>,
}

/// What a judge is asked.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Comparison {
    /// What kind of sameness.
    pub kind: Sameness,
    /// The task.
    pub intent: String,
    /// What was expected.
    pub reference: String,
    /// What the agent said.
    pub answer: String,
}

/// What a judge looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sameness {
    /// The answer means what the reference means.
    Answer,
    /// The reason given for not doing the task is the actual one.
    Reason,
}

/// What was seen.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// A value.
    Value(Value),
    /// The page's script or the helper failed; the benchmarks take that for an empty text.
    Threw(String),
    /// Nobody could look: the site is down, time ran out, there is no judge. Says nothing about the agent.
    Unavailable(String),
    /// Nobody here knows how to find out.
    Unsupported(String),
}
