//! How accounts of an environment file sign in.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value as Json;

use super::steps::RawHttpProbe;
use super::values::{Entries, Period};

/// How an account signs in. Exactly one of `form`, `header` and `token` is given. In their texts, `{username}` and
/// `{password}` stand for the account's.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawLogin {
    /// A form of a page is filled in and sent; the session is in cookies.
    pub(crate) form: Option<RawFormLogin>,
    /// Headers of every request that name the account, such as `X-M2-Customer-Auto-Login: "{username}:{password}"`.
    #[schemars(extend("minProperties" = 1))]
    pub(crate) header: Option<Entries<String>>,
    /// The account is exchanged for a token, which every request carries.
    pub(crate) token: Option<RawTokenLogin>,
    /// A page that shows that the log-in worked; asked with the session's cookies and headers.
    #[schemars(required)]
    pub(crate) proof: Option<RawHttpProbe>,
    /// The longest that all of it may take. Default: `30s`.
    pub(crate) timeout: Option<Period>,
}

/// A form of a page that is filled in and sent as a browser would.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawFormLogin {
    /// The path of the page that has the form. Its cookies and the form's hidden fields are sent back.
    pub(crate) page: String,
    /// The CSS selector of the form. Default: the form that has all the fields.
    pub(crate) form: Option<String>,
    /// What is typed into which field, by the field's name; the other fields keep what the page gives them.
    #[schemars(extend("minProperties" = 1))]
    pub(crate) fields: Entries<String>,
    /// The path that the form is sent to. Default: the one that the form names.
    pub(crate) action: Option<String>,
}

/// An account that is exchanged for a token.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawTokenLogin {
    /// The path that the account is posted to.
    pub(crate) path: String,
    /// The JSON object that is posted.
    #[schemars(extend("minProperties" = 1))]
    pub(crate) json: Entries<Json>,
    /// The JSON pointer of the token in the answer, such as `/token`. Default: the answer itself is the token.
    pub(crate) pointer: Option<String>,
    /// Headers of every request that carry the token, such as `Authorization: "Bearer {token}"`.
    #[schemars(extend("minProperties" = 1))]
    pub(crate) header: Entries<String>,
}
