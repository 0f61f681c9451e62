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
    // The longest result is a letter longer than the word.
    let mut stem = String::with_capacity(word.len() + 1);
    stem.push_str(word);
    if word.len() > 2 {
        let steps = [plural, past, final_y, double_suffix, long_suffix, residual_suffix, final_e, final_l];
        steps.iter().for_each(|step| step(&mut stem));
    }
    stem
}

/// For each letter, whether it is a consonant. A `y` is one at the beginning and after a vowel.
fn consonants(word: &str) -> impl Iterator<Item = bool> {
    word.bytes().scan(false, |is_consonant, byte| {
        *is_consonant = match byte {
            b'a' | b'e' | b'i' | b'o' | b'u' => false,
            b'y' => !*is_consonant,
            _ => true,
        };
        Some(*is_consonant)
    })
}

/// The number of sequences of vowels followed by consonants.
fn measure(stem: &str) -> usize {
    let (mut count, mut is_after_vowel) = (0, false);
    for is_consonant in consonants(stem) {
        count += usize::from(is_after_vowel && is_consonant);
        is_after_vowel = !is_consonant;
    }
    count
}

fn has_vowel(stem: &str) -> bool {
    consonants(stem).any(|is_consonant| !is_consonant)
}

fn ends_with_double_consonant(word: &str) -> bool {
    let bytes = word.as_bytes();
    bytes.len() >= 2 && bytes[bytes.len() - 1] == bytes[bytes.len() - 2] && consonants(word).last() == Some(true)
}

fn ends_with_short_syllable(word: &str) -> bool {
    // The last three letters; those that a shorter word does not have count as vowels.
    let last = consonants(word).fold([false; 3], |[_, second, third], next| [second, third, next]);
    match word.len() {
        0 | 1 => false,
        2 => last == [false, false, true],
        _ => last == [true, false, true] && !word.ends_with(['w', 'x', 'y']),
    }
}

/// Replaces the first suffix that fits, if the condition holds for what is left.
fn replace(word: &mut String, rules: &[(&str, &str)], holds: impl Fn(&str, &str) -> bool) {
    let last = word.bytes().last();
    for (suffix, replacement) in rules {
        // Most suffixes differ in the last letter, which is compared faster than texts.
        if suffix.bytes().last() == last
            && let Some(stem) = word.strip_suffix(suffix)
        {
            if holds(stem, suffix) {
                end(word, suffix.len(), replacement);
            }
            return;
        }
    }
}

/// Replaces a number of letters at the end.
fn end(word: &mut String, count: usize, replacement: &str) {
    word.truncate(word.len() - count);
    word.push_str(replacement);
}

/// Removes plurals, step 1a of the algorithm.
fn plural(word: &mut String) {
    if word.ends_with("ies") && word.len() == 4 {
        return end(word, 3, "ie");
    }
    replace(word, &[("sses", "ss"), ("ies", "i"), ("ss", "ss"), ("s", "")], |_, _| true);
}

/// Removes `ed` and `ing`, step 1b.
fn past(word: &mut String) {
    if word.ends_with("ied") {
        let replacement = if word.len() == 4 { "ie" } else { "i" };
        return end(word, 3, replacement);
    }
    if let Some(stem) = word.strip_suffix("eed") {
        if measure(stem) > 0 {
            end(word, 1, "");
        }
        return;
    }
    let Some(stem) = ["ed", "ing"].iter().filter_map(|suffix| word.strip_suffix(suffix)).find(|stem| has_vowel(stem))
    else {
        return;
    };
    let length = stem.len();
    word.truncate(length);
    if ["at", "bl", "iz"].iter().any(|suffix| word.ends_with(suffix)) {
        word.push('e');
    } else if ends_with_double_consonant(word) {
        if !word.ends_with(['l', 's', 'z']) {
            word.pop();
        }
    } else if measure(word) == 1 && ends_with_short_syllable(word) {
        word.push('e');
    }
}

/// Replaces a final `y`, step 1c.
fn final_y(word: &mut String) {
    if let Some(stem) = word.strip_suffix('y')
        && stem.len() > 1
        && consonants(stem).last() == Some(true)
    {
        end(word, 1, "i");
    }
}

/// Shortens double suffixes, step 2.
fn double_suffix(word: &mut String) {
    if let Some(stem) = word.strip_suffix("alli")
        && measure(stem) > 0
    {
        end(word, 2, "");
        return double_suffix(word);
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
    ];
    if let Some(stem) = word.strip_suffix("ogi")
        && word.ends_with("logi")
    {
        // The `l` counts as part of the stem.
        if measure(stem) > 0 {
            word.pop();
        }
        return;
    }
    replace(word, &rules, |stem, _| measure(stem) > 0);
}

/// Shortens suffixes such as `icate`, step 3.
fn long_suffix(word: &mut String) {
    let rules =
        [("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", "")];
    replace(word, &rules, |stem, _| measure(stem) > 0);
}

/// Removes suffixes such as `ance`, step 4.
fn residual_suffix(word: &mut String) {
    const SUFFIXES: [&str; 19] = [
        "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate",
        "iti", "ous", "ive", "ize",
    ];
    let rules = SUFFIXES.map(|suffix| (suffix, ""));
    replace(word, &rules, |stem, suffix| measure(stem) > 1 && (suffix != "ion" || stem.ends_with(['s', 't'])));
}

/// Removes a final `e`, step 5a.
fn final_e(word: &mut String) {
    if let Some(stem) = word.strip_suffix('e') {
        let measure = measure(stem);
        if measure > 1 || (measure == 1 && !ends_with_short_syllable(stem)) {
            word.pop();
        }
    }
}

/// Removes one of two final `l`, step 5b.
fn final_l(word: &mut String) {
    if let Some(stem) = word.strip_suffix('l')
        && stem.ends_with('l')
        && measure(stem) > 1
    {
        word.pop();
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
