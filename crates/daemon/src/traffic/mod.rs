//! What the gateway has recorded, as HAR 1.2.
//!
//! ```text
//!   Recording ─► exchanges that are meant ─► entry: bodies decoded, secrets taken out ─► log, with what it lacks
//! ```
//! Beside what the format asks for, entries have `_site` and `_lost` (which of `body` and `answer` was not kept), and the log has
//! `_arenad.sites`: of each site `site`, `instance`, `generation`, `records` (`all`, `writes`, `none`), `since`, and `lacks`, which is
//! why earlier requests are missing, or null. Secrets are taken out when a HAR is made: see [`secrets`].

mod decoding;
mod entry;
mod secrets;

use jiff::Timestamp;
use serde_json::{Value, json};

use arenad_gateway::{Recording, RequestHead};
use arenad_instance::InstanceHandle;

/// What the compressed bodies of a HAR may unpack to, in bytes.
const UNPACKED_MAX: u64 = 32 << 20;

/// A HAR of the sites' requests that are meant, in the order in which they began.
///
/// Shape: `{"log": {"version", "creator", "entries", "_arenad": {"sites"}}}`. Bodies of tens of megabytes are decoded: not for a
/// thread that others wait for.
pub fn har(sites: &[SiteTraffic], is_meant: impl Fn(&RequestHead) -> bool) -> Value {
    let mut entries: Vec<(Timestamp, Value)> = Vec::new();
    let mut room = UNPACKED_MAX;
    for site in sites {
        // The newest first: where the room does not suffice, the oldest bodies are missing.
        let exchanges = site.recording.iter().flat_map(|recording| &recording.exchanges).rev();
        let meant = exchanges.filter(|exchange| is_meant(&exchange.request));
        entries.extend(meant.map(|exchange| (exchange.request.at, entry::of(&site.name, exchange, &mut room))));
    }
    // Requests of one moment keep their order: the sort is stable.
    entries.reverse();
    entries.sort_by_key(|(at, _)| *at);
    json!({ "log": {
        "version": "1.2",
        "creator": { "name": "arenad", "version": env!("CARGO_PKG_VERSION") },
        "pages": [],
        "entries": entries.into_iter().map(|(_, entry)| entry).collect::<Vec<_>>(),
        "_arenad": { "sites": sites.iter().map(SiteTraffic::coverage).collect::<Vec<_>>() },
    } })
}

/// What is known of a site's traffic.
#[derive(Debug)]
pub struct SiteTraffic {
    name: String,
    /// The site's names in benchmarks' tasks.
    variable: Option<String>,
    instance: String,
    records: &'static str,
    recording: Option<Recording>,
}

impl SiteTraffic {
    /// What was recorded of a site until now.
    pub fn of(handle: &InstanceHandle) -> Self {
        Self {
            name: handle.site.name.to_string(),
            variable: handle.site.public.variable.clone(),
            instance: handle.id.to_string(),
            records: handle.site.public.recorded.name(),
            recording: handle.recording(),
        }
    }

    /// A recording of a site by itself, without its instance.
    pub fn recorded(name: &str, recording: Recording) -> Self {
        Self {
            name: name.to_owned(),
            variable: None,
            instance: format!("{name}-1"),
            records: "all",
            recording: Some(recording),
        }
    }

    /// The generation that was recorded; `None`: nothing is.
    pub fn generation(&self) -> Option<u64> {
        self.recording.as_ref().map(|recording| recording.generation)
    }

    fn coverage(&self) -> Value {
        let recording = self.recording.as_ref();
        json!({
            "site": self.name,
            "variable": self.variable,
            "instance": self.instance,
            "generation": self.generation(),
            "records": self.records,
            "since": recording.map(|recording| recording.since.to_string()),
            "lacks": recording.and_then(lacks),
        })
    }
}

/// Why earlier requests of a generation are missing.
fn lacks(recording: &Recording) -> Option<String> {
    if recording.is_late {
        let since = recording.since.strftime("%Y-%m-%dT%H:%M:%SZ");
        return Some(format!("the daemon was started anew, so requests before {since} are missing"));
    }
    let dropped = recording.dropped;
    (dropped > 0).then(|| format!("the oldest {dropped} requests had to make room for later ones"))
}
