//! Exact recognition of numbers in texts.

use std::ops::Range;

/// A number, independent of its spelling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Amount {
    /// Its digits without superfluous zeros and commas; a minus comes first if it is negative.
    digits: String,
    /// Whether it has a currency, such as dollars or euros.
    is_money: bool,
}

/// Signs that denote a currency.
pub(super) const CURRENCIES: [char; 4] = ['$', '€', '£', '¥'];

/// Names of currencies that follow a number.
const CURRENCY_NAMES: [&str; 11] = ["$", "€", "£", "¥", "usd", "dollar", "dollars", "eur", "euro", "euros", "gbp"];

impl Amount {
    /// Parses a reference that is only a number. A code with leading zeros, such as a postal code, does not count.
    pub(crate) fn of(text: &str) -> Option<Self> {
        let amount = read(text)?;
        let integer = text.trim_start_matches(|c: char| !c.is_ascii_digit());
        let is_code = integer.starts_with('0') && integer[1..].starts_with(|c: char| c.is_ascii_digit());
        if is_code { None } else { Some(amount) }
    }

    /// Whether this number equals the expected one. If the reference is money, the number has to be money, too.
    pub(super) fn is(&self, expected: &Self) -> bool {
        self.digits == expected.digits && (self.is_money || !expected.is_money)
    }

    /// Returns the digits as a plain decimal number.
    pub(crate) fn digits(&self) -> &str {
        &self.digits
    }

    /// Returns the value as the nearest float.
    pub(super) fn value(&self) -> f64 {
        self.digits.parse().unwrap_or(f64::NAN)
    }
}

/// Returns the numbers in a folded text. Dates, times, ranges of integers, fractions, versions and numbers with
/// adjacent letters do not count.
pub(crate) fn amounts(text: &str) -> Vec<Amount> {
    scan(text).into_iter().filter(|number| !number.is_bare_range).map(|number| number.amount).collect()
}

/// A number and its position in a folded text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LocatedNumber {
    /// The number, independent of its spelling.
    pub(super) amount: Amount,
    /// The range of its sign, currency and digits.
    pub(super) at: Range<usize>,
    /// Whether it is one end of `5-10`, which may be a range, a score or a part of a code.
    pub(super) is_bare_range: bool,
}

impl LocatedNumber {
    /// Whether this number is the expected one, which `reference` spells. Coordinates with at least three decimals may
    /// be truncated in the reference: `40.442` accepts `40.4424191`.
    pub(super) fn is(&self, expected: &Amount, reference: &str, may_be_cut: bool) -> bool {
        let decimals = reference.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let is_cut = may_be_cut && decimals >= 3 && !self.amount.is_money && self.amount.digits.starts_with(reference);
        self.amount.is(expected) || is_cut
    }
}

/// Returns the numbers in a folded text, including the ends of ranges.
pub(super) fn scan(text: &str) -> Vec<LocatedNumber> {
    let mut found: Vec<(LocatedNumber, Links)> = Vec::new();
    let mut from = 0;
    while let Some(start) = text[from..].find(|c: char| c.is_ascii_digit()).map(|at| from + at) {
        // `.5` begins with its decimal point.
        let is_point = text[..start].ends_with('.') && !text[..start - 1].ends_with(char::is_alphanumeric);
        let start = if is_point && start > from { start - 1 } else { start };
        let end = chunk_end(text, start);
        found.extend(number(text, start, end));
        from = end;
    }
    join_ranges(found)
}

/// Whether a hyphen or a slash connects a number to the text before it, and to the text after it.
#[derive(Debug, Clone, Copy)]
struct Links {
    before: bool,
    after: bool,
}

/// Returns the end of the digits that begin at `start`, including points and commas between them.
fn chunk_end(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let mut end = start;
    while is_digit(end) || (bytes.get(end).is_some_and(|byte| b".,".contains(byte)) && is_digit(end + 1)) {
        end += 1;
    }
    end
}

/// Returns the number with these digits, unless the adjacent text makes it a part of something else.
fn number(text: &str, start: usize, end: usize) -> Option<(LocatedNumber, Links)> {
    let word_start = text[..start].rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let word_end = text[end..].find(char::is_whitespace).map_or(text.len(), |at| end + at);
    if text[word_start..word_end].contains("://") {
        return None;
    }
    let before = text[..start].trim_end_matches(CURRENCIES);
    let before = if before.len() < start { before.strip_suffix("us").unwrap_or(before) } else { before };
    let mut is_money = before.len() < start;
    let (sign, before, is_tied_before) = sign(before)?;
    if !may_precede(before) {
        return None;
    }
    let rest = &text[end..];
    let after = rest.trim_start_matches(CURRENCIES);
    is_money |= after.len() < rest.len();
    let word = &after[..after.find(|c: char| !c.is_alphanumeric()).unwrap_or(after.len())];
    let after = match CURRENCY_NAMES.contains(&word) {
        true => {
            is_money = true;
            &after[word.len()..]
        }
        false => after,
    };
    let is_tied_after = may_follow(after)?;
    let next = after.trim_start();
    let next = &next[..next.find(|c: char| c.is_whitespace() || ".,:!?;)".contains(c)).unwrap_or(next.len())];
    is_money |= before.trim_end().ends_with(CURRENCIES) || CURRENCY_NAMES.contains(&next);
    let chunk = &text[start..end];
    let zero = if chunk.starts_with('.') { "0" } else { "" };
    let amount = Amount { is_money, ..read(&format!("{sign}{zero}{chunk}"))? };
    let at = before.len()..text.len() - after.len();
    Some((LocatedNumber { amount, at, is_bare_range: false }, Links { before: is_tied_before, after: is_tied_after }))
}

/// Returns the sign at the end of a text, the text before it, and whether it is the hyphen of a range instead of a
/// sign.
fn sign(before: &str) -> Option<(&str, &str, bool)> {
    let Some(bare) = before.strip_suffix(['-', '+']) else { return Some(("", before, false)) };
    let is_minus = before.ends_with('-');
    match bare.chars().next_back() {
        None => Some((if is_minus { "-" } else { "" }, bare, false)),
        Some(c) if c.is_whitespace() || "([{<\"'=:~≈≃;,|*`".contains(c) => {
            Some((if is_minus { "-" } else { "" }, bare, false))
        }
        Some(c) if c.is_ascii_digit() || CURRENCIES.contains(&c) => Some(("", bare, is_minus)),
        Some(_) => None,
    }
}

/// Whether a number may follow this text.
fn may_precede(before: &str) -> bool {
    let mut chars = before.chars().rev();
    match chars.next() {
        None => true,
        Some(':') => !chars.next().is_some_and(|c| c.is_ascii_digit()),
        Some(c) => c.is_whitespace() || c.is_ascii_digit() || "()[]{}<>\"'`|;—=#~*,!?≈≃".contains(c),
    }
}

/// Whether a number may precede this text: `None` if not, otherwise whether the hyphen of a range follows.
fn may_follow(after: &str) -> Option<bool> {
    let mut chars = after.chars();
    let Some(first) = chars.next() else { return Some(false) };
    let second = chars.next();
    let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    match first {
        '.' => second.is_none_or(|c| c.is_whitespace() || ")]}\"'*`,;:!?".contains(c)).then_some(false),
        ':' => (!is_digit(second)).then_some(false),
        '-' => match second {
            Some(c) if c.is_ascii_digit() || CURRENCIES.contains(&c) || c == '.' => Some(true),
            Some(c) => (!c.is_alphanumeric() && c != '-').then_some(false),
            None => Some(false),
        },
        // `36.39/each` contains a number; `0/5` and `12/a1` do not.
        '/' => {
            let unit = &after[1..after[1..].find(char::is_whitespace).map_or(after.len(), |at| at + 1)];
            let unit = unit.trim_end_matches(['.', ',', ')', ';']);
            (!unit.is_empty() && unit.chars().all(char::is_alphabetic)).then_some(false)
        }
        c if c.is_whitespace() || "()[]{}<>\"'`|;—=#~*!?,%°+≈".contains(c) => Some(false),
        _ => None,
    }
}

/// Keeps the two ends of a range as numbers. Removes longer chains and pairs of a month and a year: dates, telephone
/// numbers, codes.
fn join_ranges(found: Vec<(LocatedNumber, Links)>) -> Vec<LocatedNumber> {
    let mut numbers: Vec<LocatedNumber> = Vec::new();
    let mut rest = found.into_iter().peekable();
    while let Some((number, links)) = rest.next() {
        let mut chain = vec![number];
        let mut is_tied = links.after;
        let is_torn = links.before;
        while is_tied && let Some((next, links)) = rest.next_if(|(_, links)| links.before) {
            chain.push(next);
            is_tied = links.after;
        }
        match &mut chain[..] {
            // The hyphen connects it to text that is not a number.
            _ if is_torn || is_tied => {}
            [_] => numbers.append(&mut chain),
            [low, high] => {
                let is_bare = |number: &LocatedNumber| !number.amount.is_money && !number.amount.digits.contains('.');
                let is_year = |number: &LocatedNumber| matches!(number.amount.value(), 1900.0..=2100.0);
                let is_bare_range = is_bare(low) && is_bare(high);
                let is_date = is_bare_range && is_year(low) != is_year(high);
                (low.is_bare_range, high.is_bare_range) = (is_bare_range, is_bare_range);
                if !is_date {
                    numbers.append(&mut chain);
                }
            }
            _ => {}
        }
    }
    numbers
}

/// Parses a sign, a currency, digits with commas between thousands, a fraction, and a currency.
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

/// Whether a value satisfies an inequality such as `>= 300`; `None` if the text is not an inequality. `<` excludes the
/// bound.
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
            ("$5.49-$375.19", "375.19"),
            ("$5.49-$375.19", "5.49"),
            ("36.39usd", "36.39"),
            ("≈36.39", "36.39"),
            ("36.39/each", "36.39"),
            ("total:36.39", "36.39"),
            ("total:$12.99", "12.99"),
            ("error:404", "404"),
            ("a: .5 b", "0.5"),
            ("(40.442°, -79.939°)", "-79.939"),
            ("40.442,-79.939", "-79.939"),
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
            ("555-229-3326", "229"),
            ("10-2022", "10"),
            ("http://h:7770/f/5?page=5", "5"),
            ("see http://h:7770/", "7770"),
            ("f/5", "5"),
            ("covid-19", "19"),
            ("a 5-star hotel", "5"),
            ("5.jpg", "5"),
            ("36.39eggs", "36.39"),
        ] {
            assert!(!says(text, reference), "{text}: {reference}");
        }
        assert_eq!(Amount::of("06516"), None);
        assert_eq!(Amount::of("0.5").map(|amount| amount.value()), Some(0.5));
        assert_eq!(Amount::of("."), None);
        assert_eq!(Amount::of(""), None);
    }

    #[test]
    fn a_reference_may_be_cut_behind_its_third_decimal() {
        let is = |text: &str, reference: &str| {
            let expected = Amount::of(reference).expect("a number");
            scan(text).iter().any(|number| number.is(&expected, reference, true))
        };
        assert!(is("40.4424191, -79.9397388", "40.442") && is("40.4424191, -79.9397388", "-79.939"));
        assert!(is("40.46076", "40.460") && is("40.46", "40.460"));
        assert!(!is("40.4655", "40.460") && !is("40.4434191", "40.442") && !is("$36.391", "36.39"));
        assert!(!is("140.4424191", "40.442"));
    }

    #[test]
    fn bounds_are_exact() {
        assert_eq!(satisfies(700.0, "< 700"), Some(false));
        assert_eq!(satisfies(700.0, "<= 700"), Some(true));
        assert_eq!(satisfies(10.0, "== 10"), Some(true));
        assert_eq!(satisfies(10.0, "about 10"), None);
    }
}
