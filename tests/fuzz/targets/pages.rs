//! HTML of sites, as `css:` locators and log-ins read it: a selector, an attribute, and a page.

use arenad_accounts::form::fill;
use arenad_locators::http::select::of_page;
use arenad_model::locator::Value;
use arenad_model::login::{FormLogin, Template};

use crate::target::{FuzzTarget, InputCheck, parts};

pub const TARGET: FuzzTarget = FuzzTarget {
    words: &[
        "<form>",
        "<form id=a method=post action=/x>",
        "</form>",
        "<input name=user>",
        "<input name=pass type=password>",
        "<input type=checkbox name=pass checked>",
        "<input type=hidden name=csrf value=x form=a>",
        "<select name=user><option selected>",
        "<option value=1 disabled>",
        "<textarea name=pass>",
        "<button name=go>",
        "<input disabled>",
        "<table><tr><td>",
        "<svg><style>",
        "<math><mi>",
        "<template>",
        "<noscript>",
        "<plaintext>",
        "<!--",
        "-->",
        "<![CDATA[",
        "<script>",
        "</p>",
        "&amp;",
        "&#x10ffff;",
        "&#0;",
        "\0",
        "\u{a0}",
        "a[href]",
        ":not(:is(a,b))",
        ":nth-child(2n+1 of a)",
        ":has(> a)",
        "*",
        " > ",
        " ~ ",
        ",",
        "href",
    ],
    ..FuzzTarget::new("pages", open)
};

/// The values that are filled in. They must not be parsed as HTML; a page that does so would send another password.
const TYPED: [(&str, &str); 2] = [("user", "emma&<b>"), ("pass", " \"s3cret' ")];

fn open() -> InputCheck {
    Box::new(|input| {
        let [selector, attribute, page] = parts::<3>(input);
        let attribute = Some(attribute.as_str()).filter(|name| !name.is_empty());
        let found = match (of_page(&page, &selector, attribute, false), of_page(&page, &selector, attribute, true)) {
            (Ok(first), Ok(all)) => agreed(&first, &all, attribute.is_none()),
            (Err(one), Err(other)) => {
                assert_eq!(one, other);
                "no selector"
            }
            (first, all) => panic!("{first:?} and {all:?}"),
        };
        format!("{found} / {}", filled(&page, None))
            + &format!(" / {}", filled(&page, Some(selector).filter(|selector| !selector.is_empty())))
    })
}

/// Checks that the first of all elements equals the single result, and that its text has no invisible space.
fn agreed(first: &Value, all: &Value, is_text: bool) -> &'static str {
    let Value::Json(all) = all else { panic!("all of them are {all:?}") };
    let all: Vec<Option<String>> = serde_json::from_str(all).expect("a list of texts");
    let expected = all.first().cloned().flatten().map_or(Value::Null, Value::Text);
    assert_eq!(*first, expected);
    let is_tidy = |text: &String| text.split_whitespace().collect::<Vec<_>>().join(" ") == *text;
    assert!(!is_text || all.iter().flatten().all(is_tidy), "{all:?}");
    match all.len() {
        0 => "nothing",
        1 => "one",
        _ => "several",
    }
}

/// Checks that the typed values are sent once and unchanged, and that every other field has a name.
fn filled(page: &str, form: Option<String>) -> String {
    let recipe = FormLogin {
        page: "/login".to_owned(),
        form,
        fields: TYPED.iter().map(|(name, _)| ((*name).to_owned(), Template::new(""))).collect(),
        action: None,
    };
    let typed: Vec<(String, String)> =
        TYPED.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    match fill(page, &recipe, &typed) {
        Ok(form) => {
            for pair in &typed {
                let of_name: Vec<_> = form.fields.iter().filter(|(name, _)| *name == pair.0).collect();
                assert_eq!(of_name, [pair]);
            }
            assert!(form.fields.iter().all(|(name, _)| !name.is_empty()), "{:?}", form.fields);
            assert_eq!(form.action, form.action.trim());
            format!("{} {} fields", form.is_get, form.fields.len().min(9))
        }
        Err(error) => {
            let reason = error.to_string();
            assert!(TYPED.iter().all(|(_, value)| page.contains(value) || !reason.contains(value)), "{reason}");
            reason.split('`').step_by(2).take(2).collect()
        }
    }
}
