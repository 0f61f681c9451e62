//! Recorded traffic, in the form in which it is stored with an episode.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// A recording of a browser's traffic.
///
/// Shape: `{"har": {…}}` if the recording is JSON, so that people and programs can read it in place; otherwise
/// `{"file": "base64"}`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Traffic {
    /// A recording in the HAR format.
    Har(#[schemars(with = "serde_json::Value")] Box<RawValue>),
    /// Any other file, such as Playwright's `trace.zip` or an invalid HAR.
    #[serde(serialize_with = "encode", deserialize_with = "decode")]
    File(#[schemars(with = "String")] Vec<u8>),
}

impl Traffic {
    /// Creates a recording from the content of a file.
    #[must_use]
    pub fn of(bytes: Vec<u8>) -> Self {
        match serde_json::from_slice::<Box<RawValue>>(&bytes) {
            Ok(har) => Self::Har(har),
            Err(_) => Self::File(bytes),
        }
    }

    /// Returns the content of the file.
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
