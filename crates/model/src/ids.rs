//! Types for names and identifiers, so that the name of a site cannot be used as the id of a snapshot.

use std::collections::BTreeMap;
use std::fmt;

/// The reason why a name is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} names are 1 to {max} characters of a-z, 0-9, '-' and '_', beginning with a letter or digit")]
pub struct InvalidName {
    /// The kind of the name: `site`, `environment`, `replay` or `service`.
    pub kind: &'static str,
    /// The maximum length of a name, in characters.
    pub max: usize,
}

/// The maximum length of a name, in characters. It leaves room for generation and service in a host name of 63
/// characters.
pub const NAME_MAX: usize = 40;

fn is_valid_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    let first = bytes.next().is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    first
        && text.len() <= NAME_MAX
        && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_')
}

/// The maximum length of a snapshot's name, in characters.
const SNAPSHOT_NAME_MAX: usize = 64;

/// The rule for names of snapshots, for messages.
pub const SNAPSHOT_NAME_RULE: &str = "1 to 64 letters, digits, `-`, `_` and `.`, beginning with a letter or a digit";

/// Whether `text` can name a snapshot, by [`SNAPSHOT_NAME_RULE`]. Only ASCII letters and digits count.
pub fn is_snapshot_name(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    // The name becomes part of file names, where `..` and `-x` have special meanings.
    let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    begins && text.len() <= SNAPSHOT_NAME_MAX && text.chars().all(is_plain)
}

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            /// Parses a name by the rule that [`InvalidName`] states.
            pub fn parse(text: &str) -> Result<Self, InvalidName> {
                if is_valid_name(text) { Ok(Self(text.to_owned())) } else { Err(InvalidName { kind: $kind, max: NAME_MAX }) }
            }

            /// Returns the name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name_type!(
    /// The name of one web application of an environment, such as `shopping`.
    SiteName, "site"
);
name_type!(
    /// The name of a set of sites, such as `mini`.
    EnvironmentName, "environment"
);
name_type!(
    /// The name of a replay: recorded sites that are served from their recording.
    ReplayName, "replay"
);
name_type!(
    /// The name of one service (one container) of a Compose file.
    ServiceName, "service"
);

impl ServiceName {
    /// Parses the keys of a map.
    ///
    /// Errors: the first key that is not a valid name.
    pub fn parse_keys<T>(texts: impl IntoIterator<Item = (String, T)>) -> Result<BTreeMap<Self, T>, InvalidName> {
        texts.into_iter().map(|(service, value)| Ok((Self::parse(&service)?, value))).collect()
    }
}

/// A site among all environments of an installation, such as `mini/shopping`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SiteId {
    /// The environment of the site.
    pub environment: EnvironmentName,
    /// The name of the site within its environment.
    pub site: SiteName,
}

impl fmt::Display for SiteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.environment, self.site)
    }
}

#[cfg(test)]
mod tests {
    use super::{SNAPSHOT_NAME_MAX, SNAPSHOT_NAME_RULE, is_snapshot_name};

    #[test]
    fn names_of_snapshots_are_those_of_plain_files() {
        for name in ["a", "7", "before-2.0_x", &"x".repeat(64)] {
            assert!(is_snapshot_name(name), "{name}");
        }
        assert!(SNAPSHOT_NAME_RULE.starts_with(&format!("1 to {SNAPSHOT_NAME_MAX} ")), "{SNAPSHOT_NAME_RULE}");
        let long = "x".repeat(300);
        for name in ["", " ", ".", "..", "../a", "a/b", "/a", "-x", "_x", "a b", "a\0", "\0", "a\nb", "é", &long] {
            assert!(!is_snapshot_name(name), "{name:?}");
        }
    }
}
