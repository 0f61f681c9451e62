//! Reads selectors. The order in which pieces are tried, and the places where selectors are refused, are soupsieve's.

use super::selector::{
    AttributeTest, Compound, Contains, Flag, Nth, Place, Relation, SelectorError, SelectorList, TagTest, ValueTest,
};
use super::tokens::Cursor;
use crate::text::lower;

/// Pseudo-classes without arguments that nothing matches outside of a browser.
const VOID: [&str; 25] = [
    ":active",
    ":autofill",
    ":buffering",
    ":current",
    ":focus",
    ":focus-visible",
    ":focus-within",
    ":fullscreen",
    ":future",
    ":host",
    ":hover",
    ":local-link",
    ":past",
    ":paused",
    ":picture-in-picture",
    ":playing",
    ":popover-open",
    ":seeking",
    ":stalled",
    ":target",
    ":target-within",
    ":user-invalid",
    ":volume-locked",
    ":visited",
    ":indeterminate",
];

/// Attributes whose values are compared without regard to case in HTML.
const CASELESS: [&str; 46] = [
    "accept",
    "accept-charset",
    "align",
    "alink",
    "axis",
    "bgcolor",
    "charset",
    "checked",
    "clear",
    "codetype",
    "color",
    "compact",
    "declare",
    "defer",
    "dir",
    "direction",
    "disabled",
    "enctype",
    "face",
    "frame",
    "hreflang",
    "http-equiv",
    "lang",
    "language",
    "link",
    "media",
    "method",
    "multiple",
    "nohref",
    "noresize",
    "noshade",
    "nowrap",
    "readonly",
    "rel",
    "rev",
    "rules",
    "scope",
    "scrolling",
    "selected",
    "shape",
    "target",
    "text",
    "type",
    "valign",
    "valuetype",
    "vlink",
];

/// Pseudo-classes that stand for other selectors.
fn written_out(pseudo: &str) -> Option<&'static str> {
    Some(match pseudo {
        ":link" | ":any-link" => ":is(a, area)[href]",
        ":checked" => "input[type=checkbox][checked], input[type=radio][checked], option[selected]",
        ":disabled" => {
            ":is(input, button, select, textarea, fieldset, optgroup, option)[disabled], \
             optgroup[disabled] > option, \
             fieldset[disabled] > :is(input, button, select, textarea, fieldset), \
             fieldset[disabled] > :not(legend:nth-of-type(1)) :is(input, button, select, textarea, fieldset), \
             :is(select[disabled], fieldset[disabled] > select, \
             fieldset[disabled] > :not(legend:nth-of-type(1)) select) :is(optgroup, option)"
        }
        ":enabled" => ":is(input, button, select, textarea, fieldset, optgroup, option):not(:disabled)",
        ":required" => {
            "input:not([type=hidden], [type=range], [type=color], [type=submit], [type=image], [type=reset], \
             [type=button])[required], :is(textarea, select)[required]"
        }
        ":optional" => {
            ":is(input, textarea, select):not([required]), input:is([type=hidden], [type=range], [type=color], \
             [type=submit], [type=image], [type=reset], [type=button])"
        }
        ":open" => ":is(details, dialog)[open]",
        ":muted" => ":is(video, audio)[muted]",
        _ => return None,
    })
}

/// The construct that a list is part of, which decides how it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    /// The whole selector, outside of any pseudo-class.
    Top,
    /// `:not(`, `:matches(` or `of S`.
    Pseudo,
    /// `:is(` or `:where(`, which may have empty places.
    Forgiving,
    /// `:has(`, whose alternatives may begin with a combinator.
    Has,
}

/// The depth of nested lists: soupsieve counts selectors instead, and refuses far more than anybody writes.
const DEPTH_MAX: usize = 64;

/// The length of a selector in bytes, so that its parts fit on the stack.
const LENGTH_MAX: usize = 8192;

pub(super) fn parse(selector: &str) -> Result<SelectorList, SelectorError> {
    if selector.len() > LENGTH_MAX {
        let what = "it is too long".to_owned();
        return Err(SelectorError { selector: selector.chars().take(80).collect(), at: LENGTH_MAX, what });
    }
    let mut parser = Parser { selector, cursor: Cursor::new(selector), in_has: false, depth: 0 };
    parser.list(Within::Top)
}

struct Parser<'a> {
    selector: &'a str,
    cursor: Cursor,
    in_has: bool,
    depth: usize,
}

/// One alternative while it is read: the compounds so far, each with the combinator after it.
#[derive(Default)]
struct Chain {
    earlier: Vec<(Compound, char)>,
    /// The combinator that a relative selector begins with.
    leading: Option<char>,
}

impl Parser<'_> {
    fn refuse<T>(&self, what: &str) -> Result<T, SelectorError> {
        Err(SelectorError { selector: self.selector.to_owned(), at: self.cursor.at, what: what.to_owned() })
    }

    fn list(&mut self, within: Within) -> Result<SelectorList, SelectorError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return self.refuse("too many nested lists");
        }
        let mut alternatives = Vec::new();
        let mut chain = Chain::default();
        let mut compound = Compound::default();
        let mut has_any = false;
        loop {
            let begin = self.cursor.at;
            // White space and comments before a closing parenthesis belong to it.
            if within != Within::Top {
                self.cursor.spaces();
                if self.cursor.takes(')') {
                    break;
                }
                self.cursor.at = begin;
            }
            if self.cursor.is_done() {
                if within != Within::Top {
                    return self.refuse("a pseudo-class is not closed");
                }
                break;
            }
            if self.piece(&mut compound, has_any)? {
                has_any = true;
                continue;
            }
            match self.combinator()? {
                None => {}
                Some(combinator) => {
                    self.combined(combinator, within, &mut chain, &mut compound, &mut has_any, &mut alternatives)?;
                }
            }
        }
        self.finished(within, chain, compound, has_any, &mut alternatives)?;
        self.depth -= 1;
        Ok(SelectorList { alternatives, is_not: false })
    }

    /// Reads the comments, white space and combinator at this place. `None` means that they have no meaning here: at the
    /// start or end of the selector, or comments alone.
    fn combinator(&mut self) -> Result<Option<char>, SelectorError> {
        let begin = self.cursor.at;
        while self.cursor.comment() {}
        let has_space = self.cursor.space();
        if has_space {
            self.cursor.spaces();
        }
        let sign = self.cursor.peek().filter(|c| matches!(c, ',' | '+' | '>' | '~'));
        if sign.is_some() {
            self.cursor.at += 1;
        }
        self.cursor.spaces();
        if self.cursor.at == begin {
            return self.refuse("this character cannot stand here");
        }
        if begin == 0 || self.cursor.is_done() {
            return match sign {
                Some(_) => {
                    self.cursor.at = begin;
                    self.refuse("a combinator needs a selector on both sides")
                }
                None => Ok(None),
            };
        }
        Ok(sign.or(has_space.then_some(' ')))
    }

    fn combined(
        &mut self,
        combinator: char,
        within: Within,
        chain: &mut Chain,
        compound: &mut Compound,
        has_any: &mut bool,
        alternatives: &mut Vec<Compound>,
    ) -> Result<(), SelectorError> {
        if within == Within::Has {
            if combinator == ',' {
                if !*has_any {
                    return self.refuse("a combinator needs a selector before it");
                }
                alternatives.push(related(std::mem::take(chain), std::mem::take(compound)));
            } else if *has_any {
                chain.earlier.push((std::mem::take(compound), combinator));
            } else {
                // A second combinator in a row, unless the first one is the implied white space.
                let last = chain.earlier.last().map(|(_, last)| *last).or(chain.leading);
                if last.is_some_and(|last| last != ' ') {
                    return self.refuse("two combinators follow each other");
                }
                match chain.earlier.last_mut() {
                    Some((_, last)) => *last = combinator,
                    None => chain.leading = Some(combinator),
                }
            }
            *has_any = false;
            return Ok(());
        }
        match (*has_any, combinator) {
            (false, ',') if within == Within::Forgiving => *chain = Chain::default(),
            (false, _) => return self.refuse("a combinator needs a selector before it"),
            (true, ',') => alternatives.push(linked(std::mem::take(chain), std::mem::take(compound))),
            (true, _) => chain.earlier.push((std::mem::take(compound), combinator)),
        }
        *compound = Compound::default();
        *has_any = false;
        Ok(())
    }

    fn finished(
        &mut self,
        within: Within,
        chain: Chain,
        mut compound: Compound,
        has_any: bool,
        alternatives: &mut Vec<Compound>,
    ) -> Result<(), SelectorError> {
        if has_any {
            alternatives.push(match within {
                Within::Has => related(chain, compound),
                _ => linked(chain, compound),
            });
        } else if within == Within::Forgiving && (alternatives.is_empty() || chain.earlier.is_empty()) {
            compound.is_void = true;
            alternatives.push(compound);
        } else {
            return self.refuse("a selector is missing");
        }
        Ok(())
    }

    /// Reads one condition; `false` if there is none at this place.
    fn piece(&mut self, compound: &mut Compound, has_any: bool) -> Result<bool, SelectorError> {
        match self.cursor.peek() {
            Some(':') => self.pseudo(compound)?,
            Some('&') => {
                self.cursor.at += 1;
                compound.flags.push(Flag::Scope);
            }
            Some('#') => {
                self.cursor.at += 1;
                match self.cursor.identifier() {
                    Some(id) => compound.ids.push(id),
                    None => return self.refuse("an id is missing"),
                }
            }
            Some('.') => {
                self.cursor.at += 1;
                match self.cursor.identifier() {
                    Some(class) => compound.classes.push(class),
                    None => return self.refuse("a class is missing"),
                }
            }
            Some('[') => self.attribute(compound)?,
            _ => {
                let Some(tag) = self.tag() else { return Ok(false) };
                if has_any {
                    return self.refuse("the name of an element has to come first");
                }
                compound.tag = Some(tag);
            }
        }
        Ok(true)
    }

    fn tag(&mut self) -> Option<TagTest> {
        let begin = self.cursor.at;
        let first = self.name_or_any();
        let after = self.cursor.at;
        if self.cursor.takes('|')
            && let Some(name) = self.name_or_any()
        {
            return Some(TagTest { prefix: Some(first.unwrap_or_default()), name });
        }
        self.cursor.at = after;
        match first {
            Some(name) => Some(TagTest { prefix: None, name }),
            None => {
                self.cursor.at = begin;
                None
            }
        }
    }

    fn name_or_any(&mut self) -> Option<String> {
        if self.cursor.takes('*') { Some("*".to_owned()) } else { self.cursor.identifier() }
    }

    fn attribute(&mut self, compound: &mut Compound) -> Result<(), SelectorError> {
        self.cursor.at += 1;
        self.cursor.spaces();
        let begin = self.cursor.at;
        let prefix = self.name_or_any();
        let has_prefix = self.cursor.peek() == Some('|') && self.cursor.ahead(1) != Some('=');
        if has_prefix {
            self.cursor.at += 1;
        } else {
            self.cursor.at = begin;
        }
        let _ = prefix;
        let Some(name) = self.cursor.identifier() else { return self.refuse("the name of an attribute is missing") };
        let after_name = self.cursor.clone();
        self.cursor.spaces();
        let sign = self.cursor.peek().filter(|c| "!~^|*$".contains(*c) && self.cursor.ahead(1) == Some('='));
        self.cursor.at += usize::from(sign.is_some());
        let mut ignores_case = CASELESS.contains(&lower(&name).as_str());
        let mut test = ValueTest::Exists;
        if self.cursor.takes('=') {
            self.cursor.spaces();
            let Some(value) = self.cursor.value() else { return self.refuse("the value of an attribute is missing") };
            let after_value = self.cursor.clone();
            self.cursor.spaces();
            match self.cursor.peek() {
                Some(case @ ('i' | 's' | 'I' | 'S')) => {
                    self.cursor.at += 1;
                    ignores_case = case.eq_ignore_ascii_case(&'i');
                }
                _ => self.cursor = after_value,
            }
            let value = if ignores_case { lower(&value) } else { value };
            test = match sign {
                Some('!') => ValueTest::Differs(value),
                Some('~') => ValueTest::Word(value),
                Some('^') => ValueTest::Begins(value),
                Some('|') => ValueTest::Dashed(value),
                Some('*') => ValueTest::Includes(value),
                Some('$') => ValueTest::Ends(value),
                _ => ValueTest::Equals(value),
            };
        } else if sign.is_some() {
            self.cursor = after_name;
        }
        self.cursor.spaces();
        if !self.cursor.takes(']') {
            return self.refuse("an attribute selector is not closed");
        }
        compound.attributes.push(AttributeTest { name, ignores_case, test });
        Ok(())
    }

    fn pseudo(&mut self, compound: &mut Compound) -> Result<(), SelectorError> {
        let begin = self.cursor.at;
        self.cursor.at += 1;
        let Some(name) = self.cursor.identifier() else {
            self.cursor.at = begin;
            return self.refuse("the name of a pseudo-class is missing, or this is a pseudo-element");
        };
        let name = format!(":{}", lower(&name));
        let is_open = self.cursor.takes('(');
        if is_open {
            self.cursor.spaces();
        }
        match (name.as_str(), is_open) {
            (":nth-child" | ":nth-last-child" | ":nth-of-type" | ":nth-last-of-type", true) => {
                compound.nth.push(self.nth(&name)?);
            }
            (":contains" | ":-soup-contains" | ":-soup-contains-own", true) => {
                let texts = self.values()?;
                compound.contains.push(Contains { texts, own: name == ":-soup-contains-own" });
            }
            (":lang", true) => compound.languages.push(self.values()?),
            (":dir", true) => return self.refuse("`:dir()` is not supported here"),
            (":is" | ":where", true) => compound.lists.push(self.list(Within::Forgiving)?),
            (":matches", true) => compound.lists.push(self.list(Within::Pseudo)?),
            (":not", true) => compound.lists.push(SelectorList { is_not: true, ..self.list(Within::Pseudo)? }),
            (":has", true) => {
                if self.in_has {
                    return self.refuse("`:has()` cannot be inside `:has()`");
                }
                self.in_has = true;
                let list = self.list(Within::Has);
                self.in_has = false;
                compound.lists.push(list?);
            }
            (":current" | ":host" | ":host-context", true) => {
                self.list(Within::Pseudo)?;
                compound.is_void = true;
            }
            (_, true) => return self.refuse("this pseudo-class takes no argument, or does not exist"),
            (":root", false) => compound.flags.push(Flag::Root),
            (":scope", false) => compound.flags.push(Flag::Scope),
            (":empty", false) => compound.flags.push(Flag::Empty),
            (":defined", false) => compound.flags.push(Flag::Defined),
            (":first-child" | ":last-child" | ":first-of-type" | ":last-of-type", false) => {
                compound.nth.push(end(name.ends_with("of-type"), name.starts_with(":last")));
            }
            (":only-child" | ":only-of-type", false) => {
                compound.nth.extend([false, true].map(|from_end| end(name.ends_with("of-type"), from_end)));
            }
            (simple, false) => match written_out(simple) {
                Some(text) => compound.lists.push(parse(text)?),
                None if VOID.contains(&simple) => compound.is_void = true,
                None => {
                    self.cursor.at = begin;
                    return self
                        .refuse("this pseudo-class does not exist, or needs an argument, or is not supported here");
                }
            },
        }
        Ok(())
    }

    fn values(&mut self) -> Result<Vec<String>, SelectorError> {
        let mut values = Vec::new();
        loop {
            match self.cursor.value() {
                Some(value) => values.push(value),
                None => return self.refuse("a text in quotes is expected"),
            }
            self.cursor.spaces();
            if self.cursor.takes(')') {
                return Ok(values);
            }
            if !self.cursor.takes(',') {
                return self.refuse("a comma or a closing parenthesis is expected");
            }
            self.cursor.spaces();
        }
    }

    fn nth(&mut self, name: &str) -> Result<Nth, SelectorError> {
        let (step, offset) = self.formula()?;
        let of_type = name.ends_with("of-type");
        let mut nth = Nth { step, offset, of_type, from_end: name.contains("last"), of: None };
        let after = self.cursor.at;
        self.cursor.spaces();
        if self.cursor.takes(')') {
            return Ok(nth);
        }
        let has_space = self.cursor.at > after;
        if of_type || !has_space || !self.cursor.word("of") {
            return self.refuse("a closing parenthesis is expected");
        }
        let after = self.cursor.at;
        self.cursor.spaces();
        if self.cursor.at == after {
            return self.refuse("white space is expected after `of`");
        }
        nth.of = Some(self.list(Within::Pseudo)?);
        Ok(nth)
    }

    /// `an+b`, `even` or `odd`.
    fn formula(&mut self) -> Result<(i64, i64), SelectorError> {
        let sign = |cursor: &mut Cursor| {
            let is_minus = cursor.takes('-');
            (is_minus || cursor.takes('+'), if is_minus { -1 } else { 1 })
        };
        let before = self.cursor.at;
        if self.cursor.word("even") {
            return Ok((2, 0));
        }
        if self.cursor.word("odd") {
            return Ok((2, 1));
        }
        self.cursor.at = before;
        let (_, first) = sign(&mut self.cursor);
        let digits = self.cursor.digits();
        let has_n = self.cursor.word("n");
        if !has_n {
            return match digits {
                Some(offset) => Ok((0, first * offset)),
                None => self.refuse("a number, `even`, `odd` or a formula such as `2n+1` is expected"),
            };
        }
        let step = first * digits.unwrap_or(1);
        let after = self.cursor.at;
        self.cursor.spaces();
        let (has_sign, second) = sign(&mut self.cursor);
        if has_sign {
            self.cursor.spaces();
            if let Some(offset) = self.cursor.digits() {
                return Ok((step, second * offset));
            }
        }
        self.cursor.at = after;
        Ok((step, 0))
    }
}

fn end(of_type: bool, from_end: bool) -> Nth {
    Nth { step: 0, offset: 1, of_type, from_end, of: None }
}

/// Returns the last compound of a chain, related to the ones before it.
fn linked(chain: Chain, last: Compound) -> Compound {
    let mut before: Option<Box<Relation>> = None;
    for (mut compound, combinator) in chain.earlier {
        compound.relation = before;
        let place = match combinator {
            '>' => Place::Parent,
            '~' => Place::EarlierSibling,
            '+' => Place::PreviousSibling,
            _ => Place::Ancestor,
        };
        before = Some(Box::new(Relation { place, other: compound }));
    }
    Compound { relation: before, ..last }
}

/// Returns an alternative of `:has()` as a condition on the element that has the others.
fn related(chain: Chain, last: Compound) -> Compound {
    let place = |combinator: char| match combinator {
        '>' => Place::Child,
        '~' => Place::LaterSibling,
        '+' => Place::NextSibling,
        _ => Place::Descendant,
    };
    let mut combinators = vec![chain.leading.unwrap_or(' ')];
    let mut compounds = Vec::new();
    for (compound, combinator) in chain.earlier {
        compounds.push(compound);
        combinators.push(combinator);
    }
    compounds.push(last);
    let mut out = Compound::default();
    for (compound, combinator) in compounds.into_iter().zip(combinators).rev() {
        let other = Compound { relation: out.relation.take(), ..compound };
        out.relation = Some(Box::new(Relation { place: place(combinator), other }));
    }
    out
}
