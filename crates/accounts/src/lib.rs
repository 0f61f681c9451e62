//! Signing in to a site by its definition's recipe, the way a browser would, and handing out the session.
//!
//! ```text
//!   form:   GET page ─► cookies, hidden fields ─► POST action ─► redirects ┐
//!   header: headers ───────────────────────────────────────────────────────┼─► GET proof ─► Session
//!   token:  POST account ─► token ─► headers ──────────────────────────────┘
//! ```
//! Requests go to the entry of one instance, but with the public host and port as `Host`, so that cookies and redirects
//! are those of the public URL. Nothing leaves the site. Called by the daemon's API; stores nothing. No failure says a
//! password, a token, a cookie, or what a page shows.

pub mod form;
mod recipes;
mod visitor;

use std::net::SocketAddr;

use jiff::Timestamp;
use tokio::time::Instant;

use self::visitor::Visitor;
use arenad_model::login::{Login, LoginRecipe};
use arenad_model::site::{Account, Secret};
use arenad_site_client::SiteClient;

/// Where a site is visited.
#[derive(Debug, Clone)]
pub struct Place {
    /// The host name of its public URL.
    pub host: String,
    /// The port of its public URL.
    pub port: u16,
    /// Where its requests go.
    pub entry: SocketAddr,
}

/// What a visitor who is signed in carries.
#[derive(Debug, Clone)]
pub struct Session {
    /// The cookies that have not expired, by name.
    pub cookies: Vec<Cookie>,
    /// The headers that every request carries besides.
    pub headers: Vec<(String, Secret)>,
}

/// A cookie, as a browser keeps it.
#[derive(Debug, Clone)]
pub struct Cookie {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Secret,
    /// The host that it is sent to; with a leading dot, that host's subdomains too.
    pub domain: String,
    /// The path below which it is sent.
    pub path: String,
    /// When it expires; `None`: with the browser's session.
    pub expires: Option<Timestamp>,
    /// Whether scripts cannot read it.
    pub http_only: bool,
    /// Whether it is sent over encrypted connections only.
    pub secure: bool,
    /// `Strict`, `Lax` or `None`, where the site says.
    pub same_site: Option<String>,
}

/// Why a log-in failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{step}: {reason}")]
pub struct LoginFailure {
    /// What was being done, such as `send the form to /login`.
    pub step: String,
    /// What was seen instead of what was expected.
    pub reason: String,
}

/// Proves that a session is good: the site answers the proof of the account's log-in with it.
///
/// Errors and cancellation: as of [`log_in`].
pub async fn prove(client: &SiteClient, place: &Place, login: &Login, session: &Session) -> Result<(), LoginFailure> {
    let mut visitor = Visitor::new(client, place, Instant::now() + login.timeout)?;
    visitor
        .resume(session)
        .map_err(|error| LoginFailure { step: "take the session up".to_owned(), reason: error.to_string() })?;
    recipes::prove(&mut visitor, &login.proof).await
}

/// Signs in and proves it.
///
/// Errors: the step that failed. Cancellation: safe; the site may have a session that nobody uses.
pub async fn log_in(
    client: &SiteClient,
    place: &Place,
    account: &Account,
    login: &Login,
) -> Result<Session, LoginFailure> {
    let mut visitor = Visitor::new(client, place, Instant::now() + login.timeout)?;
    match &login.recipe {
        LoginRecipe::Form(form) => recipes::form(&mut visitor, form, account).await?,
        LoginRecipe::Header(headers) => recipes::header(&mut visitor, headers, account)?,
        LoginRecipe::Token(token) => recipes::token(&mut visitor, token, account).await?,
    }
    recipes::prove(&mut visitor, &login.proof).await?;
    Ok(visitor.session())
}
