//! The accounts of a site and their login methods.

use std::time::Duration;

use serde_json::Value as Json;

use super::probes;
use super::site_context::SiteContext;
use super::steps::{self, exactly_one};
use super::support::{filled, key_name, positive_period};
use crate::problems::{did_you_mean, quoted_list};
use crate::raw::environment::RawAccount;
use crate::raw::login::{RawFormLogin, RawLogin, RawTokenLogin};
use crate::raw::steps::RawHttpProbe;
use crate::raw::values::{Entries, FilePart};
use crate::scope::Scope;
use crate::tree::excerpt;
use arenad_model::login::{FormLogin, Login, LoginRecipe, Template, TokenLogin};
use arenad_model::probe::HttpProbe;
use arenad_model::site::{Account, Secret};

/// Default timeout of a login: enough for three pages of a cold PHP application.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(30);

/// The placeholders for an account's credentials.
const OF_ACCOUNT: [&str; 2] = ["username", "password"];

/// The placeholders in the headers of a token login.
const OF_TOKEN: [&str; 3] = ["token", "username", "password"];

pub(super) fn accounts(
    site: &SiteContext<'_>,
    scope: Scope<'_>,
    raw: Option<&Entries<FilePart<RawAccount>>>,
) -> Vec<Account> {
    let accounts = raw.into_iter().flat_map(Entries::iter);
    accounts
        .filter_map(|(name, raw)| {
            let scope = scope.key(name);
            key_name(scope, name, "an account");
            let raw = raw.good()?;
            filled(scope.key("username"), &raw.username, "the user name");
            Some(Account {
                name: name.to_owned(),
                username: raw.username.clone(),
                password: Secret::new(raw.password.clone()),
                login: raw.login.as_ref().and_then(|raw| login(site, scope.key("login"), raw)),
            })
        })
        .collect()
}

fn login(site: &SiteContext<'_>, scope: Scope<'_>, raw: &RawLogin) -> Option<Login> {
    let proof = raw.proof.as_ref().and_then(|raw| proof(site, scope.key("proof"), raw));
    let timeout = positive_period(scope.key("timeout"), raw.timeout.as_ref(), LOGIN_TIMEOUT);
    exactly_one(scope, &["form", "header", "token"], "the log-in recipe")?;
    let recipe = if let Some(raw) = &raw.form {
        LoginRecipe::Form(form(scope.key("form"), raw))
    } else if let Some(raw) = &raw.header {
        LoginRecipe::Header(headers(scope.key("header"), raw, &OF_ACCOUNT))
    } else {
        LoginRecipe::Token(token(scope.key("token"), raw.token.as_ref()?))
    };
    Some(Login { recipe, proof: proof?, timeout })
}

/// Reads the proof of a login. It must be a request to the site's entry, because the session's cookies belong to the
/// public address, which leads only there.
fn proof(site: &SiteContext<'_>, scope: Scope<'_>, raw: &RawHttpProbe) -> Option<HttpProbe> {
    let proof = probes::http(site, scope, raw)?;
    let entry = site.entry.as_ref()?;
    if (&proof.service, proof.port) != (&entry.service, entry.port) {
        let key = if raw.service.is_some() { "service" } else { "port" };
        scope
            .key(key)
            .error("conflict", "the proof is not asked of the site's entry")
            .expected(format!("port {} of `{}`, or neither `service` nor `port`", entry.port, entry.service))
            .report();
    }
    Some(proof)
}

fn form(scope: Scope<'_>, raw: &RawFormLogin) -> FormLogin {
    steps::path(scope.key("page"), &raw.page);
    if let Some(action) = &raw.action {
        steps::path(scope.key("action"), action);
    }
    if let Some(selector) = &raw.form
        && let Err(error) = scraper::Selector::parse(selector)
    {
        scope
            .key("form")
            .error("value", format!("invalid CSS selector `{}`: {error}", excerpt(selector)))
            .expected("a selector of the form, such as `#login_form`")
            .report();
    }
    let fields_scope = scope.key("fields");
    let fields =
        raw.fields.iter().map(|(name, text)| (name.to_owned(), template(fields_scope.key(name), text, &OF_ACCOUNT)));
    FormLogin { page: raw.page.clone(), form: raw.form.clone(), fields: fields.collect(), action: raw.action.clone() }
}

fn token(scope: Scope<'_>, raw: &RawTokenLogin) -> TokenLogin {
    steps::path(scope.key("path"), &raw.path);
    let json = Json::Object(raw.json.iter().map(|(name, value)| (name.to_owned(), value.clone())).collect());
    json_places(scope.key("json"), &json);
    if let Some(pointer) = &raw.pointer {
        probes::pointer(pointer, |message| scope.key("pointer").error("value", message));
    }
    let headers_scope = scope.key("header");
    let headers = headers(headers_scope, &raw.header, &OF_TOKEN);
    if !headers.iter().any(|(_, template)| template.places().any(|place| place == "token")) {
        headers_scope
            .key_error("value", "no header carries the token")
            .expected("`{token}` in one of them, such as `Authorization: \"Bearer {token}\"`")
            .report();
    }
    let pointer = raw.pointer.clone().unwrap_or_default();
    TokenLogin { path: raw.path.clone(), json: json.to_string(), pointer, headers }
}

fn headers(scope: Scope<'_>, raw: &Entries<String>, places: &[&str]) -> Vec<(String, Template)> {
    let headers = steps::headers(scope, Some(raw)).into_iter();
    headers.map(|(name, text)| (name.clone(), template(scope.key(&name), &text, places))).collect()
}

/// Checks the placeholders in every text of a JSON value.
fn json_places(scope: Scope<'_>, value: &Json) {
    match value {
        Json::String(text) => drop(template(scope, text, &OF_ACCOUNT)),
        Json::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| json_places(scope.index(index), item));
        }
        Json::Object(entries) => entries.iter().for_each(|(key, value)| json_places(scope.key(key), value)),
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

/// Reads a text with placeholders, which must all be in `places`.
fn template(scope: Scope<'_>, text: &str, places: &[&str]) -> Template {
    let template = Template::new(text);
    for unknown in template.places().filter(|place| !places.contains(place)) {
        let braced: Vec<String> = places.iter().map(|place| format!("{{{place}}}")).collect();
        let braced = || braced.iter().map(String::as_str);
        scope
            .error("value", format!("nothing is known to put in for `{{{unknown}}}`"))
            .expected(format!("one of {}", quoted_list(braced())))
            .maybe_help(did_you_mean(&format!("{{{unknown}}}"), braced()))
            .report();
    }
    template
}
