//! Choices: one variable by which a user selects the values of several others, such as a memory size by its name.
//!
//! Choices are made before interpolation, so both files can use the variables that an option sets.

use super::interpolate::interpolate;
use super::problems::{Problems, did_you_mean, quoted_list};
use super::source::SourceFile;
use super::tree::{DocumentNode, DocumentValue, MappingEntry, excerpt};
use super::variables::{DefinitionVariables, VariableOrigin};

/// Applies the choices that an environment file offers. Malformed choices are skipped here; the schema check reports
/// them.
pub(crate) fn choose(
    root: &DocumentNode,
    source: &SourceFile,
    variables: &DefinitionVariables<'_>,
    problems: &Problems,
) {
    for choice in root.entry("choices").map(|entry| entries(&entry.value)).unwrap_or_default() {
        let Some(values) = choice.value.entry("values") else {
            continue;
        };
        let options = entries(&values.value);
        if options.is_empty() {
            continue;
        }
        let default = choice.value.entry("default").and_then(|entry| Some((entry, entry.value.scalar()?)));
        let given = variables.look_up(&choice.key);
        let Some(picked) = given.clone().or_else(|| default.map(|(_, scalar)| scalar.text.clone())) else {
            continue;
        };
        let known = || options.iter().map(|option| option.key.as_str());
        let Some(option) = options.iter().find(|option| option.key == picked) else {
            let span = match default {
                Some((entry, _)) if given.is_none() => entry.value.span,
                _ => choice.key_span,
            };
            let message = format!("unknown option `{}` of the choice `{}`", excerpt(&picked), choice.key);
            problems
                .at(source, span, "value", message)
                .expected(format!("one of {}", quoted_list(known())))
                .maybe_help(did_you_mean(&picked, known()))
                .report();
            continue;
        };
        if given.is_none() {
            variables.record_default(&choice.key, &picked);
            variables.choose(&choice.key, picked, VariableOrigin::Default);
        }
        for entry in entries(&option.value) {
            // A text that cannot be interpolated is reported when the document is interpolated.
            let value = entry.value.scalar().and_then(|scalar| interpolate(&scalar.text, variables).ok());
            variables.choose(&entry.key, value.unwrap_or_default(), VariableOrigin::Choice);
        }
    }
}

fn entries(node: &DocumentNode) -> &[MappingEntry] {
    match &node.value {
        DocumentValue::Mapping(entries) => entries,
        _ => &[],
    }
}
