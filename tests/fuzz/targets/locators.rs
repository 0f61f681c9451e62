//! Locators: texts of task files and clients, their arguments, and the results of JSONPath and jq filters on an answer.

use arenad_model::locator::{Arguments, JsonQuery, Locator, LocatorKind, Selection, TracePart, parse};

use crate::target::{FuzzTarget, InputCheck, parts};

pub const TARGET: FuzzTarget = FuzzTarget {
    words: &[
        "sql(shop): ",
        "http(reads, header='A: {x}', body='{x}'): POST ",
        "http: GET /",
        "js: ",
        " @ /",
        "exec: web: ",
        "file: web: /",
        "trace(all): POST /*",
        " as customer",
        " | jsonpath: $",
        " | jsonpath(all): $..",
        " | jq: .",
        " | css: a",
        " | header: ",
        " | status",
        "timeout=10s",
        "{x}",
        "{y}",
        "'",
        "\"",
        "\\",
        "$[?@.a == {x}]",
        "[?length(@.a) > 1]",
        "[?match(@.a, '(a*)*')]",
        "..",
        "[*]",
        "[::-1]",
        "[9223372036854775807]",
        "?",
        "*",
        "%00",
        "\u{2028}",
        "\u{e9}",
    ],
    ..FuzzTarget::new("locators", open)
};

fn open() -> InputCheck {
    Box::new(|input| {
        let [text, argument, json] = parts::<3>(input);
        let locator = match parse(&text) {
            Ok(locator) => locator,
            Err(error) => {
                let length = text.chars().count();
                assert!((1..=length + 1).contains(&error.column), "column {} of {length}", error.column);
                return error.problem.split('`').step_by(2).collect();
            }
        };
        let again = parse(&text).expect("as before");
        assert_eq!(locator, again);
        let filled = locator.clone().with(&Arguments(vec![("x".to_owned(), argument.clone())]));
        check_filled(&filled, &argument);
        let asked = query(&filled).map(|query| match query {
            JsonQuery::Path { path, all } => arenad_locators::json_query::json_path(path, &json, *all),
            // Filters may never end, so they run only where they can be stopped.
            JsonQuery::Jq { .. } => Ok(arenad_model::locator::Value::Null),
        });
        let asked =
            asked.map(|asked| asked.map(|value| value.type_name()).map_err(|error| error.to_string().len() / 32));
        format!("{} {asked:?}", locator.kind.name())
    })
}

/// Checks that an argument stays in its place: it cannot end a header, a path or a literal.
fn check_filled(locator: &Locator, argument: &str) {
    match &locator.kind {
        LocatorKind::Http(http) => {
            for (_, value) in &http.headers {
                assert!(
                    !argument.contains(['\r', '\n']) || !value.contains(argument),
                    "a header has two lines: {value:?}"
                );
            }
        }
        LocatorKind::Sql(sql) => assert!(sql.arguments.get("x") == Some(argument), "arguments are bound"),
        _ => {}
    }
}

fn query(locator: &Locator) -> Option<&JsonQuery> {
    match &locator.kind {
        LocatorKind::Http(http) => match &http.selection {
            Selection::Json(query) => Some(query),
            _ => None,
        },
        LocatorKind::Trace(trace) => match &trace.part {
            TracePart::Json(query) => Some(query),
            _ => None,
        },
        _ => None,
    }
}
