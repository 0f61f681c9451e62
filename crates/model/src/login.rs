//! Logins: the recipe by which an account signs in to its site, and the proof that the login succeeded.

use std::time::Duration;

use super::probe::HttpProbe;

/// The login of an account.
#[derive(Debug, Clone, PartialEq)]
pub struct Login {
    /// The method by which the account signs in.
    pub recipe: LoginRecipe,
    /// A request to the site's entry, sent with the session, that passes only for a visitor who is signed in.
    pub proof: HttpProbe,
    /// The time limit for the whole login.
    pub timeout: Duration,
}

/// The methods by which an account can sign in.
#[derive(Debug, Clone, PartialEq)]
pub enum LoginRecipe {
    /// A form of a page is filled in and submitted. The session is kept in cookies.
    Form(FormLogin),
    /// Every request carries headers that name the account.
    Header(Vec<(String, Template)>),
    /// The credentials are exchanged for a token, which every request carries in a header.
    Token(TokenLogin),
}

impl LoginRecipe {
    /// Returns the name in definitions and JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Form(_) => "form",
            Self::Header(_) => "header",
            Self::Token(_) => "token",
        }
    }
}

/// A login by a form that is filled in and submitted.
#[derive(Debug, Clone, PartialEq)]
pub struct FormLogin {
    /// The path of the page that contains the form.
    pub page: String,
    /// The CSS selector of the form, known to parse. `None` means the form that contains the fields.
    pub form: Option<String>,
    /// The values of the fields that are filled in, by field name. All other fields keep the value that the page gives
    /// them.
    pub fields: Vec<(String, Template)>,
    /// The path to which the form is submitted. `None` means the path that the form names.
    pub action: Option<String>,
}

/// A login by credentials that are exchanged for a token.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenLogin {
    /// The path to which the credentials are posted.
    pub path: String,
    /// The body as compact JSON text. Its strings are templates.
    pub json: String,
    /// The JSON pointer (RFC 6901) of the token in the answer. If it is empty, the answer itself is the token.
    pub pointer: String,
    /// The headers that carry the token.
    pub headers: Vec<(String, Template)>,
}

/// A text with placeholders, such as `{username}`, `{password}` and `{token}` in a login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(String);

impl Template {
    /// Wraps a text as a template.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the names of the placeholders: lower-case words in braces. All other braces stand for themselves.
    pub fn places(&self) -> impl Iterator<Item = &str> {
        pieces(&self.0).filter_map(|piece| match piece {
            TemplatePiece::Place(name) => Some(name),
            TemplatePiece::Text(_) => None,
        })
    }

    /// Returns the text with its placeholders filled. A placeholder without a value remains. Inserted values are not
    /// searched for placeholders, because a password may look like one.
    pub fn fill<'v>(&self, value_of: impl Fn(&str) -> Option<&'v str>) -> String {
        let mut filled = String::new();
        for piece in pieces(&self.0) {
            match piece {
                TemplatePiece::Text(text) => filled.push_str(text),
                TemplatePiece::Place(name) => match value_of(name) {
                    Some(value) => filled.push_str(value),
                    None => filled.extend(["{", name, "}"]),
                },
            }
        }
        filled
    }
}

enum TemplatePiece<'a> {
    Text(&'a str),
    Place(&'a str),
}

fn pieces(text: &str) -> impl Iterator<Item = TemplatePiece<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if let Some((name, after)) = place(rest) {
            rest = after;
            return Some(TemplatePiece::Place(name));
        }
        // The text extends to the next brace, but has at least one character, because a brace here opens no
        // placeholder.
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let end = rest[first..].find('{').map_or(rest.len(), |found| first + found);
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(TemplatePiece::Text(piece))
    })
}

/// Returns the placeholder with which the text begins, and the text after it.
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
