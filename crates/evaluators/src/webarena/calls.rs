//! `func:` locators. The benchmarks pass them to Python's `eval`. Here, only calls of a fixed list of helpers with
//! literal texts are accepted.

use super::task::TaskError;
use crate::text::urls::{UrlError, urlsplit};
use arenad_verdict::question::BenchmarkCall;

/// A helper function of a benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HelperSignature {
    /// Its name as the benchmark spells it.
    pub name: &'static str,
    /// Whether its first argument is the page, `__page__`.
    pub takes_page: bool,
    /// The number of texts that it takes.
    pub texts: usize,
    /// The kind of value that it returns.
    pub returns: Returns,
}

/// The kind of value that a helper returns, and the value that the benchmark uses when the helper fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Returns {
    /// A text; empty when the helper fails.
    Text,
    /// A number; 0 when the helper fails.
    Number,
    /// A URL, for the `url` of a target.
    Url,
}

impl HelperSignature {
    /// Creates a helper that reads a page.
    pub(crate) const fn of_page(name: &'static str, texts: usize, returns: Returns) -> Self {
        Self { name, takes_page: true, texts, returns }
    }

    /// Creates a helper that takes no page. It reads the site's interface, or only its own argument.
    pub(crate) const fn of_site(name: &'static str, texts: usize, returns: Returns) -> Self {
        Self { name, takes_page: false, texts, returns }
    }
}

/// The helpers that read the latest review of a product.
pub(crate) const SHOP_REVIEWS: [HelperSignature; 3] = [
    HelperSignature::of_site("shopping_get_sku_latest_review_author", 1, Returns::Text),
    HelperSignature::of_site("shopping_get_sku_latest_review_rating", 1, Returns::Text),
    HelperSignature::of_site("shopping_get_sku_latest_review_text", 1, Returns::Text),
];

/// The helpers that WebArena's tasks may call.
pub const HELPERS: [HelperSignature; 7] = [
    HelperSignature::of_page("gitlab_get_project_memeber_role", 1, Returns::Text),
    HelperSignature::of_site("reddit_get_post_url", 1, Returns::Url),
    HelperSignature::of_site("shopping_get_latest_order_url", 0, Returns::Url),
    SHOP_REVIEWS[0],
    SHOP_REVIEWS[1],
    SHOP_REVIEWS[2],
    HelperSignature::of_site("shopping_get_sku_latest_review_title", 1, Returns::Text),
];

/// Parses `name(__page__, 'text', "text")`. `__last_url__` in a text is replaced by the URL; `__page__` is not among
/// the arguments of the returned call.
///
/// # Errors
///
/// Returns an error if the text is not a call of one of the helpers with the arguments that it takes.
pub(crate) fn parse(
    text: &str,
    last_url: &str,
    helpers: &[HelperSignature],
) -> Result<(BenchmarkCall, HelperSignature), TaskError> {
    let wrong = || TaskError::new("func", "a helper's name and texts in quotes", &text.into());
    let (name, rest) = text.trim().split_once('(').ok_or_else(wrong)?;
    let helper = helpers.iter().find(|helper| helper.name == name.trim_end()).copied();
    let helper =
        helper.ok_or_else(|| TaskError::new("func", "a call of a helper that the benchmark has", &text.into()))?;
    let inner = rest.trim_end().strip_suffix(')').ok_or_else(wrong)?;
    let (page, arguments) = arguments(inner).ok_or_else(wrong)?;
    if page != helper.takes_page || arguments.len() != helper.texts {
        return Err(TaskError::new("func", "a helper with the arguments that it takes", &text.into()));
    }
    let arguments = arguments.into_iter().map(|text| text.replace("__last_url__", last_url)).collect();
    Ok((BenchmarkCall { name: helper.name.to_owned(), arguments }, helper))
}

/// Returns whether the arguments begin with the page, and the texts.
fn arguments(inner: &str) -> Option<(bool, Vec<String>)> {
    let (mut page, mut texts) = (false, Vec::new());
    let mut rest = inner.trim();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("__page__").filter(|_| !page && texts.is_empty()) {
            page = true;
            rest = after.trim_start();
        } else {
            let quote = rest.chars().next().filter(|c| ['\'', '"'].contains(c))?;
            let (text, after) = literal(&rest[1..], quote)?;
            texts.push(text);
            rest = after.trim_start();
        }
        if rest.is_empty() {
            break;
        }
        rest = rest.strip_prefix(',')?.trim_start();
    }
    Some((page, texts))
}

/// Splits the text before its closing quote from the rest. Quotes and backslashes are the only escapes; Python has
/// more, but no task uses them.
fn literal(text: &str, quote: char) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => out.push(chars.next().map(|(_, c)| c).filter(|c| ['\\', '\'', '"'].contains(c))?),
            c if c == quote => return Some((out, &text[at + 1..])),
            c => out.push(c),
        }
    }
    None
}

/// Returns the address of a post without the parts that follow its number. Any other URL is returned unchanged, also
/// one that Python does not parse.
#[must_use]
pub fn reddit_get_post_url(url: &str) -> String {
    post_url(url).unwrap_or_else(|_| url.to_owned())
}

/// Returns the address of a post, or the error that Python raises when it parses the URL.
pub(super) fn post_url(url: &str) -> Result<String, UrlError> {
    let split = urlsplit(url)?;
    let parts: Vec<&str> = split.path_and_parameters().0.split('/').collect();
    Ok(match parts[..] {
        [_, "f", forum, post, ..] => format!("{}://{}/f/{forum}/{post}/", split.scheme, split.netloc),
        _ => url.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: [HelperSignature; 3] = [
        HelperSignature::of_page("role", 1, Returns::Text),
        HelperSignature::of_site("two", 2, Returns::Text),
        HelperSignature::of_site("none", 0, Returns::Url),
    ];

    #[test]
    fn calls_are_names_and_texts() {
        let (call, helper) = parse("role(__page__, 'it\\'s \"x\"')", "", &SOME).expect("a call");
        assert_eq!(call, BenchmarkCall { name: "role".into(), arguments: vec!["it's \"x\"".into()] });
        assert_eq!(helper, SOME[0]);
        let (call, _) = parse("two('__last_url__', \"b\")", "http://h/it's", &SOME).expect("a call");
        assert_eq!(call.arguments, ["http://h/it's", "b"]);
        assert!(parse("none()", "", &SOME).is_ok());
        for wrong in [
            "role",
            "role(",
            "role('a')",
            "role(__page__)",
            "role('a', __page__)",
            "role(__page__, __page__)",
            "two('a' 'b')",
            "two('a', 'b', 'c')",
            "two('a\\n', 'b')",
            "two('a', 1)",
            "none(none())",
            "none('a)",
            "none().x()",
            "__import__('os').system('x')",
            "(x)",
        ] {
            assert!(parse(wrong, "", &SOME).is_err(), "{wrong}");
        }
    }
}
