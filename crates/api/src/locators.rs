//! Values that are read from sites.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// `POST /v1/environments/{environment}/sites/{site}/locate`: what is to be read.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocateRequest {
    /// The locator, such as `sql(shop): SELECT count(*) FROM order_order`.
    pub locator: String,
    /// The texts of its places, by name.
    #[serde(default)]
    pub arguments: BTreeMap<String, String>,
    /// The path of the page for a `js:` locator that names none.
    #[serde(default)]
    pub page: Option<String>,
    /// The CDP address of the agent's browser, for `js: … @ live`.
    #[serde(default)]
    pub cdp: Option<String>,
    /// The traffic of the agent's browser as a HAR, for `trace: …`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub har: Option<Box<RawValue>>,
}

/// The answer to a [`LocateRequest`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Located {
    /// `null`, `bool`, `integer`, `decimal`, `float`, `text`, `bytes`, `timestamp`, `json` or `rows`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The value: exact decimals as text, bytes in hexadecimal, times in RFC 3339 and UTC; rows as
    /// `{"columns": […], "rows": [[{"type", "value"}, …], …]}`.
    pub value: serde_json::Value,
    /// How it was found.
    pub evidence: Evidence,
}

/// How a value was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// `sql`, `http`, `js`, `exec`, `file`, `trace` or `helper`.
    pub locator: String,
    /// What ran.
    pub ran: String,
    /// The environment.
    pub environment: String,
    /// The site.
    pub site: String,
    /// The instance that was asked.
    pub instance: String,
    /// Its generation.
    pub generation: u64,
    /// From the request to the value.
    pub duration_ms: f64,
    /// What else was seen, such as `status` or `rows`.
    pub notes: BTreeMap<String, String>,
}
