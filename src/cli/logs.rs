//! `arenad logs` and `arenad events`

use std::io::Write;

use futures_util::StreamExt;
use jiff::Timestamp;
use reqwest::Method;

use super::args::{EventsArgs, Global, LogsArgs};
use super::client::Client;
use super::failure::Failure;
use super::{exit_code, find};
use arenad_api::{Event, Events, EventsGone, GONE};
use arenad_model::lines::Lines;

/// How much of a line is shown with `--json`, in bytes: more than the daemon sends of one.
const LINE_MAX: usize = 1 << 20;

/// How long one event of a stream may be, in bytes: more than the daemon keeps of one.
const EVENT_MAX: usize = 4 << 20;

/// Shows the logs of a site's containers. `--json` prints one object per line.
pub async fn logs(global: &Global, args: &LogsArgs) -> Result<u8, Failure> {
    let client = Client::new(global)?;
    let status = client.status().await?;
    let site = find::site(&status, args.environment.as_deref(), &args.site)?;
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
    let path = format!("/v1/environments/{}/sites/{}/logs?{query}", site.environment, site.name);
    let mut chunks = client.stream(&path).await?.bytes_stream();
    let mut lines = Lines::new(LINE_MAX);
    while let Some(chunk) = until_interrupted(chunks.next()).await.flatten() {
        let chunk = chunk?;
        let mut out = std::io::stdout().lock();
        if global.json {
            let mut written = Ok(());
            lines.push(&chunk, |line| {
                let text = String::from_utf8_lossy(line.bytes);
                let shown = serde_json::json!({ "site": site.name, "line": text });
                if written.is_ok() {
                    written = writeln!(out, "{shown}");
                }
            });
            written?;
        } else {
            out.write_all(&chunk)?;
        }
        out.flush()?;
    }
    Ok(exit_code::OK)
}

/// `None` when Ctrl-C came first: that is how following ends.
async fn until_interrupted<T>(work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        value = work => Some(value),
        _ = tokio::signal::ctrl_c() => None,
    }
}

/// Shows what happened. `--json` prints one object per line, so that following can be piped.
pub async fn events(global: &Global, args: &EventsArgs) -> Result<u8, Failure> {
    let client = Client::new(global)?;
    let mut query = format!("limit={}", args.limit);
    if let Some(after) = args.after {
        query.push_str(&format!("&after={after}"));
    }
    if let Some(since) = args.since {
        let since = Timestamp::now().as_second() - i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
        query.push_str(&format!("&since={since}"));
    }
    if !args.follow {
        let found: Events = client.json(Method::GET, &format!("/v1/events?{query}")).await?;
        for event in &found.events {
            print_event(global, event)?;
        }
        return Ok(exit_code::OK);
    }
    let mut chunks = client.stream(&format!("/v1/events?{query}&follow=true")).await?.bytes_stream();
    let mut text = Vec::new();
    while let Some(chunk) = until_interrupted(chunks.next()).await.flatten() {
        text.extend_from_slice(&chunk?);
        // Server-sent events end with an empty line; comments that keep the connection alive have no data.
        while let Some(end) = text.windows(2).position(|two| two == b"\n\n") {
            let message: Vec<u8> = text.drain(..end + 2).collect();
            let message = String::from_utf8_lossy(&message);
            let mut data = message.lines().filter_map(|line| line.strip_prefix("data:"));
            if message.lines().any(|line| line == format!("event: {GONE}") || line == format!("event:{GONE}")) {
                let said: EventsGone = serde_json::from_str(data.next().unwrap_or_default().trim_start())?;
                return Err(anyhow::anyhow!("{}", said.message).into());
            }
            for data in data {
                print_event(global, &serde_json::from_str(data.trim_start())?)?;
            }
        }
        if text.len() > EVENT_MAX {
            return Err(anyhow::anyhow!("the daemon sent an event of more than {} MiB", EVENT_MAX >> 20).into());
        }
    }
    Ok(exit_code::OK)
}

/// How far the further lines of a message are indented: visibly less than where the first one begins, since most are lines of
/// logs, which are long.
const INDENT: &str = "    ";

fn print_event(global: &Global, event: &Event) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    if global.json {
        writeln!(out, "{}", serde_json::to_string(event)?)?;
    } else {
        writeln!(out, "{}", described(event))?;
    }
    Ok(())
}

/// An event as people read it. What controls a terminal is not passed on: a message may quote what a site has logged.
fn described(event: &Event) -> String {
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    let at = event.at.get(..19).unwrap_or(&event.at).replace('T', " ");
    let lines: Vec<String> = event.message.lines().map(|line| line.chars().map(visible).collect()).collect();
    format!("{at}Z  {:20}  {}", event.kind, lines.join(&format!("\n{INDENT}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_lines_of_a_message_are_indented_and_cannot_control_a_terminal() {
        let event = Event {
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
