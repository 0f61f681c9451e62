//! The JSON of env-ctrl, by which webarena-verified controls the services of one site.
//!
//! `/status` has the status 200 always, and `success` tells whether the site is ready. Commands have 200 or 500.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::board::SiteReadiness;
use arenad_model::instance::InstanceState;

/// The type of all replies of env-ctrl.
pub const CONTENT_TYPE: &str = "application/json";

/// A reply of env-ctrl.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvCtrlReply {
    /// The status of the response, as in HTTP.
    pub status: u16,
    /// The body, as [`CONTENT_TYPE`].
    pub body: String,
}

#[derive(Serialize)]
struct ReplyBody<'a> {
    success: bool,
    message: &'a str,
    details: ReplyDetails<'a>,
}

#[derive(Serialize)]
struct ReplyDetails<'a> {
    value: Option<ServiceValues<'a>>,
    /// The commands that were run in the container; none are.
    exec_logs: [(); 0],
}

#[derive(Serialize)]
struct ServiceValues<'a> {
    services: BTreeMap<&'a str, &'static str>,
}

#[derive(Serialize)]
struct UnknownBody {
    success: bool,
    error: &'static str,
}

/// Returns the reply to `/status`. `services` are the names of the site's services, and `message` is a sentence about
/// the site.
pub fn status<'a>(
    readiness: &SiteReadiness,
    state: &InstanceState,
    services: impl IntoIterator<Item = &'a str>,
    message: &str,
) -> EnvCtrlReply {
    let word = word(readiness, state);
    let services = services.into_iter().map(|name| (name, word)).collect();
    let success = *readiness == SiteReadiness::Ready;
    reply(200, success, message, Some(ServiceValues { services }))
}

/// Returns the reply to a command.
pub fn outcome(success: bool, message: &str) -> EnvCtrlReply {
    reply(if success { 200 } else { 500 }, success, message, None)
}

/// Returns the reply for an unknown address.
pub fn unknown() -> EnvCtrlReply {
    EnvCtrlReply { status: 404, body: printed(&UnknownBody { success: false, error: "Not found" }) }
}

fn reply(status: u16, success: bool, message: &str, value: Option<ServiceValues<'_>>) -> EnvCtrlReply {
    let body = printed(&ReplyBody { success, message, details: ReplyDetails { value, exec_logs: [] } });
    EnvCtrlReply { status, body }
}

/// Prints with an indentation of two, as env-ctrl does.
fn printed(body: &impl Serialize) -> String {
    // The bodies are texts, lists and maps with text keys, which JSON can always represent.
    serde_json::to_string_pretty(body).expect("replies are plain JSON")
}

/// Returns env-ctrl's word for the state of a service.
fn word(readiness: &SiteReadiness, state: &InstanceState) -> &'static str {
    match (readiness, state) {
        (SiteReadiness::Ready, _) => "HEALTHY",
        (_, InstanceState::Unhealthy(_)) => "UNHEALTHY",
        (_, InstanceState::Down) => "STOPPED",
        (_, InstanceState::Stopping) => "STOPPING",
        (SiteReadiness::Failed { .. }, _) => "FATAL",
        (SiteReadiness::Ongoing, _) => "STARTING",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arenad_model::instance::InstanceFailure;

    #[test]
    fn a_status_has_the_shape_of_env_ctrl() {
        let reply = status(&SiteReadiness::Ready, &InstanceState::Ready, ["web", "db"], "shopping is ready");
        let lines = [
            "{",
            r#"  "success": true,"#,
            r#"  "message": "shopping is ready","#,
            r#"  "details": {"#,
            r#"    "value": {"#,
            r#"      "services": {"#,
            r#"        "db": "HEALTHY","#,
            r#"        "web": "HEALTHY""#,
            "      }",
            "    },",
            r#"    "exec_logs": []"#,
            "  }",
            "}",
        ];
        assert_eq!((reply.status, reply.body), (200, lines.join("\n")));
        let unknown = unknown();
        assert_eq!(unknown.status, 404);
        assert_eq!(unknown.body, "{\n  \"success\": false,\n  \"error\": \"Not found\"\n}");
    }

    #[test]
    fn only_a_ready_site_is_a_success() {
        let failure = InstanceFailure { reason: "down".to_owned(), hint: "wait".to_owned() };
        let failed = SiteReadiness::Failed { reason: "it differs".to_owned() };
        for (readiness, state, word) in [
            (SiteReadiness::Ongoing, InstanceState::Ready, "STARTING"),
            (SiteReadiness::Ongoing, InstanceState::Resetting, "STARTING"),
            (SiteReadiness::Ongoing, InstanceState::Unhealthy(failure.clone()), "UNHEALTHY"),
            (failed.clone(), InstanceState::Ready, "FATAL"),
            (failed.clone(), InstanceState::Failed(failure), "FATAL"),
            (failed.clone(), InstanceState::Stopping, "STOPPING"),
            (failed, InstanceState::Down, "STOPPED"),
        ] {
            let reply = status(&readiness, &state, ["web"], "message");
            assert_eq!(reply.status, 200, "a look never fails");
            let body = reply.body;
            assert!(body.contains("\"success\": false") && body.contains(word), "{body}");
        }
        assert_eq!((outcome(true, "m").status, outcome(false, "m").status), (200, 500));
    }
}
