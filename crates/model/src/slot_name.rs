//! Names of slots: `shopping:2` is slot 2 of the site `shopping`, and `shopping` the site.

use std::fmt;

/// The name of a site, or of one of its slots. The site may be qualified by its environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotName<'a> {
    /// The name of the site.
    pub site: &'a str,
    /// The number of the slot, from 1; `None` if the name is that of the site.
    pub number: Option<u32>,
}

/// The reason why a name is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` does not end with the number of a slot, such as `shopping:2`; slots are numbered from 1")]
pub struct InvalidSlotName(String);

impl<'a> SlotName<'a> {
    /// Splits a name at its colon, which no site or environment has in its name.
    ///
    /// Errors: a colon that no number from 1 follows.
    pub fn parse(text: &'a str) -> Result<Self, InvalidSlotName> {
        let Some((site, number)) = text.split_once(':') else { return Ok(Self { site: text, number: None }) };
        let is_plain = number.bytes().all(|byte| byte.is_ascii_digit());
        let number = number.parse().ok().filter(|number| is_plain && *number > 0);
        let number = number.ok_or_else(|| InvalidSlotName(text.to_owned()))?;
        Ok(Self { site, number: Some(number) })
    }
}

impl fmt::Display for SlotName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            None => f.write_str(self.site),
            Some(number) => write!(f, "{}:{number}", self.site),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_named_by_its_site_and_its_number() {
        for (text, site, number) in
            [("shop", "shop", None), ("shop:2", "shop", Some(2)), ("mini/shop:10", "mini/shop", Some(10))]
        {
            let name = SlotName::parse(text).expect("valid");
            assert_eq!((name.site, name.number, name.to_string().as_str()), (site, number, text));
        }
        for text in ["shop:", "shop:0", "shop:-1", "shop:+1", "shop:two", "shop:1:2", "shop:4294967296"] {
            assert!(SlotName::parse(text).is_err(), "{text}");
        }
    }
}
