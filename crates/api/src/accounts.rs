//! The JSON of a site's accounts and of the sessions that the daemon opens for them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `GET /v1/environments/{environment}/sites/{site}/accounts`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Accounts {
    /// The site's accounts, in the definition's order.
    pub accounts: Vec<ListedAccount>,
}

/// An account of a site, without its password.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListedAccount {
    /// The account's name in the definition, such as `customer`.
    pub name: String,
    /// The text that is typed as the user name.
    pub username: String,
    /// The way it signs in: `form`, `header` or `token`; null if the definition declares none.
    pub login: Option<String>,
}

/// The answer to `POST /v1/environments/{environment}/sites/{site}/accounts/{account}/login`: a new session.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AccountSession {
    /// The name of the environment.
    pub environment: String,
    /// The name of the site.
    pub site: String,
    /// The account's name in the definition.
    pub account: String,
    /// The URL of the site that accepts the session.
    pub url: String,
    /// The id of the instance that accepts the session.
    pub instance: String,
    /// The generation that the session is valid for: a reset ends it, unless the session is part of the snapshot.
    pub generation: u64,
    /// Whether the session is part of the snapshot, and therefore valid again after every reset.
    #[serde(default)]
    pub is_kept: bool,
    /// The time that the log-in took, including the proof that it succeeded.
    pub duration_ms: f64,
    /// The session's cookies, sorted by name.
    pub cookies: Vec<StorageCookie>,
    /// The headers that every request carries in addition to the cookies, by name.
    pub headers: BTreeMap<String, String>,
}

/// A cookie, in the form of Playwright's storage state.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StorageCookie {
    /// The cookie's name, as the browser sends it.
    pub name: String,
    /// The cookie's value, as the browser sends it.
    pub value: String,
    /// The host that the cookie is sent to; with a leading dot, its subdomains as well.
    pub domain: String,
    /// The path below which the cookie is sent.
    pub path: String,
    /// The time at which the cookie expires, in seconds since 1970; -1 for the end of the browser's session.
    pub expires: i64,
    /// Whether the cookie is hidden from scripts.
    pub http_only: bool,
    /// Whether the cookie is sent over encrypted connections only.
    pub secure: bool,
    /// `Strict`, `Lax` or `None`; `Lax`, the browsers' default, if the site sets none.
    pub same_site: String,
}
