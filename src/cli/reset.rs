//! `arenad reset`

use reqwest::Method;

use super::args::{Global, ResetArgs};
use super::client::Client;
use super::failure::Failure;
use super::{exit_code, find, output, progress};
use arenad_api::{Accepted, ResetRequest};

/// Resets sites and says where the time went.
pub async fn run(global: &Global, args: &ResetArgs) -> Result<u8, Failure> {
    let client = Client::new(global)?;
    let status = client.status().await?;
    let chosen = find::sites(&status, args.environment.as_deref(), &args.sites)?;
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
        let mut table = output::table(&["SITE", "RESET IN", "STRATEGY", "STAGES"]);
        for operation in &ended {
            let took = operation.duration_ms.map(output::milliseconds).unwrap_or_default();
            let (strategy, stages) = match &operation.reset {
                Some(reset) => {
                    let stages = reset.stages.iter();
                    let told =
                        stages.map(|stage| format!("{} {}", stage.stage, output::milliseconds(stage.duration_ms)));
                    (reset.strategy.as_str(), told.collect::<Vec<_>>().join(", "))
                }
                None => ("-", String::new()),
            };
            table.add_row([operation.site.as_str(), &took, strategy, &stages]);
        }
        output::print_table(&table);
        for operation in &ended {
            if let Some(reason) = operation.reset.as_ref().and_then(|reset| reset.reason.as_ref()) {
                println!("\n{} was reset by no faster way: {reason}", operation.site);
            }
            let compared = operation.reset.as_ref().and_then(|reset| reset.compared.as_ref()?.told());
            if let Some(compared) = compared {
                println!("\n{}: {compared}", operation.site);
            }
        }
    }
    Ok(exit_code::OK)
}
