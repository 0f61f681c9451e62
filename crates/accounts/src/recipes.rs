//! The steps of each way of signing in.

use std::error::Error;

use http::Method;
use http::header::{self, HeaderName, HeaderValue};
use serde_json::Value as Json;

use super::LoginFailure;
use super::form;
use super::visitor::{LoginClient, LoginRequest};
use arenad_model::login::{FormLogin, Template, TokenLogin};
use arenad_model::probe::HttpProbe;
use arenad_model::site::Account;
use arenad_probes::{ProbeResponse, judge};

/// Returns a function that adds the name of the failed step to an error.
fn at<E: Error>(step: impl Into<String>) -> impl FnOnce(E) -> LoginFailure {
    let step = step.into();
    move |error| LoginFailure { step, reason: error.to_string() }
}

fn fill(template: &Template, account: &Account, token: Option<&str>) -> String {
    template.fill(|place| match place {
        "username" => Some(account.username.as_str()),
        "password" => Some(account.password.expose()),
        "token" => token,
        _ => None,
    })
}

arenad_model::text_error! {
    /// The reason why an answer of the site ends a log-in.
    struct LoginRefusal;
}

/// Checks that the answer is a page: a status of 400 or above means that the site has rejected the log-in. A site may
/// also reject a log-in by showing the form again, which only the proof request detects.
fn came(answer: &ProbeResponse) -> Result<(), LoginRefusal> {
    if answer.status < 400 { Ok(()) } else { Err(format!("status {}, expected a page", answer.status).into()) }
}

/// Opens the page, fills in the form and sends it.
pub(crate) async fn form(
    visitor: &mut LoginClient<'_>,
    recipe: &FormLogin,
    account: &Account,
) -> Result<(), LoginFailure> {
    let opening = || format!("open the log-in page {}", recipe.page);
    let url = visitor.url(None, &recipe.page).map_err(at(opening()))?;
    let (page_url, page) = visitor.follow(LoginRequest::get(url)).await.map_err(at(opening()))?;
    came(&page).map_err(at(opening()))?;
    let finding = format!("fill in the form on {}", page_url.path());
    let fields: Vec<(String, String)> =
        recipe.fields.iter().map(|(name, text)| (name.clone(), fill(text, account, None))).collect();
    let form = form::fill_confined(page.body, recipe, fields).await.map_err(at(finding.as_str()))?;
    let action = recipe.action.as_deref().unwrap_or(&form.action);
    let mut target = visitor.url(Some(&page_url), action).map_err(at(finding))?;
    let sending = format!("send the form to {}", target.path());
    let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(&form.fields).finish();
    let mut request = if form.is_get {
        target.set_query(Some(&body));
        LoginRequest::get(target)
    } else {
        LoginRequest::post(target, "application/x-www-form-urlencoded", body)
    };
    // Some sites check these headers as a protection against cross-site request forgery.
    for (name, text) in
        [(header::REFERER, page_url.to_string()), (header::ORIGIN, page_url.origin().ascii_serialization())]
    {
        request.headers.extend(HeaderValue::from_str(&text).ok().map(|value| (name, value)));
    }
    let (_, answer) = visitor.follow(request).await.map_err(at(sending.as_str()))?;
    came(&answer).map_err(at(sending))
}

/// Sends the headers that identify the account with every later request.
pub(super) fn header(
    visitor: &mut LoginClient<'_>,
    headers: &[(String, Template)],
    account: &Account,
) -> Result<(), LoginFailure> {
    carry(visitor, headers, account, None)
}

fn carry(
    visitor: &mut LoginClient<'_>,
    headers: &[(String, Template)],
    account: &Account,
    token: Option<&str>,
) -> Result<(), LoginFailure> {
    headers
        .iter()
        .try_for_each(|(name, text)| visitor.carry(name, &fill(text, account, token)))
        .map_err(at("put the account into the headers"))
}

/// Exchanges the account for a token, and sends the token in headers of every later request.
pub(super) async fn token(
    visitor: &mut LoginClient<'_>,
    recipe: &TokenLogin,
    account: &Account,
) -> Result<(), LoginFailure> {
    let step = || format!("ask {} for a token", recipe.path);
    let url = visitor.url(None, &recipe.path).map_err(at(step()))?;
    let mut body: Json = serde_json::from_str(&recipe.json).unwrap_or_default();
    fill_json(&mut body, account);
    let request = LoginRequest::post(url, "application/json", body.to_string());
    let (_, answer) = visitor.follow(request).await.map_err(at(step()))?;
    let token = token_of(&answer, &recipe.pointer).map_err(at(step()))?;
    carry(visitor, &recipe.headers, account, Some(&token))
}

fn fill_json(value: &mut Json, account: &Account) {
    match value {
        Json::String(text) => *text = fill(&Template::new(text.as_str()), account, None),
        Json::Array(items) => items.iter_mut().for_each(|item| fill_json(item, account)),
        Json::Object(entries) => entries.values_mut().for_each(|entry| fill_json(entry, account)),
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

fn token_of(answer: &ProbeResponse, pointer: &str) -> Result<String, LoginRefusal> {
    if !(200..300).contains(&answer.status) {
        return Err(format!("status {}, expected 200", answer.status).into());
    }
    let body: Json = serde_json::from_str(&answer.body).map_err(|_| "the answer is not JSON")?;
    match body.pointer(pointer) {
        Some(Json::String(token)) if !token.is_empty() => Ok(token.clone()),
        _ if pointer.is_empty() => Err("the answer is not a JSON text".into()),
        _ => Err(format!("the answer has no text at `{pointer}`").into()),
    }
}

/// Sends the proof request, which only a signed-in user passes.
pub(crate) async fn prove(visitor: &mut LoginClient<'_>, proof: &HttpProbe) -> Result<(), LoginFailure> {
    let step = || format!("prove the log-in with {}", proof.path);
    let url = visitor.url(None, &proof.path).map_err(at(step()))?;
    let method = Method::from_bytes(proof.method.as_bytes()).map_err(at(step()))?;
    let mut request = LoginRequest { method, ..LoginRequest::get(url) };
    for (name, value) in &proof.headers {
        let pair = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value));
        if let (Ok(name), Ok(value)) = pair {
            request.headers.insert(name, value);
        }
    }
    let answer = visitor.exchange(&request).await.map_err(at(step()))?;
    judge(proof, &answer).map_err(at(step()))
}
