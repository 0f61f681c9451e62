//! The JSON of locator requests, which read values from sites.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::ValueKind;

/// The body of `POST /v1/environments/{environment}/sites/{site}/locate`, which reads one value.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LocateRequest {
    /// The locator, such as `sql(shop): SELECT count(*) FROM order_order`.
    pub locator: String,
    /// The texts that replace the locator's placeholders, by name.
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
    #[schemars(with = "Option<serde_json::Value>")]
    pub har: Option<Box<RawValue>>,
}

/// The answer to a [`LocateRequest`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LocateResponse {
    /// `null`, `bool`, `integer`, `decimal`, `float`, `text`, `bytes`, `timestamp`, `json` or `rows`.
    #[serde(rename = "type")]
    pub kind: ValueKind,
    /// The value: exact decimals as text, bytes in hexadecimal, times in RFC 3339 and UTC; rows as `{"columns": […],
    /// "rows": [[{"type", "value"}, …], …]}`.
    pub value: serde_json::Value,
    /// The evidence of how the value was read.
    pub evidence: LocateEvidence,
}

/// The circumstances under which a value was read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LocateEvidence {
    /// The kind of locator: `sql`, `http`, `js`, `exec`, `file`, `trace` or `helper`.
    pub locator: String,
    /// The query, request, script or command that ran.
    pub ran: String,
    /// The name of the environment.
    pub environment: String,
    /// The name of the site.
    pub site: String,
    /// The id of the instance that was read.
    pub instance: String,
    /// The generation of the instance.
    pub generation: u64,
    /// The time from the request to the value.
    pub duration_ms: f64,
    /// Further observations, such as `status` or `rows`.
    pub notes: BTreeMap<String, String>,
}
