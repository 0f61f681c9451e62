//! Numbers in texts, exactly.

/// A number as it is written, without how it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::evaluators) struct Amount {
    /// Its digits without superfluous zeros and commas, with a minus before them if it is negative.
    digits: String,
    /// Whether dollars, euros or the like were named.
    is_money: bool,
}

/// The signs of currencies.
const CURRENCIES: [char; 4] = ['$', '€', '£', '¥'];

/// The names of currencies behind a number.
const CURRENCY_NAMES: [&str; 9] = ["$", "€", "£", "¥", "usd", "dollar", "dollars", "eur", "euros"];

impl Amount {
    /// A reference that is a number and nothing else. One with superfluous zeros before it, such as a postal code, is none.
    pub(in crate::evaluators) fn of(text: &str) -> Option<Self> {
        let amount = read(text)?;
        let integer = text.trim_start_matches(|c: char| !c.is_ascii_digit());
        let is_code = integer.starts_with('0') && integer[1..].starts_with(|c: char| c.is_ascii_digit());
        if is_code { None } else { Some(amount) }
    }

    /// Whether a number that was found is the one that was expected. Money has to be money where the reference says so.
    pub(super) fn is(&self, expected: &Self) -> bool {
        self.digits == expected.digits && (self.is_money || !expected.is_money)
    }

    /// Its digits, as a plain decimal number.
    pub(in crate::evaluators) fn digits(&self) -> &str {
        &self.digits
    }

    /// Its value.
    pub(super) fn value(&self) -> f64 {
        self.digits.parse().unwrap_or(f64::NAN)
    }
}

/// The numbers that a folded text says. A date, a time, a range, a fraction, a version or a number with letters at it is none.
pub(in crate::evaluators) fn amounts(text: &str) -> Vec<Amount> {
    let is_end = |c: char| c.is_whitespace() || "()[]{}<>\"'`|;—=#~*".contains(c);
    let parts: Vec<&str> = text.split(is_end).filter(|part| !part.is_empty()).collect();
    let mut found = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let Some(mut amount) = read(part.trim_end_matches(['.', ',', ':', '!', '?', '%'])) else { continue };
        let before = at.checked_sub(1).and_then(|before| parts.get(before));
        let after = parts.get(at + 1).map(|after| after.trim_end_matches(['.', ',', ':', '!', '?']));
        amount.is_money |= before
            .is_some_and(|before| CURRENCIES.iter().any(|sign| before.strip_suffix(*sign) == Some("")))
            || after.is_some_and(|after| CURRENCY_NAMES.contains(&after));
        found.push(amount);
    }
    found
}

/// A sign, a currency, digits with commas between thousands, a fraction, a currency.
fn read(text: &str) -> Option<Amount> {
    let (is_negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let rest = rest.strip_prefix("us$").unwrap_or(rest);
    let unsigned = rest.trim_start_matches(CURRENCIES).trim_end_matches(CURRENCIES);
    let is_money = unsigned.len() != text.trim_start_matches(['-', '+']).len();
    let (integer, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let groups: Vec<&str> = integer.split(',').collect();
    let is_grouped = groups.len() == 1 || groups[0].len() <= 3 && groups[1..].iter().all(|group| group.len() == 3);
    let is_whole = groups.iter().all(|group| !group.is_empty() && is_digits(group));
    if !is_grouped || !is_whole || !is_digits(fraction) || unsigned.ends_with('.') {
        return None;
    }
    let integer = groups.concat();
    let (integer, fraction) = (integer.trim_start_matches('0'), fraction.trim_end_matches('0'));
    let mut digits = if integer.is_empty() { "0".to_owned() } else { integer.to_owned() };
    if !fraction.is_empty() {
        digits = format!("{digits}.{fraction}");
    }
    if is_negative && digits != "0" {
        digits.insert(0, '-');
    }
    Some(Amount { digits, is_money })
}

/// Whether a value satisfies an inequality such as `>= 300`; nothing if it is none. `<` does not let the bound pass.
pub(super) fn satisfies(value: f64, inequality: &str) -> Option<bool> {
    let inequality = inequality.trim();
    let operator = ["<=", ">=", "==", "<", ">"].into_iter().find(|operator| inequality.starts_with(operator))?;
    let bound = read(inequality[operator.len()..].trim())?.value();
    Some(match operator {
        "<=" => value <= bound,
        ">=" => value >= bound,
        "==" => value == bound,
        "<" => value < bound,
        _ => value > bound,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(text: &str, reference: &str) -> bool {
        let amount = Amount::of(reference).expect("a number");
        amounts(text).iter().any(|found| found.is(&amount))
    }

    #[test]
    fn numbers_are_compared_by_value() {
        for (text, reference) in [
            ("it costs $0.00", "0"),
            ("0 reviews, (0%)", "0"),
            ("order #000000161.", "161"),
            ("1,234.50 in all", "1234.5"),
            ("$ 25000.00", "$25000"),
            ("25,000.00 $", "$25,000"),
            ("80 dollars", "$80"),
            ("code +82", "82"),
        ] {
            assert!(says(text, reference), "{text}: {reference}");
        }
        for (text, reference) in [
            ("100", "10"),
            ("10.5", "10"),
            ("-10", "10"),
            ("2023-01-05", "5"),
            ("0/5", "0"),
            ("3:03", "3"),
            ("5-10", "5"),
            ("b07x", "7"),
            ("12,34", "1234"),
            ("80 bikes", "$80"),
            ("version 1.2.3", "1.2"),
        ] {
            assert!(!says(text, reference), "{text}: {reference}");
        }
        assert_eq!(Amount::of("06516"), None);
        assert_eq!(Amount::of("0.5").map(|amount| amount.value()), Some(0.5));
        assert_eq!(Amount::of("."), None);
        assert_eq!(Amount::of(""), None);
    }

    #[test]
    fn bounds_are_exact() {
        assert_eq!(satisfies(700.0, "< 700"), Some(false));
        assert_eq!(satisfies(700.0, "<= 700"), Some(true));
        assert_eq!(satisfies(10.0, "== 10"), Some(true));
        assert_eq!(satisfies(10.0, "about 10"), None);
    }
}
