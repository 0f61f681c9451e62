//! The addresses of the compatible server.
//!
//! ```text
//!   [/environments/NAME] [/slots/N] /reset | /status
//!   [/environments/NAME] [/slots/N] /sites/SITE /status | /init | /start | /stop | /restart | /reset
//!   [/environments/NAME] [/slots/N] /sites/SITE /index.php?page=reset
//! ```
//! Harnesses join a base URL and a path, so a base URL with a slash at its end produces two slashes. Empty segments are
//! therefore ignored.

use arenad_model::ids::{EnvironmentName, SiteName};

/// The number of the slot that addresses without a slot lead to.
pub const FIRST_SLOT: u32 = 1;

/// The subject of a request: the slots of all sites of an environment that have one number, or one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompatSubject {
    /// The environment; `None` means the only one that is up.
    pub environment: Option<EnvironmentName>,
    /// The number of the slot of each site, from 1.
    pub slot: u32,
    /// The site; `None` means all of them.
    pub site: Option<SiteName>,
}

impl CompatSubject {
    /// Returns the path below which the subject has its addresses. It is empty for the root.
    pub fn base(&self) -> String {
        let environment = self.environment.iter().map(|name| format!("/environments/{name}"));
        let slot = (self.slot != FIRST_SLOT).then(|| format!("/slots/{}", self.slot));
        let site = self.site.iter().map(|name| format!("/sites/{name}"));
        environment.chain(slot).chain(site).collect()
    }
}

/// The goal of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompatAction {
    /// `GET /reset`: begin to reset all sites.
    Reset,
    /// `GET /status`: whether all sites are ready.
    Status,
    /// A command of env-ctrl for one site.
    EnvCtrl(EnvCtrlCommand),
    /// The form with which VisualWebArena resets its classifieds.
    ResetForm,
}

/// A command of env-ctrl.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnvCtrlCommand {
    /// `GET /status`
    Status,
    /// `POST /init`
    Init,
    /// `POST /start`
    Start,
    /// `POST /stop`
    Stop,
    /// `POST /restart`
    Restart,
    /// `POST /reset`, which env-ctrl's documentation has and its server does not.
    Reset,
}

impl CompatAction {
    /// Whether the request changes the state of sites.
    pub fn changes_state(self) -> bool {
        !matches!(self, Self::Status | Self::EnvCtrl(EnvCtrlCommand::Status))
    }
}

/// A request to the compatible server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompatRequest {
    /// The sites that the request is about.
    pub subject: CompatSubject,
    /// The goal of the request.
    pub action: CompatAction,
}

/// The server has no such address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownAddress {
    /// The address is not one of env-ctrl.
    ResetServer,
    /// The address is below that of a site, so the client expects the answers of env-ctrl.
    EnvCtrl,
}

/// Returns what a request is about, by its method, path and query.
pub fn parse(method: &str, path: &str, query: Option<&str>) -> Result<CompatRequest, UnknownAddress> {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let mut rest = segments.as_slice();
    let unknown = if segments.contains(&"sites") { UnknownAddress::EnvCtrl } else { UnknownAddress::ResetServer };
    let mut subject = CompatSubject { environment: None, slot: FIRST_SLOT, site: None };
    if let ["environments", name, others @ ..] = rest {
        subject.environment = Some(EnvironmentName::parse(name).map_err(|_| unknown)?);
        rest = others;
    }
    if let ["slots", number, others @ ..] = rest {
        subject.slot = slot(number).ok_or(unknown)?;
        rest = others;
    }
    if let ["sites", name, others @ ..] = rest {
        subject.site = Some(SiteName::parse(name).map_err(|_| unknown)?);
        rest = others;
    }
    let [last] = rest else { return Err(unknown) };
    let action = match &subject.site {
        None => reset_server(method, last),
        Some(_) => env_ctrl(method, last, query),
    };
    Ok(CompatRequest { subject, action: action.ok_or(unknown)? })
}

/// Parses the number of a slot, which has one form only: neither `+1` nor `01`.
fn slot(text: &str) -> Option<u32> {
    text.parse().ok().filter(|number: &u32| *number >= FIRST_SLOT && number.to_string() == text)
}

fn reset_server(method: &str, last: &str) -> Option<CompatAction> {
    match (method, last) {
        ("GET" | "POST", "reset") => Some(CompatAction::Reset),
        ("GET", "status") => Some(CompatAction::Status),
        _ => None,
    }
}

fn env_ctrl(method: &str, last: &str, query: Option<&str>) -> Option<CompatAction> {
    let command = match (method, last) {
        ("GET", "status") => EnvCtrlCommand::Status,
        ("POST", "init") => EnvCtrlCommand::Init,
        ("POST", "start") => EnvCtrlCommand::Start,
        ("POST", "stop") => EnvCtrlCommand::Stop,
        ("POST", "restart") => EnvCtrlCommand::Restart,
        ("POST", "reset") => EnvCtrlCommand::Reset,
        ("POST", "index.php") if query == Some("page=reset") => return Some(CompatAction::ResetForm),
        _ => return None,
    };
    Some(CompatAction::EnvCtrl(command))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn got(path: &str) -> Option<(String, CompatAction)> {
        parse("GET", path, None).ok().map(|request| (request.subject.base(), request.action))
    }

    #[test]
    fn the_reset_server_is_at_the_root_and_below_slots_and_environments() {
        use CompatAction::{Reset, Status};
        let known = |base: &str, action| Some((base.to_owned(), action));
        for (path, base, action) in [
            ("/reset", "", Reset),
            ("/status", "", Status),
            ("/slots/1/reset", "", Reset),
            ("/slots/3/status", "/slots/3", Status),
            ("/environments/mini/reset", "/environments/mini", Reset),
            ("/environments/mini/slots/2/status", "/environments/mini/slots/2", Status),
            ("//reset", "", Reset),
            ("/slots/3//reset/", "/slots/3", Reset),
        ] {
            assert_eq!(got(path), known(base, action), "{path}");
        }
        for path in ["/", "", "/resets", "/reset/status", "/slots/0/reset", "/slots/01/reset", "/slots/+1/reset"] {
            assert_eq!(got(path), None, "{path}");
        }
        for path in ["/slots/reset", "/slots/x/reset", "/environments/-/reset", "/slots/1/environments/mini/reset"] {
            assert_eq!(parse("GET", path, None), Err(UnknownAddress::ResetServer), "{path}");
        }
    }

    #[test]
    fn a_look_at_the_head_resets_nothing() {
        for method in ["HEAD", "OPTIONS", "DELETE", "get"] {
            assert_eq!(parse(method, "/reset", None), Err(UnknownAddress::ResetServer), "{method}");
        }
        assert_eq!(parse("POST", "/reset", None).map(|request| request.action), Ok(CompatAction::Reset));
        assert!(parse("POST", "/status", None).is_err());
    }

    #[test]
    fn sites_have_the_addresses_of_env_ctrl() {
        let action =
            |method: &str, path: &str, query: Option<&str>| parse(method, path, query).map(|request| request.action);
        let command = |command| Ok(CompatAction::EnvCtrl(command));
        for (method, last, expected) in [
            ("GET", "status", EnvCtrlCommand::Status),
            ("POST", "init", EnvCtrlCommand::Init),
            ("POST", "start", EnvCtrlCommand::Start),
            ("POST", "stop", EnvCtrlCommand::Stop),
            ("POST", "restart", EnvCtrlCommand::Restart),
            ("POST", "reset", EnvCtrlCommand::Reset),
        ] {
            let path = format!("/environments/mini/sites/shopping/{last}");
            assert_eq!(action(method, &path, Some("wait=1")), command(expected), "{path}");
            let other = if method == "GET" { "POST" } else { "GET" };
            assert_eq!(action(other, &path, None), Err(UnknownAddress::EnvCtrl), "{other} {path}");
        }
        let form = "/sites/classifieds/index.php";
        assert_eq!(action("POST", form, Some("page=reset")), Ok(CompatAction::ResetForm));
        for query in [None, Some("page=login"), Some("page=reset&page=login")] {
            assert_eq!(action("POST", form, query), Err(UnknownAddress::EnvCtrl), "{query:?}");
        }
        assert_eq!(action("GET", "/sites/shopping", None), Err(UnknownAddress::EnvCtrl));
    }

    #[test]
    fn only_looks_change_nothing() {
        use CompatAction::{EnvCtrl, Reset, ResetForm, Status};
        use EnvCtrlCommand as Command;
        let all = [Command::Init, Command::Start, Command::Stop, Command::Restart, Command::Reset].map(EnvCtrl);
        assert!([Reset, ResetForm].into_iter().chain(all).all(CompatAction::changes_state));
        assert!(![Status, EnvCtrl(Command::Status)].into_iter().any(CompatAction::changes_state));
    }

    proptest! {
        #[test]
        fn the_base_of_a_subject_leads_to_the_subject(
            environment in proptest::option::of("[a-z][a-z0-9-]{0,8}[a-z0-9]"),
            slot in 1_u32..,
            site in proptest::option::of("[a-z][a-z0-9_]{0,8}[a-z0-9]"),
        ) {
            let environment = environment.and_then(|name| EnvironmentName::parse(&name).ok());
            let site = site.and_then(|name| SiteName::parse(&name).ok());
            let subject = CompatSubject { environment, slot, site };
            let parsed = parse("GET", &format!("{}/status", subject.base()), None);
            prop_assert_eq!(parsed.map(|request| request.subject), Ok(subject));
        }

        #[test]
        fn no_path_panics(method in "[A-Z]{1,5}", path in ".{0,60}", query in proptest::option::of(".{0,20}")) {
            let _ = parse(&method, &path, query.as_deref());
        }
    }
}
