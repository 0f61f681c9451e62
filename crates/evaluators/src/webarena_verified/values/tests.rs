//! Equal, unequal and invalid values, type by type. `tests/vectors` contains the benchmark's own results; these tests
//! state the rules, so that a failure names the broken rule.

use serde_json::{Value, json};

use super::*;
use crate::webarena_verified::reading::ValueOrigin;

fn read(kind: ValueKind, value: &Value, side: ValueOrigin, profile: Profile) -> Result<TypedValue, ReadingFailure> {
    let patterns = Patterns::default();
    TypedValue::read(kind, value, &ReadingOptions::new(side, profile, &patterns))
}

fn are_equal(kind: ValueKind, one: &Value, other: &Value) -> bool {
    let patterns = Patterns::default();
    let reading = ReadingOptions::new(ValueOrigin::Expected, Profile::Compat, &patterns);
    let typed = |value: &Value| {
        TypedValue::read(kind, value, &reading).unwrap_or_else(|error| panic!("{kind:?} {value}: {error}"))
    };
    typed(one).equals(&typed(other), &reading).unwrap_or_else(|error| panic!("{kind:?} {one} {other}: {error}"))
}

#[test]
fn ways_to_write_a_value_are_one() {
    for (kind, one, other) in [
        (ValueKind::Text, json!("Blue-Mug\u{2122}"), json!("  blue   mug ")),
        (ValueKind::Text, json!("\u{201c}x\u{201d}."), json!("x")),
        (ValueKind::Number, json!("1,234"), json!(1234)),
        (ValueKind::Number, json!("twenty-one"), json!(21)),
        (ValueKind::Number, json!("two million three thousand four"), json!(2_003_004)),
        (ValueKind::Currency, json!("$1,234.50"), json!("1.234,50 \u{20ac}")),
        (ValueKind::Currency, json!("$10.00"), json!("10.1")),
        (ValueKind::Duration, json!("2h"), json!("2h12m")),
        (ValueKind::Duration, json!("1:35 hours"), json!("95 min")),
        (ValueKind::Distance, json!("5k"), json!("5 km")),
        (ValueKind::Distance, json!("1 km"), json!("1020 m")),
        (ValueKind::Date, json!("January 2, 2024"), json!("1/2/2024")),
        (ValueKind::Month, json!("1"), json!("Jan")),
        (ValueKind::Boolean, json!("yes"), json!(true)),
        (ValueKind::Empty, json!("N / A"), Value::Null),
        (ValueKind::LocationName, json!("Carnegie Mellon University"), json!("university, carnegie mellon")),
        (ValueKind::TextList, json!("b, a"), json!("a,b")),
        (ValueKind::Markdown, json!("* a  \r\n* b"), json!("- a\n- b")),
        (ValueKind::Url, json!("HTTP://H:80/a/"), json!("http://h/a")),
        (ValueKind::Coordinates, json!("40.44, -79.94"), json!([40.440_005, -79.94])),
    ] {
        assert!(are_equal(kind, &one, &other), "{kind:?}: {one} and {other}");
    }
}

#[test]
fn values_that_differ_are_not_equal() {
    for (kind, one, other) in [
        (ValueKind::Text, json!("mug"), json!("mugs")),
        (ValueKind::Number, json!(1), json!(2)),
        (ValueKind::Currency, json!("10"), json!("10.2")),
        (ValueKind::Duration, json!("2h"), json!("3h")),
        (ValueKind::Distance, json!("1 km"), json!("1021 m")),
        (ValueKind::Date, json!("2024-01-02"), json!("2024-02-01")),
        (ValueKind::Month, json!("May"), json!("March")),
        (ValueKind::Boolean, json!("on"), json!("off")),
        (ValueKind::LocationName, json!("Pittsburgh"), json!("Philadelphia")),
        (ValueKind::Markdown, json!("A"), json!("a")),
        (ValueKind::Url, json!("http://h/a"), json!("http://h/b")),
        (ValueKind::Coordinates, json!("40.44, -79.94"), json!("40.45, -79.94")),
    ] {
        assert!(!are_equal(kind, &one, &other), "{kind:?}: {one} and {other}");
    }
}

#[test]
fn what_is_no_value_of_its_type_is_refused() {
    for (kind, value) in [
        (ValueKind::Number, json!("many")),
        (ValueKind::Currency, json!("a few")),
        (ValueKind::Duration, json!("120")),
        (ValueKind::Distance, json!("120")),
        (ValueKind::Date, json!("soon")),
        (ValueKind::Month, json!(13)),
        (ValueKind::Boolean, json!("maybe")),
        (ValueKind::Empty, json!(0)),
        (ValueKind::Markdown, json!("")),
        (ValueKind::Coordinates, json!("north")),
    ] {
        assert!(
            matches!(read(kind, &value, ValueOrigin::Expected, Profile::Compat), Err(ReadingFailure::Raised(_))),
            "{kind:?}: {value}"
        );
    }
    // In compat an incomplete date is completed with the day of the evaluation, as in the benchmark; in strict it is
    // invalid.
    assert!(read(ValueKind::Date, &json!("May 2024"), ValueOrigin::Actual, Profile::Compat).is_ok());
    assert!(read(ValueKind::Date, &json!("May 2024"), ValueOrigin::Actual, Profile::Strict).is_err());
}

#[test]
fn alternatives_are_a_privilege_of_the_task_in_strict() {
    let list = json!(["a", "b"]);
    assert!(read(ValueKind::Text, &list, ValueOrigin::Expected, Profile::Strict).is_ok());
    assert!(read(ValueKind::Text, &list, ValueOrigin::Actual, Profile::Compat).is_ok());
    assert!(read(ValueKind::Text, &list, ValueOrigin::Actual, Profile::Strict).is_err());
    assert!(read(ValueKind::Text, &json!(["a"]), ValueOrigin::Expected, Profile::Strict).is_err());
}
