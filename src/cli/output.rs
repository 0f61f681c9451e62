//! Output for people: tables, times, sizes. Colour is used only on a terminal, and never with `NO_COLOR`.

use std::io::IsTerminal;

use comfy_table::{Attribute, Cell, Color, ColumnConstraint, ContentArrangement, Table, presets};
use jiff::{Timestamp, Unit};
use serde::Serialize;

use arenad_api::InstanceState;
use arenad_model::instance::InstanceId;

/// Returns whether standard output may be coloured.
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

/// Returns an empty table in the style of `docker ps`: no lines, headings in capitals.
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

/// Prints a table without the padding before each line and after its last column.
pub fn print_table(table: &Table) {
    for line in table.lines() {
        outln!("{}", line.strip_prefix(' ').unwrap_or(&line).trim_end());
    }
}

/// Returns the maximum width of lines: COLUMNS if it is set, else the terminal's width; `None` if the output is a file
/// or a pipe.
pub fn width() -> Option<u16> {
    let given = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok()).filter(|columns| *columns > 0);
    given.or_else(|| Table::new().width())
}

/// Prints a table, truncating the column `flexible` with `…` if its lines would be wider than `width`.
pub fn print_fitted(table: &mut Table, flexible: usize, width: Option<u16>) {
    if let Some(width) = width {
        table.set_content_arrangement(ContentArrangement::Dynamic);
        // The padding before each line is not printed, so the table may be one column wider.
        table.set_width(width.saturating_add(1)).set_truncation_indicator("…");
        for (index, column) in table.column_iter_mut().enumerate() {
            if index != flexible {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        table.row_iter_mut().for_each(|row| {
            row.max_height(1);
        });
    }
    print_table(table);
}

/// Wraps words into lines of at most this width, each indented.
pub fn wrapped(text: &str, indent: &str, width: Option<u16>) -> String {
    let width = usize::from(width.unwrap_or(u16::MAX)).saturating_sub(indent.len()).max(20);
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => *line += &format!(" {word}"),
            _ => lines.push(word.to_owned()),
        }
    }
    lines.iter().map(|line| format!("{indent}{line}\n")).collect()
}

/// Returns the name of a site in a table, with its environment if several environments are shown.
pub fn site_name(environment: &str, site: &str, is_alone: bool) -> String {
    if is_alone { site.to_owned() } else { format!("{environment}/{site}") }
}

/// Returns the name of an instance: that of its site, and the number of the slot if it is not slot 1.
pub fn slot_name(site: &str, instance: &str) -> String {
    let number = instance.parse::<InstanceId>().map_or(1, |id| id.number);
    if number == 1 { site.to_owned() } else { format!("{site}:{number}") }
}

/// Returns whether all of these names are of one environment.
pub fn is_alone<'a>(environments: impl IntoIterator<Item = &'a str>) -> bool {
    let mut environments = environments.into_iter();
    let first = environments.next();
    environments.all(|name| Some(name) == first)
}

/// Returns a state as a cell, coloured by its severity.
pub fn state_cell(state: InstanceState) -> Cell {
    let cell = Cell::new(state);
    match state {
        InstanceState::Ready => cell.fg(Color::Green),
        InstanceState::Failed | InstanceState::Unhealthy => cell.fg(Color::Red),
        InstanceState::Down => cell,
        InstanceState::Preparing | InstanceState::Starting | InstanceState::Resetting | InstanceState::Stopping => {
            cell.fg(Color::Yellow)
        }
    }
}

/// Returns passed or failed as a cell, coloured by its severity.
pub fn outcome_cell(ok: bool) -> Cell {
    if ok { Cell::new("passed").fg(Color::Green) } else { Cell::new("failed").fg(Color::Red) }
}

/// Returns the time since a timestamp, in one unit: `12s`, `5m`, `3h`, `4d`.
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

/// Formats a duration in milliseconds: `840 ms`, `3.2 s`, `2 min 5 s`.
pub fn milliseconds(ms: f64) -> String {
    match ms {
        ms if ms < 999.5 => format!("{ms:.0} ms"),
        ms if ms < 59_950.0 => format!("{:.1} s", ms / 1000.0),
        ms => {
            // Rounded before it is split: 119.7 s are 2 min 0 s, and not 1 min 60 s.
            let seconds = (ms / 1000.0).round();
            format!("{:.0} min {:.0} s", (seconds / 60.0).floor(), seconds % 60.0)
        }
    }
}

/// Formats a size in bytes: `430 MB`.
pub fn bytes(bytes: u64) -> String {
    indicatif::DecimalBytes(bytes).to_string()
}

/// Returns a finding on one line: the observation and its consequence.
pub fn advice(finding: &arenad_api::ReportedFinding) -> String {
    match &finding.consequence {
        Some(consequence) => format!("{}: {consequence}", finding.seen),
        None => finding.seen.clone(),
    }
}

/// Returns the first line of a text that may have several.
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
        assert_eq!(milliseconds(999.7), "1.0 s");
        assert_eq!(milliseconds(59_980.0), "1 min 0 s");
        assert_eq!(milliseconds(119_700.0), "2 min 0 s");
    }

    #[test]
    fn words_are_wrapped_and_indented() {
        assert_eq!(
            wrapped("hold 3 ms, stop 40 ms, clone 2 ms", "  ", Some(24)),
            "  hold 3 ms, stop 40 ms,\n  clone 2 ms\n"
        );
        assert_eq!(wrapped("one two", "", None), "one two\n");
    }

    #[test]
    fn a_column_that_may_be_cut_is_cut_to_the_width() {
        let mut table = table(&["TASK", "INTENT"]);
        table.add_row([
            "shopping.order.1",
            "Order the cheapest of all lamps and have it sent to the address in Stonebridge",
        ]);
        print_fitted(&mut table, 1, Some(40));
        let lines: Vec<String> = table.lines().collect();
        assert_eq!(lines.len(), 2, "{lines:#?}");
        assert!(lines.iter().all(|line| line.chars().count() <= 41), "{lines:#?}");
        assert!(lines[1].trim_end().ends_with('…') && lines[1].contains("shopping.order.1"), "{lines:#?}");
    }

    #[test]
    fn ages_never_are_negative() {
        let later = Timestamp::now() + std::time::Duration::from_secs(60);
        assert_eq!(age(&later.to_string()), "0s");
    }
}
