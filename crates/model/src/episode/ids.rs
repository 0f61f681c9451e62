//! The names of episodes, and the values by which clients group and repeat their requests.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::hex::hex;

/// The id of an episode, and of its lease. It is never used again.
///
/// Shape: `ep-` and 20 characters of `0-9a-f`. The id is safe in URLs, file names and as the user name of a proxy. It
/// is not a secret.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EpisodeId(String);

const ID_BYTES: usize = 10;
const ID_PREFIX: &str = "ep-";

impl EpisodeId {
    /// Creates an id from random bytes.
    pub fn from_random(bytes: [u8; ID_BYTES]) -> Self {
        Self(format!("{ID_PREFIX}{}", hex(&bytes)))
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EpisodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The error for a text that is not the id of an episode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the id of an episode; ids have the form ep-0123456789abcdef0123")]
pub struct InvalidEpisodeId(String);

/// Parses the form that `Display` writes.
impl FromStr for EpisodeId {
    type Err = InvalidEpisodeId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix(ID_PREFIX).unwrap_or_default();
        let is_valid = digits.len() == 2 * ID_BYTES && digits.bytes().all(is_hex_digit);
        if is_valid { Ok(Self(text.to_owned())) } else { Err(InvalidEpisodeId(text.to_owned())) }
    }
}

/// The id of the beginning of a record, which an episode takes over from the one that it was forked from. It is never used
/// again.
///
/// Shape: 16 characters of `0-9a-f`. The id is safe in file names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordBeginningId(String);

const BEGINNING_BYTES: usize = 8;

impl RecordBeginningId {
    /// Creates an id from random bytes.
    pub fn from_random(bytes: [u8; BEGINNING_BYTES]) -> Self {
        Self(hex(&bytes))
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RecordBeginningId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The error for a text that is not the id of the beginning of a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the id of the beginning of a record")]
pub struct InvalidRecordBeginningId(String);

/// Parses the form that `Display` writes.
impl FromStr for RecordBeginningId {
    type Err = InvalidRecordBeginningId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_valid = text.len() == 2 * BEGINNING_BYTES && text.bytes().all(is_hex_digit);
        if is_valid { Ok(Self(text.to_owned())) } else { Err(InvalidRecordBeginningId(text.to_owned())) }
    }
}

fn is_hex_digit(byte: u8) -> bool {
    byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)
}

/// The reason why a value of a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} must be {rule}")]
pub struct InvalidEpisodeValue {
    /// The value, such as `an owner`.
    pub kind: &'static str,
    /// The rule that the value breaks.
    pub rule: &'static str,
}

fn check(is_valid: bool, kind: &'static str, rule: &'static str) -> Result<(), InvalidEpisodeValue> {
    if is_valid { Ok(()) } else { Err(InvalidEpisodeValue { kind, rule }) }
}

fn is_plain(text: &str, most: usize, marks: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || marks.contains(c);
    (1..=most).contains(&text.len()) && text.chars().all(is_allowed)
}

/// The person or program that an episode is counted for. Quotas apply to owners.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner(String);

impl Owner {
    /// Parses an owner.
    ///
    /// Errors: texts other than 1 to 64 letters, digits and `-_.@:/`.
    pub fn parse(text: &str) -> Result<Self, InvalidEpisodeValue> {
        check(is_plain(text, 64, "-_.@:/"), "an owner", "1 to 64 letters, digits and -_.@:/")?;
        Ok(Self(text.to_owned()))
    }

    /// Returns the owner as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The key by which a client repeats a request without getting a second episode.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// Parses a key.
    ///
    /// Errors: texts other than 1 to 128 printable ASCII characters without spaces.
    pub fn parse(text: &str) -> Result<Self, InvalidEpisodeValue> {
        let is_valid = (1..=128).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        check(is_valid, "an idempotency key", "1 to 128 printable ASCII characters without spaces")?;
        Ok(Self(text.to_owned()))
    }

    /// Returns the key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The maximum number of labels of an episode.
pub const MOST_LABELS: usize = 32;

/// The labels of an episode, by which clients find their episodes again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EpisodeLabels(BTreeMap<String, String>);

impl EpisodeLabels {
    /// Parses labels from keys and values.
    ///
    /// Errors: more than [`MOST_LABELS`] labels; keys other than 1 to 64 letters, digits and `-_./`; values that are
    /// longer than 256 bytes or have control characters.
    pub fn parse(labels: BTreeMap<String, String>) -> Result<Self, InvalidEpisodeValue> {
        check(labels.len() <= MOST_LABELS, "labels", "at most 32")?;
        for (key, value) in &labels {
            check(is_plain(key, 64, "-_./"), "the key of a label", "1 to 64 letters, digits and -_./")?;
            let is_text = value.len() <= 256 && !value.chars().any(char::is_control);
            check(is_text, "the value of a label", "at most 256 bytes without control characters")?;
        }
        Ok(Self(labels))
    }

    /// Returns the value of a label.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// Returns the labels, ordered by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Whether the labels include all of the given ones.
    pub fn include(&self, wanted: &Self) -> bool {
        wanted.iter().all(|(key, value)| self.get(key) == Some(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_are_written() {
        let id = EpisodeId::from_random([0, 1, 2, 3, 4, 5, 6, 7, 8, 255]);
        assert_eq!(id.to_string(), "ep-000102030405060708ff");
        assert_eq!(id.to_string().parse(), Ok(id));
        for text in ["", "ep-", "000102030405060708ff", "ep-000102030405060708FF", "ep-000102030405060708f", "ep-é"] {
            assert!(text.parse::<EpisodeId>().is_err(), "{text}");
        }
        let id = RecordBeginningId::from_random([0, 1, 2, 3, 4, 5, 6, 255]);
        assert_eq!(id.to_string(), "00010203040506ff");
        assert_eq!(id.to_string().parse(), Ok(id));
        for text in ["", "00010203040506f", "00010203040506FF", "../../../../../e", "00010203040506fff"] {
            assert!(text.parse::<RecordBeginningId>().is_err(), "{text}");
        }
    }

    #[test]
    fn values_have_limits() {
        assert!(Owner::parse("team-a/ann@example.org").is_ok());
        assert!(IdempotencyKey::parse("run=7;task=12").is_ok());
        for text in ["", "a b", "a\n", "é", &"x".repeat(129)] {
            assert!(Owner::parse(text).is_err() && IdempotencyKey::parse(text).is_err(), "{text:?}");
        }
        let labels = |pairs: &[(&str, &str)]| {
            EpisodeLabels::parse(pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect())
        };
        let both = labels(&[("run", "7"), ("task", "find a blue shirt")]).expect("valid");
        assert!(both.include(&labels(&[("run", "7")]).expect("valid")));
        assert!(!both.include(&labels(&[("run", "8")]).expect("valid")));
        assert!(labels(&[("", "7")]).is_err() && labels(&[("a", "\0")]).is_err());
        let many = (0..=MOST_LABELS).map(|number| (number.to_string(), String::new())).collect();
        assert!(EpisodeLabels::parse(many).is_err());
    }
}
