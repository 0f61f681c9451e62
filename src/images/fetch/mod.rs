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

mod connect;
mod exchange;
mod part;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use http::header::{self, HeaderMap, HeaderValue};

use self::connect::Connector;
use self::exchange::Answer;
use self::part::{Origin, Part};
use super::load::{Wanted, proven};
use super::place::settle;
use super::shelf::{Place, Record};
use super::space::shown;
use super::watch::Watch;
use super::{ImagesError, file};
use crate::domain::archive::Archive;
use crate::probes::describe;

/// How much is fetched twice when a download goes on, to see that it is the same file, in bytes.
const OVERLAP: u64 = 64 << 10;

/// How often a mirror's file may change while it is being fetched.
const CHANGES_MAX: u32 = 3;

/// The pause after the first failure; it doubles up to [`PAUSE_MAX`].
const PAUSE: Duration = Duration::from_millis(250);

/// The longest pause, also where a mirror asks for a longer one.
const PAUSE_MAX: Duration = Duration::from_secs(60);

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

/// Fetches archives.
pub struct Fetcher {
    connector: Connector,
    patience: Patience,
}

/// Why one attempt at one mirror came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
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
    /// It is of no use to go on.
    Fatal(ImagesError),
}

impl From<FetchError> for Stop {
    fn from(error: FetchError) -> Self {
        Self::Mirror(error)
    }
}

/// How a mirror has done so far.
struct Mirror<'a> {
    url: &'a str,
    failures: u32,
    changes: u32,
    is_lost: bool,
    fault: String,
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
                Err(error) if is_content(&error) && place.is_on_shelf() && !archive.mirrors.is_empty() => {
                    tracing::debug!(error = describe(&error), "{} is fetched anew", place.name);
                    std::fs::remove_file(&place.file).map_err(file("remove", &place.file))?;
                }
                known => return known,
            }
        }
        let mut part = Part::open(place).await.map_err(file("open", &place.part()))?;
        let fetched = self.fetch_part(archive, place, wanted, room, &mut part, watch).await;
        if fetched.is_err() {
            // However it ended, what has arrived is kept.
            let _ = match part.length() {
                0 => std::fs::remove_file(place.part()),
                _ => part.sync().await,
            };
        }
        fetched
    }

    async fn fetch_part(
        &self,
        archive: &Archive,
        place: &Place,
        wanted: Wanted<'_>,
        room: Room<'_>,
        part: &mut Part,
        watch: &Arc<Watch>,
    ) -> Result<Record, ImagesError> {
        let io_error = |cause| file("write", &place.part())(cause);
        let fresh = |url| Mirror { url, failures: 0, changes: 0, is_lost: false, fault: String::new() };
        let mut mirrors: Vec<Mirror<'_>> = archive.mirrors.iter().map(|url| fresh(url.as_str())).collect();
        let began_at = |part: &Part, mirrors: &[Mirror<'_>]| {
            part.origin.as_ref().and_then(|origin| mirrors.iter().position(|mirror| mirror.url == origin.mirror))
        };
        let mut current = began_at(part, &mirrors).unwrap_or(0);
        let mut best = part.length();
        // Set when mirrors together have made a file that none of them has.
        let mut alone = false;
        let mut bad_content = None;
        loop {
            if part.is_complete() {
                part.sync().await.map_err(io_error)?;
                let origin = part.origin.clone().unwrap_or_default();
                match proven(place, archive, &place.part(), wanted, &origin.mirror, watch).await {
                    Ok(record) => {
                        settle(place)?;
                        return Ok(record);
                    }
                    Err(error) if is_content(&error) => {
                        let error = blame(error, &origin.mirror);
                        if let Some(mirror) = mirrors.iter_mut().find(|mirror| mirror.url == origin.mirror) {
                            mirror.fault = describe(&error);
                            mirror.is_lost = !origin.is_mixed;
                        }
                        alone |= origin.is_mixed;
                        bad_content = Some(error);
                        part.restart().await.map_err(io_error)?;
                        best = 0;
                    }
                    Err(error) => return Err(error),
                }
            }
            let usable = |mirror: &Mirror<'_>| !mirror.is_lost && mirror.failures < self.patience.tries;
            let order = (0..mirrors.len()).map(|step| (current + step) % mirrors.len());
            let Some(next) = order.into_iter().find(|index| usable(&mirrors[*index])) else {
                return Err(give_up(&mirrors, bad_content, &place.name, part.length()));
            };
            current = next;
            let url = mirrors[current].url;
            if alone && part.origin.as_ref().is_some_and(|origin| origin.mirror != url) {
                part.restart().await.map_err(io_error)?;
                best = 0;
            }
            watch.begin(format!("fetching {}", place.name), part.origin.as_ref().and_then(|origin| origin.total_bytes));
            watch.reach(part.length());
            let attempt = self.attempt(url, archive, part, room, watch);
            let stop = tokio::select! {
                done = attempt => match done {
                    Ok(()) => continue,
                    Err(stop) => stop,
                },
                () = watch.cancelled() => return Err(ImagesError::Cancelled),
            };
            let error = match stop {
                Stop::Fatal(ImagesError::File { cause, .. }) => return Err(io_error(cause)),
                Stop::Fatal(error) => return Err(error),
                Stop::Mirror(error) => error,
            };
            tracing::debug!(mirror = url, error = describe(&error), "an attempt to fetch {} failed", place.name);
            let first_is_lost = began_at(part, &mirrors).is_none_or(|first| !usable(&mirrors[first]));
            let mirror = &mut mirrors[current];
            mirror.fault = format!("{url}: {}", describe(&error));
            mirror.is_lost |= error.is_final();
            let has_grown = part.length() > best;
            match &error {
                FetchError::Changed => {
                    mirror.changes += 1;
                    mirror.is_lost |= mirror.changes > CHANGES_MAX;
                    best = 0;
                    continue;
                }
                FetchError::Different(_) if first_is_lost => {
                    part.restart().await.map_err(io_error)?;
                    best = 0;
                    continue;
                }
                // It goes on; where bytes come from there are more.
                _ if has_grown => {
                    best = part.length();
                    mirror.failures = 0;
                    continue;
                }
                _ => mirror.failures += 1,
            }
            let pause = pause(&error, mirror.failures);
            current = (current + 1) % mirrors.len();
            // The next mirror is asked at once; the same one again after a pause.
            if !mirrors.iter().any(|other| usable(other) && other.failures == 0) {
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = watch.cancelled() => return Err(ImagesError::Cancelled),
                }
            }
        }
    }

    /// Asks one mirror once for what is missing.
    async fn attempt(
        &self,
        url: &str,
        archive: &Archive,
        part: &mut Part,
        room: Room<'_>,
        watch: &Watch,
    ) -> Result<(), Stop> {
        let headers = wish(url, part);
        let mut answer = exchange::get(&self.connector, url, &headers, self.patience.stall).await?;
        let known = part.origin.clone();
        let is_first = known.as_ref().is_none_or(|known| known.mirror == url);
        // Its file is shorter than what is there of it.
        if answer.status == StatusCode::RANGE_NOT_SATISFIABLE && part.length() > 0 {
            if let Some(known) = known.filter(|_| !is_first) {
                return Err(FetchError::Different(known.mirror).into());
            }
            part.restart().await.map_err(disk)?;
            return Err(FetchError::Changed.into());
        }
        let range = Range::of(&answer, part)?;
        usable_body(&answer, archive)?;
        let is_whole = range.start == 0;
        let total = range.total.or(known.as_ref().filter(|_| !is_whole).and_then(|known| known.total_bytes));
        if let Some(known) = &known
            && is_other(known, &answer, total, is_first, part.length())
        {
            if !is_first {
                return Err(FetchError::Different(known.mirror.clone()).into());
            }
            part.restart().await.map_err(disk)?;
            if !is_whole {
                return Err(FetchError::Changed.into());
            }
        }
        if let Some(total) = total {
            plausible(archive, total)?;
            room(total, part.length()).map_err(Stop::Fatal)?;
            watch.begin(format!("fetching {}", archive.file), Some(total));
        }
        let origin = part.origin.clone().unwrap_or_else(|| Origin { mirror: url.to_owned(), ..Origin::default() });
        let tells = |name| answer.header(name).map(str::to_owned);
        part.remember(Origin {
            etag: if is_first { tells(header::ETAG) } else { origin.etag },
            last_modified: if is_first { tells(header::LAST_MODIFIED) } else { origin.last_modified },
            total_bytes: total,
            is_mixed: origin.is_mixed || !is_first,
            mirror: origin.mirror,
            ..origin
        })
        .map_err(disk)?;
        let mut offset = range.start;
        while let Some(piece) = answer.piece().await? {
            let mut new = &piece[..];
            if offset < part.length() {
                let overlap = new.len().min(usize::try_from(part.length() - offset).unwrap_or(usize::MAX));
                let ours = part.read(offset, overlap).await.map_err(disk)?;
                let equal = ours.iter().zip(new).take_while(|(ours, theirs)| ours == theirs).count();
                if equal < overlap {
                    match (is_first, is_whole) {
                        (false, _) => {
                            let first = part.origin.as_ref().map(|origin| origin.mirror.clone()).unwrap_or_default();
                            return Err(FetchError::Different(first).into());
                        }
                        (true, false) => {
                            part.restart().await.map_err(disk)?;
                            return Err(FetchError::Changed.into());
                        }
                        // The new file is coming from its start: it is the same up to here.
                        (true, true) => part.cut(offset + equal as u64).await.map_err(disk)?,
                    }
                }
                new = &new[equal..];
                offset += equal as u64;
            }
            part.append(new).await.map_err(disk)?;
            offset += new.len() as u64;
            watch.reach(part.length());
            if total.is_some_and(|total| part.length() > total) {
                part.restart().await.map_err(disk)?;
                return Err(FetchError::Refused("it sends more than it said".to_owned()).into());
            }
        }
        match (total, part.origin.clone()) {
            (Some(total), _) if part.length() < total => return Err(FetchError::Short.into()),
            // It was not known how much would come, and the end of it was marked as one.
            (None, Some(origin)) => {
                let length = offset.max(part.length());
                part.remember(Origin { total_bytes: Some(length), ..origin }).map_err(disk)?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// The headers that ask for what is missing, and a little before it.
fn wish(url: &str, part: &Part) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let Some(origin) = part.origin.as_ref().filter(|_| part.length() > 0) else {
        return headers;
    };
    let start = part.length().saturating_sub(OVERLAP);
    if let Ok(range) = HeaderValue::try_from(format!("bytes={start}-")) {
        headers.insert(header::RANGE, range);
    }
    // Another mirror's names for its content mean nothing to this one.
    let strong = origin.etag.as_ref().filter(|etag| !etag.starts_with("W/"));
    let validator = strong.or(origin.last_modified.as_ref()).filter(|_| origin.mirror == url);
    if let Some(validator) = validator.and_then(|validator| HeaderValue::try_from(validator).ok()) {
        headers.insert(header::IF_RANGE, validator);
    }
    headers
}

/// Which part of the file an answer holds.
struct Range {
    start: u64,
    total: Option<u64>,
}

impl Range {
    fn of(answer: &Answer, part: &Part) -> Result<Self, FetchError> {
        let asked = part.length().saturating_sub(OVERLAP);
        match answer.status {
            StatusCode::OK if !answer.is_delimited() => {
                Err(FetchError::Refused("it does not say where the file ends".to_owned()))
            }
            StatusCode::OK => Ok(Self { start: 0, total: answer.length() }),
            StatusCode::PARTIAL_CONTENT => {
                let text = answer.header(header::CONTENT_RANGE).unwrap_or_default();
                let (start, total) = content_range(text).unwrap_or((u64::MAX, None));
                if start != asked || part.length() == 0 {
                    let message =
                        format!("it was asked for bytes from {asked} on and answered with the range `{text}`");
                    return Err(FetchError::Refused(message));
                }
                Ok(Self { start, total })
            }
            status => Err(FetchError::Status { status, pause: retry_after(answer) }),
        }
    }
}

/// Reads `bytes 200-999/1000`: the first byte, and the length of the whole if it is known.
fn content_range(text: &str) -> Option<(u64, Option<u64>)> {
    let (range, total) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (start, _) = range.split_once('-')?;
    Some((start.trim().parse().ok()?, total.trim().parse().ok()))
}

fn retry_after(answer: &Answer) -> Option<Duration> {
    answer.header(header::RETRY_AFTER)?.trim().parse().ok().map(Duration::from_secs)
}

/// Refuses what cannot be the file.
fn usable_body(answer: &Answer, archive: &Archive) -> Result<(), FetchError> {
    let is_page = answer.header(header::CONTENT_TYPE).is_some_and(|kind| kind.starts_with("text/html"));
    if is_page && !archive.file.ends_with(".html") {
        return Err(FetchError::Refused("it answered with a web page".to_owned()));
    }
    match answer.header(header::CONTENT_ENCODING) {
        None | Some("identity") => Ok(()),
        Some(other) => Err(FetchError::Refused(format!("it compresses the transfer ({other}), unasked"))),
    }
}

/// Sizes are said roughly, in units of a thousand or 1024; a file of another order is another file.
fn plausible(archive: &Archive, total: u64) -> Result<(), FetchError> {
    match archive.size_bytes {
        _ if total == 0 => Err(FetchError::Refused("its file is empty".to_owned())),
        Some(size) if total < size / 2 || total / 2 > size => {
            let (total, size) = (shown(total), shown(size));
            Err(FetchError::Refused(format!("its file has {total}, where about {size} are expected")))
        }
        _ => Ok(()),
    }
}

/// Whether an answer is about another file than what is there began with.
fn is_other(known: &Origin, answer: &Answer, total: Option<u64>, is_first: bool, length: u64) -> bool {
    let etag = answer.header(header::ETAG);
    let is_renamed = is_first && matches!((etag, &known.etag), (Some(now), Some(then)) if now != then);
    let is_resized = match (total, known.total_bytes) {
        // A mirror that promised more than it has: what is there is all there is.
        (Some(total), Some(_)) if is_first && total == length => false,
        (Some(total), Some(known)) => total != known,
        _ => false,
    };
    is_renamed || is_resized
}

fn pause(error: &FetchError, failures: u32) -> Duration {
    let asked = match error {
        FetchError::Status { pause, .. } => *pause,
        _ => None,
    };
    let doubled = PAUSE.saturating_mul(1 << failures.saturating_sub(1).min(10));
    asked.unwrap_or(doubled).min(PAUSE_MAX)
}

fn disk(cause: io::Error) -> Stop {
    Stop::Fatal(ImagesError::File { doing: "write", path: Default::default(), cause })
}

/// Whether the file is to blame, rather than the disk or the user.
fn is_content(error: &ImagesError) -> bool {
    matches!(error, ImagesError::Unsound { .. } | ImagesError::OtherContent { .. } | ImagesError::OtherImage { .. })
}

/// The same error about the mirror, not about a file that goes.
fn blame(mut error: ImagesError, mirror: &str) -> ImagesError {
    if let ImagesError::Unsound { path, .. }
    | ImagesError::OtherContent { path, .. }
    | ImagesError::OtherImage { path, .. } = &mut error
    {
        *path = mirror.into();
    }
    error
}

fn give_up(mirrors: &[Mirror<'_>], bad: Option<ImagesError>, name: &str, kept_bytes: u64) -> ImagesError {
    match bad {
        Some(bad) if mirrors.len() == 1 => bad,
        _ => ImagesError::NoMirror {
            file: name.to_owned(),
            reasons: mirrors.iter().map(|mirror| mirror.fault.clone()).collect(),
            kept_bytes,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_servers_write_them() {
        assert_eq!(content_range("bytes 200-999/1000"), Some((200, Some(1000))));
        assert_eq!(content_range("bytes 0-0/*"), Some((0, None)));
        for text in ["", "bytes */1000", "items 1-2/3", "bytes 200", "bytes a-b/c"] {
            assert_eq!(content_range(text), None, "{text}");
        }
    }

    #[test]
    fn pauses_grow_and_end() {
        let stalled = FetchError::Stalled(Duration::from_secs(1));
        assert_eq!(pause(&stalled, 1), PAUSE);
        assert_eq!(pause(&stalled, 3), PAUSE * 4);
        assert_eq!(pause(&stalled, 60), PAUSE_MAX);
        let asked = FetchError::Status { status: StatusCode::TOO_MANY_REQUESTS, pause: Some(Duration::from_secs(9)) };
        assert_eq!(pause(&asked, 1), Duration::from_secs(9));
    }
}
