//! Keys: Ed25519 (RFC 8032), by the cryptography that TLS uses.

use std::fmt;
use std::str::FromStr;

use arenad_model::hex::{hex, unhex};
use ring::rand::SystemRandom;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};

/// The length of a public key, in bytes.
const KEY_BYTES: usize = 32;

/// The reason why something is not a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidKey {
    /// A public key is not 64 hexadecimal digits.
    #[error("a public key has 64 hexadecimal digits, and `{0}` has not")]
    Public(String),
    /// A private key is not an Ed25519 key in the form PKCS#8.
    #[error("the file does not contain an Ed25519 key in the form PKCS#8")]
    Private,
    /// The system offers no random numbers.
    #[error("the system offers no random numbers")]
    NoRandom,
}

/// The private key of an installation. It is never printed.
pub struct InstallationKey(Ed25519KeyPair);

impl InstallationKey {
    /// Makes a new key, and returns the content of its file.
    ///
    /// # Errors
    ///
    /// `NoRandom`.
    pub fn generate() -> Result<Vec<u8>, InvalidKey> {
        let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(|_| InvalidKey::NoRandom)?;
        Ok(made.as_ref().to_vec())
    }

    /// Reads the content of a key's file.
    ///
    /// # Errors
    ///
    /// `Private`.
    pub fn read(file: &[u8]) -> Result<Self, InvalidKey> {
        Ed25519KeyPair::from_pkcs8(file).map(Self).map_err(|_| InvalidKey::Private)
    }

    /// Returns the key that verifies the signatures.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        let mut bytes = [0; KEY_BYTES];
        bytes.copy_from_slice(self.0.public_key().as_ref());
        PublicKey(bytes)
    }

    /// Returns the signature of a message, in hexadecimal digits.
    pub(crate) fn sign(&self, message: &[u8]) -> String {
        hex(self.0.sign(message).as_ref())
    }
}

impl fmt::Debug for InstallationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InstallationKey").field(&self.public()).finish()
    }
}

/// The public key of an installation.
///
/// Shape: 64 hexadecimal digits.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey([u8; KEY_BYTES]);

impl PublicKey {
    /// Whether this key's owner has signed the message. The signature is in hexadecimal digits, in lower case.
    pub(crate) fn has_signed(&self, message: &[u8], signature: &str) -> bool {
        let Some(bytes) = unhex(signature).filter(|bytes| hex(bytes) == signature) else { return false };
        UnparsedPublicKey::new(&ED25519, &self.0).verify(message, &bytes).is_ok()
    }
}

impl FromStr for PublicKey {
    type Err = InvalidKey;

    fn from_str(text: &str) -> Result<Self, InvalidKey> {
        let bytes = unhex(text).filter(|bytes| hex(bytes) == text);
        let bytes = bytes.and_then(|bytes| <[u8; KEY_BYTES]>::try_from(bytes).ok());
        bytes.map(Self).ok_or_else(|| InvalidKey::Public(text.chars().take(100).collect()))
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_valid_for_its_key_and_message_only() {
        let key = |file: &[u8]| InstallationKey::read(file).expect("a key");
        let file = InstallationKey::generate().expect("random numbers");
        let (own, other) = (key(&file), key(&InstallationKey::generate().expect("random numbers")));
        let signature = own.sign(b"passed");
        let public: PublicKey = key(&file).public().to_string().parse().expect("a key");
        assert!(public.has_signed(b"passed", &signature));
        assert!(!public.has_signed(b"failed", &signature) && !other.public().has_signed(b"passed", &signature));
        assert!(!public.has_signed(b"passed", &signature.to_uppercase()) && !public.has_signed(b"passed", ""));
    }

    #[test]
    fn a_key_is_no_part_of_debug_output_and_is_read_strictly() {
        let file = InstallationKey::generate().expect("random numbers");
        let key = InstallationKey::read(&file).expect("a key");
        // PKCS#8 has 16 bytes before the seed.
        let seed = hex(&file[16..48]);
        assert!(!format!("{key:?}").contains(&seed) && format!("{key:?}").contains(&key.public().to_string()));
        assert_eq!(InstallationKey::read(&file[1..]).err(), Some(InvalidKey::Private));
        for text in ["", "00", &"g".repeat(64), &"A".repeat(64)] {
            assert!(text.parse::<PublicKey>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_first_test_vector_of_rfc_8032_is_verified() {
        let key: PublicKey = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a".parse().expect("a key");
        let signature = "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46b\
                         d25bf5f0595bbe24655141438e7a100b";
        assert!(key.has_signed(b"", signature));
        assert!(!key.has_signed(b" ", signature));
    }
}
