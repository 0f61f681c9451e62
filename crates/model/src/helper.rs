//! Helpers: the names by which a benchmark's tasks request values, and their meanings on a site.
//!
//! In the benchmarks, helpers are Python functions that were written for one application. Here each helper is a locator
//! with parameters in the site's definition, so that another application can define its own. A call consists of a name
//! and quoted texts. It is parsed by a fixed grammar and never evaluated as code.

use super::locator::{Arguments, Locator, SyntaxError, Value};
use super::login::Template;

/// The meaning of a helper's name on a site.
#[derive(Debug, Clone, PartialEq)]
pub struct Helper {
    /// The name, in the spelling of the benchmark.
    pub name: String,
    /// The names of the parameters, in the order of the arguments in a call.
    pub parameters: Vec<String>,
    /// The locator that reads the value. It has placeholders for the parameters.
    pub locator: Locator,
    /// The locator as it was written.
    pub text: String,
    /// The text into which the value is inserted. `None` means that the value itself is the result.
    pub gives: Option<Template>,
    /// The result if the locator finds no value.
    pub otherwise: Option<String>,
}

/// A call of a helper: its name and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelperCall {
    /// The name of the helper.
    pub name: String,
    /// The arguments, without the page.
    pub arguments: Vec<String>,
}

/// The error for a call whose number of arguments differs from the helper's number of parameters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} takes {} ({}), and was given {given}", count(.parameters.len()), .parameters.join(", "))]
pub struct WrongArguments {
    name: String,
    parameters: Vec<String>,
    given: usize,
}

fn count(number: usize) -> String {
    if number == 1 { "1 argument".to_owned() } else { format!("{number} arguments") }
}

impl Helper {
    /// Returns the arguments of a call by the names of the parameters.
    pub fn arguments(&self, given: &[String]) -> Result<Arguments, WrongArguments> {
        if given.len() != self.parameters.len() {
            return Err(WrongArguments {
                name: self.name.clone(),
                parameters: self.parameters.clone(),
                given: given.len(),
            });
        }
        Ok(Arguments(self.parameters.iter().cloned().zip(given.iter().cloned()).collect()))
    }

    /// Returns the helper's result for a value of its locator. `origin` is the site's `http://HOST:PORT`.
    pub fn gives(&self, value: Value, origin: &str) -> Value {
        match (&value, &self.otherwise, &self.gives) {
            (Value::Null, Some(otherwise), _) => Value::Text(otherwise.clone()),
            (Value::Null, None, _) | (_, _, None) => value,
            (_, _, Some(template)) => {
                let text = value.text().unwrap_or_default();
                Value::Text(template.fill(|place| match place {
                    "value" => Some(text.as_str()),
                    "origin" => Some(origin),
                    _ => None,
                }))
            }
        }
    }
}

impl HelperCall {
    /// Parses `name('text', "text")`. `__page__` stands for the current page, which locators use in any case, and is
    /// left out.
    ///
    /// Errors: the first error in the text.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        let error = |rest: &str, problem: &str, expected: &str| SyntaxError {
            column: text[..text.len() - rest.len()].chars().count() + 1,
            problem: problem.to_owned(),
            expected: expected.to_owned(),
        };
        let start = text.trim_start();
        let end = start.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(start.len());
        let (name, rest) = start.split_at(end);
        if name.is_empty() {
            return Err(error(start, "the helper's name is missing", "a name such as `shopping_get_latest_order_url`"));
        }
        let bracket = "`(` after the helper's name";
        let mut rest = rest
            .trim_start()
            .strip_prefix('(')
            .ok_or_else(|| error(rest, "no arguments follow", bracket))?
            .trim_start();
        let mut arguments = Vec::new();
        while !rest.starts_with(')') {
            if let Some(after) = rest.strip_prefix("__page__") {
                rest = after;
            } else {
                let (argument, after) =
                    quoted(rest).ok_or_else(|| error(rest, "invalid argument", "a text in quotes"))?;
                arguments.push(argument);
                rest = after;
            }
            rest = rest.trim_start();
            match rest.strip_prefix(',') {
                Some(after) => rest = after.trim_start(),
                None if rest.starts_with(')') => {}
                None => return Err(error(rest, "the arguments are not closed", "`,` or `)`")),
            }
        }
        let after = rest[1..].trim();
        if !after.is_empty() {
            return Err(error(after, "something follows the call", "the end"));
        }
        Ok(Self { name: name.to_owned(), arguments })
    }
}

/// Returns the text in quotes with which `text` begins, and the text after it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let quote = text.chars().next().filter(|c| ['\'', '"'].contains(c))?;
    let mut inner = String::new();
    let mut chars = text[1..].char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => inner.push(chars.next()?.1),
            c if c == quote => return Some((inner, &text[at + 2..])),
            c => inner.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::locator::parse;
    use super::*;

    fn helper(gives: Option<&str>, otherwise: Option<&str>) -> Helper {
        Helper {
            name: "f".to_owned(),
            parameters: vec!["sku".to_owned()],
            locator: parse("sql: select {sku}").expect("a locator"),
            text: String::new(),
            gives: gives.map(Template::new),
            otherwise: otherwise.map(str::to_owned),
        }
    }

    #[test]
    fn calls_are_names_and_texts() {
        let call = HelperCall::parse(" f(__page__, 'it\\'s', \"b\") ").expect("a call");
        assert_eq!((call.name.as_str(), call.arguments), ("f", vec!["it's".to_owned(), "b".to_owned()]));
        assert_eq!(HelperCall::parse("f()").map(|call| call.arguments), Ok(Vec::new()));
        let wrong = |text| HelperCall::parse(text).expect_err(text).to_string();
        assert_eq!(wrong("f"), "column 2: no arguments follow; expected `(` after the helper's name");
        assert_eq!(wrong("f(1)"), "column 3: invalid argument; expected a text in quotes");
        assert_eq!(wrong("f('a' 'b')"), "column 7: the arguments are not closed; expected `,` or `)`");
        assert_eq!(wrong("__import__('os').system('x')"), "column 17: something follows the call; expected the end");
        assert!(wrong("f('a").contains("column 3"));
        assert!(wrong("").contains("column 1"));
    }

    #[test]
    fn values_are_put_into_what_is_given() {
        let url = helper(Some("{origin}/orders/{value}/"), Some(""));
        assert_eq!(url.gives(Value::Integer(7), "http://h:1"), Value::Text("http://h:1/orders/7/".to_owned()));
        assert_eq!(url.gives(Value::Null, "http://h:1"), Value::Text(String::new()));
        assert_eq!(helper(None, None).gives(Value::Null, ""), Value::Null);
        let wrong = url.arguments(&[]).expect_err("none given").to_string();
        assert_eq!(wrong, "f takes 1 argument (sku), and was given 0");
        assert_eq!(url.arguments(&["x".to_owned()]).expect("one").get("sku"), Some("x"));
    }
}
