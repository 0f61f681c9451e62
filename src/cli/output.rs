//! What people read: tables, times, sizes. Colour only on a terminal, and never with `NO_COLOR`.

use std::io::IsTerminal;

use comfy_table::{Attribute, Cell, Color, ContentArrangement, Table, presets};
use jiff::{Timestamp, Unit};
use serde::Serialize;

/// Whether standard output may be coloured.
pub fn is_colored() -> bool {
    let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    wanted && std::io::stdout().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Prints a value as JSON, indented, on standard output.
pub fn print_json<T: Serialize>(value: &T) -> anyhow::Result<()> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, value)?;
    writeln!(out)?;
    Ok(())
}

/// An empty table in the manner of `docker ps`: no lines, headings in capitals.
pub fn table(headings: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(headings.iter().map(|heading| Cell::new(heading).add_attribute(Attribute::Bold)));
    if !is_colored() {
        table.force_no_tty();
    }
    table
}

/// Prints a table without the spaces that it puts before each line and after its last column.
pub fn print_table(table: &Table) {
    for line in table.lines() {
        println!("{}", line.strip_prefix(' ').unwrap_or(&line).trim_end());
    }
}

/// A state as a cell, in the colour of its gravity.
pub fn state_cell(state: &str) -> Cell {
    let cell = Cell::new(state);
    match state {
        "ready" => cell.fg(Color::Green),
        "failed" | "unhealthy" => cell.fg(Color::Red),
        "down" => cell,
        _ => cell.fg(Color::Yellow),
    }
}

/// Whether something passed, as a cell, in the colour of its gravity.
pub fn outcome_cell(ok: bool) -> Cell {
    if ok { Cell::new("passed").fg(Color::Green) } else { Cell::new("failed").fg(Color::Red) }
}

/// How long ago a time was, in one unit: `12s`, `5m`, `3h`, `4d`.
pub fn age(timestamp: &str) -> String {
    let Ok(then) = timestamp.parse::<Timestamp>() else {
        return timestamp.to_owned();
    };
    let seconds = Timestamp::now().since(then).and_then(|span| span.total(Unit::Second)).unwrap_or_default().max(0.0);
    match seconds {
        s if s < 120.0 => format!("{s:.0}s"),
        s if s < 7200.0 => format!("{:.0}m", (s / 60.0).floor()),
        s if s < 172_800.0 => format!("{:.0}h", (s / 3600.0).floor()),
        s => format!("{:.0}d", (s / 86_400.0).floor()),
    }
}

/// A duration in milliseconds: `840 ms`, `3.2 s`, `2 min 5 s`.
pub fn milliseconds(ms: f64) -> String {
    match ms {
        ms if ms < 1000.0 => format!("{ms:.0} ms"),
        ms if ms < 60_000.0 => format!("{:.1} s", ms / 1000.0),
        ms => format!("{:.0} min {:.0} s", (ms / 60_000.0).floor(), (ms % 60_000.0) / 1000.0),
    }
}

/// A size in bytes: `430 MB`.
pub fn bytes(bytes: u64) -> String {
    indicatif::DecimalBytes(bytes).to_string()
}

/// A finding in one line: what was seen, what follows from it.
pub fn advice(finding: &arenad_api::Finding) -> String {
    match &finding.consequence {
        Some(consequence) => format!("{}: {consequence}", finding.seen),
        None => finding.seen.clone(),
    }
}

/// The first line of a text that may have several.
pub fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_shown_in_the_unit_that_fits() {
        assert_eq!(milliseconds(839.6), "840 ms");
        assert_eq!(milliseconds(3210.0), "3.2 s");
        assert_eq!(milliseconds(125_000.0), "2 min 5 s");
    }

    #[test]
    fn ages_never_are_negative() {
        let later = Timestamp::now() + std::time::Duration::from_secs(60);
        assert_eq!(age(&later.to_string()), "0s");
    }
}
