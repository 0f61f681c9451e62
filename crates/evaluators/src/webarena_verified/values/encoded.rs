//! `json` and `base64`.

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value;

use super::{Normal, TypedValue};
use crate::text::json;
use crate::text::patterns::{Mode, Patterns};
use crate::text::python;
use crate::webarena_verified::failure::ReadingFailure;
use crate::webarena_verified::reading::ReadingOptions;
use arenad_verdict::Profile;

/// Without padding, which is checked separately.
const STANDARD: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone),
);

/// Reads a `json`: a JSON document in a text. Its keys are sorted.
pub(super) fn json_text(value: &Value) -> Result<Normal, ReadingFailure> {
    let text =
        value.as_str().ok_or_else(|| ReadingFailure::raised(format!("{value} is not a text that contains JSON")))?;
    let document = json::parse(text)?.ok_or_else(|| ReadingFailure::raised(format!("{text:?} is not JSON")))?;
    Ok(Normal::Text(json::dump_sorted(&document)))
}

/// Reads a `base64`: the decoded text, or a pattern for that text.
pub(super) fn base64(value: &Value, reading: &ReadingOptions<'_>) -> Result<Normal, ReadingFailure> {
    let wrong = || ReadingFailure::raised(format!("{value} is not Base64"));
    let text = value.as_str().map(python::strip).filter(|text| !text.is_empty()).ok_or_else(wrong)?;
    if reading.is_pattern(text) {
        return Ok(Normal::Text(text.to_owned()));
    }
    let bytes = decode(text).ok_or_else(wrong)?;
    let text = String::from_utf8(bytes).map_err(|_| wrong())?;
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    Ok(Normal::Text(python::strip(&text).to_owned()))
}

/// `b64decode(text, validate=True)`. After whole groups of four characters any amount of padding is accepted; otherwise
/// the padding has to be complete.
fn decode(text: &str) -> Option<Vec<u8>> {
    let data = text.trim_end_matches('=');
    let padding = text.len() - data.len();
    let is_padded = match data.len() % 4 {
        0 => !data.is_empty(),
        2 => padding == 2,
        3 => padding == 1,
        _ => false,
    };
    if is_padded { STANDARD.decode(data).ok() } else { None }
}

/// Whether the texts are equal, or one is matched by a pattern.
pub(super) fn equal(
    expected: &TypedValue,
    actual: &TypedValue,
    profile: Profile,
    patterns: &Patterns,
) -> Result<bool, ReadingFailure> {
    Ok(expected.is_matched(actual, Mode::WholeWithLines, profile, patterns)?
        || expected.texts().any(|expected| actual.texts().any(|actual| expected == actual)))
}
