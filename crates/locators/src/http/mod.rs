//! A request to the site, and the selection of a value from the response.
//!
//! Requests go to the entry of one instance with the public host and port as `Host`, as those of log-ins do. The
//! locator connects to no address but the entry's: a redirect to another origin is an error.

pub mod select;

use std::time::Duration;

use cookie_store::{CookieStore, RawCookie};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use reqwest::Url;

use super::{FoundValue, LocateError, SIZE_MAX, Scene};
use arenad_accounts::LoginSession;
use arenad_model::locator::{HttpLocator, Selection};
use arenad_probes::innermost;
use arenad_site_client::{SiteClient, SiteError};

/// Maximum number of redirects in a row; browsers give up at twenty.
const REDIRECTS_MAX: usize = 10;

/// The last response of a site, after redirects.
struct FinalResponse {
    url: Url,
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

pub(super) async fn run(
    client: &SiteClient,
    scene: &Scene<'_>,
    locator: &HttpLocator,
    session: Option<&LoginSession>,
    limit: Duration,
) -> Result<FoundValue, LocateError> {
    let origin = origin(scene)?;
    let url = origin.join(&locator.path).ok().filter(|url| url.origin() == origin.origin());
    let url = url.ok_or_else(|| LocateError::Refused(format!("{} is not a path of the site", locator.path)))?;
    let ran = format!("{} {url}", locator.method);
    let mut visitor =
        SiteVisitor { client, scene, origin, cookies: cookies(session)?, headers: headers(locator, session)? };
    let answer = tokio::time::timeout(limit, visitor.follow(locator, url))
        .await
        .unwrap_or(Err(LocateError::TimedOut { limit }))?;
    let notes = vec![
        ("status", answer.status.as_u16().to_string()),
        ("url", answer.url.to_string()),
        ("bytes", answer.body.len().to_string()),
    ];
    let needs_success = !matches!(locator.selection, Selection::Status | Selection::Header(_));
    // A server that cannot answer has said nothing about the site's state.
    if needs_success && matches!(answer.status.as_u16(), 502..=504) {
        return Err(LocateError::Unavailable(format!("{} answers {}", answer.url.path(), answer.status)));
    }
    if needs_success && answer.status.as_u16() >= 400 {
        return Err(LocateError::Failed(format!("{} answers {}", answer.url.path(), answer.status)));
    }
    let value = select::take(&locator.selection, answer, limit).await?;
    Ok(FoundValue { value, ran, notes })
}

fn origin(scene: &Scene<'_>) -> Result<Url, LocateError> {
    let text = format!("http://{}:{}/", scene.place.host, scene.place.port);
    text.parse().map_err(|error| LocateError::Unavailable(format!("understand the public address {text}: {error}")))
}

/// Returns a cookie store with the session's cookies; cookies from responses are added to it.
fn cookies(session: Option<&LoginSession>) -> Result<CookieStore, LocateError> {
    let mut store = CookieStore::default();
    for cookie in session.iter().flat_map(|session| &session.cookies) {
        let host = cookie.domain.trim_start_matches('.');
        let origin = format!("http://{host}{}", cookie.path);
        let mut raw = RawCookie::new(cookie.name.clone(), cookie.value.expose().to_owned());
        raw.set_path(cookie.path.clone());
        if cookie.domain.starts_with('.') {
            raw.set_domain(host.to_owned());
        }
        let parsed = origin.parse::<Url>().ok();
        let kept =
            parsed.and_then(|url| cookie_store::Cookie::try_from_raw_cookie(&raw, &url).ok().map(|it| (it, url)));
        let Some((cookie, url)) = kept else {
            return Err(LocateError::Failed(format!("the session's cookie {} cannot be used", cookie.name)));
        };
        // The store refuses only cookies that have expired.
        let _ = store.insert(cookie.into_owned(), &url);
    }
    Ok(store)
}

fn headers(locator: &HttpLocator, session: Option<&LoginSession>) -> Result<HeaderMap, LocateError> {
    let mut headers = HeaderMap::new();
    let of_session = session.iter().flat_map(|session| &session.headers);
    let of_session = of_session.map(|(name, value)| (name.as_str(), value.expose()));
    let own = locator.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    for (name, value) in of_session.chain(own) {
        let wrong = || LocateError::Refused(format!("the header {name} has characters that no header may have"));
        let known = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
        headers.insert(known, HeaderValue::from_str(value).map_err(|_| wrong())?);
    }
    if let Some(body) = &locator.body
        && !headers.contains_key(header::CONTENT_TYPE)
    {
        let is_json = body.trim_start().starts_with(['{', '[']);
        let kind = if is_json { "application/json" } else { "application/x-www-form-urlencoded" };
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    Ok(headers)
}

struct SiteVisitor<'a> {
    client: &'a SiteClient,
    scene: &'a Scene<'a>,
    origin: Url,
    cookies: CookieStore,
    headers: HeaderMap,
}

impl SiteVisitor<'_> {
    async fn follow(&mut self, locator: &HttpLocator, url: Url) -> Result<FinalResponse, LocateError> {
        let (mut url, mut method, mut body) = (url, locator.method.as_str(), locator.body.as_deref());
        for _ in 0..=REDIRECTS_MAX {
            let answer = self.exchange(method, &url, body).await?;
            let is_redirect = locator.follows && matches!(answer.status.as_u16(), 301 | 302 | 303 | 307 | 308);
            let location = answer.headers.get(header::LOCATION).and_then(|value| value.to_str().ok());
            let Some(location) = location.filter(|_| is_redirect) else { return Ok(answer) };
            let next = url.join(location).ok().filter(|next| next.origin() == self.origin.origin());
            let Some(next) = next else {
                let place = url.path();
                return Err(LocateError::Failed(format!("{place} redirects to {location}, which is not the site's")));
            };
            if !matches!(answer.status.as_u16(), 307 | 308) && method == "POST" {
                (method, body) = ("GET", None);
            }
            url = next;
        }
        Err(LocateError::Failed(format!(
            "more than {REDIRECTS_MAX} redirects in a row, the last one to {}",
            url.path()
        )))
    }

    async fn exchange(&mut self, method: &str, url: &Url, body: Option<&str>) -> Result<FinalResponse, LocateError> {
        let unavailable = |error: SiteError| LocateError::Unavailable(innermost(&error));
        let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
        let method = Method::from_bytes(method.as_bytes()).map_err(|error| LocateError::Unknown(error.to_string()))?;
        let mut headers = self.headers.clone();
        let host = format!("{}:{}", self.scene.place.host, self.scene.place.port);
        let value = |text: &str| HeaderValue::from_str(text).map_err(|error| LocateError::Failed(error.to_string()));
        headers.insert(header::HOST, value(&host)?);
        let pairs: Vec<String> =
            self.cookies.get_request_values(url).map(|(name, value)| format!("{name}={value}")).collect();
        if !pairs.is_empty() {
            headers.insert(header::COOKIE, value(&pairs.join("; "))?);
        }
        let path = format!("{}{query}", url.path());
        let sent = self.client.send(self.scene.place.entry, method, &path, headers, body.map(str::to_owned));
        let mut answer = sent.await.map_err(unavailable)?;
        let set = answer.headers.get_all(header::SET_COOKIE);
        let set: Vec<RawCookie<'static>> =
            set.iter().filter_map(|value| RawCookie::parse(value.to_str().ok()?.to_owned()).ok()).collect();
        self.cookies.store_response_cookies(set.into_iter(), url);
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(unavailable)? {
            body.extend_from_slice(&chunk);
            if body.len() > SIZE_MAX {
                return Err(LocateError::too_many_bytes(format!("{} answers with more", url.path())));
            }
        }
        Ok(FinalResponse { url: url.clone(), status: answer.status, headers: answer.headers, body })
    }
}
