//! What the names that a benchmark's tasks call mean on a site.

use schemars::JsonSchema;
use serde::Deserialize;

/// A value that tasks ask for by a name, such as `shopping_get_latest_order_url`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawHelper {
    /// The parameters' names, in the order of the calls; `{name}` is the place of one in the locator. Default: none.
    pub(crate) parameters: Option<Vec<String>>,
    /// What is read, such as `sql: SELECT max(number) FROM orders`. A `js:` locator without a page looks at the one that the
    /// task is on.
    #[schemars(required)]
    pub(crate) locator: Option<String>,
    /// What is made of the value, such as `{origin}/orders/{value}/`; `{origin}` is the site's `http://HOST:PORT`. Default:
    /// the value itself.
    pub(crate) gives: Option<String>,
    /// What is given where there is nothing. Default: nothing.
    pub(crate) otherwise: Option<String>,
}
