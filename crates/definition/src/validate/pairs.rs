//! Names and values of `environment`, `labels`, `args` and `sysctls`, and of `env_file`.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value as Json;

use super::ValidationContext;
use super::paths::{PathKind, inside};
use crate::dotenv;
use crate::raw::compose_parts::{EnvFile, EnvFiles};
use crate::raw::values::{KeyValues, Scalar, text_of};
use crate::scope::Scope;
use crate::source::{SOURCE_MAX_BYTES, SourceFile};
use crate::variables::DefinitionVariables;

/// The meaning of a name without a value.
#[derive(Clone, Copy)]
pub(super) enum MissingValue<'a> {
    /// The value of the variable with the same name.
    Variable(&'a DefinitionVariables<'a>),
    /// An empty text as the value.
    Empty,
}

/// Reads names and values in either form.
pub(super) fn pairs(scope: Scope<'_>, raw: Option<&KeyValues>, missing: MissingValue<'_>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    match raw {
        None => {}
        Some(KeyValues::List(lines)) => {
            for (index, line) in lines.iter().enumerate() {
                let scope = scope.index(index);
                let (name, value) = match line.split_once('=') {
                    Some((name, value)) => (name, Some(value.to_owned())),
                    None => (line.as_str(), absent(scope, line, missing)),
                };
                check_name(scope, name);
                if found.insert(name.to_owned(), value.unwrap_or_default()).is_some() {
                    scope.error("duplicate-key", format!("`{name}` is set twice")).report();
                }
            }
        }
        Some(KeyValues::Map(entries)) => {
            for (name, value) in entries.iter() {
                let scope = scope.key(name);
                check_name(scope, name);
                let value = match value.0 {
                    Json::Null => absent(scope, name, missing).unwrap_or_default(),
                    _ => exact_text(scope, value),
                };
                found.insert(name.to_owned(), value);
            }
        }
    }
    found
}

/// Reports a number whose text would change: `1.10` becomes `1.1`, as in Compose. The author means the text.
fn exact_text(scope: Scope<'_>, value: &Scalar) -> String {
    let scalar = scope.scalar();
    if let Some(scalar) = scalar.filter(|scalar| scalar.written.is_some()) {
        // Compose treats a value from a variable as text, whatever its form.
        return scalar.text.clone();
    }
    let text = text_of(&value.0);
    let written = scalar.map_or("", |scalar| scalar.text.as_str());
    if value.0.is_number() && written != text {
        scope
            .error("number", format!("the number `{written}` would reach the container as `{text}`"))
            .help(format!("put it in quotes: `\"{written}\"`"))
            .report();
    }
    if text.contains('\0') {
        scope.error("value", "a value cannot carry a NUL character").report();
    }
    text
}

fn absent(scope: Scope<'_>, name: &str, missing: MissingValue<'_>) -> Option<String> {
    let MissingValue::Variable(variables) = missing else {
        return None;
    };
    let value = variables.look_up(name);
    if value.is_none() {
        scope
            .key_error("unset-variable", format!("`{name}` has no value here and the variable is not set"))
            .help(format!("give it a value, or set `{name}` in the shell or in `.env`"))
            .report();
    }
    value
}

fn check_name(scope: Scope<'_>, name: &str) {
    if name.is_empty() || name.contains(['=', '\0']) || name.chars().any(char::is_whitespace) {
        scope
            .key_error("name", format!("invalid name `{}`", crate::tree::excerpt(name)))
            .expected("a name without white space and `=`")
            .report();
    }
}

/// Reads the files that `env_file` names. A value in a later file replaces one from an earlier file.
pub(super) fn env_files(
    context: ValidationContext<'_>,
    scope: Scope<'_>,
    raw: Option<&EnvFiles>,
) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let files: Vec<(Scope<'_>, &str, bool)> = match raw {
        None => Vec::new(),
        Some(EnvFiles::One(path)) => vec![(scope, path, true)],
        Some(EnvFiles::Many(files)) => files
            .iter()
            .enumerate()
            .filter_map(|(index, file)| match file.good()? {
                EnvFile::Path(path) => Some((scope.index(index), path.as_str(), true)),
                EnvFile::Spec(spec) => {
                    Some((scope.index(index).key("path"), spec.path.as_str(), spec.required.unwrap_or(true)))
                }
            })
            .collect(),
    };
    for (scope, text, required) in files {
        if !required && !context.compose_folder.join(text).exists() {
            continue;
        }
        let Some(path) = inside(scope, context.root, context.compose_folder, text, PathKind::File, "the file") else {
            continue;
        };
        let is_small = fs::metadata(&path).is_ok_and(|metadata| metadata.len() <= SOURCE_MAX_BYTES as u64);
        let Some(content) = is_small.then(|| fs::read_to_string(&path).ok()).flatten() else {
            scope
                .error("path", format!("the file `{text}` cannot be read"))
                .expected(format!("UTF-8 text of at most {SOURCE_MAX_BYTES} bytes"))
                .report();
            continue;
        };
        let shown = path.strip_prefix(context.root).unwrap_or(&path);
        let source = SourceFile::new(shown, content);
        found.extend(dotenv::read(&source, context.variables, scope.problems()));
    }
    found
}
