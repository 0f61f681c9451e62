//! The Porter stemmer in the mode `NLTK_EXTENSIONS`. Source: `nltk/stem/porter.py`.

/// Words whose stem is listed.
const IRREGULAR: [(&str, &str); 16] = [
    ("sky", "sky"),
    ("skies", "sky"),
    ("dying", "die"),
    ("lying", "lie"),
    ("tying", "tie"),
    ("news", "news"),
    ("innings", "inning"),
    ("inning", "inning"),
    ("outings", "outing"),
    ("outing", "outing"),
    ("cannings", "canning"),
    ("canning", "canning"),
    ("howe", "howe"),
    ("proceed", "proceed"),
    ("exceed", "exceed"),
    ("succeed", "succeed"),
];

/// Returns the stem of a word in lower case, which has ASCII letters and digits only.
#[must_use]
pub(super) fn stem(word: &str) -> String {
    if let Some((_, stem)) = IRREGULAR.iter().find(|(known, _)| *known == word) {
        return (*stem).to_owned();
    }
    if word.len() <= 2 {
        return word.to_owned();
    }
    let word = plural(word);
    let word = past(&word);
    let word = final_y(&word);
    let word = double_suffix(word);
    let word = long_suffix(word);
    let word = residual_suffix(word);
    final_l(final_e(word))
}

/// For each letter, whether it is a consonant. A `y` is one at the beginning and after a vowel.
fn consonants(word: &str) -> Vec<bool> {
    let mut flags: Vec<bool> = Vec::with_capacity(word.len());
    for byte in word.bytes() {
        flags.push(match byte {
            b'a' | b'e' | b'i' | b'o' | b'u' => false,
            b'y' => flags.last().is_none_or(|before| !before),
            _ => true,
        });
    }
    flags
}

/// The number of sequences of vowels followed by consonants.
fn measure(stem: &str) -> usize {
    consonants(stem).windows(2).filter(|pair| !pair[0] && pair[1]).count()
}

fn has_vowel(stem: &str) -> bool {
    consonants(stem).iter().any(|is_consonant| !is_consonant)
}

fn ends_with_double_consonant(word: &str) -> bool {
    let bytes = word.as_bytes();
    bytes.len() >= 2 && bytes[bytes.len() - 1] == bytes[bytes.len() - 2] && consonants(word).last() == Some(&true)
}

fn ends_with_short_syllable(word: &str) -> bool {
    match consonants(word).as_slice() {
        [false, true] => true,
        [.., true, false, true] => !word.ends_with(['w', 'x', 'y']),
        _ => false,
    }
}

/// Replaces the first suffix that fits, if the condition holds for what is left.
fn replaced(word: String, rules: &[(&str, &str)], holds: impl Fn(&str, &str) -> bool) -> String {
    for (suffix, replacement) in rules {
        if let Some(stem) = word.strip_suffix(suffix) {
            return if holds(stem, suffix) { format!("{stem}{replacement}") } else { word };
        }
    }
    word
}

/// Removes plurals, step 1a of the algorithm.
fn plural(word: &str) -> String {
    if word.ends_with("ies") && word.len() == 4 {
        return format!("{}ie", &word[..1]);
    }
    replaced(word.to_owned(), &[("sses", "ss"), ("ies", "i"), ("ss", "ss"), ("s", "")], |_, _| true)
}

/// Removes `ed` and `ing`, step 1b.
fn past(word: &str) -> String {
    if let Some(stem) = word.strip_suffix("ied") {
        return format!("{stem}{}", if word.len() == 4 { "ie" } else { "i" });
    }
    if let Some(stem) = word.strip_suffix("eed") {
        return if measure(stem) > 0 { format!("{stem}ee") } else { word.to_owned() };
    }
    let Some(stem) = ["ed", "ing"].iter().filter_map(|suffix| word.strip_suffix(suffix)).find(|stem| has_vowel(stem))
    else {
        return word.to_owned();
    };
    if ["at", "bl", "iz"].iter().any(|end| stem.ends_with(end)) {
        return format!("{stem}e");
    }
    if ends_with_double_consonant(stem) {
        let is_kept = stem.ends_with(['l', 's', 'z']);
        return if is_kept { stem } else { &stem[..stem.len() - 1] }.to_owned();
    }
    if measure(stem) == 1 && ends_with_short_syllable(stem) { format!("{stem}e") } else { stem.to_owned() }
}

/// Replaces a final `y`, step 1c.
fn final_y(word: &str) -> String {
    match word.strip_suffix('y') {
        Some(stem) if stem.len() > 1 && consonants(stem).last() == Some(&true) => format!("{stem}i"),
        _ => word.to_owned(),
    }
}

/// Shortens double suffixes, step 2.
fn double_suffix(word: String) -> String {
    if let Some(stem) = word.strip_suffix("alli")
        && measure(stem) > 0
    {
        return double_suffix(format!("{stem}al"));
    }
    let rules = [
        ("ational", "ate"),
        ("tional", "tion"),
        ("enci", "ence"),
        ("anci", "ance"),
        ("izer", "ize"),
        ("bli", "ble"),
        ("alli", "al"),
        ("entli", "ent"),
        ("eli", "e"),
        ("ousli", "ous"),
        ("ization", "ize"),
        ("ation", "ate"),
        ("ator", "ate"),
        ("alism", "al"),
        ("iveness", "ive"),
        ("fulness", "ful"),
        ("ousness", "ous"),
        ("aliti", "al"),
        ("iviti", "ive"),
        ("biliti", "ble"),
        ("fulli", "ful"),
        ("logi", "log"),
    ];
    // For `logi`, the `l` counts as part of the stem.
    let whole = word.clone();
    replaced(word, &rules, |stem, suffix| match suffix {
        "logi" => measure(&whole[..whole.len() - 3]) > 0,
        _ => measure(stem) > 0,
    })
}

/// Shortens suffixes such as `icate`, step 3.
fn long_suffix(word: String) -> String {
    let rules =
        [("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", "")];
    replaced(word, &rules, |stem, _| measure(stem) > 0)
}

/// Removes suffixes such as `ance`, step 4.
fn residual_suffix(word: String) -> String {
    let rules = [
        "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate",
        "iti", "ous", "ive", "ize",
    ]
    .map(|suffix| (suffix, ""));
    replaced(word, &rules, |stem, suffix| measure(stem) > 1 && (suffix != "ion" || stem.ends_with(['s', 't'])))
}

/// Removes a final `e`, step 5a.
fn final_e(word: String) -> String {
    match word.strip_suffix('e') {
        Some(stem) if measure(stem) > 1 || (measure(stem) == 1 && !ends_with_short_syllable(stem)) => stem.to_owned(),
        _ => word,
    }
}

/// Removes one of two final `l`, step 5b.
fn final_l(word: String) -> String {
    match word.strip_suffix('l') {
        Some(stem) if stem.ends_with('l') && measure(stem) > 1 => stem.to_owned(),
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected stems are NLTK's.
    #[test]
    fn words_have_the_stems_of_nltk() {
        let cases = [
            ("skies", "sky"),
            ("dies", "die"),
            ("flies", "fli"),
            ("spied", "spi"),
            ("tied", "tie"),
            ("agreed", "agre"),
            ("hopping", "hop"),
            ("falling", "fall"),
            ("filing", "file"),
            ("enjoyment", "enjoy"),
            ("generalizations", "gener"),
            ("oscillators", "oscil"),
            ("geologi", "geolog"),
            ("hopefulli", "hope"),
            ("controll", "control"),
            ("roll", "roll"),
            ("adoption", "adopt"),
            ("yyyy", "yyyi"),
        ];
        for (word, expected) in cases {
            assert_eq!(stem(word), expected, "{word}");
        }
    }
}
