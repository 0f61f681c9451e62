//! `arenad logs` and `arenad events`: print container logs and the daemon's events.

use std::io::Write;

use futures_util::StreamExt;
use futures_util::stream::{self, SelectAll};
use jiff::Timestamp;
use reqwest::Method;

use super::args::{EventsArgs, Global, LogsArgs};
use super::client::ApiClient;
use super::failure::CommandFailure;
use super::server_events::{ServerEvent, ServerEvents};
use super::{exit_code, find, output};
use arenad_api::{DaemonEvent, EventList, EventsGone, GONE};
use arenad_model::instance::InstanceId;
use arenad_model::lines::LineSplitter;
use arenad_model::slot_name::SlotName;

/// The number of events that are requested if only some of them will be shown.
const EVENTS_MAX: u32 = 1000;

/// The maximum length of a line with `--json`, in bytes; larger than the lines that the daemon sends.
const LINE_MAX: usize = 1 << 20;

/// Prints the logs of sites' containers; if several sites are named, each line begins with its site. `--json` prints
/// one object per line.
pub async fn logs(global: &Global, args: &LogsArgs) -> Result<u8, CommandFailure> {
    let client = ApiClient::new(global)?;
    let status = client.status().await?;
    let mut slots: Vec<(String, String)> = Vec::new();
    for (environment, mut names) in find::slots(&status, args.environment.as_deref(), &args.sites)? {
        if names.is_empty() {
            let known = status.environments.iter().filter(|known| known.name == environment);
            names.extend(known.flat_map(|known| &known.sites).map(|site| site.name.clone()));
        }
        slots.extend(names.into_iter().map(|name| (environment.clone(), name)));
    }
    let is_alone = output::is_alone(slots.iter().map(|(environment, _)| environment.as_str()));
    let mut query = format!("follow={}&timestamps={}", args.follow, args.timestamps);
    if let Some(tail) = args.tail {
        query.push_str(&format!("&tail={tail}"));
    }
    if let Some(since) = args.since {
        let since = Timestamp::now().as_second() - i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
        query.push_str(&format!("&since={since}"));
    }
    if let Some(service) = &args.service {
        query.push_str(&format!("&service={service}"));
    }
    let is_single = slots.len() == 1;
    let mut merged = SelectAll::new();
    let mut sources = Vec::new();
    for (environment, slot) in slots {
        let path = format!("/v1/environments/{environment}/sites/{slot}/logs?{query}");
        let index = sources.len();
        let chunks = client.stream(&path).await?.bytes_stream();
        // The end of each log is signalled as well, because the last line may lack a line break.
        let ended = stream::iter([None]);
        merged.push(Box::pin(chunks.map(Some).chain(ended).map(move |chunk| (index, chunk))));
        let name = output::site_name(&environment, &slot, is_alone);
        let SlotName { site, number } = SlotName::parse(&slot).map_err(CommandFailure::usage)?;
        let (site, number) = (site.to_owned(), number.unwrap_or(1));
        sources.push(SlotLog { site, number, name, lines: LineSplitter::new(LINE_MAX) });
    }
    let form = if global.json {
        LineFormat::Json
    } else if is_single {
        LineFormat::Plain
    } else {
        LineFormat::Named
    };
    while let Some((index, chunk)) = until_interrupted(merged.next()).await.flatten() {
        let mut out = std::io::stdout().lock();
        match chunk {
            Some(chunk) => sources[index].push(&chunk?, form, &mut out)?,
            None => sources[index].end(form, &mut out)?,
        }
        out.flush()?;
    }
    Ok(exit_code::OK)
}

/// The format of printed lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineFormat {
    /// Lines without any addition.
    Plain,
    /// Lines with the site's name in front.
    Named,
    /// Lines as JSON objects.
    Json,
}

/// The log of one slot, as it arrives.
struct SlotLog {
    site: String,
    number: u32,
    /// The name of the slot for people.
    name: String,
    lines: LineSplitter,
}

impl SlotLog {
    fn push(&mut self, chunk: &[u8], form: LineFormat, out: &mut impl Write) -> std::io::Result<()> {
        if form == LineFormat::Plain {
            return out.write_all(chunk);
        }
        let mut written = Ok(());
        let Self { site, number, name, lines } = self;
        lines.push(chunk, |line| {
            if written.is_ok() {
                written = print_line(line.bytes, (site, *number, name), form, out);
            }
        });
        written
    }

    fn end(&mut self, form: LineFormat, out: &mut impl Write) -> std::io::Result<()> {
        if form == LineFormat::Plain {
            return Ok(());
        }
        let mut written = Ok(());
        let Self { site, number, name, lines } = self;
        lines.end(|line| written = print_line(line.bytes, (site, *number, name), form, out));
        written
    }
}

fn print_line(
    line: &[u8],
    (site, number, name): (&str, u32, &str),
    form: LineFormat,
    out: &mut impl Write,
) -> std::io::Result<()> {
    if form == LineFormat::Json {
        let text = String::from_utf8_lossy(line);
        return writeln!(out, "{}", serde_json::json!({ "site": site, "slot": number, "line": text }));
    }
    write!(out, "{name} | ")?;
    out.write_all(line)?;
    writeln!(out)
}

/// Returns `None` if Ctrl-C came first, which is the regular end of following.
async fn until_interrupted<T>(work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        value = work => Some(value),
        _ = tokio::signal::ctrl_c() => None,
    }
}

/// Prints events. `--json` prints one object per line, so that followed output can be piped.
pub async fn events(global: &Global, args: &EventsArgs) -> Result<u8, CommandFailure> {
    let client = ApiClient::new(global)?;
    let is_restricted = args.environment.is_some() || !args.sites.is_empty();
    if is_restricted {
        insist_known(&client, args).await?;
    }
    // The limit also counts events that the filter drops, so more are requested than are shown.
    let limit = if is_restricted && !args.follow { args.limit.max(EVENTS_MAX) } else { args.limit };
    let mut query = format!("limit={limit}");
    if let Some(after) = args.after {
        query.push_str(&format!("&after={after}"));
    }
    if let Some(since) = args.since {
        let since = Timestamp::now().as_second() - i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
        query.push_str(&format!("&since={since}"));
    }
    if !args.follow {
        let found: EventList = client.json(Method::GET, &format!("/v1/events?{query}")).await?;
        let meant: Vec<&DaemonEvent> = found.events.iter().filter(|event| is_meant(event, args)).collect();
        let most = usize::try_from(args.limit).unwrap_or(usize::MAX);
        // After a given number the first events that follow it are shown; otherwise the newest.
        let first = if args.after.is_some() { 0 } else { meant.len().saturating_sub(most) };
        for event in meant[first..].iter().take(most) {
            print_event(global, event)?;
        }
        return Ok(exit_code::OK);
    }
    let mut followed = ServerEvents::of(client.stream(&format!("/v1/events?{query}&follow=true")).await?);
    while let Some(next) = until_interrupted(followed.next()).await {
        let Some(ServerEvent { name, data }) = next? else { break };
        if name == GONE {
            let said: EventsGone = serde_json::from_str(&data)?;
            return Err(anyhow::anyhow!("{}", said.message).into());
        }
        let event: DaemonEvent = serde_json::from_str(&data)?;
        if is_meant(&event, args) {
            print_event(global, &event)?;
        }
    }
    Ok(exit_code::OK)
}

/// Returns whether an event concerns one of the named sites; without names, every event does.
fn is_meant(event: &DaemonEvent, args: &EventsArgs) -> bool {
    if args.environment.is_none() && args.sites.is_empty() {
        return true;
    }
    let instance = event.instance.as_deref().and_then(|id| id.parse::<InstanceId>().ok());
    instance.is_some_and(|InstanceId { environment, site, .. }| {
        find::is_named((environment.as_str(), site.as_str()), args.environment.as_deref(), &args.sites)
    })
}

/// Rejects names that are neither up nor in any event, because nothing would ever be shown for them.
async fn insist_known(client: &ApiClient, args: &EventsArgs) -> Result<(), CommandFailure> {
    let Err(unknown) = find::sites(&client.status().await?, args.environment.as_deref(), &args.sites) else {
        return Ok(());
    };
    let found: EventList = client.json(Method::GET, &format!("/v1/events?limit={EVENTS_MAX}")).await?;
    if found.events.iter().any(|event| is_meant(event, args)) { Ok(()) } else { Err(unknown) }
}

/// The indentation of a message's continuation lines: visibly less than that of the first line, since most are lines of
/// logs, which are long.
const INDENT: &str = "    ";

fn print_event(global: &Global, event: &DaemonEvent) -> Result<(), CommandFailure> {
    let mut out = std::io::stdout().lock();
    if global.json {
        writeln!(out, "{}", serde_json::to_string(event)?)?;
    } else {
        writeln!(out, "{}", described(event))?;
    }
    Ok(())
}

/// Returns an event in the form for people. Terminal control characters are removed, because a message may quote the
/// log of a site.
fn described(event: &DaemonEvent) -> String {
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    let at = event.at.get(..19).unwrap_or(&event.at).replace('T', " ");
    let lines: Vec<String> = event.message.lines().map(|line| line.chars().map(visible).collect()).collect();
    format!("{at}Z  {:20}  {}", event.kind, lines.join(&format!("\n{INDENT}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_several_sites_begin_with_the_site_and_stay_whole() {
        let mut source = SlotLog {
            site: "shopping".to_owned(),
            number: 1,
            name: "mini/shopping".to_owned(),
            lines: LineSplitter::new(LINE_MAX),
        };
        let mut out = Vec::new();
        for chunk in ["GET /a", " 200\nGET /b 200\nlast"] {
            source.push(chunk.as_bytes(), LineFormat::Named, &mut out).expect("memory");
        }
        source.end(LineFormat::Named, &mut out).expect("memory");
        let expected = "mini/shopping | GET /a 200\nmini/shopping | GET /b 200\nmini/shopping | last\n";
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }

    #[test]
    fn further_lines_of_a_message_are_indented_and_cannot_control_a_terminal() {
        let event = DaemonEvent {
            seq: 7,
            at: "2026-03-01T12:00:00.25Z".to_owned(),
            kind: "instance.failed".to_owned(),
            instance: None,
            message: "toy is not ready\nits log:\n\u{1b}[2Jgone".to_owned(),
        };
        let expected = "2026-03-01 12:00:00Z  instance.failed       toy is not ready\n    its log:\n     [2Jgone";
        assert_eq!(described(&event), expected);
    }
}
