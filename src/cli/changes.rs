//! `arenad changes` and `arenad look`: names the changes in sites, and keeps looks to compare later states with.

use reqwest::Method;

use super::args::{ChangesArgs, Global, LookArgs};
use super::client::ApiClient;
use super::failure::CommandFailure;
use super::{exit_code, find, output};
use arenad_api::{
    ChangedRow, ChangedRows, ChangedStore, ChangedTable, EpisodeChanges, ItemChange, LeftOutSite, Look, SiteChanges,
};

/// The number of keys that the table of changes names of one table.
const KEYS_SHOWN: usize = 20;

/// Prints the changes of sites.
pub async fn run(global: &Global, args: &ChangesArgs) -> Result<u8, CommandFailure> {
    let client = ApiClient::new(global)?;
    let status = client.status().await?;
    let mut query = format!("values={}", args.values);
    for (name, look) in [("since", args.since), ("until", args.until)] {
        if let Some(number) = look {
            query.push_str(&format!("&{name}={number}"));
        }
    }
    let mut chosen: Vec<(String, String)> = Vec::new();
    for (environment, names) in find::slots(&status, args.environment.as_deref(), &args.sites)? {
        let names = find::to_compare(&status, &environment, names);
        chosen.extend(names.into_iter().map(|name| (environment.clone(), name)));
    }
    if chosen.len() > 1 && (args.since.is_some() || args.until.is_some()) {
        let error = anyhow::anyhow!("looks belong to one site, and {} sites are named", chosen.len());
        return Err(CommandFailure::new(exit_code::USAGE, error).hint("name one site"));
    }
    let mut found = Vec::new();
    for (environment, name) in &chosen {
        let path = format!("/v1/environments/{environment}/sites/{name}/changes?{query}");
        let changes: SiteChanges = client.json(Method::GET, &path).await?;
        if !global.json {
            show(&changes, "snapshot", args.values);
        }
        found.push(changes);
    }
    if global.json {
        output::print_json(&found)?;
    } else if found.is_empty() {
        outln!("no site that is up declares stores, so there is nothing to compare");
    }
    Ok(exit_code::OK)
}

/// Prints the changes of an episode.
pub fn show_episode(changes: &EpisodeChanges, with_values: bool) {
    for site in &changes.sites {
        show(site, "starting point", with_values);
    }
    for LeftOutSite { site, reason, .. } in &changes.left_out {
        outln!("{} is left out: {reason}", visible(site));
    }
}

/// Keeps the state of a site, and prints the number of the look.
pub async fn look(global: &Global, args: &LookArgs) -> Result<u8, CommandFailure> {
    let client = ApiClient::new(global)?;
    let status = client.status().await?;
    let (site, name) = find::slot(&status, args.environment.as_deref(), &args.site)?;
    let path = format!("/v1/environments/{}/sites/{name}/looks", site.environment);
    keep(global, &client, &path).await
}

/// Keeps a state, and prints the number of the look.
pub async fn keep(global: &Global, client: &ApiClient, path: &str) -> Result<u8, CommandFailure> {
    let look: Look = client.send(Method::POST, path, &serde_json::json!({})).await?;
    match global.json {
        true => output::print_json(&look)?,
        false => outln!("{}", look.number),
    }
    Ok(exit_code::OK)
}

/// Prints the changes of a site. `origin` is the word for the snapshot that the site started from.
fn show(changes: &SiteChanges, origin: &str, with_values: bool) {
    let took = output::milliseconds(changes.duration_ms);
    let point = |look: Option<u64>, other: String| look.map_or(other, |number| format!("look {number}"));
    let before = point(changes.since, format!("its {origin} {}", changes.snapshot));
    let name = output::slot_name(&changes.site, &changes.instance);
    let subject = match changes.until {
        Some(number) => format!("{name} at look {number}"),
        None => name.clone(),
    };
    if changes.equal {
        outln!("{subject} equals {before} (compared in {took})");
        return;
    }
    outln!("{subject} differs from {before} (compared in {took}):");
    let mut table = output::table(&["STORE", "KIND", "NAME", "CHANGE", "DETAILS"]);
    for store in &changes.stores {
        items(store).into_iter().for_each(|item| {
            table.add_row(item);
        });
    }
    output::print_fitted(&mut table, 4, output::width());
    for store in changes.stores.iter().filter(|store| store.omitted > 0) {
        outln!("and {} more in {}", store.omitted, visible(&store.name));
    }
    if with_values {
        changes.stores.iter().for_each(show_values);
    }
    if !changes.settled {
        errln!("note: {name} kept writing while it was compared, so some rows may be of an earlier state");
    }
}

/// Returns the rows of the table for a store: store, kind, name, change, details.
fn items(store: &ChangedStore) -> Vec<[String; 5]> {
    let item = |kind: &str, name: &str, change: String, details: String| {
        [visible(&store.name), kind.to_owned(), visible(name), change, visible(&details)]
    };
    let number = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
    let mut items = Vec::new();
    for table in &store.tables {
        items.push(item("table", &table.name, counts(table), table.rows.as_ref().map(keys).unwrap_or_default()));
    }
    for sequence in &store.sequences {
        let details = format!("{} before, {} now", number(&sequence.before), number(&sequence.now));
        items.push(item("sequence", &sequence.name, "changed".to_owned(), details));
    }
    for definition in &store.definitions {
        let (kind, name) = definition.name.split_once(' ').unwrap_or(("object", &definition.name));
        items.push(item(kind, name, definition.change.to_string(), String::new()));
    }
    for file in &store.files {
        items.push(item("file", &file.path, file.change.to_string(), file.text.clone()));
    }
    for key in &store.keys {
        items.push(item("key", &key.name, key.change.to_string(), String::new()));
    }
    items
}

/// Returns the numbers of rows that differ: `1 added, 2 changed`.
fn counts(table: &ChangedTable) -> String {
    let Some(rows) = &table.rows else {
        return format!("{} rows before, {} now", table.rows_before, table.rows_now);
    };
    let counts = [(rows.added, "added"), (rows.changed, "changed"), (rows.removed, "removed")];
    let counts: Vec<String> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
    if counts.is_empty() { "changed".to_owned() } else { counts.join(", ") }
}

/// Returns the keys of rows by change: `added id 3, 4; changed id 1`.
fn keys(rows: &ChangedRows) -> String {
    if rows.key.is_empty() {
        return "no primary key".to_owned();
    }
    let mut parts = Vec::new();
    for change in [ItemChange::Added, ItemChange::Changed, ItemChange::Removed] {
        let keys: Vec<String> = rows
            .listed
            .iter()
            .filter(|row| row.change == change)
            .take(KEYS_SHOWN)
            .map(|row| row.key.iter().map(value).collect::<Vec<_>>().join("/"))
            .collect();
        if !keys.is_empty() {
            parts.push(format!("{change} {} {}", rows.key.join("/"), keys.join(", ")));
        }
    }
    parts.join("; ")
}

fn value(value: &Option<String>) -> String {
    value.clone().unwrap_or_else(|| "NULL".to_owned())
}

/// Prints the values of a store's rows, and the differences of its texts.
fn show_values(store: &ChangedStore) {
    for table in &store.tables {
        let Some(rows) = &table.rows else { continue };
        outln!("\n{}: {}", visible(&store.name), visible(&table.name));
        rows.listed.iter().for_each(|row| show_row(&rows.key, row));
        if rows.omitted > 0 {
            outln!("  and {} more", rows.omitted);
        }
    }
    for file in store.files.iter() {
        let Some(diff) = &file.diff else { continue };
        outln!("\n{}: {}", visible(&store.name), visible(&file.path));
        diff.lines().for_each(|line| outln!("  {}", visible(line)));
        if file.diff_is_cut {
            outln!("  …");
        }
    }
}

fn show_row(key: &[String], row: &ChangedRow) {
    let named = key.iter().zip(&row.key).map(|(name, cell)| format!("{name} {}", value(cell)));
    outln!("  {} {}", row.change, visible(&named.collect::<Vec<_>>().join(", ")));
    let empty = std::collections::BTreeMap::new();
    let (before, now) = (row.before.as_ref().unwrap_or(&empty), row.now.as_ref().unwrap_or(&empty));
    let columns: std::collections::BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    for column in columns {
        let text = match (before.get(column), now.get(column)) {
            (Some(before), Some(now)) => format!("{} before, {} now", value(before), value(now)),
            (Some(one), None) | (None, Some(one)) => value(one),
            (None, None) => String::new(),
        };
        outln!("    {}: {}", visible(column), visible(&text));
    }
}

/// Replaces control characters, because names and values come from sites and could otherwise command the terminal.
fn visible(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(change: ItemChange, key: &[&str]) -> ChangedRow {
        ChangedRow { change, key: key.iter().map(|part| Some((*part).to_owned())).collect(), before: None, now: None }
    }

    #[test]
    fn a_table_is_shown_with_its_counts_and_keys() {
        let rows = ChangedRows {
            key: vec!["a".to_owned(), "b".to_owned()],
            added: 2,
            changed: 0,
            removed: 1,
            listed: vec![row(ItemChange::Added, &["1", "x"]), row(ItemChange::Removed, &["2", "\u{1b}[31m"])],
            omitted: 1,
        };
        let table = ChangedTable {
            name: "t".to_owned(),
            change: ItemChange::Changed,
            rows_before: 5,
            rows_now: 6,
            rows: Some(rows),
        };
        let store = ChangedStore { name: "db".to_owned(), tables: vec![table.clone()], ..ChangedStore::default() };
        assert_eq!(items(&store), [["db", "table", "t", "2 added, 1 removed", "added a/b 1/x; removed a/b 2/ [31m"]]);
        let unknown = ChangedTable { rows: None, ..table };
        assert_eq!(counts(&unknown), "5 rows before, 6 now");
    }
}
