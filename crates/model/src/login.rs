//! How an account signs in to its site: a recipe, and the proof that it worked.

use std::time::Duration;

use super::probe::HttpProbe;

/// How to sign in, and how to see that it worked.
#[derive(Debug, Clone, PartialEq)]
pub struct Login {
    /// The way.
    pub recipe: LoginRecipe,
    /// What a visitor who is signed in gets and nobody else; asked of the site's entry with the session.
    pub proof: HttpProbe,
    /// The longest that all of it may take.
    pub timeout: Duration,
}

/// The ways of signing in.
#[derive(Debug, Clone, PartialEq)]
pub enum LoginRecipe {
    /// A form of a page is filled in and sent; the session is in cookies.
    Form(FormLogin),
    /// Every request carries headers that name the account.
    Header(Vec<(String, Template)>),
    /// The account is exchanged for a token, which every request carries in a header.
    Token(TokenLogin),
}

impl LoginRecipe {
    /// The recipe's name in definitions and JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Form(_) => "form",
            Self::Header(_) => "header",
            Self::Token(_) => "token",
        }
    }
}

/// A form that is filled in and sent.
#[derive(Debug, Clone, PartialEq)]
pub struct FormLogin {
    /// The path of the page that has the form.
    pub page: String,
    /// The CSS selector of the form, known to parse; `None`: the form that has the fields.
    pub form: Option<String>,
    /// What is typed into which field; the others keep what the page gives them.
    pub fields: Vec<(String, Template)>,
    /// The path that the form is sent to; `None`: the one that the form names.
    pub action: Option<String>,
}

/// An account that is exchanged for a token.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenLogin {
    /// The path that the account is posted to.
    pub path: String,
    /// The body as compact JSON text; its strings are templates.
    pub json: String,
    /// The JSON pointer (RFC 6901) of the token in the answer; empty: the answer is the token.
    pub pointer: String,
    /// The headers that carry the token.
    pub headers: Vec<(String, Template)>,
}

/// A text with places for `{username}`, `{password}` and `{token}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(String);

impl Template {
    /// Wraps the text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The names of its places: lower-case words in braces. Other braces are themselves.
    pub fn places(&self) -> impl Iterator<Item = &str> {
        pieces(&self.0).filter_map(|piece| match piece {
            Piece::Place(name) => Some(name),
            Piece::Text(_) => None,
        })
    }

    /// The text with its places filled; one that has no value stays as it is. What is put in is not looked into again:
    /// a password may itself look like a place.
    pub fn fill<'v>(&self, value_of: impl Fn(&str) -> Option<&'v str>) -> String {
        let mut filled = String::new();
        for piece in pieces(&self.0) {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Place(name) => match value_of(name) {
                    Some(value) => filled.push_str(value),
                    None => filled.extend(["{", name, "}"]),
                },
            }
        }
        filled
    }
}

enum Piece<'a> {
    Text(&'a str),
    Place(&'a str),
}

fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if let Some((name, after)) = place(rest) {
            rest = after;
            return Some(Piece::Place(name));
        }
        // Up to the next brace, but at least one character: this one opens no place.
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let end = rest[first..].find('{').map_or(rest.len(), |found| first + found);
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(Piece::Text(piece))
    })
}

/// The place that a text begins with, and what follows it.
fn place(text: &str) -> Option<(&str, &str)> {
    let (name, after) = text.strip_prefix('{')?.split_once('}')?;
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    is_name.then_some((name, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(text: &str) -> String {
        Template::new(text).fill(|name| match name {
            "username" => Some("emma"),
            "password" => Some("{username}é"),
            _ => None,
        })
    }

    #[test]
    fn places_are_filled_once_and_other_braces_are_themselves() {
        assert_eq!(fill("{username}:{password}"), "emma:{username}é");
        assert_eq!(fill("é{ {username {}{Username}{"), "é{ {username {}{Username}{");
        assert_eq!(fill("{{username}}"), "{emma}");
        assert_eq!(fill("Bearer {token}"), "Bearer {token}");
        assert_eq!(fill(""), "");
    }

    #[test]
    fn places_are_named() {
        assert_eq!(Template::new("{a}{ b }{c_d}x").places().collect::<Vec<_>>(), ["a", "c_d"]);
    }
}
