//! `func:` locators. The benchmark gives them to Python's `eval`; here they are a name and literal texts, and nothing else.

use super::task::TaskError;
use super::urls;
use crate::evaluators::question::Call;

/// The helpers that the tasks call, spelt as there.
pub const HELPERS: [&str; 7] = [
    "gitlab_get_project_memeber_role",
    "reddit_get_post_url",
    "shopping_get_latest_order_url",
    "shopping_get_sku_latest_review_author",
    "shopping_get_sku_latest_review_rating",
    "shopping_get_sku_latest_review_text",
    "shopping_get_sku_latest_review_title",
];

/// Reads `name('text', "text", __page__)`. `__last_url__` in a text becomes the URL; `__page__` is left out.
///
/// # Errors
///
/// When it is anything else.
pub(super) fn parse(text: &str, last_url: &str) -> Result<Call, TaskError> {
    let wrong = || TaskError::new("func", "a helper's name and texts in quotes", &text.into());
    let (name, rest) = text.trim().split_once('(').ok_or_else(wrong)?;
    let inner = rest.trim_end().strip_suffix(')').ok_or_else(wrong)?;
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err(wrong());
    }
    let mut arguments = Vec::new();
    let mut rest = inner.trim();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("__page__") {
            rest = after.trim_start();
        } else {
            let quote = rest.chars().next().filter(|c| ['\'', '"'].contains(c)).ok_or_else(wrong)?;
            let (argument, after) = literal(&rest[1..], quote).ok_or_else(wrong)?;
            arguments.push(argument.replace("__last_url__", last_url));
            rest = after.trim_start();
        }
        if rest.is_empty() {
            break;
        }
        rest = rest.strip_prefix(',').ok_or_else(wrong)?.trim_start();
    }
    Ok(Call { name: name.to_owned(), arguments })
}

/// A text up to its closing quote, and what follows.
fn literal(text: &str, quote: char) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => out.push(chars.next()?.1),
            c if c == quote => return Some((out, &text[at + 1..])),
            c => out.push(c),
        }
    }
    None
}

/// The address of a post, without what follows its number. Anything that is no post's address stays as it is.
#[must_use]
pub fn reddit_get_post_url(url: &str) -> String {
    let split = urls::split(url);
    let parts: Vec<&str> = split.path.split('/').collect();
    match parts[..] {
        [_, "f", forum, post, ..] => format!("{}://{}/f/{forum}/{post}/", split.scheme, split.host),
        _ => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_names_and_texts() {
        let call = parse("gitlab_get_project_memeber_role(__page__, 'it\\'s \"x\"')", "").expect("a call");
        assert_eq!(call, Call { name: "gitlab_get_project_memeber_role".into(), arguments: vec!["it's \"x\"".into()] });
        let call = parse("f('__last_url__', \"b\")", "http://h/it's").expect("a call");
        assert_eq!(call.arguments, ["http://h/it's", "b"]);
        for wrong in ["f", "f(", "f(1)", "f('a' 'b')", "__import__('os').system('x')", "f('a)", "f(g())", "(x)"] {
            assert!(parse(wrong, "").is_err(), "{wrong}");
        }
    }
}
