//! `arenad reset`: resets sites to a snapshot.

use reqwest::Method;

use super::args::{Global, ResetArgs};
use super::client::ApiClient;
use super::failure::CommandFailure;
use super::{exit_code, find, output, progress};
use arenad_api::{Accepted, Compared, Operation, ResetRequest, ResetStage, ResetWay};

/// Resets sites, and prints the time that each stage took.
pub async fn run(global: &Global, args: &ResetArgs) -> Result<u8, CommandFailure> {
    let client = ApiClient::new(global)?;
    let status = client.status().await?;
    let chosen = find::slots(&status, args.environment.as_deref(), &args.sites)?;
    let mut begun = Vec::new();
    for (environment, sites) in chosen {
        let path = format!("/v1/environments/{environment}/resets");
        let accepted: Accepted = client
            .send(Method::POST, &path, &ResetRequest { sites, if_dirty: args.if_dirty, to: args.to.clone() })
            .await?;
        begun.extend(accepted.operations);
    }
    let ended = match args.wait.detach {
        true => begun,
        false => progress::wait(&client, begun, args.wait.wait_timeout, global.json).await?,
    };
    if global.json {
        output::print_json(&Accepted { operations: ended.clone(), warnings: Vec::new() })?;
    }
    if args.wait.detach {
        return Ok(exit_code::OK);
    }
    progress::check(&ended)?;
    if !global.json {
        print(&ended, args.verbose);
    }
    Ok(exit_code::OK)
}

fn print(ended: &[Operation], is_verbose: bool) {
    let is_alone = output::is_alone(ended.iter().map(|operation| operation.environment.as_str()));
    let name = |operation: &Operation| {
        let slot = output::slot_name(&operation.site, &operation.instance);
        output::site_name(&operation.environment, &slot, is_alone)
    };
    let mut table = output::table(&["SITE", "TOOK", "STRATEGY"]);
    for operation in ended {
        let took = operation.duration_ms.map(output::milliseconds).unwrap_or_default();
        let strategy = operation.reset.as_ref().map_or("-", |reset| reset.strategy.word());
        table.add_row([name(operation).as_str(), &took, strategy]);
    }
    output::print_table(&table);
    for operation in ended {
        let Some(reset) = &operation.reset else { continue };
        let name = name(operation);
        if is_verbose {
            outln!("\n{name}:");
            out!("{}", output::wrapped(&stages(&reset.stages), "  ", output::width()));
        }
        if let Some(reason) = &reset.reason {
            outln!("\n{name}: no faster strategy was possible: {reason}");
        }
        if let Some(compared) = reset.compared.as_ref().and_then(Compared::told) {
            outln!("\n{name}: {compared}");
        }
    }
}

/// Returns the stages in order, each with its time; consecutive stages of the same name are merged.
pub fn stages(stages: &[ResetStage]) -> String {
    let mut told: Vec<(&str, f64)> = Vec::new();
    for stage in stages {
        match told.last_mut() {
            Some((last, took)) if *last == stage.stage => *took += stage.duration_ms,
            _ => told.push((&stage.stage, stage.duration_ms)),
        }
    }
    let told = told.iter().map(|(stage, took)| format!("{stage} {}", output::milliseconds(*took)));
    told.collect::<Vec<_>>().join(", ")
}

/// Returns a short description of a reset that succeeded.
pub fn told(way: Option<ResetWay>, took: &str) -> String {
    match way {
        Some(ResetWay::Keep) => format!("unchanged: read-only, and equal to its snapshot (compared in {took})"),
        Some(ResetWay::Untouched) => format!("unchanged: equal to its snapshot (compared in {took})"),
        Some(ResetWay::Swap | ResetWay::Rewind | ResetWay::Recreate) | None => format!("reset in {took}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_that_was_gone_through_twice_in_a_row_is_told_once() {
        let stage = |stage: &str, duration_ms| ResetStage { stage: stage.to_owned(), duration_ms };
        let all = [stage("verify", 4.0), stage("verify", 6.0), stage("queue", 0.2), stage("verify", 1.0)];
        assert_eq!(stages(&all), "verify 10 ms, queue 0 ms, verify 1 ms");
    }

    #[test]
    fn a_site_that_was_left_as_it_is_was_not_reset() {
        assert_eq!(told(Some(ResetWay::Rewind), "164 ms"), "reset in 164 ms");
        for way in [ResetWay::Keep, ResetWay::Untouched] {
            assert!(told(Some(way), "164 ms").starts_with("unchanged: "));
        }
    }
}
