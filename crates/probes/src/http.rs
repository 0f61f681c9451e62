//! HTTP probes, and the request function that configuration steps and warming use as well.

use http::{HeaderMap, HeaderName, HeaderValue, Method};

use super::Unmet;
use arenad_launch::Incarnation;
use arenad_model::ids::ServiceName;
use arenad_model::probe::{HttpProbe, JsonExpectation};
use arenad_site_client::{SiteAnswer, SiteClient, SiteError};

/// The maximum number of bytes that are read of a body.
const BODY_MAX: usize = 4 << 20;

/// One request to a site, by the service that receives it.
#[derive(Debug, Clone)]
pub struct HttpExchange<'a> {
    /// The service that receives the request.
    pub service: &'a ServiceName,
    /// Port inside the container.
    pub port: u16,
    /// The HTTP method, such as `GET`.
    pub method: &'a str,
    /// Path and query of the URL.
    pub path: &'a str,
    /// Names and values of the headers.
    pub headers: &'a [(String, String)],
    /// The body, if the request has one.
    pub body: Option<&'a str>,
}

/// The answer to a request.
#[derive(Debug)]
pub struct ProbeResponse {
    /// The HTTP status code.
    pub status: u16,
    /// The value of the `Location` header, if it is valid text.
    pub location: Option<String>,
    /// The first [`BODY_MAX`] bytes of the body, decoded as UTF-8.
    pub body: String,
    /// Number of bytes that were read of the body. `body` is longer if it has replacements for invalid UTF-8.
    pub body_bytes: u64,
}

/// Returns the message of the innermost cause, which is usually the operating system's. The outer layers of an HTTP
/// client only say that a request failed.
pub fn innermost(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(cause) = error.source() {
        error = cause;
    }
    error.to_string()
}

/// Sends a request and reads the answer. Every status counts as an answer.
pub async fn exchange(
    client: &SiteClient,
    incarnation: &Incarnation,
    request: &HttpExchange<'_>,
) -> Result<ProbeResponse, Unmet> {
    let socket =
        incarnation.socket(request.service, request.port).ok_or_else(|| super::no_address(request.service.as_str()))?;
    let method = Method::from_bytes(request.method.as_bytes()).map_err(|error| error.to_string())?;
    let mut headers = HeaderMap::new();
    for (name, value) in request.headers {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| error.to_string())?;
        let value = HeaderValue::from_str(value).map_err(|error| error.to_string())?;
        headers.append(name, value);
    }
    let answer = client.send(socket, method, request.path, headers, request.body.map(str::to_owned)).await;
    let answer = answer.map_err(|error| innermost(&error))?;
    read(answer).await.map_err(|error| innermost(&error).into())
}

/// Reads an answer, with the beginning of its body.
pub async fn read(mut answer: SiteAnswer) -> Result<ProbeResponse, SiteError> {
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await? {
        let room = BODY_MAX.saturating_sub(body.len());
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if room == 0 {
            break;
        }
    }
    Ok(ProbeResponse {
        status: answer.status.as_u16(),
        location: answer.headers.get(http::header::LOCATION).and_then(|value| value.to_str().ok()).map(str::to_owned),
        body_bytes: body.len() as u64,
        body: String::from_utf8_lossy(&body).into_owned(),
    })
}

pub(super) async fn look(client: &SiteClient, probe: &HttpProbe, incarnation: &Incarnation) -> Result<(), Unmet> {
    let request = HttpExchange {
        service: &probe.service,
        port: probe.port,
        method: &probe.method,
        path: &probe.path,
        headers: &probe.headers,
        body: None,
    };
    let answer = exchange(client, incarnation, &request).await?;
    judge(probe, &answer).map_err(|unmet| with_excerpt(probe, &answer, unmet))
}

/// Adds an excerpt of the page if its status is wrong, because such a page often states the reason.
fn with_excerpt(probe: &HttpProbe, answer: &ProbeResponse, unmet: Unmet) -> Unmet {
    if probe.status.contains(&answer.status) {
        return unmet;
    }
    let excerpt: String = answer.body.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(200).collect();
    match excerpt.is_empty() {
        true => unmet,
        false => unmet.told(|text| format!("{text}: {excerpt}")).stated(&excerpt),
    }
}

/// Checks that an answer meets a probe's expectations. Errors: the difference, without any content of the page.
pub fn judge(probe: &HttpProbe, answer: &ProbeResponse) -> Result<(), Unmet> {
    if !probe.status.contains(&answer.status) {
        let wanted = probe.status.iter().map(u16::to_string).collect::<Vec<_>>().join(" or ");
        let to = answer.location.as_deref().map(|location| location.split(['?', '#']).next().unwrap_or_default());
        let to = to.map(|to| format!(" to {to}")).unwrap_or_default();
        return Err(format!("status {}{to}, expected {wanted}", answer.status).into());
    }
    if let Some(expected) = &probe.redirect {
        match &answer.location {
            Some(location) if location.ends_with(expected.as_str()) => {}
            Some(location) => return Err(format!("redirects to {location}, expected {expected}").into()),
            None => return Err(format!("does not redirect, expected {expected}").into()),
        }
    }
    if let Some(least) = probe.bytes_at_least.filter(|least| answer.body_bytes < *least) {
        return Err(format!("the body has {} bytes, expected at least {least}", answer.body_bytes).into());
    }
    if let Some(missing) = probe.contains.iter().find(|text| !answer.body.contains(text.as_str())) {
        return Err(format!("the page does not contain {missing:?}").into());
    }
    if probe.json.is_empty() {
        return Ok(());
    }
    let body: serde_json::Value =
        serde_json::from_str(&answer.body).map_err(|error| format!("the answer is not JSON: {error}"))?;
    for (pointer, expectation) in &probe.json {
        let found = body.pointer(pointer);
        let shown = found.map_or_else(|| "missing".to_owned(), |value| value.to_string());
        let passes = match expectation {
            JsonExpectation::Equals(expected) => {
                serde_json::from_str::<serde_json::Value>(expected).ok().as_ref() == found
            }
            JsonExpectation::Between(lower, upper) => {
                let number = found.and_then(serde_json::Value::as_f64);
                number.is_some_and(|value| (*lower..=*upper).contains(&value))
            }
            JsonExpectation::AtLeast(least) => {
                found.and_then(serde_json::Value::as_f64).is_some_and(|value| value >= *least)
            }
        };
        if !passes {
            let expected = match expectation {
                JsonExpectation::Equals(expected) => expected.clone(),
                JsonExpectation::AtLeast(least) => format!("at least {least}"),
                JsonExpectation::Between(lower, upper) => format!("{lower} to {upper}"),
            };
            return Err(format!("{pointer} is {shown}, expected {expected}").into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use arenad_model::cause::Cause;

    use super::*;

    fn probe() -> HttpProbe {
        HttpProbe {
            service: ServiceName::parse("web").expect("valid"),
            port: 80,
            method: "GET".into(),
            path: "/".into(),
            headers: Vec::new(),
            status: vec![200],
            redirect: None,
            contains: Vec::new(),
            bytes_at_least: None,
            json: Vec::new(),
        }
    }

    fn answer(status: u16, body: &str) -> ProbeResponse {
        ProbeResponse { status, location: None, body: body.into(), body_bytes: body.len() as u64 }
    }

    #[test]
    fn a_wrong_status_is_told_with_what_the_page_says() {
        let page = answer(502, "<h1>Bad\n gateway</h1>");
        let reason = judge(&probe(), &page).expect_err("not 200");
        assert_eq!(reason.to_string(), "status 502, expected 200");
        let told = with_excerpt(&probe(), &page, reason);
        assert_eq!(told.to_string(), "status 502, expected 200: <h1>Bad gateway</h1>");
        assert_eq!(told.cause(), None);
        let page = answer(503, "dd: writing: No space left on device");
        let full = with_excerpt(&probe(), &page, judge(&probe(), &page).expect_err("not 200"));
        assert_eq!(full.cause(), Some(Cause::NoSpace), "the page states the cause");
        let redirect = ProbeResponse { location: Some("/login?next=/secret".into()), ..answer(302, "") };
        assert_eq!(judge(&probe(), &redirect), Err("status 302 to /login, expected 200".into()));
    }

    #[test]
    fn a_declared_redirect_must_lead_where_it_says() {
        let probe = HttpProbe { status: vec![302], redirect: Some("/users/sign_in".into()), ..probe() };
        let to = |location: &str| ProbeResponse { location: Some(location.into()), ..answer(302, "") };
        assert_eq!(judge(&probe, &to("http://gitlab/users/sign_in")), Ok(()));
        assert!(judge(&probe, &to("/500")).is_err());
        assert!(judge(&probe, &answer(302, "")).is_err());
    }

    #[test]
    fn a_body_that_is_too_small_or_a_number_out_of_range_does_not_pass() {
        let tile = HttpProbe { bytes_at_least: Some(10), ..probe() };
        assert_eq!(judge(&tile, &answer(200, "0123456789")), Ok(()));
        let verdict = judge(&tile, &answer(200, "012"));
        assert_eq!(verdict, Err("the body has 3 bytes, expected at least 10".into()));
        let route = HttpProbe { json: vec![("/m".into(), JsonExpectation::Between(8e3, 9e3))], ..probe() };
        assert_eq!(judge(&route, &answer(200, r#"{"m": 8500.5}"#)), Ok(()));
        assert_eq!(judge(&route, &answer(200, r#"{"m": 1}"#)), Err("/m is 1, expected 8000 to 9000".into()));
    }

    #[test]
    fn json_values_are_compared_as_values() {
        let with = |pointer: &str, expectation| HttpProbe { json: vec![(pointer.into(), expectation)], ..probe() };
        let page = answer(200, r#"{"ok": true, "products": 200, "n": 1.0}"#);
        assert_eq!(judge(&with("/ok", JsonExpectation::Equals("true".into())), &page), Ok(()));
        assert_eq!(judge(&with("/products", JsonExpectation::AtLeast(200.0)), &page), Ok(()));
        let missing = judge(&with("/search", JsonExpectation::AtLeast(1.0)), &page);
        assert_eq!(missing, Err("/search is missing, expected at least 1".into()));
        assert!(judge(&with("/ok", JsonExpectation::Equals("true".into())), &answer(200, "<html>")).is_err());
    }
}
