//! Recorded traffic as it is kept with an episode.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// A recording.
///
/// Shape: `{"har": {…}}` where it is JSON, so that people and programs can read it in place; else `{"file": "base64"}`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Traffic {
    /// A HAR.
    Har(Box<RawValue>),
    /// Any other file: Playwright's `trace.zip`, or what only claims to be a HAR.
    #[serde(serialize_with = "encode", deserialize_with = "decode")]
    File(Vec<u8>),
}

impl Traffic {
    /// A file's bytes.
    #[must_use]
    pub fn of(bytes: Vec<u8>) -> Self {
        match serde_json::from_slice::<Box<RawValue>>(&bytes) {
            Ok(har) => Self::Har(har),
            Err(_) => Self::File(bytes),
        }
    }

    /// The file's bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Har(har) => har.get().as_bytes(),
            Self::File(bytes) => bytes,
        }
    }
}

fn encode<S: Serializer>(bytes: &[u8], out: S) -> Result<S::Ok, S::Error> {
    out.serialize_str(&STANDARD.encode(bytes))
}

fn decode<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<u8>, D::Error> {
    STANDARD.decode(String::deserialize(input)?).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_come_back_as_they_were() {
        for bytes in [br#"{"log": {"entries": []}}"#.as_slice(), b"PK\x03\x04\xff", b"{broken"] {
            let kept = serde_json::to_string(&Traffic::of(bytes.to_vec())).expect("JSON");
            let back: Traffic = serde_json::from_str(&kept).expect("traffic");
            assert_eq!(back.bytes(), bytes, "{kept}");
        }
        assert!(matches!(Traffic::of(b"{}".to_vec()), Traffic::Har(_)));
    }
}
