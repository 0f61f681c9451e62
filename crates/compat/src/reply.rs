//! The replies of the reset server, in its exact words.
//!
//! BrowserGym compares the body of `/status` with [`READY`] and takes every status other than 200 for a failure that
//! ends the study; to `/reset` it also expects 418. It prints the bodies of failures.

use crate::board::{BeganReset, SiteReadiness};

/// The type of all replies of the reset server.
pub const CONTENT_TYPE: &str = "text/html";

/// The body by which harnesses recognize that all sites are ready.
pub const READY: &str = "Ready for duty!";

/// A reply of the reset server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResetReply {
    /// The status of the response, as in HTTP.
    pub status: u16,
    /// The body, as [`CONTENT_TYPE`].
    pub body: String,
}

/// Returns the reply to `/reset`. `base` is the path of the subject, by which the reply links to `/status`.
pub fn began(began: BeganReset, base: &str) -> ResetReply {
    let (status, what) = match began {
        BeganReset::Started => (200, "initiated"),
        BeganReset::AlreadyRunning => (418, "already running"),
    };
    ResetReply { status, body: format!("Reset {what}, check status <a href=\"{base}/status\">here</a>") }
}

/// Returns the reply to `/status`.
pub fn readiness(readiness: &SiteReadiness) -> ResetReply {
    match readiness {
        SiteReadiness::Ongoing => ResetReply { status: 200, body: "Reset ongoing".to_owned() },
        SiteReadiness::Failed { reason } => failure(500, reason),
        SiteReadiness::Ready => ResetReply { status: 200, body: READY.to_owned() },
    }
}

/// Returns a reply that ends the client's work.
pub fn failure(status: u16, reason: &str) -> ResetReply {
    ResetReply { status, body: format!("Error executing reset script:<p>{}</p>", escaped(reason)) }
}

/// Returns the reply for an unknown address.
pub fn unknown() -> ResetReply {
    ResetReply { status: 404, body: "Endpoint not found".to_owned() }
}

/// Returns text for HTML. Reasons can contain text of sites, which a browser must not run.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_those_of_the_reset_server() {
        let started = began(BeganReset::Started, "");
        assert_eq!(started.status, 200);
        assert_eq!(started.body, r#"Reset initiated, check status <a href="/status">here</a>"#);
        let running = began(BeganReset::AlreadyRunning, "");
        assert_eq!(running.status, 418);
        assert_eq!(running.body, r#"Reset already running, check status <a href="/status">here</a>"#);
        assert!(began(BeganReset::Started, "/slots/3").body.contains(r#"<a href="/slots/3/status">"#));
        let said = |readiness: &SiteReadiness| {
            let reply = super::readiness(readiness);
            (reply.status, reply.body)
        };
        assert_eq!(said(&SiteReadiness::Ready), (200, "Ready for duty!".to_owned()));
        assert_eq!(said(&SiteReadiness::Ongoing), (200, "Reset ongoing".to_owned()));
        let failed = SiteReadiness::Failed { reason: "<script> & co".to_owned() };
        let body = "Error executing reset script:<p>&lt;script&gt; &amp; co</p>";
        assert_eq!(said(&failed), (500, body.to_owned()));
        assert_eq!(unknown().body, "Endpoint not found");
    }
}
