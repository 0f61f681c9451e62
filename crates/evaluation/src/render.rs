//! Task files with this environment's URLs, byte for byte as the benchmarks' own `generate_test_data.py` writes them.
//!
//! Source: `scripts/generate_test_data.py` of web-arena-x/webarena and web-arena-x/visualwebarena. The script replaces
//! placeholders in the text and writes the text otherwise unchanged; then it writes each task to a file of its own, as
//! Python's `json.dump(task, file, indent=2)` does.

use std::collections::BTreeSet;
use std::io;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{CharEscape, Formatter, PrettyFormatter, Serializer};

use super::placeholders::first;
use arenad_evaluators::text::python::float_repr;
use arenad_evaluators::webarena;
use arenad_verdict::Urls;

/// The rendered form of one task file.
#[derive(Debug, PartialEq, Eq)]
pub struct Rendered {
    /// Text of the whole file, `test.json`.
    pub whole: String,
    /// Text of each task by its index in the file, for `0.json` and so on.
    pub tasks: Vec<(usize, String)>,
    /// Indices of tasks that were left out, because they mention sites without a URL.
    pub left_out: Vec<usize>,
    /// Placeholders of the sites without a URL that those tasks mention.
    pub missing: BTreeSet<String>,
}

/// Renders a file. If every site has a URL, the text is the benchmark's own; otherwise it is a list of the tasks whose
/// sites all have one.
///
/// # Errors
///
/// Returns an error if the text is not a list.
pub fn render(text: &str, urls: &Urls) -> Result<Rendered, serde_json::Error> {
    let urls = first(urls);
    let mut whole = text.to_owned();
    for (placeholder, url) in &urls {
        whole = whole.replace(placeholder, url);
    }
    let all: Vec<Value> = serde_json::from_str(&whole)?;
    let (mut tasks, mut kept, mut left_out, mut missing) = (Vec::new(), Vec::new(), Vec::new(), BTreeSet::new());
    for (index, mut task) in all.into_iter().enumerate() {
        match webarena::fill(&mut task, &urls) {
            Ok(()) => {
                tasks.push((index, python(&task)));
                kept.push(task);
            }
            Err(error) => {
                left_out.push(index);
                if let webarena::WebArenaFileError::Placeholder { placeholder, .. } = error {
                    missing.insert(placeholder);
                }
            }
        }
    }
    if !left_out.is_empty() {
        whole = python(&Value::Array(kept));
    }
    Ok(Rendered { whole, tasks, left_out, missing })
}

/// Returns a value in the form in which Python's `json.dumps(value, indent=2)` writes it.
#[must_use]
pub(crate) fn python(value: &Value) -> String {
    let mut out = Vec::new();
    let written = value.serialize(&mut Serializer::with_formatter(&mut out, Python(PrettyFormatter::new())));
    debug_assert!(written.is_ok(), "a value that was read can be written");
    String::from_utf8(out).unwrap_or_default()
}

/// A formatter with Python's conventions: only ASCII, and numbers as `repr` writes them.
struct Python(PrettyFormatter<'static>);

impl Formatter for Python {
    fn write_f64<W: ?Sized + io::Write>(&mut self, out: &mut W, value: f64) -> io::Result<()> {
        out.write_all(float_repr(value).as_bytes())
    }

    fn write_string_fragment<W: ?Sized + io::Write>(&mut self, out: &mut W, text: &str) -> io::Result<()> {
        for c in text.chars() {
            if (' '..='~').contains(&c) {
                out.write_all(&[c as u8])?;
            } else {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04x}")?;
                }
            }
        }
        Ok(())
    }

    fn write_char_escape<W: ?Sized + io::Write>(&mut self, out: &mut W, escape: CharEscape) -> io::Result<()> {
        self.0.write_char_escape(out, escape)
    }

    fn begin_array<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_array(out)
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array(out)
    }

    fn begin_array_value<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(out, first)
    }

    fn end_array_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array_value(out)
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object(out)
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object(out)
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(out, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object_value(out)
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object_value(out)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn urls(names: &[&str]) -> Urls {
        names.iter().map(|name| (format!("__{name}__"), vec![format!("http://h/{name}")])).collect()
    }

    /// The expected text was written by Python 3.11.
    #[test]
    fn values_are_written_as_python_writes_them() {
        let value = json!({ "a": "™ 😀 \u{7f}\u{1f}\n\"\\/", "b": [], "c": {}, "d": [1, 0.6, 1e16, 1e-7, 3.0, null, true], "e": { "f": [[]] } });
        let expected = "{\n  \"a\": \"\\u2122 \\ud83d\\ude00 \\u007f\\u001f\\n\\\"\\\\/\",\n  \"b\": [],\n  \"c\": {},\n  \"d\": [\n    1,\n    0.6,\n    1e+16,\n    1e-07,\n    3.0,\n    null,\n    true\n  ],\n  \"e\": {\n    \"f\": [\n      []\n    ]\n  }\n}";
        assert_eq!(python(&value), expected);
    }

    #[test]
    fn texts_stay_as_they_are_where_every_site_has_a_url() {
        let text = "[\n  {\"task_id\": 5, \"start_url\": \"__SHOPPING__/a\",\n   \"locator\": \"func:f(__page__, '__last_url__')\"}]\n";
        let rendered = render(text, &urls(&["SHOPPING", "MAP"])).expect("a list");
        assert_eq!(rendered.whole, text.replace("__SHOPPING__", "http://h/SHOPPING"));
        assert_eq!(rendered.tasks.len(), 1);
        assert_eq!(rendered.tasks[0].0, 0, "counted by place, as the benchmark does");
        assert!(rendered.tasks[0].1.contains("\"start_url\": \"http://h/SHOPPING/a\""));
    }

    #[test]
    fn tasks_of_sites_without_a_url_are_left_out() {
        let text = r#"[{"start_url": "__SHOPPING__"}, {"start_url": "__GITLAB__"}, {"start_url": "__MAP__"}]"#;
        let rendered = render(text, &urls(&["SHOPPING"])).expect("a list");
        assert_eq!(rendered.left_out, [1, 2]);
        assert_eq!(rendered.missing.into_iter().collect::<Vec<_>>(), ["__GITLAB__", "__MAP__"]);
        assert_eq!(rendered.whole, "[\n  {\n    \"start_url\": \"http://h/SHOPPING\"\n  }\n]");
        assert!(render("{", &urls(&[])).is_err());
    }
}
