//! Start tags as nearly all pages write them, read without patterns: a name, attributes that white space separates, and `>`
//! or `/>`. `markup` reads the others, and its patterns read these in the same way.

use super::markup::set;

/// The parts of a start tag.
pub(super) struct UsualTag {
    /// The number of bytes from `<` to `>`.
    pub(super) length: usize,
    pub(super) name: String,
    pub(super) attributes: Vec<(String, String)>,
    pub(super) is_closed: bool,
}

/// Reads the start tag at the beginning of a text. `None` if it is not of the usual form.
pub(super) fn usual_start_tag(text: &str) -> Option<UsualTag> {
    let bytes = text.as_bytes();
    let mut at = 1 + length(&bytes[1..], is_name);
    let name = text[1..at].to_ascii_lowercase();
    // The name ends here for the patterns too.
    if !bytes.get(at).is_some_and(|byte| is_space(*byte) || b"/>".contains(byte)) {
        return None;
    }
    let mut attributes: Vec<(String, String)> = Vec::new();
    loop {
        let spaces = length(&bytes[at..], is_space);
        at += spaces;
        match bytes.get(at)? {
            b'>' => return Some(UsualTag { length: at + 1, name, attributes, is_closed: false }),
            b'/' if bytes.get(at + 1) == Some(&b'>') => {
                return Some(UsualTag { length: at + 2, name, attributes, is_closed: true });
            }
            _ if spaces == 0 => return None,
            _ => {}
        }
        let begin = at;
        at += length(&bytes[at..], is_attribute_name);
        // White space may come before `=`, too.
        if at == begin {
            return None;
        }
        let attribute = text[begin..at].to_ascii_lowercase();
        let mut value = "";
        if bytes.get(at) == Some(&b'=') {
            at += 1;
            let quote = *bytes.get(at)?;
            if quote == b'"' || quote == b'\'' {
                let begin = at + 1;
                at = begin + text[begin..].find(char::from(quote))?;
                value = &text[begin..at];
                at += 1;
            } else {
                let begin = at;
                at += length(&bytes[at..], is_plain);
                // White space may come before the value.
                value = Some(&text[begin..at]).filter(|value| !value.is_empty())?;
            }
        }
        let after = &bytes[at..];
        let is_quoted = matches!(bytes[at - 1], b'"' | b'\'');
        let ends = after.first().is_some_and(|byte| is_space(*byte) || *byte == b'>')
            || (is_quoted && after.starts_with(b"/>"));
        if !ends {
            return None;
        }
        let value = if value.contains('&') { htmlize::unescape(value).into_owned() } else { value.to_owned() };
        set(&mut attributes, attribute, value);
    }
}

/// The number of bytes at the beginning that are of a kind.
fn length(bytes: &[u8], is_of_kind: impl Fn(u8) -> bool) -> usize {
    bytes.iter().take_while(|byte| is_of_kind(**byte)).count()
}

fn is_space(byte: u8) -> bool {
    b" \t\n\r\x0c".contains(&byte)
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_:.".contains(&byte)
}

fn is_attribute_name(byte: u8) -> bool {
    is_name(byte) || byte == b'@'
}

/// A byte of a value without quotes. A slash would belong to it, and not to the end of the tag.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.:#%;,?!()*+|~$@".contains(&byte)
}
