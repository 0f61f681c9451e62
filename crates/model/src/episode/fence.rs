//! The fence: whether a request belongs to an episode that may still act on its sites.
//!
//! Each request is decided anew, with the episode that it names and the token that it bears. A connection to a slot's
//! own port has no token. It belongs to the lease that the slot had when the connection was accepted, so its requests
//! are those of that episode ([`admit_lease`]) until the connection ends.

use std::fmt;
use std::hint::black_box;
use std::time::Duration;

use super::EpisodeState;
use super::ending::EpisodeEnding;
use super::life::EpisodeLife;

/// The SHA-256 of a token. Tokens are made, hashed and shown by the daemon; only the hash is kept.
///
/// There is no `==`, which would take more time the more bytes are equal.
#[derive(Clone)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    /// Wraps the SHA-256 of a token.
    pub fn new(sha256: [u8; 32]) -> Self {
        Self(sha256)
    }

    /// Returns the hash, for the store.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Whether both tokens are the same. Takes the same time for all hashes.
    pub fn matches(&self, other: &Self) -> bool {
        let difference = self.0.iter().zip(&other.0).fold(0, |all, (one, other)| black_box(all | (one ^ other)));
        black_box(difference) == 0
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

/// The maximum number of tokens of one episode.
const MOST_TOKENS: usize = 4;

/// The tokens that open an episode.
///
/// A token is shown once. A client that repeats a request because the reply was lost therefore gets a further token,
/// and the token of a reply that was not lost stays valid.
#[derive(Debug, Clone)]
pub struct EpisodeTokens(Vec<TokenHash>);

impl EpisodeTokens {
    /// Creates a set of one token.
    pub fn new(token: TokenHash) -> Self {
        Self(vec![token])
    }

    /// Creates the set from the tokens that [`Self::iter`] returned before a restart of the daemon.
    pub fn restored(tokens: Vec<TokenHash>) -> Self {
        Self(tokens)
    }

    /// Adds a token. If there are too many, the oldest one is removed.
    pub fn add(&mut self, token: TokenHash) {
        if self.0.len() >= MOST_TOKENS {
            self.0.remove(0);
        }
        self.0.push(token);
    }

    /// Returns the tokens from old to new, for the store.
    pub fn iter(&self) -> impl Iterator<Item = &TokenHash> {
        self.0.iter()
    }

    /// Whether the set contains the token. The time depends only on the number of tokens.
    pub fn contains(&self, token: &TokenHash) -> bool {
        self.0.iter().fold(false, |found, known| found | known.matches(token))
    }
}

/// The decision on a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FenceDecision {
    /// The request may be forwarded.
    Admitted,
    /// The daemon does not know the episode.
    Unknown,
    /// The token does not open the episode. To a client, the answer must be the same as [`Self::Unknown`].
    WrongToken,
    /// The episode has no sites yet.
    NotReady,
    /// The episode is being judged, or its client froze it.
    Frozen,
    /// The episode is over.
    Ended(EpisodeEnding),
}

/// Decides on a request that a client sent through the proxy or to the API.
///
/// The token is compared first, so that a stranger does not learn the state of an episode.
pub fn admit_client(
    episode: Option<(&EpisodeTokens, &EpisodeLife)>,
    token: &TokenHash,
    now: Duration,
) -> FenceDecision {
    match episode {
        None => FenceDecision::Unknown,
        Some((tokens, _)) if !tokens.contains(token) => FenceDecision::WrongToken,
        Some((_, life)) => admit_lease(Some(life), now),
    }
}

/// Decides on a request that a client sent to a slot's own port, on a connection of the episode.
pub fn admit_lease(life: Option<&EpisodeLife>, now: Duration) -> FenceDecision {
    let Some(life) = life else { return FenceDecision::Unknown };
    if let Some(ending) = life.ending(now) {
        return FenceDecision::Ended(ending);
    }
    match life.state() {
        EpisodeState::Active => FenceDecision::Admitted,
        EpisodeState::Frozen => FenceDecision::Frozen,
        EpisodeState::Queued | EpisodeState::Preparing | EpisodeState::Ended(_) => FenceDecision::NotReady,
    }
}

/// Decides on a visit of the daemon itself, such as a locator or a login, which needs no token. Visits are admitted
/// during the preparation and while the episode is frozen.
pub fn admit_visitor(life: Option<&EpisodeLife>, now: Duration) -> FenceDecision {
    let Some(life) = life else { return FenceDecision::Unknown };
    match life.ending(now) {
        Some(ending) => FenceDecision::Ended(ending),
        None if life.state().is_open() => FenceDecision::Admitted,
        None => FenceDecision::NotReady,
    }
}

#[cfg(test)]
mod tests {
    use super::super::ending::{ExpiryCause, ReleaseCause};
    use super::super::life::EpisodeTerms;
    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    fn token(byte: u8) -> TokenHash {
        TokenHash::new([byte; 32])
    }

    fn queued() -> EpisodeLife {
        EpisodeLife::queued(EpisodeTerms::new(LIMIT, LIMIT).expect("valid"), Duration::ZERO)
    }

    fn decide(life: &EpisodeLife, now: Duration) -> (FenceDecision, FenceDecision) {
        let tokens = EpisodeTokens::new(token(1));
        let client = admit_client(Some((&tokens, life)), &token(1), now);
        assert_eq!(admit_lease(Some(life), now), client, "a slot's own port admits the same requests");
        (client, admit_visitor(Some(life), now))
    }

    #[test]
    fn requests_are_admitted_while_the_episode_is_active() {
        use FenceDecision::{Admitted, Ended, Frozen, NotReady};
        let now = Duration::ZERO;
        let mut life = queued();
        assert_eq!(decide(&life, now), (NotReady, NotReady));
        life.grant(LIMIT, now).expect("queued");
        assert_eq!(decide(&life, now), (NotReady, Admitted));
        life.activate(now).expect("preparing");
        assert_eq!(decide(&life, now), (Admitted, Admitted));
        life.freeze(now).expect("active");
        assert_eq!(decide(&life, now), (Frozen, Admitted));
        life.unfreeze(now).expect("frozen");
        let expired = Ended(EpisodeEnding::Expired(ExpiryCause::Ttl));
        assert_eq!(decide(&life, LIMIT * 2), (expired.clone(), expired), "even before the end is recorded");
        life.release(now).expect("active");
        let released = Ended(EpisodeEnding::Released(ReleaseCause::Client));
        assert_eq!(decide(&life, now), (released.clone(), released));
    }

    #[test]
    fn a_stranger_does_not_learn_the_state() {
        let mut life = queued();
        life.release(Duration::ZERO).expect("queued");
        let tokens = EpisodeTokens::new(token(1));
        assert_eq!(admit_client(Some((&tokens, &life)), &token(2), Duration::ZERO), FenceDecision::WrongToken);
        assert_eq!(admit_client(None, &token(1), Duration::ZERO), FenceDecision::Unknown);
        assert_eq!(admit_visitor(None, Duration::ZERO), FenceDecision::Unknown);
        assert_eq!(admit_lease(None, Duration::ZERO), FenceDecision::Unknown);
    }

    #[test]
    fn tokens_match_in_all_bytes() {
        for index in 0..32 {
            let mut other = [1; 32];
            other[index] ^= 0x80;
            assert!(!token(1).matches(&TokenHash::new(other)), "byte {index}");
        }
        assert!(token(1).matches(&token(1)));
        assert_eq!(format!("{:?}", token(1)), "[hidden]");
    }

    #[test]
    fn a_repeated_request_adds_a_token_and_the_number_is_bounded() {
        let mut tokens = EpisodeTokens::new(token(1));
        for byte in 2..=5 {
            tokens.add(token(byte));
        }
        assert_eq!(
            (1..=5).map(|byte| tokens.contains(&token(byte))).collect::<Vec<_>>(),
            [false, true, true, true, true]
        );
        assert_eq!(tokens.iter().count(), MOST_TOKENS);
    }
}
