//! `arenad episode` and `arenad queue`: start, list, show, change, export and end episodes, and show the requests that wait.

pub mod export;
mod show;
pub mod wish;

use reqwest::Method;

use super::args::{
    EpisodeChangesArgs, EpisodeCommand, EpisodeEndArgs, EpisodeExtendArgs, EpisodeForkArgs, EpisodeLsArgs,
    EpisodeStartArgs, Global,
};
use super::changes as site_changes;
use super::client::ApiClient;
use super::failure::CommandFailure;
use super::{exit_code, output, say};
use arenad_api::EpisodeChanges;
use arenad_api::episodes::{
    EpisodeForkRequest, EpisodeList, EpisodeQueueList, ForkedEpisodes, HeartbeatRequest, ReportedEpisode,
    StartedEpisode,
};

/// Runs a subcommand of `arenad episode`.
pub async fn run(global: &Global, command: &EpisodeCommand) -> Result<u8, CommandFailure> {
    let client = ApiClient::new(global)?;
    match command {
        EpisodeCommand::Start(args) => start(global, &client, args).await,
        EpisodeCommand::Ls(args) => ls(global, &client, args).await,
        EpisodeCommand::Show(args) => {
            let episode = client.json(Method::GET, &path(&args.episode)?).await?;
            print(global, &episode)
        }
        EpisodeCommand::Extend(args) => extend(global, &client, args).await,
        EpisodeCommand::Changes(args) => changes(global, &client, args).await,
        EpisodeCommand::Look(args) => {
            site_changes::keep(global, &client, &format!("{}/looks", path(&args.episode)?)).await
        }
        EpisodeCommand::Freeze(args) => change(global, &client, &args.episode, "freeze").await,
        EpisodeCommand::Unfreeze(args) => change(global, &client, &args.episode, "unfreeze").await,
        EpisodeCommand::Fork(args) => fork(global, &client, args).await,
        EpisodeCommand::Export(args) => export::run(global, &client, args).await,
        EpisodeCommand::End(args) => end(global, &client, args).await,
    }
}

/// Returns the address of an episode. The id is checked, so that no other address results from it.
fn path(id: &str) -> Result<String, CommandFailure> {
    let id: arenad_model::episode::ids::EpisodeId =
        id.parse().map_err(|error| CommandFailure::usage(error).hint("`arenad episode ls` lists the episodes"))?;
    Ok(format!("/v1/episodes/{id}"))
}

async fn start(global: &Global, client: &ApiClient, args: &EpisodeStartArgs) -> Result<u8, CommandFailure> {
    let sites = if args.listed.is_empty() { &args.sites } else { &args.listed };
    let mut request = wish::request(client, sites, &args.terms).await?;
    request.ttl_seconds = args.ttl.map(wish::seconds);
    request.detach = args.detach;
    let started: StartedEpisode = client.ask_for_episode(&request, args.key.as_deref()).await?;
    if global.json {
        output::print_json(&started)?;
        return Ok(exit_code::OK);
    }
    out!("{}", show::started(&started));
    say(global.json, &show::next_steps(&started.episode));
    Ok(exit_code::OK)
}

async fn ls(global: &Global, client: &ApiClient, args: &EpisodeLsArgs) -> Result<u8, CommandFailure> {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    if !args.all {
        query.append_pair("live", "true");
    }
    if let Some(owner) = &args.owner {
        query.append_pair("owner", owner);
    }
    for (key, value) in &args.labels {
        query.append_pair("label", &format!("{key}={value}"));
    }
    let found: EpisodeList = client.json(Method::GET, &format!("/v1/episodes?{}", query.finish())).await?;
    if global.json {
        output::print_json(&found)?;
    } else if found.episodes.is_empty() {
        errln!("no episodes{}", if args.all { "" } else { "; --all also lists those that have ended" });
    } else {
        show::table(&found.episodes);
    }
    Ok(exit_code::OK)
}

async fn extend(global: &Global, client: &ApiClient, args: &EpisodeExtendArgs) -> Result<u8, CommandFailure> {
    let request = HeartbeatRequest { extend_seconds: args.by.map(wish::seconds) };
    let path = format!("{}/heartbeat", path(&args.episode)?);
    let episode = client.send(Method::POST, &path, &request).await?;
    print(global, &episode)
}

async fn changes(global: &Global, client: &ApiClient, args: &EpisodeChangesArgs) -> Result<u8, CommandFailure> {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.append_pair("values", &args.values.to_string());
    query.extend_pairs(args.sites.iter().map(|site| ("site", site)));
    for (name, look) in [("since", args.since), ("until", args.until)] {
        query.extend_pairs(look.map(|number| (name, number.to_string())));
    }
    let path = format!("{}/changes?{}", path(&args.episode)?, query.finish());
    let found: EpisodeChanges = client.json(Method::GET, &path).await?;
    match global.json {
        true => output::print_json(&found)?,
        false => site_changes::show_episode(&found, args.values),
    }
    Ok(exit_code::OK)
}

async fn change(global: &Global, client: &ApiClient, id: &str, change: &str) -> Result<u8, CommandFailure> {
    let episode = client.json(Method::POST, &format!("{}/{change}", path(id)?)).await?;
    print(global, &episode)
}

async fn fork(global: &Global, client: &ApiClient, args: &EpisodeForkArgs) -> Result<u8, CommandFailure> {
    let request = EpisodeForkRequest {
        children: Some(args.n.get()),
        ttl_seconds: args.ttl.map(wish::seconds),
        wait_seconds: args.wait.map(wish::seconds),
        detach: args.detach,
        owner: args.owner.clone(),
        labels: args.labels.iter().cloned().collect(),
        record: args.record,
    };
    let path = format!("{}/fork", path(&args.episode)?);
    let forked: ForkedEpisodes = client.send_with_key(&path, &request, args.key.as_deref()).await?;
    if global.json {
        output::print_json(&forked)?;
        return Ok(exit_code::OK);
    }
    for child in &forked.children {
        out!("{}", show::started(child));
    }
    if let Some(first) = forked.children.first() {
        say(global.json, &show::next_steps(&first.episode));
    }
    Ok(exit_code::OK)
}

async fn end(global: &Global, client: &ApiClient, args: &EpisodeEndArgs) -> Result<u8, CommandFailure> {
    for id in &args.episodes {
        client.delete(&path(id)?).await?;
        if !global.json {
            outln!("{id} has ended");
        }
    }
    if global.json {
        output::print_json(&serde_json::json!({ "ended": args.episodes }))?;
    }
    Ok(exit_code::OK)
}

fn print(global: &Global, episode: &ReportedEpisode) -> Result<u8, CommandFailure> {
    match global.json {
        true => output::print_json(episode)?,
        false => out!("{}", show::whole(episode)),
    }
    Ok(exit_code::OK)
}

/// Shows the requests that wait for slots.
pub async fn queue(global: &Global) -> Result<u8, CommandFailure> {
    let client = ApiClient::new(global)?;
    let found: EpisodeQueueList = client.json(Method::GET, "/v1/episodes/queue").await?;
    if global.json {
        output::print_json(&found)?;
    } else if found.requests.is_empty() {
        errln!("no request waits for slots");
    } else {
        show::queue(&found.requests);
    }
    Ok(exit_code::OK)
}
