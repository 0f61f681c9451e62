//! Certificates: a verdict with everything that it follows from, signed by the installation that judged.
//!
//! ```text
//!   task, answer, readings ─► JudgedEvidence ─ judge ─► Judgement ─┐
//!   episode, images, snapshots, digests of stores ─────────────────┴─► CertifiedStatement ─ key ─► Certificate
//!   a file, a public key ─► verify: the signature, then the same judge on the same evidence ─► equal bytes
//! ```
//! The signature covers the statement in its canonical form ([`canonical`]). The evidence and the judgement are JSON
//! texts within the statement, so that no tool that rewrites the document can change a number or the order of members
//! in them: evaluators see exactly the bytes that were signed.
//!
//! The crate reads no files and no clock. The daemon issues certificates, and `arenad verdict verify` checks them. It
//! depends on `evaluation`, `evaluators`, `verdict` and `model`. Start reading at [`verify`], then `statement.rs`.

pub mod canonical;
mod evidence;
mod key;
mod native;
mod statement;
#[cfg(test)]
mod tests;
mod values;

pub use evidence::{EvidenceError, JudgedEvidence, Judgement};
pub use key::{InstallationKey, InvalidKey, PublicKey};
pub use native::NativeEvidence;
pub use statement::{
    Certificate, CertifiedEpisode, CertifiedSite, CertifiedSnapshot, CertifiedStatement, CertifiedStore, CertifiedTask,
    CertifiedTraffic, EvaluatorVersion, FORMAT,
};

use canonical::NotCanonical;
use serde_json::Value;

/// The reason why a certificate was not verified.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The text does not have the form of a certificate.
    #[error("the certificate is malformed: {0}")]
    Malformed(String),
    /// The certificate names another key than the one that is trusted.
    #[error("the certificate was signed with the key {named}, and the trusted key is {trusted}")]
    OtherKey {
        /// The key that the certificate names.
        named: PublicKey,
        /// The key that the caller trusts.
        trusted: PublicKey,
    },
    /// The signature does not belong to the statement.
    #[error("the signature does not belong to the certificate: a part of it was changed after it was signed")]
    BadSignature,
    /// The evidence leads to another verdict than the certified one.
    #[error("the evidence leads to another judgement than the certified one: {0}")]
    OtherVerdict(String),
}

impl From<NotCanonical> for CertificateError {
    fn from(error: NotCanonical) -> Self {
        Self::Malformed(error.to_string())
    }
}

/// Verifies the text of a certificate: the signature by the trusted key, and the judgement by the evidence.
///
/// # Errors
///
/// `Malformed`, `OtherKey` and `BadSignature` in this order, and `OtherVerdict` for a statement whose signature is
/// valid.
pub fn verify(text: &str, trusted: &PublicKey) -> Result<CertifiedStatement, CertificateError> {
    let document = canonical::parse(text)?;
    let malformed = |error: serde_json::Error| CertificateError::Malformed(error.to_string());
    let signed = canonical::text(document.get("statement").unwrap_or(&Value::Null))?;
    let Certificate { statement, key, signature } = serde_json::from_value(document).map_err(malformed)?;
    if statement.format != FORMAT {
        return Err(CertificateError::Malformed(format!("its format is `{}`, not `{FORMAT}`", statement.format)));
    }
    let named: PublicKey = key.parse().map_err(|error: InvalidKey| CertificateError::Malformed(error.to_string()))?;
    if named != *trusted {
        return Err(CertificateError::OtherKey { named, trusted: trusted.clone() });
    }
    if !trusted.has_signed(signed.as_bytes(), &signature) {
        return Err(CertificateError::BadSignature);
    }
    statement.judge_again()?;
    Ok(statement)
}
