//! Equal, unequal and invalid values, type by type. `tests/vectors` contains the benchmark's own results; these tests
//! state the rules, so that a failure names the broken rule.

use serde_json::{Value, json};

use super::*;
use crate::webarena_verified::reading::Side;

fn read(kind: Kind, value: &Value, side: Side, profile: Profile) -> Result<Typed, Trouble> {
    let patterns = Patterns::default();
    Typed::read(kind, value, &Reading::new(side, profile, &patterns))
}

fn are_equal(kind: Kind, one: &Value, other: &Value) -> bool {
    let patterns = Patterns::default();
    let reading = Reading::new(Side::Expected, Profile::Compat, &patterns);
    let typed =
        |value: &Value| Typed::read(kind, value, &reading).unwrap_or_else(|error| panic!("{kind:?} {value}: {error}"));
    typed(one).equals(&typed(other), &reading).unwrap_or_else(|error| panic!("{kind:?} {one} {other}: {error}"))
}

#[test]
fn ways_to_write_a_value_are_one() {
    for (kind, one, other) in [
        (Kind::Text, json!("Blue-Mug\u{2122}"), json!("  blue   mug ")),
        (Kind::Text, json!("\u{201c}x\u{201d}."), json!("x")),
        (Kind::Number, json!("1,234"), json!(1234)),
        (Kind::Number, json!("twenty-one"), json!(21)),
        (Kind::Number, json!("two million three thousand four"), json!(2_003_004)),
        (Kind::Currency, json!("$1,234.50"), json!("1.234,50 \u{20ac}")),
        (Kind::Currency, json!("$10.00"), json!("10.1")),
        (Kind::Duration, json!("2h"), json!("2h12m")),
        (Kind::Duration, json!("1:35 hours"), json!("95 min")),
        (Kind::Distance, json!("5k"), json!("5 km")),
        (Kind::Distance, json!("1 km"), json!("1020 m")),
        (Kind::Date, json!("January 2, 2024"), json!("1/2/2024")),
        (Kind::Month, json!("1"), json!("Jan")),
        (Kind::Boolean, json!("yes"), json!(true)),
        (Kind::Empty, json!("N / A"), Value::Null),
        (Kind::LocationName, json!("Carnegie Mellon University"), json!("university, carnegie mellon")),
        (Kind::TextList, json!("b, a"), json!("a,b")),
        (Kind::Markdown, json!("* a  \r\n* b"), json!("- a\n- b")),
        (Kind::Url, json!("HTTP://H:80/a/"), json!("http://h/a")),
        (Kind::Coordinates, json!("40.44, -79.94"), json!([40.440_005, -79.94])),
    ] {
        assert!(are_equal(kind, &one, &other), "{kind:?}: {one} and {other}");
    }
}

#[test]
fn values_that_differ_are_not_equal() {
    for (kind, one, other) in [
        (Kind::Text, json!("mug"), json!("mugs")),
        (Kind::Number, json!(1), json!(2)),
        (Kind::Currency, json!("10"), json!("10.2")),
        (Kind::Duration, json!("2h"), json!("3h")),
        (Kind::Distance, json!("1 km"), json!("1021 m")),
        (Kind::Date, json!("2024-01-02"), json!("2024-02-01")),
        (Kind::Month, json!("May"), json!("March")),
        (Kind::Boolean, json!("on"), json!("off")),
        (Kind::LocationName, json!("Pittsburgh"), json!("Philadelphia")),
        (Kind::Markdown, json!("A"), json!("a")),
        (Kind::Url, json!("http://h/a"), json!("http://h/b")),
        (Kind::Coordinates, json!("40.44, -79.94"), json!("40.45, -79.94")),
    ] {
        assert!(!are_equal(kind, &one, &other), "{kind:?}: {one} and {other}");
    }
}

#[test]
fn what_is_no_value_of_its_type_is_refused() {
    for (kind, value) in [
        (Kind::Number, json!("many")),
        (Kind::Currency, json!("a few")),
        (Kind::Duration, json!("120")),
        (Kind::Distance, json!("120")),
        (Kind::Date, json!("soon")),
        (Kind::Month, json!(13)),
        (Kind::Boolean, json!("maybe")),
        (Kind::Empty, json!(0)),
        (Kind::Markdown, json!("")),
        (Kind::Coordinates, json!("north")),
    ] {
        assert!(
            matches!(read(kind, &value, Side::Expected, Profile::Compat), Err(Trouble::Raised(_))),
            "{kind:?}: {value}"
        );
    }
    // In compat an incomplete date is completed with the day of the evaluation, as in the benchmark; in strict it is
    // invalid.
    assert!(read(Kind::Date, &json!("May 2024"), Side::Actual, Profile::Compat).is_ok());
    assert!(read(Kind::Date, &json!("May 2024"), Side::Actual, Profile::Strict).is_err());
}

#[test]
fn alternatives_are_a_privilege_of_the_task_in_strict() {
    let list = json!(["a", "b"]);
    assert!(read(Kind::Text, &list, Side::Expected, Profile::Strict).is_ok());
    assert!(read(Kind::Text, &list, Side::Actual, Profile::Compat).is_ok());
    assert!(read(Kind::Text, &list, Side::Actual, Profile::Strict).is_err());
    assert!(read(Kind::Text, &json!(["a"]), Side::Expected, Profile::Strict).is_err());
}
