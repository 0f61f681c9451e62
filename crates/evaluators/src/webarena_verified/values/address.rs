//! `full_address`: an address in the United States, abbreviated as the Postal Service does.
//!
//! The benchmark parses the street line with a trained model (usaddress), which this crate does not contain. The model
//! parses lines of the plain form (number, direction, name, kind of street) in a single way; other lines are
//! unsupported. Source of the abbreviations: USPS Publication 28, as usaddress-scourgify 0.6 applies it.

use serde_json::{Map, Value, json};

use super::{Normal, location, normalise_text};
use crate::text::python::{self, is_falsy};
use crate::webarena_verified::failure::ReadingFailure;
use crate::webarena_verified::reading::ReadingOptions;

/// An address, each part in its normal form.
#[derive(Debug, Clone)]
pub(in super::super) struct PostalAddress {
    house_number: String,
    street: String,
    city: String,
    state: String,
    postcode: String,
    /// Shown in reports; ignored by the comparison.
    name: Option<String>,
}

impl PartialEq for PostalAddress {
    fn eq(&self, other: &Self) -> bool {
        let counted = |address: &Self| {
            [&address.house_number, &address.street, &address.city, &address.state, &address.postcode]
                .map(String::clone)
        };
        counted(self) == counted(other)
    }
}

const DIRECTIONS: [(&str, &str); 8] = [
    ("east", "e"),
    ("west", "w"),
    ("north", "n"),
    ("south", "s"),
    ("northeast", "ne"),
    ("northwest", "nw"),
    ("southeast", "se"),
    ("southwest", "sw"),
];

/// Words that always denote a kind of street, with their abbreviations.
const KINDS: [(&str, &str); 16] = [
    ("alley", "aly"),
    ("avenue", "ave"),
    ("boulevard", "blvd"),
    ("circle", "cir"),
    ("court", "ct"),
    ("drive", "dr"),
    ("highway", "hwy"),
    ("lane", "ln"),
    ("parkway", "pkwy"),
    ("place", "pl"),
    ("plaza", "plz"),
    ("road", "rd"),
    ("square", "sq"),
    ("street", "st"),
    ("terrace", "ter"),
    ("way", "way"),
];

/// Words that the model may take for a kind of street if they follow a direction.
const AMBIGUOUS: [&str; 24] = [
    "bay", "beach", "bend", "center", "cliff", "creek", "falls", "forest", "fort", "garden", "grove", "hill", "lake",
    "meadow", "mill", "mount", "park", "point", "port", "ridge", "river", "spring", "summit", "valley",
];

const STATES: [(&str, &str); 50] = [
    ("alabama", "AL"),
    ("alaska", "AK"),
    ("arizona", "AZ"),
    ("arkansas", "AR"),
    ("california", "CA"),
    ("colorado", "CO"),
    ("connecticut", "CT"),
    ("delaware", "DE"),
    ("florida", "FL"),
    ("georgia", "GA"),
    ("hawaii", "HI"),
    ("idaho", "ID"),
    ("illinois", "IL"),
    ("indiana", "IN"),
    ("iowa", "IA"),
    ("kansas", "KS"),
    ("kentucky", "KY"),
    ("louisiana", "LA"),
    ("maine", "ME"),
    ("maryland", "MD"),
    ("massachusetts", "MA"),
    ("michigan", "MI"),
    ("minnesota", "MN"),
    ("mississippi", "MS"),
    ("missouri", "MO"),
    ("montana", "MT"),
    ("nebraska", "NE"),
    ("nevada", "NV"),
    ("new hampshire", "NH"),
    ("new jersey", "NJ"),
    ("new mexico", "NM"),
    ("new york", "NY"),
    ("north carolina", "NC"),
    ("north dakota", "ND"),
    ("ohio", "OH"),
    ("oklahoma", "OK"),
    ("oregon", "OR"),
    ("pennsylvania", "PA"),
    ("rhode island", "RI"),
    ("south carolina", "SC"),
    ("south dakota", "SD"),
    ("tennessee", "TN"),
    ("texas", "TX"),
    ("utah", "UT"),
    ("vermont", "VT"),
    ("virginia", "VA"),
    ("washington", "WA"),
    ("west virginia", "WV"),
    ("wisconsin", "WI"),
    ("wyoming", "WY"),
];

impl PostalAddress {
    pub(super) fn to_json(&self) -> Value {
        json!({
            "house_number": self.house_number, "street": self.street, "city": self.city, "state": self.state,
            "postcode": self.postcode, "name": self.name,
        })
    }
}

pub(super) fn normalise(value: &Value, reading: &ReadingOptions<'_>) -> Result<Normal, ReadingFailure> {
    let parts = value.as_object().ok_or_else(|| ReadingFailure::raised(format!("{value} is not an address")))?;
    // Python formats number and street as texts; it uses the other parts as they are.
    let pasted = |name: &str| part(parts, name).map(python::to_str);
    let (number, street) = (pasted("house_number")?, pasted("street")?);
    let text = |name: &str| {
        let value = part(parts, name)?;
        match value.as_str().map(str::trim) {
            _ if is_falsy(value) => Err(ReadingFailure::raised(format!("an address needs its {name}"))),
            Some(text) => Ok(text.to_lowercase()),
            None if value.is_u64() => Ok(value.to_string()),
            None => Err(unknown(&format!("the {name} {value}"))),
        }
    };
    let (city, state, postcode) = (text("city")?, text("state")?, text("postcode")?);
    let name = match parts.get("name").filter(|name| !is_falsy(name)) {
        Some(Value::String(name)) => Some(Value::from(normalise_text(name, reading))),
        Some(other) => Some(other.clone()),
        None => None,
    };
    let name = match name.as_ref().map(location::normalise).transpose()? {
        Some(Normal::Text(name)) => Some(name),
        _ => None,
    };
    let is_city = !city.is_empty() && city.chars().all(|c| c.is_ascii_alphabetic() || c == ' ');
    Ok(Normal::Address(PostalAddress {
        house_number: plain_number(&number).ok_or_else(|| unknown(&format!("the house number {number:?}")))?,
        street: plain_street(&street).ok_or_else(|| unknown(&format!("the street {street:?}")))?,
        city: if is_city {
            normalise_text(&city, reading)
        } else {
            return Err(unknown(&format!("the city {city:?}")));
        },
        state: abbreviated(&state).ok_or_else(|| unknown(&format!("the state {state:?}")))?,
        postcode: plain_postcode(&postcode).ok_or_else(|| unknown(&format!("the postcode {postcode:?}")))?,
        name,
    }))
}

fn part<'a>(parts: &'a Map<String, Value>, name: &str) -> Result<&'a Value, ReadingFailure> {
    parts.get(name).ok_or_else(|| ReadingFailure::raised(format!("an address needs its {name}")))
}

fn unknown(what: &str) -> ReadingFailure {
    ReadingFailure::unsupported(format!("what the benchmark's trained model (usaddress) makes of {what} is not known"))
}

fn plain_number(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.to_owned())
}

/// Normalises `[direction] name kind`, where the name is one word; returns `None` for any other form.
fn plain_street(text: &str) -> Option<String> {
    let text = text.to_lowercase();
    let words: Vec<&str> = text.split_whitespace().map(|word| word.strip_suffix('.').unwrap_or(word)).collect();
    let short = |table: &[(&str, &'static str)], word: &str| {
        table.iter().find(|(long, short)| *long == word || *short == word).map(|(_, short)| *short)
    };
    let (kind, rest) = words.split_last()?;
    let kind = short(&KINDS, kind)?;
    let (direction, names) = match rest {
        [first, names @ ..] if !names.is_empty() && short(&DIRECTIONS, first).is_some() => {
            (short(&DIRECTIONS, first), names)
        }
        names => (None, names),
    };
    let is_name = |word: &&str| {
        let is_word = word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_alphabetic());
        is_word && short(&KINDS, word).is_none() && short(&DIRECTIONS, word).is_none()
    };
    let is_plain = match names {
        [name] => (is_name(name) && (direction.is_none() || !AMBIGUOUS.contains(name))) || is_ordinal(name),
        _ => false,
    };
    let parts = direction.into_iter().chain(names.iter().copied()).chain([kind]);
    is_plain.then(|| parts.collect::<Vec<_>>().join(" "))
}

/// Whether a word is an ordinal number such as `5th`.
fn is_ordinal(word: &str) -> bool {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number && ["st", "nd", "rd", "th"].contains(&&word[digits.len()..])
}

fn abbreviated(state: &str) -> Option<String> {
    STATES
        .iter()
        .find(|(name, short)| *name == state || short.eq_ignore_ascii_case(state))
        .map(|(_, short)| (*short).to_owned())
}

/// Normalises a postcode of five digits, or of five and four digits.
fn plain_postcode(text: &str) -> Option<String> {
    let digits = match text.split_once('-') {
        Some((first, second)) if first.len() == 5 && second.len() == 4 => format!("{first}{second}"),
        Some(_) => return None,
        None => text.to_owned(),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    match digits.len() {
        5 => Some(digits),
        9 => Some(format!("{}-{}", &digits[..5], &digits[5..])),
        _ => None,
    }
}
