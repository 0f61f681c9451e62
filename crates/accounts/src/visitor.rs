//! A client of one site that keeps cookies, follows redirects and refuses to leave the site.

use cookie_store::{CookieDomain, CookieExpiration, CookieStore, RawCookie};
use http::Method;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;
use reqwest::Url;
use tokio::time::Instant;

use super::{BrowserCookie, LoginFailure, LoginSession, VisitAddress};
use arenad_model::site::Secret;
use arenad_probes::{ProbeResponse, read};
use arenad_site_client::{SiteClient, SiteError};

/// The maximum number of consecutive redirects. Browsers give up after twenty.
const REDIRECTS_MAX: usize = 10;

/// The `Accept` header, which prefers pages as a browser's does. Some applications answer other clients with JSON.
const ACCEPT: &str = "text/html,application/xhtml+xml,application/json;q=0.9,*/*;q=0.8";

#[derive(Debug, Clone)]
pub(super) struct LoginRequest {
    pub method: Method,
    pub url: Url,
    pub headers: HeaderMap,
    pub body: Option<String>,
}

impl LoginRequest {
    pub(super) fn get(url: Url) -> Self {
        Self { method: Method::GET, url, headers: HeaderMap::new(), body: None }
    }

    /// Returns a POST request with a body of the given media type.
    pub(super) fn post(url: Url, kind: &'static str, body: String) -> Self {
        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(kind))]);
        Self { method: Method::POST, url, headers, body: Some(body) }
    }
}

arenad_model::text_error! {
    /// The reason why a request was not sent, or received no answer.
    pub(super) struct VisitError;
}

/// A client of one site, with the cookies and headers that it has collected.
pub(super) struct LoginClient<'a> {
    client: &'a SiteClient,
    place: &'a VisitAddress,
    origin: Url,
    deadline: Instant,
    cookies: CookieStore,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl<'a> LoginClient<'a> {
    pub(super) fn new(
        client: &'a SiteClient,
        place: &'a VisitAddress,
        deadline: Instant,
    ) -> Result<Self, LoginFailure> {
        let text = format!("http://{}:{}/", place.host, place.port);
        let origin = text.parse().map_err(|error| LoginFailure {
            step: "understand the public address".to_owned(),
            reason: format!("{text}: {error}"),
        })?;
        Ok(Self { client, place, origin, deadline, cookies: CookieStore::default(), headers: Vec::new() })
    }

    /// Returns the public URL of a path, or of a link on the page `from`. Errors: the URL is invalid or leads away from
    /// the site.
    pub(super) fn url(&self, from: Option<&Url>, link: &str) -> Result<Url, VisitError> {
        let url = from.unwrap_or(&self.origin).join(link).map_err(|error| format!("no address: {error}"))?;
        if url.origin() == self.origin.origin() {
            Ok(url)
        } else {
            let elsewhere = url.origin().ascii_serialization();
            Err(format!("it leads to {elsewhere}, away from {}", self.origin.origin().ascii_serialization()).into())
        }
    }

    /// Sends a header with every request from now on.
    pub(super) fn carry(&mut self, name: &str, value: &str) -> Result<(), VisitError> {
        let known = HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("invalid header name `{name}`"))?;
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| format!("what is put into the header `{name}` has characters that no header may have"))?;
        value.set_sensitive(true);
        self.headers.push((known, value));
        Ok(())
    }

    /// Sends the cookies and headers of a session with every request from now on, regardless of the cookies' paths.
    pub(super) fn resume(&mut self, session: &LoginSession) -> Result<(), VisitError> {
        let cookies = session.cookies.iter().map(|cookie| format!("{}={}", cookie.name, cookie.value.expose()));
        let cookies: Vec<String> = cookies.collect();
        if !cookies.is_empty() {
            self.carry(header::COOKIE.as_str(), &cookies.join("; "))?;
        }
        session.headers.iter().try_for_each(|(name, value)| self.carry(name, value.expose()))
    }

    /// Sends a request and follows redirects. Returns the last URL with its answer.
    pub(super) async fn follow(&mut self, request: LoginRequest) -> Result<(Url, ProbeResponse), VisitError> {
        let mut request = request;
        for _ in 0..=REDIRECTS_MAX {
            let answer = self.exchange(&request).await?;
            let is_redirect = matches!(answer.status, 301 | 302 | 303 | 307 | 308);
            let Some(location) = answer.location.as_deref().filter(|_| is_redirect) else {
                return Ok((request.url, answer));
            };
            let url = self
                .url(Some(&request.url), location)
                .map_err(|reason| format!("{} answers with a redirect: {reason}", request.url.path()))?;
            request = match answer.status {
                307 | 308 => LoginRequest { url, ..request },
                _ => LoginRequest::get(url),
            };
        }
        Err(format!("more than {REDIRECTS_MAX} redirects in a row, the last one to {}", request.url.path()).into())
    }

    /// Sends a request and stores the cookies that the answer sets.
    pub(super) async fn exchange(&mut self, request: &LoginRequest) -> Result<ProbeResponse, VisitError> {
        let url = &request.url;
        let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static(ACCEPT));
        headers.extend(self.headers.iter().cloned());
        headers.extend(request.headers.clone());
        headers.insert(header::HOST, value(&authority(&self.origin))?);
        if let Some(cookies) = self.cookie_header(url) {
            headers.insert(header::COOKIE, value(&cookies)?);
        }
        let path = format!("{}{query}", url.path());
        let sent = self.client.send(self.place.entry, request.method.clone(), &path, headers, request.body.clone());
        let work = async {
            let answer = sent.await?;
            let set: Vec<RawCookie<'static>> = answer
                .headers
                .get_all(header::SET_COOKIE)
                .iter()
                .filter_map(|value| RawCookie::parse(value.to_str().ok()?.to_owned()).ok())
                .collect();
            Ok::<_, SiteError>((set, read(answer).await?))
        };
        let (set, answer) = match tokio::time::timeout_at(self.deadline, work).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => return Err(arenad_probes::innermost(&error).into()),
            Err(_) => return Err("no answer before the log-in's time was over".into()),
        };
        self.cookies.store_response_cookies(set.into_iter(), url);
        Ok(answer)
    }

    fn cookie_header(&self, url: &Url) -> Option<String> {
        let pairs: Vec<String> =
            self.cookies.get_request_values(url).map(|(name, value)| format!("{name}={value}")).collect();
        (!pairs.is_empty()).then(|| pairs.join("; "))
    }

    /// Returns a session that consists of the collected cookies and headers.
    pub(super) fn session(self) -> LoginSession {
        let mut cookies: Vec<BrowserCookie> =
            self.cookies.iter_unexpired().map(|cookie| kept(cookie, &self.origin)).collect();
        cookies.sort_by(|one, two| (&one.name, &one.path).cmp(&(&two.name, &two.path)));
        let shown = |value: &HeaderValue| Secret::new(String::from_utf8_lossy(value.as_bytes()));
        let headers = self.headers.iter().map(|(name, value)| (name.to_string(), shown(value)));
        LoginSession { cookies, headers: headers.collect() }
    }
}

/// Returns the host and port in the form of the `Host` header.
fn authority(origin: &Url) -> String {
    let host = origin.host_str().unwrap_or_default();
    origin.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn value(text: &str) -> Result<HeaderValue, VisitError> {
    HeaderValue::from_str(text).map_err(|_| "a cookie has characters that no header may have".into())
}

fn kept(cookie: &cookie_store::Cookie<'_>, origin: &Url) -> BrowserCookie {
    let host = || origin.host_str().unwrap_or_default().to_owned();
    BrowserCookie {
        name: cookie.name().to_owned(),
        value: Secret::new(cookie.value()),
        domain: match &cookie.domain {
            CookieDomain::HostOnly(host) => host.clone(),
            CookieDomain::Suffix(domain) => format!(".{domain}"),
            CookieDomain::NotPresent | CookieDomain::Empty => host(),
        },
        path: cookie.path.as_ref().to_owned(),
        expires: match &cookie.expires {
            CookieExpiration::AtUtc(at) => Timestamp::from_second(at.unix_timestamp()).ok(),
            CookieExpiration::SessionEnd => None,
        },
        http_only: cookie.http_only().unwrap_or(false),
        secure: cookie.secure().unwrap_or(false),
        same_site: cookie.same_site().map(|same_site| same_site.to_string()),
    }
}
