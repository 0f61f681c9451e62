//! Tokens, which open episodes.

use std::fmt;

use sha2::{Digest, Sha256};

use arenad_model::episode::fence::TokenHash;
use arenad_model::hex::hex;

/// A token, which is shown once and of which only the hash is kept.
///
/// Shape: 64 characters of `0-9a-f`.
#[derive(Clone)]
pub struct EpisodeToken(String);

impl EpisodeToken {
    /// Creates a token from random bytes.
    pub(crate) fn from_random(bytes: [u8; 32]) -> Self {
        Self(hex(&bytes))
    }

    /// Wraps the text that a client presents, which may be anything.
    pub fn presented(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Returns the text, to be shown to the client that asked for the episode.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns the hash by which the token is recognized.
    pub fn hash(&self) -> TokenHash {
        TokenHash::new(Sha256::digest(self.0.as_bytes()).into())
    }
}

impl fmt::Debug for EpisodeToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

#[cfg(test)]
mod tests {
    use super::EpisodeToken;

    #[test]
    fn a_presented_token_matches_by_its_hash_and_is_never_printed() {
        let token = EpisodeToken::from_random([7; 32]);
        assert_eq!(token.reveal().len(), 64);
        assert!(EpisodeToken::presented(token.reveal()).hash().matches(&token.hash()));
        assert!(!EpisodeToken::presented("").hash().matches(&token.hash()));
        assert_eq!(format!("{token:?}"), "[hidden]");
    }
}
