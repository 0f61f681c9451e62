//! The login methods of accounts.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value as Json;

use super::steps::RawHttpProbe;
use super::values::{Entries, Period};

/// A login method. Exactly one of `form`, `header` and `token` is given. In their texts, `{username}` and `{password}`
/// stand for the account's credentials.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawLogin {
    /// Login by a form on a page; the session is kept in cookies.
    pub(crate) form: Option<RawFormLogin>,
    /// Headers that identify the account in every request, such as `X-M2-Customer-Auto-Login: "{username}:{password}"`.
    #[schemars(extend("minProperties" = 1))]
    pub(crate) header: Option<Entries<String>>,
    /// Login by a token, which the account's credentials are exchanged for and which every request carries.
    pub(crate) token: Option<RawTokenLogin>,
    /// A request that proves the login, sent with the session's cookies and headers.
    #[schemars(required)]
    pub(crate) proof: Option<RawHttpProbe>,
    /// The timeout of the whole login. Default: `30s`.
    pub(crate) timeout: Option<Period>,
}

/// A form that is filled in and submitted as a browser would.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawFormLogin {
    /// The path of the page with the form. Its cookies and the form's hidden fields are sent back.
    pub(crate) page: String,
    /// The CSS selector of the form. Default: the form that has all the fields.
    pub(crate) form: Option<String>,
    /// The values of the fields, by the field's name; other fields keep the values of the page.
    #[schemars(extend("minProperties" = 1))]
    pub(crate) fields: Entries<String>,
    /// The path that the form is submitted to. Default: the form's own action.
    pub(crate) action: Option<String>,
}

/// Credentials that are exchanged for a token.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawTokenLogin {
    /// The path that the credentials are posted to.
    pub(crate) path: String,
    /// The JSON object that is posted.
    #[schemars(extend("minProperties" = 1))]
    pub(crate) json: Entries<Json>,
    /// The JSON pointer of the token in the response, such as `/token`. Default: the whole response is the token.
    pub(crate) pointer: Option<String>,
    /// Headers of every request that carry the token, such as `Authorization: "Bearer {token}"`.
    #[schemars(extend("minProperties" = 1))]
    pub(crate) header: Entries<String>,
}
