//! The meanings, on a site, of the helper names that a benchmark's tasks call.

use schemars::JsonSchema;
use serde::Deserialize;

/// A value that tasks request by a helper's name, such as `shopping_get_latest_order_url`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawHelper {
    /// The names of the parameters, in the order of the calls; `{name}` in the locator is replaced by the argument.
    /// Default: none.
    pub(crate) parameters: Option<Vec<String>>,
    /// The locator that reads the value, such as `sql: SELECT max(number) FROM orders`. A `js:` locator without a page
    /// reads the page that the task is on.
    #[schemars(required)]
    pub(crate) locator: Option<String>,
    /// The text built from the value, such as `{origin}/orders/{value}/`; `{origin}` is the site's `http://HOST:PORT`.
    /// Default: the value itself.
    pub(crate) gives: Option<String>,
    /// The result if the locator finds no value. Default: no result.
    pub(crate) otherwise: Option<String>,
}
