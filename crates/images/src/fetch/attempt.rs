//! One request to one mirror: the range that is requested, the check whether the response belongs to the same file, and
//! the content that is appended.

use std::time::Duration;

use http::StatusCode;
use http::header::{self, HeaderMap, HeaderValue};

use super::exchange::{self, MirrorResponse};
use super::part::{DownloadOrigin, PartialDownload};
use super::{AttemptEnd, FetchError, Fetcher, SpaceCheck};
use crate::space::shown;
use crate::watch::WorkProgress;
use arenad_model::archive::SourceArchive;

/// Number of bytes that are fetched again when a download resumes, to check that the file is the same.
const OVERLAP: u64 = 64 << 10;

/// Requests the missing content once from one mirror.
pub(super) async fn attempt(
    fetcher: &Fetcher,
    url: &str,
    archive: &SourceArchive,
    part: &mut PartialDownload,
    room: SpaceCheck<'_>,
    watch: &WorkProgress,
) -> Result<(), AttemptEnd> {
    let headers = wish(url, part);
    let mut answer = exchange::get(&fetcher.connector, url, &headers, fetcher.patience.stall).await?;
    let known = part.origin.clone();
    let is_first = known.as_ref().is_none_or(|known| known.mirror == url);
    // The mirror's file is shorter than the partial download.
    if answer.status == StatusCode::RANGE_NOT_SATISFIABLE && part.length() > 0 {
        if let Some(known) = known.filter(|_| !is_first) {
            return Err(FetchError::Different(known.mirror).into());
        }
        part.restart().await.map_err(AttemptEnd::Disk)?;
        return Err(FetchError::Changed.into());
    }
    let range = ContentRange::of(&answer, part)?;
    usable_body(&answer, archive)?;
    let is_whole = range.start == 0;
    let total = range.total.or(known.as_ref().filter(|_| !is_whole).and_then(|known| known.total_bytes));
    if let Some(known) = &known
        && is_other(known, &answer, total, is_first, part.length())
    {
        if !is_first {
            return Err(FetchError::Different(known.mirror.clone()).into());
        }
        part.restart().await.map_err(AttemptEnd::Disk)?;
        if !is_whole {
            return Err(FetchError::Changed.into());
        }
    }
    if let Some(total) = total {
        plausible(archive, total)?;
        room(total, part.length()).map_err(AttemptEnd::Fatal)?;
        watch.begin(format!("fetching {}", archive.file), Some(total));
    }
    let origin =
        part.origin.clone().unwrap_or_else(|| DownloadOrigin { mirror: url.to_owned(), ..DownloadOrigin::default() });
    let tells = |name| answer.header(name).map(str::to_owned);
    part.remember(DownloadOrigin {
        etag: if is_first { tells(header::ETAG) } else { origin.etag },
        last_modified: if is_first { tells(header::LAST_MODIFIED) } else { origin.last_modified },
        total_bytes: total,
        is_mixed: origin.is_mixed || !is_first,
        mirror: origin.mirror,
        ..origin
    })
    .map_err(AttemptEnd::Disk)?;
    let mut offset = range.start;
    while let Some(piece) = answer.piece().await? {
        let mut new = &piece[..];
        if offset < part.length() {
            let overlap = new.len().min(usize::try_from(part.length() - offset).unwrap_or(usize::MAX));
            let ours = part.read(offset, overlap).await.map_err(AttemptEnd::Disk)?;
            let equal = ours.iter().zip(new).take_while(|(ours, theirs)| ours == theirs).count();
            if equal < overlap {
                match (is_first, is_whole) {
                    (false, _) => {
                        let first = part.origin.as_ref().map(|origin| origin.mirror.clone()).unwrap_or_default();
                        return Err(FetchError::Different(first).into());
                    }
                    (true, false) => {
                        part.restart().await.map_err(AttemptEnd::Disk)?;
                        return Err(FetchError::Changed.into());
                    }
                    // The response starts at the beginning of the new file, which equals the old one up to here.
                    (true, true) => part.change_from(offset + equal as u64).await.map_err(AttemptEnd::Disk)?,
                }
            }
            new = &new[equal..];
            offset += equal as u64;
        }
        part.append(new).await.map_err(AttemptEnd::Disk)?;
        offset += new.len() as u64;
        watch.reach(part.length());
        if total.is_some_and(|total| part.length() > total) {
            part.restart().await.map_err(AttemptEnd::Disk)?;
            return Err(FetchError::Refused("it sends more than it said".to_owned()).into());
        }
    }
    match (total, part.origin.clone()) {
        (Some(total), _) if part.length() < total => return Err(FetchError::Short.into()),
        // The length was unknown, and the response has ended properly, so the length is known now.
        (None, Some(origin)) => {
            let length = offset.max(part.length());
            part.remember(DownloadOrigin { total_bytes: Some(length), ..origin }).map_err(AttemptEnd::Disk)?;
        }
        _ => {}
    }
    Ok(())
}

/// Returns the headers that request the missing content and a short overlap before it.
fn wish(url: &str, part: &PartialDownload) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let Some(origin) = part.origin.as_ref().filter(|_| part.length() > 0) else {
        return headers;
    };
    let start = part.length().saturating_sub(OVERLAP);
    if let Ok(range) = HeaderValue::try_from(format!("bytes={start}-")) {
        headers.insert(header::RANGE, range);
    }
    // Validators of another mirror do not apply to this one.
    let strong = origin.etag.as_ref().filter(|etag| !etag.starts_with("W/"));
    let validator = strong.or(origin.last_modified.as_ref()).filter(|_| origin.mirror == url);
    if let Some(validator) = validator.and_then(|validator| HeaderValue::try_from(validator).ok()) {
        headers.insert(header::IF_RANGE, validator);
    }
    headers
}

/// The range of the file that a response contains.
struct ContentRange {
    start: u64,
    total: Option<u64>,
}

impl ContentRange {
    fn of(answer: &MirrorResponse, part: &PartialDownload) -> Result<Self, FetchError> {
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

/// Parses `bytes 200-999/1000`: returns the offset of the first byte, and the total length if it is given.
fn content_range(text: &str) -> Option<(u64, Option<u64>)> {
    let (range, total) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (start, _) = range.split_once('-')?;
    Some((start.trim().parse().ok()?, total.trim().parse().ok()))
}

fn retry_after(answer: &MirrorResponse) -> Option<Duration> {
    answer.header(header::RETRY_AFTER)?.trim().parse().ok().map(Duration::from_secs)
}

/// Rejects responses that cannot contain the file.
fn usable_body(answer: &MirrorResponse, archive: &SourceArchive) -> Result<(), FetchError> {
    let is_page = answer.header(header::CONTENT_TYPE).is_some_and(|kind| kind.starts_with("text/html"));
    if is_page && !archive.file.ends_with(".html") {
        return Err(FetchError::Refused("it answered with a web page".to_owned()));
    }
    match answer.header(header::CONTENT_ENCODING) {
        None | Some("identity") => Ok(()),
        Some(other) => Err(FetchError::Refused(format!("it compresses the transfer ({other}), unasked"))),
    }
}

/// Rejects a file whose size differs by more than a factor of two from the declared size. Declared sizes are
/// approximate, and based on multiples of 1000 or of 1024.
fn plausible(archive: &SourceArchive, total: u64) -> Result<(), FetchError> {
    match archive.size_bytes {
        _ if total == 0 => Err(FetchError::Refused("its file is empty".to_owned())),
        Some(size) if total < size / 2 || total / 2 > size => {
            let (total, size) = (shown(total), shown(size));
            Err(FetchError::Refused(format!("its file has {total}, where about {size} are expected")))
        }
        _ => Ok(()),
    }
}

/// Returns whether a response belongs to a different file than the partial download.
fn is_other(known: &DownloadOrigin, answer: &MirrorResponse, total: Option<u64>, is_first: bool, length: u64) -> bool {
    let etag = answer.header(header::ETAG);
    let is_renamed = is_first && matches!((etag, &known.etag), (Some(now), Some(then)) if now != then);
    let is_resized = match (total, known.total_bytes) {
        // The mirror declared a larger size than it has; the partial download is already the whole file.
        (Some(total), Some(_)) if is_first && total == length => false,
        (Some(total), Some(known)) => total != known,
        _ => false,
    };
    is_renamed || is_resized
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
}
