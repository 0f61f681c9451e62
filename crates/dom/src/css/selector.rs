//! A selector after parsing.

/// A selector that soupsieve refuses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the selector {selector:?} is malformed at character {at}: {what}")]
pub struct SelectorError {
    pub(super) selector: String,
    pub(super) at: usize,
    pub(super) what: String,
}

/// Alternatives, of which one has to match.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct SelectorList {
    pub(super) alternatives: Vec<Compound>,
    /// Of `:not()`: none of the alternatives may match.
    pub(super) is_not: bool,
}

/// The conditions on one element.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Compound {
    pub(super) tag: Option<TagTest>,
    pub(super) ids: Vec<String>,
    pub(super) classes: Vec<String>,
    pub(super) attributes: Vec<AttributeTest>,
    pub(super) nth: Vec<Nth>,
    /// Lists of `:is()`, `:not()` and `:has()`, all of which have to match.
    pub(super) lists: Vec<SelectorList>,
    /// The related element that has to exist.
    pub(super) relation: Option<Box<Relation>>,
    /// Texts, one of each entry of which has to occur.
    pub(super) contains: Vec<Contains>,
    /// Ranges of languages, one of each entry of which has to fit.
    pub(super) languages: Vec<Vec<String>>,
    pub(super) flags: Vec<Flag>,
    /// A pseudo-class that nothing matches outside of a browser.
    pub(super) is_void: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct TagTest {
    /// `None` without a `|`.
    pub(super) prefix: Option<String>,
    /// The name, or `*`.
    pub(super) name: String,
}

/// The place of a related element, as seen from the element that is tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Ancestor,
    Parent,
    EarlierSibling,
    PreviousSibling,
    Descendant,
    Child,
    LaterSibling,
    NextSibling,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Relation {
    pub(super) place: Place,
    pub(super) other: Compound,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct AttributeTest {
    pub(super) name: String,
    pub(super) ignores_case: bool,
    pub(super) test: ValueTest,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum ValueTest {
    Exists,
    Equals(String),
    Differs(String),
    Begins(String),
    Ends(String),
    Includes(String),
    Word(String),
    Dashed(String),
}

/// `:nth-child(an+b of S)` and its relatives.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Nth {
    pub(super) step: i64,
    pub(super) offset: i64,
    pub(super) of_type: bool,
    pub(super) from_end: bool,
    pub(super) of: Option<SelectorList>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Contains {
    pub(super) texts: Vec<String>,
    pub(super) own: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flag {
    Root,
    Scope,
    Empty,
    Defined,
}
