//! The gateway's recordings, as HAR 1.2.
//!
//! ```text
//!   Recording ─► selected exchanges ─► entry: bodies decoded, secrets redacted ─► log, with the reasons for gaps
//! ```
//! In addition to the format's own fields, entries have `_site` and `_lost` (which of `body` and `answer` was not
//! kept), and the log has `_arenad.sites`: for each site `site`, `variable`, `instance`, `generation`, `records`
//! (`all`, `writes`, `none`), `since`, and `lacks`, which is the reason why earlier requests are missing, or null.
//! Secrets are removed when a HAR is made: see [`secrets`].

mod decoding;
mod entry;
mod secrets;

use jiff::Timestamp;
use serde_json::{Value, json};

use arenad_gateway::{Exchange, RecordedBody, Recording, RequestHead, UnfinishedExchange};
use arenad_instance::InstanceHandle;

/// The largest total size that the compressed bodies of a HAR may decompress to, in bytes.
const UNPACKED_MAX: u64 = 32 << 20;

/// Returns a HAR of the sites' selected requests, in the order in which they began.
///
/// Shape: `{"log": {"version", "creator", "pages", "entries", "_arenad": {"sites"}}}`. It decodes tens of megabytes of
/// bodies, so it must not run on a thread that other tasks wait for.
pub fn har(sites: &[SiteTraffic], is_meant: impl Fn(&RequestHead) -> bool) -> Value {
    let mut entries: Vec<(Timestamp, Value)> = Vec::new();
    let mut room = UNPACKED_MAX;
    for site in sites {
        // Newest first: if the room does not suffice, the oldest bodies are left out.
        let exchanges = site.recording.iter().flat_map(|recording| &recording.exchanges).rev();
        let meant = exchanges.filter(|exchange| is_meant(&exchange.request));
        entries.extend(meant.map(|exchange| (exchange.request.at, entry::of(Some(&site.name), exchange, &mut room))));
    }
    // The sort is stable, so requests with equal times keep their order.
    entries.reverse();
    entries.sort_by_key(|(at, _)| *at);
    json!({ "log": {
        "version": VERSION,
        "creator": creator(),
        "pages": [],
        "entries": entries.into_iter().map(|(_, entry)| entry).collect::<Vec<_>>(),
        "_arenad": { "sites": sites.iter().map(SiteTraffic::coverage).collect::<Vec<_>>() },
    } })
}

/// Returns a HAR of entries that are texts already, in their order, with `own` as `log._arenad`.
pub(crate) fn assembled(entries: &[String], own: &Value) -> String {
    let (creator, entries) = (creator(), entries.join(","));
    format!(
        r#"{{"log":{{"version":"{VERSION}","creator":{creator},"pages":[],"entries":[{entries}],"_arenad":{own}}}}}"#
    )
}

/// Returns the entry of one exchange, for a record. `site` is `None` for a host outside of the arena.
pub(crate) fn recorded_entry(site: Option<&str>, exchange: &Exchange) -> Value {
    let mut room = UNPACKED_MAX;
    entry::of(site, exchange, &mut room)
}

/// Returns the entry of a request that was sent to a site and has no response yet, for a record.
pub(crate) fn unfinished_entry(unfinished: &UnfinishedExchange) -> Value {
    let exchange = Exchange {
        request: unfinished.request.clone(),
        sent: RecordedBody::None,
        answer: None,
        received: RecordedBody::None,
        took: None,
    };
    recorded_entry(unfinished.site.as_deref(), &exchange)
}

/// The version of the format.
const VERSION: &str = "1.2";

fn creator() -> Value {
    json!({ "name": "arenad", "version": env!("CARGO_PKG_VERSION") })
}

/// The recorded traffic of one site.
#[derive(Debug)]
pub struct SiteTraffic {
    name: String,
    /// The names of the site in benchmarks' tasks.
    variable: Option<String>,
    instance: String,
    records: &'static str,
    recording: Option<Recording>,
}

impl SiteTraffic {
    /// Returns the traffic of a site that has been recorded so far.
    pub(crate) fn of(handle: &InstanceHandle) -> Self {
        Self {
            name: handle.site.name.to_string(),
            variable: handle.site.public.variable.clone(),
            instance: handle.id.to_string(),
            records: handle.site.public.recorded.name(),
            recording: handle.recording(),
        }
    }

    /// Returns the traffic of a site from a recording alone, without an instance.
    pub fn recorded(name: &str, recording: Recording) -> Self {
        Self {
            name: name.to_owned(),
            variable: None,
            instance: format!("{name}-1"),
            records: "all",
            recording: Some(recording),
        }
    }

    /// Returns the generation that was recorded; `None` if nothing is recorded.
    pub(crate) fn generation(&self) -> Option<u64> {
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

/// Returns the reason why earlier requests of a generation are missing, if some are.
fn lacks(recording: &Recording) -> Option<String> {
    if recording.is_late {
        let since = recording.since.strftime("%Y-%m-%dT%H:%M:%SZ");
        return Some(format!("the daemon was started anew, so requests before {since} are missing"));
    }
    let dropped = recording.dropped;
    (dropped > 0).then(|| format!("the oldest {dropped} requests had to make room for later ones"))
}
