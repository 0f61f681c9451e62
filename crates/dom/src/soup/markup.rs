//! Python's `html.parser`, as of 3.11: markup to events.
//!
//! It is called as Beautiful Soup calls it: `feed` with the whole text, then `close`, with character references as
//! events of their own.

use std::borrow::Cow;
use std::sync::LazyLock;

use fancy_regex::Regex;

use super::usual::usual_start_tag;

use crate::text::is_space;
use crate::tree::NodeKind;

/// A piece of markup as the parser reports it.
#[derive(Debug)]
pub(super) enum Event<'a> {
    Start { name: String, attributes: Vec<(String, String)>, is_closed: bool },
    End(String),
    Data(Cow<'a, str>),
    Special(NodeKind),
}

fn pattern(text: &str) -> Regex {
    Regex::new(&text.replace(r"\s", r"\s\x1c-\x1f")).expect("a pattern of ours")
}

/// A start tag up to its end. Source: `locatestarttagend_tolerant`; the classes of white space are in brackets.
static WHOLE_START_TAG: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"\A<[a-zA-Z][^\t\n\r\f />\x00]*(?:[\s/]*(?:(?<=['"\s/])[^\s/>][^\s/=>]*(?:[\s]*=+[\s]*(?:'[^']*'|"[^"]*"|(?!['"])[^>\s]*)[\s]*)?(?:[\s]|/(?!>))*)*)?[\s]*"#,
    )
});

/// One attribute, after the character before it. Source: `attrfind_tolerant`.
static ATTRIBUTE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"\A[\x00-\x{10ffff}]((?<=['"\s/])[^\s/>][^\s/=>]*)([\s]*=+[\s]*('[^']*'|"[^"]*"|(?!['"])[^>\s]*))?(?:[\s]|/(?!>))*"#,
    )
});

pub(super) struct Scanner<'a> {
    raw: &'a str,
    at: usize,
    /// The element whose content is text until its end tag.
    verbatim: Option<String>,
}

/// The outcome of reading markup at a place.
enum Found {
    /// Markup that ends there.
    Until(usize),
    /// Markup without an end.
    Unfinished,
    /// Markup at which Python raises.
    Refused,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(raw: &'a str) -> Self {
        Self { raw, at: 0, verbatim: None }
    }

    /// Reports all events; `false` if Python raises.
    pub(super) fn run(&mut self, report: &mut impl FnMut(Event<'a>)) -> bool {
        self.go_ahead(false, report) && self.go_ahead(true, report)
    }

    fn rest(&self, from: usize) -> &'a str {
        &self.raw[from..]
    }

    fn find(&self, what: char, from: usize) -> Option<usize> {
        self.raw.get(from..)?.find(what).map(|found| from + found)
    }

    /// The next place of interest; `None` if there is none.
    fn interesting(&self) -> Option<usize> {
        let Some(name) = &self.verbatim else {
            return self.rest(self.at).find(['&', '<']).map(|found| self.at + found);
        };
        let mut from = self.at;
        while let Some(found) = self.rest(from).find("</").map(|found| from + found) {
            let inside = self.rest(found + 2).trim_start_matches(is_space);
            let named = inside.get(..name.len()).is_some_and(|own| own.eq_ignore_ascii_case(name));
            if named && inside[name.len()..].trim_start_matches(is_space).starts_with('>') {
                return Some(found);
            }
            from = found + 2;
        }
        None
    }

    fn go_ahead(&mut self, is_end: bool, report: &mut impl FnMut(Event<'a>)) -> bool {
        let length = self.raw.len();
        while self.at < length {
            let next = match self.interesting() {
                Some(next) => next,
                None if self.verbatim.is_some() => break,
                None => length,
            };
            if self.at < next {
                report(Event::Data(self.raw[self.at..next].into()));
            }
            self.at = next;
            if self.at == length {
                break;
            }
            if self.rest(self.at).starts_with('<') {
                match self.markup(report) {
                    None => break,
                    Some(Found::Refused) => return false,
                    Some(Found::Until(end)) => self.at = end,
                    Some(Found::Unfinished) if !is_end => break,
                    Some(Found::Unfinished) => {
                        let end = match (self.find('>', self.at + 1), self.find('<', self.at + 1)) {
                            (Some(end), _) => end + 1,
                            (None, Some(end)) => end,
                            (None, None) => self.at + 1,
                        };
                        report(Event::Data(self.raw[self.at..end].into()));
                        self.at = end;
                    }
                }
            } else if !self.reference(is_end, report) {
                break;
            }
        }
        if is_end && self.at < length && self.verbatim.is_none() {
            report(Event::Data(self.rest(self.at).into()));
            self.at = length;
        }
        true
    }

    /// Markup at `<`; `None` if more text is needed to tell.
    fn markup(&mut self, report: &mut impl FnMut(Event<'a>)) -> Option<Found> {
        let rest = self.rest(self.at);
        let second = rest[1..].chars().next();
        Some(if second.is_some_and(|c| c.is_ascii_alphabetic()) {
            self.start_tag(report)
        } else if rest.starts_with("</") {
            self.end_tag(report)
        } else if rest.starts_with("<!--") {
            self.comment(report)
        } else if rest.starts_with("<?") {
            match self.find('>', self.at + 2) {
                None => Found::Unfinished,
                Some(end) => {
                    report(Event::Special(NodeKind::Other));
                    Found::Until(end + 1)
                }
            }
        } else if rest.starts_with("<![") {
            self.marked_section(report)
        } else if rest.starts_with("<!") {
            let is_doctype = rest.get(..9).is_some_and(|own| own.eq_ignore_ascii_case("<!doctype"));
            match self.find('>', self.at + if is_doctype { 9 } else { 2 }) {
                None => Found::Unfinished,
                Some(end) => {
                    report(Event::Special(match is_doctype {
                        true => NodeKind::Other,
                        false => NodeKind::Comment(self.raw[self.at + 2..end].to_owned()),
                    }));
                    Found::Until(end + 1)
                }
            }
        } else if second.is_some() {
            report(Event::Data("<".into()));
            Found::Until(self.at + 1)
        } else {
            return None;
        })
    }

    fn comment(&self, report: &mut impl FnMut(Event<'a>)) -> Found {
        let mut from = self.at + 4;
        while let Some(found) = self.raw.get(from..).and_then(|rest| rest.find("--")).map(|found| from + found) {
            let after = self.rest(found + 2).trim_start_matches(is_space);
            if after.starts_with('>') {
                report(Event::Special(NodeKind::Comment(self.raw[self.at + 4..found].to_owned())));
                return Found::Until(self.raw.len() - after.len() + 1);
            }
            from = found + 1;
        }
        Found::Unfinished
    }

    fn marked_section(&self, report: &mut impl FnMut(Event<'a>)) -> Found {
        let begin = self.at + 3;
        let rest = self.rest(begin);
        if rest.is_empty() {
            return Found::Unfinished;
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if !rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Found::Refused;
        }
        let name = &rest[..rest.find(|c| !is_name(c)).unwrap_or(rest.len())];
        if rest[name.len()..].trim_start_matches(is_space).is_empty() {
            return Found::Unfinished;
        }
        let brackets = match name.to_ascii_lowercase().as_str() {
            "temp" | "cdata" | "ignore" | "include" | "rcdata" => 2,
            "if" | "else" | "endif" => 1,
            _ => return Found::Refused,
        };
        for (found, _) in rest.match_indices(']') {
            let mut after = &rest[found + 1..];
            if brackets == 2 {
                match after.trim_start_matches(is_space).strip_prefix(']') {
                    Some(next) => after = next,
                    None => continue,
                }
            }
            let after = after.trim_start_matches(is_space);
            if after.starts_with('>') {
                let content = &rest[..found];
                let is_cdata = content.get(..6).is_some_and(|own| own.eq_ignore_ascii_case("cdata["));
                report(Event::Special(if is_cdata {
                    NodeKind::CData(content[6..].to_owned())
                } else {
                    NodeKind::Other
                }));
                return Found::Until(self.raw.len() - after.len() + 1);
            }
        }
        Found::Unfinished
    }

    fn end_tag(&mut self, report: &mut impl FnMut(Event<'a>)) -> Found {
        let Some(close) = self.find('>', self.at + 1) else { return Found::Unfinished };
        let inside = &self.raw[self.at + 2..close];
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-.:_".contains(c);
        let name = inside.trim_matches(is_space);
        if !name.is_empty() && name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(is_name) {
            let name = name.to_ascii_lowercase();
            if self.verbatim.as_ref().is_some_and(|open| *open != name) {
                report(Event::Data(self.raw[self.at..=close].into()));
                return Found::Until(close + 1);
            }
            report(Event::End(name));
            self.verbatim = None;
            return Found::Until(close + 1);
        }
        if self.verbatim.is_some() {
            report(Event::Data(self.raw[self.at..=close].into()));
            return Found::Until(close + 1);
        }
        let rest = self.rest(self.at + 2);
        if !rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
            if rest.starts_with('>') {
                return Found::Until(self.at + 3);
            }
            report(Event::Special(NodeKind::Comment(inside.to_owned())));
            return Found::Until(close + 1);
        }
        let (name, after) = tag_name(rest);
        // The `>` is searched for after the name and the slashes; there is one, because there is one after `</`.
        let after = self.at + 2 + after;
        let Some(end) = self.find('>', after) else { return Found::Until(self.raw.len()) };
        report(Event::End(name));
        Found::Until(end + 1)
    }

    fn start_tag(&mut self, report: &mut impl FnMut(Event<'a>)) -> Found {
        if let Some(tag) = usual_start_tag(self.rest(self.at)) {
            let end = self.at + tag.length;
            self.report_start(tag.name, tag.attributes, tag.is_closed, report);
            return Found::Until(end);
        }
        self.unusual_start_tag(report)
    }

    fn report_start(
        &mut self,
        name: String,
        attributes: Vec<(String, String)>,
        is_closed: bool,
        report: &mut impl FnMut(Event<'a>),
    ) {
        if !is_closed && matches!(name.as_str(), "script" | "style") {
            self.verbatim = Some(name.clone());
        }
        report(Event::Start { name, attributes, is_closed });
    }

    fn unusual_start_tag(&mut self, report: &mut impl FnMut(Event<'a>)) -> Found {
        let end = match self.whole_start_tag() {
            Ok(end) => end,
            Err(found) => return found,
        };
        let tag = &self.raw[self.at..end];
        let (name, after) = tag_name(&tag[1..]);
        let mut at = 1 + after;
        let mut attributes: Vec<(String, String)> = Vec::new();
        while at < tag.len() {
            let before = tag[..at].char_indices().next_back().map_or(0, |(before, _)| before);
            // Python matches on the whole text: an attribute's value may go beyond the tag.
            let Ok(Some(found)) = ATTRIBUTE.captures(&self.raw[self.at + before..]) else { break };
            let (Some(whole), Some(attribute)) = (found.get(0), found.get(1)) else { break };
            let value = match (found.get(2), found.get(3)) {
                (Some(rest), Some(value)) if !rest.as_str().is_empty() => unquoted(value.as_str()),
                _ => "",
            };
            set(&mut attributes, attribute.as_str().to_lowercase(), htmlize::unescape(value).into_owned());
            at = before + whole.end();
        }
        let close = tag.get(at..).unwrap_or_default().trim_matches(is_space);
        if close != ">" && close != "/>" {
            report(Event::Data(tag.into()));
            return Found::Until(end);
        }
        self.report_start(name, attributes, close == "/>", report);
        Found::Until(end)
    }

    fn whole_start_tag(&self) -> Result<usize, Found> {
        let rest = self.rest(self.at);
        let matched = match WHOLE_START_TAG.find(rest) {
            Ok(Some(found)) => found.end(),
            _ => return Err(Found::Unfinished),
        };
        let after = &rest[matched..];
        match after.chars().next() {
            Some('>') => Ok(self.at + matched + 1),
            Some('/') if after.starts_with("/>") => Ok(self.at + matched + 2),
            None | Some('/' | '=') => Err(Found::Unfinished),
            Some(c) if c.is_ascii_alphabetic() => Err(Found::Unfinished),
            Some(_) => Ok(self.at + matched),
        }
    }

    /// A character reference at `&`; `false` if the loop ends here.
    fn reference(&mut self, is_end: bool, report: &mut impl FnMut(Event<'a>)) -> bool {
        let rest = self.rest(self.at);
        if let Some(number) = rest.strip_prefix("&#") {
            let is_hex = number.starts_with(['x', 'X']);
            let digits = &number[usize::from(is_hex)..];
            let is_digit = |c: char| if is_hex { c.is_ascii_hexdigit() } else { c.is_ascii_digit() };
            let count = digits.find(|c| !is_digit(c)).unwrap_or(digits.len());
            // The character after a number must not be a hexadecimal digit either.
            let ends = digits[count..].chars().next().is_some_and(|c| !c.is_ascii_hexdigit());
            if count > 0 && ends {
                let length = 2 + usize::from(is_hex) + count;
                report(Event::Data(htmlize::unescape(format!("{};", &rest[..length])).into_owned().into()));
                self.at += length + usize::from(rest[length..].starts_with(';'));
                return true;
            }
            if rest.contains(';') {
                report(Event::Data("&#".into()));
                self.at += 2;
            }
            return false;
        }
        let name = &rest[1..];
        if name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            let is_name = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
            let mut count = name.find(|c| !is_name(c)).unwrap_or(name.len());
            if count == name.len() {
                // The pattern needs a character after the name that is not alphanumeric, and gives back a dash or a dot.
                match name.rfind(['-', '.']) {
                    Some(last) => count = last,
                    None => count = 0,
                }
            }
            if count > 0 {
                let entity = &name[..count];
                let resolved = htmlize::unescape(format!("&{entity};")).into_owned();
                // A name that is not known may begin with a known one, which is resolved then.
                let is_known = entity == "semi" || !resolved.ends_with(';');
                report(Event::Data(if is_known { resolved } else { format!("&{entity}") }.into()));
                self.at += 1 + count + usize::from(name[count..].starts_with(';'));
                return true;
            }
            if is_end && name.chars().count() == 1 {
                self.at += 1;
            }
            return false;
        }
        if !name.is_empty() {
            report(Event::Data("&".into()));
            self.at += 1;
            return true;
        }
        false
    }
}

/// Sets an attribute. The last value of a name counts, at the place of the first.
pub(super) fn set(attributes: &mut Vec<(String, String)>, name: String, value: String) {
    match attributes.iter_mut().find(|(known, _)| *known == name) {
        Some((_, known)) => *known = value,
        None => attributes.push((name, value)),
    }
}

/// The name of a tag in lower case, and the place after it, its white space and its slashes. Source: `tagfind_tolerant`.
fn tag_name(text: &str) -> (String, usize) {
    let is_end = |c: char| "\t\n\r\u{c} />\0".contains(c);
    let length = text.find(is_end).unwrap_or(text.len());
    let mut after = length;
    let mut rest = text[length..].chars().peekable();
    while let Some(c) = rest.next() {
        let is_slash = c == '/' && rest.peek() != Some(&'>');
        if !is_space(c) && !is_slash {
            break;
        }
        after += c.len_utf8();
    }
    (text[..length].to_lowercase(), after)
}

/// Removes a pair of quotes.
fn unquoted(value: &str) -> &str {
    let quote = ['\'', '"'].into_iter().find(|quote| value.starts_with(*quote) && value.ends_with(*quote));
    match quote {
        Some(_) if value.len() >= 2 => &value[1..value.len() - 1],
        Some(_) => "",
        None => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The events of markup without the shortcut for usual tags, or with it.
    fn events(raw: &str, has_shortcut: bool) -> Vec<String> {
        let mut found = Vec::new();
        let mut scanner = Scanner::new(raw);
        let mut note = |event: Event<'_>| found.push(format!("{event:?}"));
        match has_shortcut {
            true => scanner.start_tag(&mut note),
            false => scanner.unusual_start_tag(&mut note),
        };
        found
    }

    /// Tags are put together from pieces, so that usual and unusual ones occur in all orders.
    #[test]
    fn the_shortcut_reads_tags_as_the_patterns_do() {
        const NAMES: [&str; 6] = ["a", "DIV", "x-y:z.1", "script", "p\u{e9}", "b_"];
        const PIECES: [&str; 34] = [
            " ",
            "\n",
            "\t ",
            "\u{b}",
            "\u{1c}",
            "/",
            "/>",
            ">",
            ">",
            " href",
            " Class",
            "id",
            "=",
            " = ",
            "=\"x y\"",
            "='z'",
            "=\"\"",
            "=\"a>b\"",
            "=\"a&amp;b&copy;&#x41;\"",
            "=v",
            "=v/",
            "=\"open",
            "='open",
            "\"",
            "'",
            "<",
            " @on.x-1",
            " :b",
            " data-é",
            "=é",
            "=\"é\"",
            " a=\"1\" a=\"2\"",
            "&",
            "=a=b",
        ];
        let mut state: u64 = 4_321;
        let mut below = |limit: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).expect("31 bits") % limit
        };
        let mut usual = 0;
        for _ in 0..60_000 {
            let mut tag = format!("<{}", NAMES[below(NAMES.len())]);
            for _ in 0..below(7) {
                tag.push_str(PIECES[below(PIECES.len())]);
            }
            tag.push_str(["", ">", ">", ">", "/>", " />text<b>"][below(6)]);
            usual += usize::from(usual_start_tag(&tag).is_some());
            assert_eq!(events(&tag, true), events(&tag, false), "{tag:?}");
        }
        assert!(usual > 10_000, "{usual} tags were usual");
    }
}
