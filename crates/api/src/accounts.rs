//! Accounts of sites and their sessions.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// `GET /v1/environments/{environment}/sites/{site}/accounts`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accounts {
    /// In the definition's order.
    pub accounts: Vec<Account>,
}

/// An account of a site, without its password.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Its name in the definition, such as `customer`.
    pub name: String,
    /// What is typed as user name.
    pub username: String,
    /// How it signs in: `form`, `header`, `token`; null where the definition does not say.
    pub login: Option<String>,
}

/// `POST /v1/environments/{environment}/sites/{site}/accounts/{account}/login`: a new session.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// The environment.
    pub environment: String,
    /// The site.
    pub site: String,
    /// The account's name.
    pub account: String,
    /// Where the session is good.
    pub url: String,
    /// The instance that it is good on.
    pub instance: String,
    /// The generation that it is good for: a reset ends it, unless the session is part of the snapshot.
    pub generation: u64,
    /// Whether it is part of the snapshot, and so good again after every reset.
    #[serde(default)]
    pub is_kept: bool,
    /// How long the log-in took, its proof included.
    pub duration_ms: f64,
    /// By name.
    pub cookies: Vec<Cookie>,
    /// What every request carries besides.
    pub headers: BTreeMap<String, String>,
}

/// A cookie, in the form of Playwright's storage state.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cookie {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// The host that it is sent to; with a leading dot, that host's subdomains too.
    pub domain: String,
    /// The path below which it is sent.
    pub path: String,
    /// When it expires, in seconds since 1970; -1 with the browser's session.
    pub expires: i64,
    /// Whether scripts cannot read it.
    pub http_only: bool,
    /// Whether it is sent over encrypted connections only.
    pub secure: bool,
    /// `Strict`, `Lax`, `None`; `Lax`, as browsers take it, where the site does not say.
    pub same_site: String,
}
