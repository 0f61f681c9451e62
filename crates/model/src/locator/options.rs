//! Options in brackets: `(shop, rows, timeout=5s, header="Accept: */*")`.

use super::SyntaxError;
use super::parse::Cursor;

/// One option and its position in the text.
pub(super) struct LocatorOption {
    pub at: usize,
    pub name: String,
    pub value: Option<String>,
}

/// The options of a locator. Each reader takes the options that it knows, and any that remain at the end are unknown.
pub(super) struct Options {
    given: Vec<LocatorOption>,
    known: Vec<&'static str>,
}

impl Options {
    /// Parses the options if an opening bracket follows.
    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self, SyntaxError> {
        let mut given = Vec::new();
        if cursor.take('(') {
            loop {
                cursor.skip_space();
                let at = cursor.at();
                let name = cursor.word();
                if name.is_empty() {
                    return Err(cursor.error("an option is missing", "a word, such as `timeout=5s`"));
                }
                cursor.skip_space();
                let value = if cursor.take('=') { Some(cursor.option_value()?) } else { None };
                given.push(LocatorOption { at, name: name.to_owned(), value });
                cursor.skip_space();
                if cursor.take(')') {
                    break;
                }
                if !cursor.take(',') {
                    return Err(cursor.error("the options are not closed", "`,` and another option, or `)`"));
                }
            }
        }
        Ok(Self { given, known: Vec::new() })
    }

    /// Takes all values of an option that may be repeated.
    pub(super) fn values(&mut self, name: &'static str) -> Vec<LocatorOption> {
        self.known.push(name);
        let (found, others) = self.given.drain(..).partition(|given| given.name == name && given.value.is_some());
        self.given = others;
        found
    }

    /// Takes the value of an option that may be given once. A repetition remains and is rejected by [`Self::finish`].
    pub(super) fn value(&mut self, name: &'static str) -> Option<LocatorOption> {
        self.known.push(name);
        let found = self.given.iter().position(|given| given.name == name && given.value.is_some())?;
        Some(self.given.remove(found))
    }

    /// Takes a word without a value, and returns whether it was given.
    pub(super) fn flag(&mut self, name: &'static str) -> bool {
        self.known.push(name);
        let found = self.given.iter().position(|given| given.name == name && given.value.is_none());
        found.map(|found| self.given.remove(found)).is_some()
    }

    /// Takes the first remaining word without a value: a name that is given without a key.
    pub(super) fn word(&mut self) -> Option<LocatorOption> {
        let found = self.given.iter().position(|given| given.value.is_none())?;
        Some(self.given.remove(found))
    }

    /// Rejects the first option that no reader has taken.
    pub(super) fn finish(self, cursor: &Cursor<'_>) -> Result<(), SyntaxError> {
        let Some(left) = self.given.first() else { return Ok(()) };
        let shown = match &left.value {
            Some(value) => format!("{}={value}", left.name),
            None => left.name.clone(),
        };
        let known: Vec<String> = self.known.iter().map(|name| format!("`{name}`")).collect();
        let expected = if known.is_empty() { "none".to_owned() } else { format!("once at most: {}", known.join(", ")) };
        Err(cursor.error_at(left.at, format!("unknown option `{shown}`"), expected))
    }
}
