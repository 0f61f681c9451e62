//! `arenad health`: shows the health-check history.

use comfy_table::Cell;
use jiff::Timestamp;
use reqwest::Method;

use super::args::{Global, HealthArgs};
use super::client::ApiClient;
use super::failure::CommandFailure;
use super::output::{self, age, first_line, milliseconds};
use super::{exit_code, find};
use arenad_api::{Health, InstanceState, ProbeRounds, SiteHealth};
use arenad_model::instance::InstanceId;
use arenad_model::slot_name::SlotName;

/// The number of rounds that are listed for a site that is named.
const LISTED: usize = 10;

/// Prints the results of the health probes. Exits with 3 unless every site is ready.
pub async fn run(global: &Global, args: &HealthArgs) -> Result<u8, CommandFailure> {
    let client = ApiClient::new(global)?;
    let status = client.status().await?;
    let chosen = find::slots(&status, args.environment.as_deref(), &args.names);
    // Without names, a daemon with no site up has nothing to show, which is not an error.
    let chosen = if args.names.is_empty() && args.environment.is_none() { chosen.unwrap_or_default() } else { chosen? };
    let mut query = format!("/v1/health?limit={}", args.rounds);
    if let [(environment, sites)] = chosen.as_slice() {
        query += &format!("&environment={environment}");
        if let [site] = sites.as_slice() {
            query += &format!("&site={site}");
        }
    }
    let mut health: Health = client.json(Method::GET, &query).await?;
    let has = |names: &[String], site: &SiteHealth| names.contains(&site.site) || names.contains(&numbered(site));
    health.sites.retain(|site| {
        chosen
            .iter()
            .any(|(environment, names)| *environment == site.environment && (names.is_empty() || has(names, site)))
    });
    let are_named = chosen.iter().any(|(_, sites)| !sites.is_empty());
    if global.json {
        output::print_json(&health)?;
    } else {
        print_human(&health, are_named);
    }
    // Further slots come and go with episodes, so they count only if they are named.
    let counts = |site: &SiteHealth| {
        let is_first = output::slot_name(&site.site, &site.instance) == site.site;
        is_first || chosen.iter().any(|(_, names)| names.contains(&numbered(site)))
    };
    let is_fine = health.sites.iter().filter(|site| counts(site)).all(|site| site.state == InstanceState::Ready);
    Ok(if is_fine { exit_code::OK } else { exit_code::NOT_READY })
}

/// Returns the name of a slot with its number.
fn numbered(site: &SiteHealth) -> String {
    let number = site.instance.parse::<InstanceId>().map_or(1, |id| id.number);
    SlotName { site: &site.site, number: Some(number) }.to_string()
}

fn print_human(health: &Health, with_rounds: bool) {
    if health.sites.is_empty() {
        outln!("nothing is up (`arenad up` brings sites up)");
        return;
    }
    let headings = ["SITE", "PROBES", "SCHEDULE", "LAST", "AGE", "PASSED", "MEDIAN", "LONGEST"];
    let is_alone = output::is_alone(health.sites.iter().map(|site| site.environment.as_str()));
    let name = |site: &SiteHealth| {
        let slot = output::slot_name(&site.site, &site.instance);
        output::site_name(&site.environment, &slot, is_alone)
    };
    let mut table = output::table(&headings);
    for site in &health.sites {
        for probes in &site.probes {
            table.add_row(row(&name(site), probes));
        }
    }
    output::print_fitted(&mut table, 2, output::width());
    for site in &health.sites {
        for probes in &site.probes {
            if let Some(reason) = probes.rounds.first().and_then(|round| round.reason.as_deref()) {
                outln!("\n{} fails its {} probes: {}", name(site), probes.kind, first_line(reason));
            }
        }
        if with_rounds {
            print_rounds(site);
        }
    }
}

fn row(site: &str, probes: &ProbeRounds) -> Vec<Cell> {
    let last = probes.rounds.first();
    let outcome = match last {
        None => Cell::new("-"),
        Some(round) => output::outcome_cell(round.ok),
    };
    let share =
        probes.success_rate.map(|rate| format!("{} of {} ({:.1} %)", probes.passed, probes.count, rate * 100.0));
    let shown = |ms: Option<f64>| ms.map_or_else(|| "-".to_owned(), milliseconds);
    vec![
        site.into(),
        probes.kind.word().into(),
        probes.schedule.as_str().into(),
        outcome,
        last.map_or_else(|| "-".to_owned(), |round| age(&round.at)).into(),
        share.unwrap_or_else(|| "-".to_owned()).into(),
        shown(probes.median_ms).into(),
        shown(probes.longest_ms).into(),
    ]
}

/// Returns a time without its fractions of a second.
fn seconds(at: &str) -> String {
    at.parse::<Timestamp>().map_or_else(|_| at.to_owned(), |at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

fn print_rounds(site: &SiteHealth) {
    for probes in site.probes.iter().filter(|probes| !probes.rounds.is_empty()) {
        let name = output::slot_name(&site.site, &site.instance);
        outln!("\n{name}, last {} rounds: {}", probes.kind, probes.names.join(", "));
        let mut table = output::table(&["AT", "GENERATION", "OUTCOME", "TOOK", "REASON"]);
        for round in probes.rounds.iter().take(LISTED) {
            table.add_row([
                seconds(&round.at).into(),
                round.generation.into(),
                output::outcome_cell(round.ok),
                milliseconds(round.duration_ms).into(),
                Cell::new(round.reason.as_deref().map_or("", first_line)),
            ]);
        }
        output::print_fitted(&mut table, 4, output::width());
    }
}
