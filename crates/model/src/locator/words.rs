//! Splitting of a command line into words. Of a shell's syntax, only quotes and backslashes are understood.

/// Splits at white space. Quotes protect white space, and a backslash protects the next character.
///
/// Errors: the byte at which the error was found, and its reason.
pub(super) fn split(text: &str) -> Result<Vec<String>, (usize, &'static str)> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            c if c.is_whitespace() => words.extend(word.take()),
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        None => return Err((at, "this quote is not closed")),
                        Some((_, end)) if end == c => break,
                        Some((_, '\\')) if c == '"' => word.extend(chars.next().map(|(_, kept)| kept)),
                        Some((_, inner)) => word.push(inner),
                    }
                }
            }
            '\\' => {
                let (_, kept) = chars.next().ok_or((at, "nothing follows this backslash"))?;
                word.get_or_insert_default().push(kept);
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn quotes_and_backslashes_keep_words_together() {
        let words = split(r#" ls  -l "a b"'c' \$x '' "d\"e" | $(id) "#).expect("words");
        assert_eq!(words, ["ls", "-l", "a bc", "$x", "", "d\"e", "|", "$(id)"]);
        assert_eq!(split("a 'b"), Err((2, "this quote is not closed")));
        assert_eq!(split("a\\"), Err((1, "nothing follows this backslash")));
    }
}
