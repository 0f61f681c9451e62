//! Numbers that variables of the environment set.

/// Returns the number in a variable, decimal or hexadecimal with `0x`; `None` if the variable is not set.
pub fn number_of(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    let parsed = text.strip_prefix("0x").map_or_else(|| text.parse(), |hex| u64::from_str_radix(hex, 16));
    Some(parsed.unwrap_or_else(|_| panic!("{variable} is a number, not {text:?}")))
}
