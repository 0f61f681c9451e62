//! `arenad status` and `arenad ps`: show environments, sites and containers.

use std::time::Duration;

use anyhow::Context;
use comfy_table::Cell;
use tokio::signal::unix::{SignalKind, signal};

use super::args::{Global, PsArgs, StatusArgs};
use super::client::ApiClient;
use super::failure::CommandFailure;
use super::output::{self, age, first_line};
use super::{exit_code, find};
use arenad_api::{
    Compared, ConditionStatus, EpisodeLimitStatus, InstanceState, Reset, ResetOutcome, SiteContainer, SiteStatus,
    SlotStatus, StandbyState, Standbys, Status,
};

/// Prints the sites that are up, their states and hints. Exits with 3 unless every site is ready.
pub async fn run(global: &Global, args: &StatusArgs) -> Result<u8, CommandFailure> {
    let client = ApiClient::new(global)?;
    if !args.watch {
        return once(&client, global, args).await;
    }
    let mut interrupts = signal(SignalKind::interrupt()).context("listen for Ctrl-C")?;
    loop {
        let code = once(&client, global, args).await?;
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
            _ = interrupts.recv() => return Ok(code),
        }
    }
}

async fn once(client: &ApiClient, global: &Global, args: &StatusArgs) -> Result<u8, CommandFailure> {
    if !client.is_running().await? {
        if global.json {
            output::print_json(&serde_json::json!({"daemon": null, "conditions": [], "environments": []}))?;
        } else {
            errln!("no daemon runs: nothing is up (`arenad up` brings sites up)");
        }
        return Ok(exit_code::NOT_READY);
    }
    let mut status = client.status().await?;
    find::restrict(&mut status, args.environment.as_deref(), &args.sites)?;
    let is_fine = status.conditions.iter().all(|condition| condition.status != ConditionStatus::False)
        && status
            .environments
            .iter()
            .flat_map(|environment| &environment.sites)
            .all(|site| site.state == InstanceState::Ready);
    let code = if is_fine { exit_code::OK } else { exit_code::NOT_READY };
    if global.json {
        output::print_json(&status)?;
        return Ok(code);
    }
    if args.watch {
        out!("\x1b[2J\x1b[H");
    }
    print_human(&status, args.verbose);
    Ok(code)
}

/// The width of the table if neither COLUMNS nor a terminal determines it.
const WIDTH: u16 = 100;

fn print_human(status: &Status, is_verbose: bool) {
    for condition in status.conditions.iter().filter(|condition| condition.status == ConditionStatus::False) {
        outln!("! {} for {}: {}", condition.reason, age(&condition.last_transition_time), condition.message);
    }
    for note in &status.daemon.notes {
        outln!("note: {note}");
    }
    if status.environments.is_empty() {
        outln!("nothing is up (`arenad up` brings sites up)");
        return;
    }
    let sites: Vec<&SiteStatus> = status.environments.iter().flat_map(|environment| &environment.sites).collect();
    let is_alone = output::is_alone(sites.iter().map(|site| site.environment.as_str()));
    let name = |site: &SiteStatus| output::site_name(&site.environment, &site.name, is_alone);
    if is_verbose {
        outln!("{}\n", episode_limits(&status.daemon.episodes));
        sites.iter().for_each(|site| print_site(site));
    } else {
        print_sites(&sites, name);
    }
    print_slots(&sites, name);
    for site in &sites {
        let name = name(site);
        if let Some(reason) = &site.reason {
            outln!("\n{name} is {} (for {}): {reason}", site.state, age(&site.since));
            if let Some(hint) = &site.hint {
                outln!("  hint: {hint}");
            }
        } else if site.state != InstanceState::Ready {
            let stage = site.stage.as_deref().unwrap_or("-");
            let waiting = site.waiting_for.as_deref().map(|waiting| format!(": {}", first_line(waiting)));
            outln!("\n{name} is {}: {stage}{}", site.state, waiting.unwrap_or_default());
        } else if let Some(missed) = &site.waiting_for {
            outln!("\n{name} missed a probe: {}", first_line(missed));
        }
        if site.has_been_entered {
            outln!(
                "\n{name} was entered with `arenad exec` or `shell`: it may differ from its snapshot until its next reset"
            );
        }
        if let Some(written) = &site.written {
            let since = age(&written.since);
            match (&written.difference, written.requests) {
                (Some(difference), _) => outln!("\n{name} is read-only, but was written to: {difference}"),
                (None, 1) => outln!("\n{name} is read-only, but a request that may write reached it {since} ago"),
                (None, requests) => {
                    outln!(
                        "\n{name} is read-only, but {requests} requests that may write reached it, the first {since} ago"
                    );
                }
            }
        }
        if let Some(reset) = site.last_reset.as_ref().filter(|reset| reset.outcome == Some(ResetOutcome::Done)) {
            if let Some(reason) = &reset.reason {
                outln!("\n{name} was last reset by {}: {reason}", reset.strategy);
            }
            if let Some(compared) = reset.compared.as_ref().and_then(Compared::told) {
                outln!("\n{name}: the last reset {compared}");
            }
        }
        if let Some(lack) = &site.standbys.lack {
            outln!("\n{name} has too few standbys: {lack}");
        }
    }
    let unused: Vec<String> = sites.iter().filter(|site| awaits_use(site)).map(|site| name(site)).collect();
    if !unused.is_empty() {
        outln!("\nno standby yet: {}", unused.join(", "));
        outln!("  one is created once the site has been written to or reset");
    }
}

fn print_sites(sites: &[&SiteStatus], name: impl Fn(&SiteStatus) -> String) {
    let has_standbys = sites.iter().any(|site| site.standbys.wanted > 0);
    let mut headings = vec!["SITE", "STATE", "SINCE", "LAST RESET"];
    headings.extend(has_standbys.then_some("STANDBY"));
    headings.push("URL");
    let mut table = output::table(&headings);
    for site in sites {
        let mut row = vec![
            name(site).into(),
            output::state_cell(site.state),
            age(&site.since).into(),
            Cell::new(site.last_reset.as_ref().map_or_else(|| "-".to_owned(), last_reset)),
        ];
        row.extend(has_standbys.then(|| Cell::new(standbys(&site.standbys))));
        row.push(site.url.as_str().into());
        table.add_row(row);
    }
    output::print_fitted(&mut table, headings.len() - 1, output::width().or(Some(WIDTH)));
}

/// Prints the slots of the sites that have several, or own ports for them.
fn print_slots(sites: &[&SiteStatus], name: impl Fn(&SiteStatus) -> String) {
    let has_ports = sites.iter().flat_map(|site| &site.slots).any(|slot| slot.port.is_some());
    let mut headings = vec!["SLOT", "STATE", "SINCE", "USE", "EPISODE"];
    headings.extend(has_ports.then_some("PORT"));
    let mut table = output::table(&headings);
    for site in sites {
        for slot in &site.slots {
            let mut row = vec![
                Cell::new(format!("{}:{}", name(site), slot.number)),
                output::state_cell(slot.state),
                age(&slot.since).into(),
                slot.occupation.word().into(),
                Cell::new(slot.episode.as_deref().unwrap_or("-")),
            ];
            let port = slot.port.map_or_else(|| "-".to_owned(), |port| port.to_string());
            row.extend(has_ports.then(|| Cell::new(port)));
            table.add_row(row);
        }
    }
    if table.row_count() > 0 {
        outln!("");
        output::print_table(&table);
    }
    for site in sites {
        // Slot 1 is the instance of the site, whose failure is printed with the site.
        for slot in site.slots.iter().filter(|slot| slot.instance != site.instance) {
            if let Some(reason) = &slot.reason {
                outln!("\n{}:{} is {} (for {}): {reason}", name(site), slot.number, slot.state, age(&slot.since));
            }
        }
    }
}

fn last_reset(reset: &Reset) -> String {
    let took = reset.duration_ms.map(output::milliseconds).unwrap_or_default();
    let at = reset.finished_at.as_deref().map(age).unwrap_or_default();
    match reset.outcome {
        Some(ResetOutcome::Done) => format!("{took}, {at} ago"),
        outcome => format!("{}, {at} ago", outcome.map_or("running", ResetOutcome::word)),
    }
}

/// Prints all details of a site, one per line.
fn print_site(site: &SiteStatus) {
    outln!("{}/{}  {}", site.environment, site.name, site.title);
    let line = |name: &str, value: &str| outln!("  {name:11} {value}");
    line("state", &format!("{} for {}", site.state, age(&site.since)));
    line("url", &site.url);
    line("instance", &format!("{}, generation {}", site.instance, site.generation));
    line("snapshot", site.snapshot.as_deref().unwrap_or("-"));
    line("standbys", &standbys(&site.standbys));
    if let Some(passed) = &site.last_passed {
        line("probes", &format!("passed {} ago", age(passed)));
    }
    match &site.last_reset {
        None => line("last reset", "-"),
        Some(reset) => {
            let verified = reset.verified.as_ref().map(|verified| format!(", compared {verified}")).unwrap_or_default();
            line("last reset", &format!("{} in {}{verified}", reset.strategy, last_reset(reset)));
            out!("{}", output::wrapped(&super::reset::stages(&reset.stages), "              ", output::width()));
        }
    }
    outln!("");
}

/// Returns whether standbys are wanted but none is being made yet, because the site has not been used.
fn awaits_use(site: &SiteStatus) -> bool {
    site.state == InstanceState::Ready
        && site.standbys.wanted > 0
        && site.standbys.members.is_empty()
        && site.standbys.lack.is_none()
}

/// Returns the limits of episodes in one line.
fn episode_limits(limits: &EpisodeLimitStatus) -> String {
    let EpisodeLimitStatus { quota, quotas, queue, owner_queue, ttl_seconds } = limits;
    let own: String = quotas.iter().map(|(owner, most)| format!(", {owner} {most}")).collect();
    let ttl = humantime::format_duration(Duration::from_secs(*ttl_seconds));
    format!(
        "limits of episodes: {quota} at once for each owner{own}; {queue} waiting, {owner_queue} of one owner; time to live \
         {ttl}"
    )
}

/// Returns a short description of the standbys.
fn standbys(standbys: &Standbys) -> String {
    if standbys.wanted == 0 {
        return "-".to_owned();
    }
    let ready = standbys
        .members
        .iter()
        .filter(|member| matches!(member.state, StandbyState::Running | StandbyState::Frozen))
        .count();
    let making = standbys.members.iter().filter(|member| member.state == StandbyState::Making).count();
    let being_made = if making > 0 && ready < standbys.wanted { ", making" } else { "" };
    format!("{ready} of {}{being_made}", standbys.wanted)
}

/// The containers of a slot, as `ps` shows them.
struct SlotContainers<'a> {
    site: &'a SiteStatus,
    /// The name of the slot: that of its site, and its number if there are several.
    name: String,
    number: u32,
    generation: u64,
    state: InstanceState,
    containers: &'a [SiteContainer],
}

impl<'a> SlotContainers<'a> {
    /// Returns the slots of a site, or slot 1 if the site does not have several.
    fn of(site: &'a SiteStatus) -> Vec<Self> {
        if site.slots.is_empty() {
            let SiteStatus { generation, state, containers, .. } = site;
            let name = site.name.clone();
            return vec![Self { site, name, number: 1, generation: *generation, state: *state, containers }];
        }
        let of_slot = |slot: &'a SlotStatus| {
            let SlotStatus { number, generation, state, containers, .. } = slot;
            let name = format!("{}:{number}", site.name);
            Self { site, name, number: *number, generation: *generation, state: *state, containers }
        };
        site.slots.iter().map(of_slot).collect()
    }
}

/// Prints the containers of sites, of all of their slots.
pub async fn ps(global: &Global, args: &PsArgs) -> Result<u8, CommandFailure> {
    let client = ApiClient::new(global)?;
    let status = client.status().await?;
    let is_all = args.environment.is_none() && args.sites.is_empty();
    let chosen = if is_all { None } else { Some(find::slots(&status, args.environment.as_deref(), &args.sites)?) };
    let is_meant = |slot: &SlotContainers<'_>| {
        let numbered = format!("{}:{}", slot.site.name, slot.number);
        let has = |names: &[String]| names.is_empty() || names.contains(&slot.site.name) || names.contains(&numbered);
        chosen.as_ref().is_none_or(|chosen| {
            chosen.iter().any(|(environment, names)| *environment == slot.site.environment && has(names))
        })
    };
    let sites = status.environments.iter().flat_map(|environment| &environment.sites);
    let slots: Vec<SlotContainers<'_>> = sites.flat_map(SlotContainers::of).filter(is_meant).collect();
    if global.json {
        let rows: Vec<serde_json::Value> = slots
            .iter()
            .flat_map(|slot| {
                slot.containers.iter().map(|container| {
                    serde_json::json!({
                        "environment": slot.site.environment, "site": slot.site.name, "slot": slot.number,
                        "service": container.service, "container": container.id, "generation": slot.generation,
                        "state": slot.state, "address": container.address,
                    })
                })
            })
            .collect();
        output::print_json(&rows)?;
        return Ok(exit_code::OK);
    }
    let mut table = output::table(&["ENVIRONMENT", "SITE", "SERVICE", "CONTAINER", "GENERATION", "STATE", "ADDRESS"]);
    for slot in &slots {
        for container in slot.containers {
            table.add_row([
                slot.site.environment.as_str().into(),
                slot.name.as_str().into(),
                container.service.as_str().into(),
                container.id.get(..12).unwrap_or(&container.id).into(),
                slot.generation.into(),
                output::state_cell(slot.state),
                Cell::new(container.address.as_deref().unwrap_or("-")),
            ]);
        }
    }
    output::print_fitted(&mut table, 2, output::width());
    Ok(exit_code::OK)
}
