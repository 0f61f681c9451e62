//! `environments/<environment>/tasks/*.yaml`: the tasks of agents, and the checks of their results.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value as Json;

use super::values::{Entries, FilePart, MembersOrVariable, NumberOrVariable, Scalar, TaskName};

/// Tasks on the sites of an environment.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "tasks of an environment")]
pub(crate) struct RawTasks {
    /// The environment's name, equal to that of the folder that holds `tasks/`.
    #[schemars(required)]
    #[serde(rename = "environment")]
    pub(crate) _environment: Option<String>,
    /// The tasks of the file.
    #[schemars(required, length(min = 1))]
    #[serde(rename = "tasks")]
    pub(crate) _tasks: Option<Vec<FilePart<RawTask>>>,
}

/// A task, or a template of tasks that differ in variables. `{{name}}` in a text stands for a variable; a text that
/// consists of one variable only takes the variable's value with its type.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawTask {
    /// The name, unique within the environment. A template's tasks are called `NAME.1`, `NAME.2`, in the order of `each`.
    pub(crate) name: TaskName,
    /// The kind of result that the task requires.
    pub(crate) kind: RawTaskKind,
    /// The sites that an episode needs.
    #[schemars(length(min = 1))]
    pub(crate) sites: Vec<String>,
    /// The account that the agent is signed in with, by site. Default: not signed in.
    pub(crate) accounts: Option<Entries<String>>,
    /// The page on which the agent starts. Default: the home page of the first site.
    pub(crate) start: Option<RawStart>,
    /// The snapshots that sites start from, by site, as `arenad snapshot take` named them. Default: the baseline.
    pub(crate) snapshots: Option<Entries<String>>,
    /// The instruction for the agent.
    pub(crate) intent: String,
    /// The template's variables, one entry for each task: names of lower-case letters and `_`, and any values.
    #[serde(rename = "each")]
    #[schemars(length(min = 1))]
    pub(crate) _each: Option<Vec<Entries<Json>>>,
    /// Values that are captured when an episode begins, by a name of lower-case letters and `_`.
    pub(crate) before: Option<Entries<FilePart<RawCapture>>>,
    /// The condition that must hold at the end.
    pub(crate) check: RawCheck,
}

/// The kind of result that a task requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RawTaskKind {
    /// An answer that the agent finds on the sites.
    Information,
    /// A page that the agent navigates to.
    Navigation,
    /// A change to the content of sites.
    Content,
    /// The task cannot be done, and the agent must report so.
    Unachievable,
}

/// The page on which the agent starts.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawStart {
    /// The site of the page. Default: the first one of the task.
    pub(crate) site: Option<String>,
    /// The part of the URL after host and port, beginning with `/`. Default: the site's home page.
    pub(crate) path: Option<String>,
}

/// A value that is captured when an episode begins.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawCapture {
    /// The site to read. Default: the task's only one.
    pub(crate) site: Option<String>,
    /// A locator, or `helper: NAME('text')`. `{name}` stands for a variable, which is bound as a parameter.
    pub(crate) locate: String,
    /// The account with which `http:` and `js:` locators read the site. Default: not signed in.
    pub(crate) account: Option<String>,
    /// The path of the page that a `js:` locator without a page of its own reads.
    pub(crate) page: Option<String>,
}

/// Declares a mapping with its own keys and one matcher with the matcher's options.
macro_rules! with_matcher {
    ($(#[$doc:meta])* $name:ident { $($(#[$own_doc:meta])* $own:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name {
            $($(#[$own_doc])* pub(crate) $own: $type,)*
            /// The expected value: a text, number or truth value, a list in its order, or `null` for no value. Its type
            /// decides how the found value is read.
            pub(crate) equals: Option<Json>,
            /// One value or a list of values: whole words that the text contains, or members of the list.
            pub(crate) contains: Option<Json>,
            /// A regular expression that matches somewhere in the text.
            pub(crate) matches: Option<String>,
            /// The expected number: the value itself, or the only number in the text.
            pub(crate) number: Option<NumberOrVariable>,
            /// With `number`: the accepted absolute deviation. Default: 0.
            pub(crate) tolerance: Option<NumberOrVariable>,
            /// With `number`: the accepted deviation in percent.
            pub(crate) percent: Option<NumberOrVariable>,
            /// The members of a list, each once, in any order.
            pub(crate) set: Option<MembersOrVariable>,
            /// JSON that the value must include: further keys are allowed, lists are compared entry by entry.
            pub(crate) json: Option<Json>,
            /// The number of rows or members: a number, or bounds.
            pub(crate) count: Option<RawCount>,
            /// The difference between the number and a captured one.
            pub(crate) difference: Option<RawDifference>,
            /// The name of a captured value that the value must still equal.
            pub(crate) same_as: Option<String>,
            /// With `equals`, `contains`, `matches` and `set`: whether case is ignored. Default: `false`.
            pub(crate) ignore_case: Option<bool>,
        }

        impl $name {
            /// Returns the matcher with its options.
            pub(crate) fn matcher(&self) -> RawMatcher<'_> {
                RawMatcher {
                    equals: self.equals.as_ref(),
                    contains: self.contains.as_ref(),
                    matches: self.matches.as_deref(),
                    number: self.number.as_ref(),
                    tolerance: self.tolerance.as_ref(),
                    percent: self.percent.as_ref(),
                    set: self.set.as_ref(),
                    json: self.json.as_ref(),
                    count: self.count.as_ref(),
                    difference: self.difference.as_ref(),
                    same_as: self.same_as.as_deref(),
                    ignore_case: self.ignore_case,
                }
            }
        }
    };
}

/// A matcher with its options, in any mapping.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawMatcher<'a> {
    pub(crate) equals: Option<&'a Json>,
    pub(crate) contains: Option<&'a Json>,
    pub(crate) matches: Option<&'a str>,
    pub(crate) number: Option<&'a NumberOrVariable>,
    pub(crate) tolerance: Option<&'a NumberOrVariable>,
    pub(crate) percent: Option<&'a NumberOrVariable>,
    pub(crate) set: Option<&'a MembersOrVariable>,
    pub(crate) json: Option<&'a Json>,
    pub(crate) count: Option<&'a RawCount>,
    pub(crate) difference: Option<&'a RawDifference>,
    pub(crate) same_as: Option<&'a str>,
    pub(crate) ignore_case: Option<bool>,
}

with_matcher! {
    /// A condition: exactly one of `all`, `any`, `not`, `answer`, `url` and `locate`, the last with one matcher.
    RawCheck {
        /// The name of the condition in reports.
        name: Option<String>,
        /// All of these conditions hold.
        all: Option<Vec<FilePart<RawCheck>>>,
        /// At least one of these conditions holds.
        any: Option<Vec<FilePart<RawCheck>>>,
        /// This condition does not hold.
        not: Option<Box<FilePart<RawCheck>>>,
        /// The agent's final answer.
        answer: Option<FilePart<RawAnswer>>,
        /// The agent's final page.
        url: Option<FilePart<RawUrl>>,
        /// The site to read. Default: the task's only one.
        site: Option<String>,
        /// A locator, or `helper: NAME('text')`. `{name}` stands for a variable or a captured value, which is bound as
        /// a parameter.
        locate: Option<String>,
        /// The account with which `http:` and `js:` locators read the site. Default: not signed in.
        account: Option<String>,
        /// The path of the page that a `js:` locator without a page of its own reads.
        page: Option<String>,
    }
}

with_matcher! {
    /// The agent's final answer: one matcher. Case, white space, surrounding quotes, a final full stop and the notation
    /// of numbers are ignored.
    RawAnswer {
        /// The agent must state that the task cannot be done, in a usual form such as `N/A`.
        unachievable: Option<bool>,
    }
}

/// The agent's final page.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawUrl {
    /// The site of the page. Default: the task's only one.
    pub(crate) site: Option<String>,
    /// The path, beginning with `/`; a trailing slash is ignored.
    pub(crate) path: Option<String>,
    /// A regular expression that matches somewhere in the path.
    pub(crate) path_matches: Option<String>,
    /// Parameters that the query must have, each with this one value only.
    pub(crate) query: Option<Entries<Scalar>>,
}

/// A required number of rows or members.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline, title = "a number, or bounds such as `{ at_least: 1 }`")]
pub(crate) enum RawCount {
    /// Exactly this number of rows or members.
    Exactly(NumberOrVariable),
    /// A number within bounds.
    Between(RawBounds),
}

/// Bounds, of which at least one is given.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawBounds {
    /// The minimum number, inclusive.
    pub(crate) at_least: Option<NumberOrVariable>,
    /// The maximum number, inclusive.
    pub(crate) at_most: Option<NumberOrVariable>,
}

/// The difference between a number and a captured one: `by`, or bounds.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawDifference {
    /// The name of the captured value.
    pub(crate) from: String,
    /// The required increase; negative for a decrease.
    pub(crate) by: Option<NumberOrVariable>,
    /// The minimum increase, inclusive.
    pub(crate) at_least: Option<NumberOrVariable>,
    /// The maximum increase, inclusive.
    pub(crate) at_most: Option<NumberOrVariable>,
}
