//! Signs in to a site by the recipe in its definition, as a browser would, and returns the session.
//!
//! ```text
//!   form:   GET page ─► cookies, hidden fields ─► POST action ─► redirects ┐
//!   header: headers ───────────────────────────────────────────────────────┼─► GET proof ─► LoginSession
//!   token:  POST account ─► token ─► headers ──────────────────────────────┘
//! ```
//! Requests go to the entry point of one instance, with the public host and port as `Host`, so that cookies and
//! redirects are those of the public URL. Links and redirects to other origins are refused. The daemon's API calls this
//! crate, which stores nothing. Failures never contain passwords, tokens, cookies or page content.
//!
//! Requests are made by `site-client`; pages are parsed in a worker of `confined`. Start reading at [`log_in`], then
//! `form.rs`.

pub mod form;
mod recipes;
mod visitor;

use std::net::SocketAddr;

use jiff::Timestamp;
use tokio::time::Instant;

use self::visitor::LoginClient;
use arenad_model::login::{Login, LoginRecipe};
use arenad_model::site::{Account, Secret};
use arenad_site_client::SiteClient;

/// The addresses at which a site is visited.
#[derive(Debug, Clone)]
pub struct VisitAddress {
    /// Host name of the site's public URL.
    pub host: String,
    /// Port of the site's public URL.
    pub port: u16,
    /// Socket address to which requests are sent.
    pub entry: SocketAddr,
}

/// The cookies and headers that sign requests in.
#[derive(Debug, Clone)]
pub struct LoginSession {
    /// Cookies that have not expired, sorted by name and path.
    pub cookies: Vec<BrowserCookie>,
    /// Headers to send with every request, in addition to the cookies.
    pub headers: Vec<(String, Secret)>,
}

/// A cookie, with the attributes that a browser stores.
#[derive(Debug, Clone)]
pub struct BrowserCookie {
    /// Name of the cookie.
    pub name: String,
    /// Value of the cookie.
    pub value: Secret,
    /// Host that receives the cookie. With a leading dot, its subdomains receive the cookie as well.
    pub domain: String,
    /// Path prefix of the requests that carry the cookie.
    pub path: String,
    /// Time at which the cookie expires; `None` stands for the end of the browser's session.
    pub expires: Option<Timestamp>,
    /// Whether scripts cannot read the cookie.
    pub http_only: bool,
    /// Whether the cookie is sent over encrypted connections only.
    pub secure: bool,
    /// `Strict`, `Lax` or `None`, if the site sets the attribute.
    pub same_site: Option<String>,
}

/// A failed step of a log-in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{step}: {reason}")]
pub struct LoginFailure {
    /// Description of the step, such as `send the form to /login`.
    pub step: String,
    /// Description of the difference between the expected and the actual result.
    pub reason: String,
}

/// Checks that a session is valid: the site must answer the proof request of the account's log-in as expected.
///
/// Errors and cancellation: as for [`log_in`].
pub async fn prove(
    client: &SiteClient,
    place: &VisitAddress,
    login: &Login,
    session: &LoginSession,
) -> Result<(), LoginFailure> {
    let mut visitor = LoginClient::new(client, place, Instant::now() + login.timeout)?;
    visitor
        .resume(session)
        .map_err(|error| LoginFailure { step: "take the session up".to_owned(), reason: error.to_string() })?;
    recipes::prove(&mut visitor, &login.proof).await
}

/// Signs in, and checks the session by the proof request.
///
/// Errors: the step that failed. Cancellation: safe; the site may keep an unused session.
pub async fn log_in(
    client: &SiteClient,
    place: &VisitAddress,
    account: &Account,
    login: &Login,
) -> Result<LoginSession, LoginFailure> {
    let mut visitor = LoginClient::new(client, place, Instant::now() + login.timeout)?;
    match &login.recipe {
        LoginRecipe::Form(form) => recipes::form(&mut visitor, form, account).await?,
        LoginRecipe::Header(headers) => recipes::header(&mut visitor, headers, account)?,
        LoginRecipe::Token(token) => recipes::token(&mut visitor, token, account).await?,
    }
    recipes::prove(&mut visitor, &login.proof).await?;
    Ok(visitor.session())
}
