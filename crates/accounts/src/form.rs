//! Finds a form on a page, and fills it in as a browser does.

use std::io;
use std::time::Duration;

use scraper::{ElementRef, Html, Selector};
use serde::{Deserialize, Serialize};

use arenad_confined::Worker;
use arenad_model::login::{FormLogin, Template};

/// A filled-in form, ready to be submitted.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilledForm {
    /// The form's `action` attribute. An empty text stands for the page itself.
    pub action: String,
    /// Whether the method is GET, which sends the fields in the URL.
    pub is_get: bool,
    /// The names and values to send, in the order of the page.
    pub fields: Vec<(String, String)>,
}

arenad_model::text_error! {
    /// The reason why the form of a page cannot be filled in.
    #[derive(Serialize, Deserialize)]
    pub struct FormError;
}

/// The hidden command that makes this program the process that reads a page with a form.
pub const COMMAND: &str = "confined-form";

/// The maximum time for reading a page.
const PATIENCE: Duration = Duration::from_secs(10);

/// A page with a form, the recipe's selector and field names, and the values to fill in.
#[derive(Debug, Serialize, Deserialize)]
struct FormRequest {
    page: String,
    form: Option<String>,
    names: Vec<String>,
    fields: Vec<(String, String)>,
}

/// Fills in a form as [`fill`] does, in a confined process.
pub(super) async fn fill_confined(
    page: String,
    recipe: &FormLogin,
    fields: Vec<(String, String)>,
) -> Result<FilledForm, FormError> {
    let names = recipe.fields.iter().map(|(name, _)| name.clone()).collect();
    let question = FormRequest { page, form: recipe.form.clone(), names, fields };
    let filled: Result<Result<FilledForm, FormError>, _> = Worker::job(COMMAND, &question, PATIENCE).await;
    filled.map_err(|error| format!("the page cannot be read: {error}"))?
}

/// Runs the confined process of the hidden command, which reads one page and exits.
pub fn serve() -> io::Result<()> {
    arenad_confined::serve(async |inside| {
        let mut parent = inside.alone()?;
        let Some(FormRequest { page, form, names, fields }) = parent.question().await? else { return Ok(()) };
        let fields_of_recipe = names.into_iter().map(|name| (name, Template::new(""))).collect();
        let recipe = FormLogin { page: String::new(), form, fields: fields_of_recipe, action: None };
        parent.answer(&fill(&page, &recipe, &fields)).await
    })
}

/// Finds the form that a recipe describes, and fills in its fields.
///
/// `fields` are the recipe's fields with the account's values. Errors: the page has no such form or field; the
/// error names those that it has.
pub fn fill(page: &str, recipe: &FormLogin, fields: &[(String, String)]) -> Result<FilledForm, FormError> {
    let page = Html::parse_document(page);
    let form = find(&page, recipe)?;
    if form.attr("enctype").is_some_and(|kind| kind.eq_ignore_ascii_case("multipart/form-data")) {
        return Err("the form is sent as multipart/form-data, which is not supported".into());
    }
    let controls = controls(&page, form);
    if let Some((missing, _)) = fields.iter().find(|(name, _)| !has_field(&controls, name)) {
        return Err(format!("the form has no field `{missing}`; it has {}", names(&controls)).into());
    }
    let mut sent = Vec::new();
    let mut has_button = false;
    for control in &controls {
        let Some(name) = control.attr("name").filter(|name| !name.is_empty()) else { continue };
        if let Some((_, typed)) = fields.iter().find(|(field, _)| field == name) {
            // A check box often has a hidden field of the same name before it. The filled-in value is sent once, in
            // place of both.
            if !sent.iter().any(|(known, _)| known == name) {
                sent.push((name.to_owned(), typed.clone()));
            }
            continue;
        }
        if is_button(*control) {
            // Pressing Enter in a form activates its first submit button.
            if has_button {
                continue;
            }
            has_button = true;
        }
        sent.extend(values(*control).into_iter().map(|value| (name.to_owned(), value)));
    }
    Ok(FilledForm {
        action: form.attr("action").unwrap_or_default().trim().to_owned(),
        is_get: !form.attr("method").is_some_and(|method| method.eq_ignore_ascii_case("post")),
        fields: sent,
    })
}

fn find<'a>(page: &'a Html, recipe: &FormLogin) -> Result<ElementRef<'a>, FormError> {
    if let Some(selector) = &recipe.form {
        // Validation of the definition has already parsed the selector.
        let parsed =
            Selector::parse(selector).map_err(|error| format!("invalid CSS selector `{selector}`: {error}"))?;
        let found = page.select(&parsed).next().ok_or_else(|| format!("the page has no element `{selector}`"))?;
        return match found.value().name() {
            "form" => Ok(found),
            other => Err(format!("`{selector}` is a `{other}`, expected a `form`").into()),
        };
    }
    let forms: Vec<ElementRef<'a>> = select(page, "form").collect();
    let wanted = || recipe.fields.iter().map(|(name, _)| name.as_str());
    let has_all = |form: &&ElementRef<'a>| {
        let controls = controls(page, **form);
        wanted().all(|name| has_field(&controls, name))
    };
    forms.iter().find(has_all).copied().ok_or_else(|| {
        let wanted = wanted().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" and ");
        FormError(match forms.as_slice() {
            [] => format!("the page has no form, expected one with {wanted}"),
            forms => {
                let shown: Vec<String> = forms.iter().map(|form| names(&controls(page, *form))).collect();
                format!("no form of the page has {wanted}; there are: {}", shown.join("; "))
            }
        })
    })
}

fn select<'a>(page: &'a Html, selector: &'static str) -> impl Iterator<Item = ElementRef<'a>> {
    let selector = Selector::parse(selector).expect("a constant selector parses");
    page.select(&selector).collect::<Vec<_>>().into_iter()
}

/// Returns the controls that belong to a form, either as its descendants or through their `form` attribute.
fn controls<'a>(page: &'a Html, form: ElementRef<'a>) -> Vec<ElementRef<'a>> {
    let id = form.attr("id");
    let belongs = |control: &ElementRef<'a>| match control.attr("form") {
        Some(named) => Some(named) == id,
        None => {
            let mut around = control.ancestors().filter_map(ElementRef::wrap);
            around.find(|element| element.value().name() == "form").is_some_and(|around| around.id() == form.id())
        }
    };
    select(page, "input, select, textarea, button").filter(belongs).collect()
}

fn has_field(controls: &[ElementRef<'_>], name: &str) -> bool {
    controls.iter().any(|control| control.attr("name") == Some(name))
}

fn names(controls: &[ElementRef<'_>]) -> String {
    let names: Vec<String> =
        controls.iter().filter_map(|control| control.attr("name")).map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "no fields".to_owned() } else { names.join(", ") }
}

fn kind<'a>(control: ElementRef<'a>) -> &'a str {
    let default = if control.value().name() == "button" { "submit" } else { "text" };
    control.attr("type").unwrap_or(default)
}

fn is_button(control: ElementRef<'_>) -> bool {
    matches!(control.value().name(), "input" | "button") && kind(control).eq_ignore_ascii_case("submit")
}

/// Returns the values that a control sends if the user has not changed it.
fn values(control: ElementRef<'_>) -> Vec<String> {
    if control.attr("disabled").is_some() {
        return Vec::new();
    }
    let value = |default: &str| vec![control.attr("value").unwrap_or(default).to_owned()];
    match control.value().name() {
        // The HTML parser has already dropped the line break after the start tag.
        "textarea" => vec![control.text().collect()],
        "select" => chosen(control),
        "button" if is_button(control) => value(""),
        "button" => Vec::new(),
        _ => match kind(control).to_ascii_lowercase().as_str() {
            "checkbox" | "radio" if control.attr("checked").is_none() => Vec::new(),
            "checkbox" | "radio" => value("on"),
            "button" | "reset" | "image" | "file" => Vec::new(),
            _ => value(""),
        },
    }
}

fn chosen(list: ElementRef<'_>) -> Vec<String> {
    let options =
        || list.descendants().filter_map(ElementRef::wrap).filter(|element| element.value().name() == "option");
    let value = |option: ElementRef<'_>| match option.attr("value") {
        Some(value) => value.to_owned(),
        None => option.text().collect::<String>().split_whitespace().collect::<Vec<_>>().join(" "),
    };
    let selected: Vec<String> = options().filter(|option| option.attr("selected").is_some()).map(value).collect();
    match (selected.as_slice(), list.attr("multiple")) {
        ([], None) => options().find(|option| option.attr("disabled").is_none()).map(value).into_iter().collect(),
        ([.., last], None) => vec![last.clone()],
        (_, Some(_)) => selected,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe(form: Option<&str>, fields: &[&str]) -> FormLogin {
        FormLogin {
            page: "/login".to_owned(),
            form: form.map(str::to_owned),
            fields: fields.iter().map(|name| ((*name).to_owned(), Template::new(""))).collect(),
            action: None,
        }
    }

    fn filled(page: &str, form: Option<&str>, fields: &[(&str, &str)]) -> Result<FilledForm, FormError> {
        let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
        let fields: Vec<(String, String)> =
            fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        fill(page, &recipe(form, &names), &fields)
    }

    const PAGE: &str = r#"
        <form action="/search"><input name=q><button>Search</button></form>
        <form id=login method=POST action=" /login?next=/ ">
          <input type=hidden name=csrf value="a&amp;b">
          <input name=user><input type=password name=pass value=old>
          <input type=hidden name=remember value=0><input type=checkbox name=remember value=1>
          <input type=checkbox name=terms checked><input type=radio name=kind value=a><input type=radio name=kind value=b checked>
          <select name=lang><option value="">-</option><option selected>English</option></select>
          <select name=zone><option disabled>choose</option><option value=utc>UTC</option></select>
          <textarea name=note>
kept</textarea>
          <input name=off disabled value=x><input type=file name=upload>
          <button type=button name=show>show</button><button name=do value=in>Sign in</button><input type=submit name=other value=x>
        </form>
        <input form=login name=outside value=1>"#;

    #[test]
    fn the_form_that_has_the_fields_is_sent_as_a_browser_would() {
        let form = filled(PAGE, None, &[("user", "emma"), ("pass", "secret")]).expect("found");
        assert_eq!((form.action.as_str(), form.is_get), ("/login?next=/", false));
        let sent: Vec<String> = form.fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let expected = [
            "csrf=a&b",
            "user=emma",
            "pass=secret",
            "remember=0",
            "terms=on",
            "kind=b",
            "lang=English",
            "zone=utc",
            "note=kept",
            "do=in",
            "outside=1",
        ];
        assert_eq!(sent, expected);
    }

    #[test]
    fn a_check_box_is_ticked_once_for_its_hidden_twin_too() {
        let form = filled(PAGE, Some("#login"), &[("remember", "1")]).expect("found");
        assert_eq!(form.fields.iter().filter(|(name, _)| name == "remember").count(), 1);
        assert!(form.fields.contains(&("remember".to_owned(), "1".to_owned())));
    }

    #[test]
    fn what_is_not_there_is_told_with_what_there_is() {
        let reason = |page, form, fields| filled(page, form, fields).expect_err("refused").to_string();
        assert_eq!(reason("<p>x", None, &[("a", "")]), "the page has no form, expected one with `a`");
        let other = reason("<form><input name=b></form><form></form>", None, &[("a", ""), ("b", "")]);
        assert_eq!(other, "no form of the page has `a` and `b`; there are: `b`; no fields");
        assert_eq!(reason(PAGE, Some("#none"), &[]), "the page has no element `#none`");
        assert_eq!(reason("<div id=x>", Some("#x"), &[]), "`#x` is a `div`, expected a `form`");
        let missing = reason("<form id=x><input name=b></form>", Some("#x"), &[("a", "")]);
        assert_eq!(missing, "the form has no field `a`; it has `b`");
        assert!(reason("<form enctype=multipart/form-data>", Some("form"), &[]).contains("not supported"));
    }
}
