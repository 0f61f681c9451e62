//! Fetches an archive from its mirrors in turn, for as long as it takes, and lets nothing pass for it that is not.
//!
//! What mirrors do, and what is done about it:
//! ```text
//!   cut the connection, stall, answer 5xx   go on from what there is, here or at the next mirror
//!   ignore ranges                           read through what there is, comparing, and go on behind it
//!   have changed the file                   begin anew (ETag, Last-Modified, length and 64 KiB of overlap tell)
//!   are another file than the first mirror  leave them alone, or begin anew if the first one is lost
//!   lie about the length, damage the file   found out when it is read as a whole: leave them alone
//! ```

mod attempt;
mod download;
mod exchange;
mod part;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;

use self::download::{Download, Order};
use self::part::Part;
use super::load::{Wanted, proven};
use super::shelf::{Place, Record};
use super::watch::Watch;
use super::{ImagesError, file};
use arenad_model::archive::Archive;
use arenad_model::error::describe;
use arenad_outbound::Connector;

/// How patient fetching is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// How long nothing may arrive.
    pub stall: Duration,
    /// How many failures in a row, none of which brought a byte, lose a mirror.
    pub tries: u32,
}

/// Asked once the length is known: whether there is room for so many bytes in all, of which so many are there.
pub type Room<'a> = &'a (dyn Fn(u64, u64) -> Result<(), ImagesError> + Send + Sync);

/// Fetches archives from their mirrors.
pub struct Fetcher {
    connector: Connector,
    patience: Patience,
}

/// Why one attempt at one mirror came to nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    /// No connection.
    #[error("it cannot be reached")]
    Unreachable(#[source] io::Error),
    /// The exchange broke off.
    #[error("the connection broke off")]
    Broken(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Nothing arrived.
    #[error("nothing arrived for {0:?}")]
    Stalled(Duration),
    /// A status other than success.
    #[error("it answered {status}")]
    Status {
        /// Which.
        status: StatusCode,
        /// How long it wants to be left alone.
        pause: Option<Duration>,
    },
    /// It answered what cannot be used.
    #[error("{0}")]
    Refused(String),
    /// The file is another one than at the last attempt.
    #[error("the file changed while it was being fetched")]
    Changed,
    /// The file is another one than the mirror's that the download began at.
    #[error("it has another file of that name than {0}")]
    Different(String),
    /// The body ended well before its time.
    #[error("it sent less than it said")]
    Short,
}

impl FetchError {
    /// Whether asking again is useless.
    fn is_final(&self) -> bool {
        match self {
            Self::Status { status, .. } => status.is_client_error() && *status != StatusCode::TOO_MANY_REQUESTS,
            Self::Refused(_) => true,
            _ => false,
        }
    }
}

/// Why an attempt ended.
enum Stop {
    /// The mirror is to blame.
    Mirror(FetchError),
    /// The disk is.
    Disk(io::Error),
    /// It is of no use to go on.
    Fatal(ImagesError),
}

impl From<FetchError> for Stop {
    fn from(error: FetchError) -> Self {
        Self::Mirror(error)
    }
}

impl Fetcher {
    /// A fetcher with the proxies and certificates of this process.
    pub fn new(patience: Patience) -> Self {
        Self { connector: Connector::default(), patience }
    }

    /// Fetches an archive to its place, unless it is there. The caller has the turn.
    pub async fn fetch(
        &self,
        archive: &Archive,
        place: &Place,
        wanted: Wanted<'_>,
        room: Room<'_>,
        watch: &Arc<Watch>,
    ) -> Result<Record, ImagesError> {
        if place.file.is_file() {
            let source = place.file.display().to_string();
            match proven(place, archive, &place.file, wanted, &source, watch).await {
                // What was fetched once and is damaged since is fetched again; what someone else put there is not ours.
                Err(error) if error.is_about_content() && place.is_on_shelf() && !archive.mirrors.is_empty() => {
                    tracing::debug!(error = describe(&error), "{} is fetched anew", place.name);
                    std::fs::remove_file(&place.file).map_err(file("remove", &place.file))?;
                }
                known => return known,
            }
        }
        let mut part = Part::open(place).await.map_err(file("open", &place.part()))?;
        let order = Order { archive, place, wanted, room, watch };
        let fetched = Download::new(self, order, &mut part).run().await;
        if fetched.is_err() {
            // However it ended, what has arrived is kept.
            let _ = match part.length() {
                0 => std::fs::remove_file(place.part()),
                _ => part.sync().await,
            };
        }
        fetched
    }
}
