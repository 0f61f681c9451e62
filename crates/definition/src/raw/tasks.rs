//! `environments/<environment>/tasks/*.yaml`: what agents are asked to do, and how it is seen that they did.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value as Json;

use super::values::{Entries, MembersOrVariable, NumberOrVariable, Part, Scalar, TaskName};

/// Tasks on the sites of an environment.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "tasks of an environment")]
pub(crate) struct RawTasks {
    /// The environment's name: the same as of the folder that holds `tasks/`.
    #[schemars(required)]
    #[serde(rename = "environment")]
    pub(crate) _environment: Option<String>,
    /// The tasks.
    #[schemars(required, length(min = 1))]
    #[serde(rename = "tasks")]
    pub(crate) _tasks: Option<Vec<Part<RawTask>>>,
}

/// A task, or a template of tasks that differ in variables. `{{name}}` in a text stands for a variable; a text that is
/// nothing else takes the variable's value with its type.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawTask {
    /// The name, unique within the environment. A template's tasks are called `NAME.1`, `NAME.2`, in the order of `each`.
    pub(crate) name: TaskName,
    /// What is asked for.
    pub(crate) kind: RawTaskKind,
    /// The sites that an episode needs.
    #[schemars(length(min = 1))]
    pub(crate) sites: Vec<String>,
    /// As whom the agent is signed in, by site. Default: as nobody.
    pub(crate) accounts: Option<Entries<String>>,
    /// Where the agent begins. Default: the home of the first site.
    pub(crate) start: Option<RawStart>,
    /// The snapshots that sites start from, by site, as `arenad snapshot take` named them. Default: the baseline.
    pub(crate) snapshots: Option<Entries<String>>,
    /// What the agent is told.
    pub(crate) intent: String,
    /// The template's variables, one entry for each task: names of lower-case letters and `_`, and any values.
    #[serde(rename = "each")]
    #[schemars(length(min = 1))]
    pub(crate) _each: Option<Vec<Entries<Json>>>,
    /// Values that are captured when an episode begins, by a name of lower-case letters and `_`.
    pub(crate) before: Option<Entries<Part<RawCapture>>>,
    /// What must hold in the end.
    pub(crate) check: RawCheck,
}

/// What a task asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum RawTaskKind {
    /// An answer that is found on sites.
    Information,
    /// A page.
    Navigation,
    /// A change of what sites hold.
    Content,
    /// Nothing that could be done; the agent has to say so.
    Unachievable,
}

/// Where the agent begins.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawStart {
    /// The site. Default: the first one of the task.
    pub(crate) site: Option<String>,
    /// What follows host and port, beginning with `/`. Default: the site's home.
    pub(crate) path: Option<String>,
}

/// A value that is captured when an episode begins.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawCapture {
    /// The site. Default: the task's only one.
    pub(crate) site: Option<String>,
    /// A locator, or `helper: NAME('text')`. `{name}` is the place of a variable, which is bound.
    pub(crate) locate: String,
    /// As whom the site is looked at, by `http:` and `js:` locators. Default: as nobody.
    pub(crate) account: Option<String>,
    /// The path of the page that a `js:` locator without one looks at.
    pub(crate) page: Option<String>,
}

/// Declares a mapping that has, besides its own keys, one matcher with what belongs to it.
macro_rules! with_matcher {
    ($(#[$doc:meta])* $name:ident { $($(#[$own_doc:meta])* $own:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name {
            $($(#[$own_doc])* pub(crate) $own: $type,)*
            /// The value: a text, number or truth value, a list in its order, `null` for nothing at all. What is expected
            /// decides how the found value is read.
            pub(crate) equals: Option<Json>,
            /// What the text says in whole words, or the list has; or a list of such.
            pub(crate) contains: Option<Json>,
            /// A regular expression that matches somewhere in the text.
            pub(crate) matches: Option<String>,
            /// The number that the value is, or the one number that the text says.
            pub(crate) number: Option<NumberOrVariable>,
            /// With `number`: how far from it is close enough. Default: 0.
            pub(crate) tolerance: Option<NumberOrVariable>,
            /// With `number`: how many hundredths of it are close enough.
            pub(crate) percent: Option<NumberOrVariable>,
            /// The members of a list, each once, in any order.
            pub(crate) set: Option<MembersOrVariable>,
            /// JSON of which everything has to be there: keys may be left out, lists are compared entry by entry.
            pub(crate) json: Option<Json>,
            /// How many rows or members there are: a number, or bounds.
            pub(crate) count: Option<RawCount>,
            /// By how much the number differs from a captured one.
            pub(crate) difference: Option<RawDifference>,
            /// The name of the captured value that it still is.
            pub(crate) same_as: Option<String>,
            /// With `equals`, `contains`, `matches` and `set`: whether capitals do not count. Default: `false`.
            pub(crate) ignore_case: Option<bool>,
        }

        impl $name {
            /// The matcher and what belongs to it.
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

/// A matcher and what belongs to it, wherever it stands.
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
    /// What must hold: exactly one of `all`, `any`, `not`, `answer`, `url` and `locate`, the last with one matcher.
    RawCheck {
        /// What reports call it.
        name: Option<String>,
        /// Every one of these holds.
        all: Option<Vec<Part<RawCheck>>>,
        /// At least one of these holds.
        any: Option<Vec<Part<RawCheck>>>,
        /// This does not hold.
        not: Option<Box<Part<RawCheck>>>,
        /// What the agent says in the end.
        answer: Option<Part<RawAnswer>>,
        /// Where the agent ends.
        url: Option<Part<RawUrl>>,
        /// The site that is looked at. Default: the task's only one.
        site: Option<String>,
        /// A locator, or `helper: NAME('text')`. `{name}` is the place of a variable or a captured value, which is bound.
        locate: Option<String>,
        /// As whom the site is looked at, by `http:` and `js:` locators. Default: as nobody.
        account: Option<String>,
        /// The path of the page that a `js:` locator without one looks at.
        page: Option<String>,
    }
}

with_matcher! {
    /// What the agent says in the end: one matcher. Capitals, white space, quotes around it, a final full stop and the way
    /// of writing a number do not count.
    RawAnswer {
        /// That the task cannot be done, in one of the usual words, such as `N/A`.
        unachievable: Option<bool>,
    }
}

/// Where the agent ends.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawUrl {
    /// The site. Default: the task's only one.
    pub(crate) site: Option<String>,
    /// The path, beginning with `/`; a slash at its end does not count.
    pub(crate) path: Option<String>,
    /// A regular expression that matches somewhere in the path.
    pub(crate) path_matches: Option<String>,
    /// Parameters that the query has, each with this value and no other beside it.
    pub(crate) query: Option<Entries<Scalar>>,
}

/// How many there are.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline, title = "a number, or bounds such as `{ at_least: 1 }`")]
pub(crate) enum RawCount {
    /// So many.
    Exactly(NumberOrVariable),
    /// Between bounds.
    Between(RawBounds),
}

/// From where to where; at least one of both.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawBounds {
    /// The least.
    pub(crate) at_least: Option<NumberOrVariable>,
    /// The most.
    pub(crate) at_most: Option<NumberOrVariable>,
}

/// By how much a number differs from a captured one: `by`, or bounds.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawDifference {
    /// The name of the captured value.
    pub(crate) from: String,
    /// What it has become more; negative for less.
    pub(crate) by: Option<NumberOrVariable>,
    /// The least that it has become more.
    pub(crate) at_least: Option<NumberOrVariable>,
    /// The most that it has become more.
    pub(crate) at_most: Option<NumberOrVariable>,
}
