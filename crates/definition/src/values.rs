//! Notations that both files use: periods, sizes and command lines.

use std::time::Duration;

/// Maximum period: one week. A longer one is probably a mistaken unit.
pub(crate) const PERIOD_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Parses a period such as `1m30s` or `1.5h`. Returns `None` if it is malformed or longer than [`PERIOD_MAX`].
pub(crate) fn period(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total = Duration::ZERO;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(digits);
        let unit_length = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_length);
        let seconds = match unit {
            "us" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        let amount: f64 = number.parse().ok()?;
        // Nanoseconds are exact for everything below the maximum; rounding keeps `0.1s` from becoming 99.999999 ms.
        let nanoseconds = (amount * seconds * 1e9).round();
        if !nanoseconds.is_finite() || nanoseconds > PERIOD_MAX.as_nanos() as f64 {
            return None;
        }
        total = total.checked_add(Duration::from_nanos(nanoseconds as u64))?;
        rest = after;
    }
    (total <= PERIOD_MAX).then_some(total)
}

/// Returns the shortest notation of a period, for output.
pub(crate) fn period_text(period: Duration) -> String {
    let micros = period.as_micros();
    match micros {
        0 => "0s".to_owned(),
        _ if micros.is_multiple_of(3_600_000_000) => format!("{}h", micros / 3_600_000_000),
        _ if micros.is_multiple_of(60_000_000) => format!("{}m", micros / 60_000_000),
        _ if micros.is_multiple_of(1_000_000) => format!("{}s", micros / 1_000_000),
        _ if micros.is_multiple_of(1_000) => format!("{}ms", micros / 1_000),
        _ => format!("{micros}us"),
    }
}

/// Maximum size, in bytes: 64 TiB.
const SIZE_MAX_BYTES: u64 = 64 << 40;

/// Parses a size such as `512m`, `1.5gb` or `1024`, and returns it in bytes. Units are powers of 1024, as in Compose.
pub fn size(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim_start().to_ascii_lowercase();
    let exponent = match unit.trim_end_matches('b').trim_end_matches('i') {
        "" if unit != "i" && unit != "ib" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return None,
    };
    let bytes = number.parse::<f64>().ok()? * 1024_f64.powi(exponent);
    (bytes <= SIZE_MAX_BYTES as f64).then_some(bytes as u64)
}

/// Splits a command line into words as Compose does: it supports quotes and backslashes, but no other shell syntax.
///
/// Errors: a description of the unfinished part.
pub(crate) fn words(line: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => match characters.next() {
                Some('\n') => {}
                Some(escaped) => word.get_or_insert_default().push(escaped),
                None => return Err("a backslash ends the command"),
            },
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next() {
                        Some('\'') => break,
                        Some(c) => word.push(c),
                        None => return Err("a single quote is never closed"),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next() {
                        Some('"') => break,
                        Some('\\') => match characters.next() {
                            Some(c @ ('"' | '\\' | '$' | '`')) => word.push(c),
                            Some('\n') => {}
                            Some(c) => word.extend(['\\', c]),
                            None => return Err("a double quote is never closed"),
                        },
                        Some(c) => word.push(c),
                        None => return Err("a double quote is never closed"),
                    }
                }
            }
            c if c.is_whitespace() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_read_as_in_compose() {
        let cases = [
            ("100ms", 100_000),
            ("1m30s", 90_000_000),
            ("1.5s", 1_500_000),
            ("0.1s", 100_000),
            ("2h", 7_200_000_000),
            ("250us", 250),
            ("0s", 0),
        ];
        for (text, micros) in cases {
            assert_eq!(period(text), Some(Duration::from_micros(micros)), "{text}");
        }
        for text in ["", "5", "s", "1.2.3s", "5 s", "-1s", "1d", "8000h", "99999999999999999999h", "1s2", "1e3s"] {
            assert_eq!(period(text), None, "{text}");
        }
    }

    #[test]
    fn period_text_reads_back() {
        for text in ["0s", "250us", "100ms", "90s", "2m", "3h"] {
            assert_eq!(period_text(period(text).expect("valid")), text);
        }
    }

    #[test]
    fn sizes_read_as_in_compose() {
        let cases = [
            ("0", 0),
            ("1024", 1024),
            ("10b", 10),
            ("1k", 1024),
            ("512m", 512 << 20),
            ("512MiB", 512 << 20),
            ("1.5g", 3 << 29),
            ("2 GB", 2 << 30),
            ("1t", 1 << 40),
        ];
        for (text, bytes) in cases {
            assert_eq!(size(text), Some(bytes), "{text}");
        }
        for text in ["", "g", "1x", "-1m", "1ib", "1.2.3m", "100000t", "1gg"] {
            assert_eq!(size(text), None, "{text}");
        }
    }

    #[test]
    fn command_lines_split_like_a_shell_would() {
        let split = |line| words(line).map(|words| words.join("|"));
        assert_eq!(split("a b  c"), Ok("a|b|c".to_owned()));
        assert_eq!(split(r#"sh -c "echo \"$HOME\" 'x'""#), Ok("sh|-c|echo \"$HOME\" 'x'".to_owned()));
        assert_eq!(split("a '' b\\ c"), Ok("a||b c".to_owned()));
        assert_eq!(split("  "), Ok(String::new()));
        assert!(split("'a").is_err() && split("\"a").is_err() && split("a\\").is_err());
    }
}
