//! `arenad down`: takes sites down, and stops the daemon with the last one.

use std::io::{BufRead, IsTerminal, Write};

use jiff::Timestamp;
use reqwest::Method;

use super::args::{DownArgs, Global};
use super::client::ApiClient;
use super::failure::CommandFailure;
use super::{engine, exit_code, find, output, say};
use arenad_api::{DownRequest, SiteStatus, Snapshots, Status};
use arenad_storage::disk;

/// Takes sites down. A daemon that `arenad up` started stops with its last environment, and also if its engine cannot
/// be reached: the objects that remain in the engine are removed later.
pub async fn run(global: &Global, args: &DownArgs) -> Result<u8, CommandFailure> {
    let client = ApiClient::new(global)?;
    let was_running = client.is_running().await?;
    if !was_running && !client.state_dir().join("arenad.db").exists() {
        say(global.json, "nothing is up");
        return done(global, &[], false);
    }
    if args.purge && !args.yes && !confirmed(&client)? {
        return Err(CommandFailure::usage("not confirmed").hint("pass --yes to confirm"));
    }
    // Containers may exist although no daemon runs: a daemon is started to remove them.
    client.ensure_daemon(&args.engine, None).await?;
    let status = client.status().await?;
    let chosen = match choose(&status, args) {
        Ok(chosen) => chosen,
        Err(failure) => {
            client.leave(was_running).await?;
            return Err(failure);
        }
    };
    let mut failed = None;
    for ChosenEnvironment { environment, sites } in &chosen {
        let known =
            status.environments.iter().filter(|known| known.name == *environment).flat_map(|known| &known.sites);
        let all: Vec<&str> = known.map(|site| site.name.as_str()).collect();
        say(global.json, &announced(environment, &all, sites));
        let request = DownRequest { sites: sites.clone(), purge: args.purge };
        let path = format!("/v1/environments/{environment}/down");
        let work = client.run(Method::POST, &path, &request);
        let done = tokio::select! {
            done = work => done,
            _ = tokio::signal::ctrl_c() => {
                return Err(CommandFailure::interrupted()
                    .hint("the work continues in the background; `arenad status` shows its progress"));
            }
        };
        // The other environments go down in spite of a failure; the first failure is reported.
        failed = failed.or(done.err());
    }
    let after = client.status().await?;
    let is_last =
        after.environments.iter().flat_map(|environment| &environment.sites).all(|site| is_meant(&chosen, site));
    if is_last && failed.is_none() && args.purge {
        failed = client.run(Method::POST, "/v1/purge", &serde_json::json!({})).await.err();
    }
    if let Some(failure) = failed {
        return match engine_trouble(&client, &after).await {
            Some(trouble) if is_last => give_up(global, args, &client, &after, failure, trouble).await,
            _ => Err(failure),
        };
    }
    if after.environments.is_empty() {
        if after.daemon.background {
            client.stop_daemon().await?;
            // If the daemon was named by its address, its files are not in this process's state directory.
            if args.purge && client.is_local() {
                remove_files(&client)?;
            }
        }
        say(global.json, "nothing is up any more");
    }
    done(global, &chosen, args.purge)
}

fn done(global: &Global, chosen: &[ChosenEnvironment], purged: bool) -> Result<u8, CommandFailure> {
    if global.json {
        let names: Vec<&str> = chosen.iter().map(|chosen| chosen.environment.as_str()).collect();
        output::print_json(&serde_json::json!({ "environments": names, "purged": purged }))?;
    }
    Ok(exit_code::OK)
}

/// An environment to take down, entirely or in part.
struct ChosenEnvironment {
    environment: String,
    /// The sites to take down; empty means all.
    sites: Vec<String>,
}

fn choose(status: &Status, args: &DownArgs) -> Result<Vec<ChosenEnvironment>, CommandFailure> {
    if args.sites.is_empty() && args.environment.is_none() {
        let all = status.environments.iter();
        return Ok(all.map(|known| ChosenEnvironment { environment: known.name.clone(), sites: Vec::new() }).collect());
    }
    let found = find::sites(status, args.environment.as_deref(), &args.sites)?;
    Ok(found.into_iter().map(|(environment, sites)| ChosenEnvironment { environment, sites }).collect())
}

fn is_meant(chosen: &[ChosenEnvironment], site: &SiteStatus) -> bool {
    let of_it = chosen.iter().filter(|chosen| chosen.environment == site.environment);
    of_it.into_iter().any(|chosen| chosen.sites.is_empty() || chosen.sites.contains(&site.name))
}

/// Describes the sites to take down, and the sites of the environment that stay up. Without names, all of them go down.
fn announced(environment: &str, all: &[&str], named: &[String]) -> String {
    let rest: Vec<&str> = all.iter().copied().filter(|site| !named.iter().any(|name| name == site)).collect();
    match (named, rest.as_slice()) {
        ([], all) => format!("taking down {environment}: {}", all.join(", ")),
        (named, []) => format!("taking down {environment}: {}", named.join(", ")),
        (named, rest) => {
            let stay = if rest.len() == 1 { "stays" } else { "stay" };
            format!("taking down {} of {environment}; {} {stay} up", named.join(", "), rest.join(", "))
        }
    }
}

/// Returns the reason why the engine cannot be reached, and a hint, if that is why sites could not be taken down. The
/// daemon checks every few seconds and may have other rights, so this process may know more or less.
async fn engine_trouble(client: &ApiClient, status: &Status) -> Option<String> {
    if !client.is_local() {
        return None;
    }
    let said = engine::lost(status).map(|lost| lost.message.clone());
    match engine::insist(&status.daemon.engine).await {
        Err(CommandFailure { error, hint: Some(hint), .. }) => Some(format!("{error}; {hint}")),
        Err(failure) => Some(failure.error.to_string()),
        Ok(()) => said,
    }
}

/// Stops a daemon whose engine cannot be reached, and reports the objects that remain for later. The state directory is
/// kept: it holds the installation's id, without which the containers could not be attributed.
async fn give_up(
    global: &Global,
    args: &DownArgs,
    client: &ApiClient,
    status: &Status,
    failure: CommandFailure,
    trouble: String,
) -> Result<u8, CommandFailure> {
    let sites = status.environments.iter().flat_map(|environment| &environment.sites);
    let may_have_made = !was_never_reached(status) || sites.clone().any(|site| site.generation > 0);
    let mut left: Vec<String> = Vec::new();
    if may_have_made {
        let sites: Vec<String> = sites.map(|site| format!("{}/{}", site.environment, site.name)).collect();
        left.push(match sites.is_empty() {
            true => "containers, networks and volumes that are left over".to_owned(),
            false => format!("containers, networks and volumes of {}", sites.join(", ")),
        });
    }
    if args.purge {
        let known: Snapshots = client.json(Method::GET, "/v1/snapshots").await?;
        let ids: Vec<&str> = known.snapshots.iter().map(|snapshot| snapshot.id.as_str()).collect();
        left.extend((!ids.is_empty()).then(|| format!("the snapshots {}", ids.join(", "))));
        left.push("images that were built here".to_owned());
    }
    let daemon = match status.daemon.background {
        true => {
            client.stop_daemon().await?;
            "the daemon has stopped"
        }
        false => "the daemon in the foreground keeps running",
    };
    if left.is_empty() {
        say(global.json, &format!("{daemon}; nothing had been created, because the engine never answered: {trouble}"));
        return done(global, &[], false);
    }
    let again = if args.purge { "arenad down --purge" } else { "arenad down" };
    let message = format!(
        "{daemon}, but the engine cannot be reached, so the following could not be removed: {}",
        left.join("; ")
    );
    let failure = CommandFailure::new(exit_code::FAILED, failure.error.context(message));
    let kept = client.state_dir().display();
    Err(failure.hint(format!("{trouble}; then `{again}` removes them. Their records are kept in {kept}")))
}

/// Returns whether the engine has not answered since the daemon was started.
fn was_never_reached(status: &Status) -> bool {
    let time = |text: &str| text.parse::<Timestamp>().ok();
    let since = engine::lost(status).and_then(|lost| time(&lost.last_transition_time));
    since.zip(time(&status.daemon.started_at)).is_some_and(|(since, started)| since <= started)
}

fn confirmed(client: &ApiClient) -> Result<bool, CommandFailure> {
    if !std::io::stdin().is_terminal() {
        return Err(CommandFailure::usage("--purge requires --yes if standard input is not a terminal"));
    }
    err!(
        "This removes all containers, snapshots and built images of this installation, and {}. Continue? [y/N] ",
        client.state_dir().display()
    );
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Removes only files that arenad created: a state directory with foreign files is kept.
fn remove_files(client: &ApiClient) -> Result<(), CommandFailure> {
    let folder = client.state_dir();
    let files = ["arenad.db", "arenad.db-wal", "arenad.db-shm", "arenad.log", "arenad.sock", "lock"];
    for name in files.into_iter().chain(["certificate.key", "certificate.partial"]) {
        match std::fs::remove_file(folder.join(name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    for name in ["volumes", "locators", "copies", "pristine", "episodes", "looks", "records", "browsers"] {
        match std::fs::remove_dir_all(folder.join(name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    disk::remove(folder)?;
    match std::fs::remove_dir_all(disk::stores(folder)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let archives = folder.join("archives");
    if archives.exists() {
        errln!("the archives that `arenad images` has fetched stay in {}", archives.display());
    }
    // The folder is not empty if it contains foreign files.
    let _ = std::fs::remove_dir(folder);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_what_goes_down_and_what_stays() {
        assert_eq!(announced("mini", &["a", "b"], &[]), "taking down mini: a, b");
        assert_eq!(announced("mini", &["a", "b"], &["b".to_owned(), "a".to_owned()]), "taking down mini: b, a");
        assert_eq!(announced("mini", &["a", "b"], &["b".to_owned()]), "taking down b of mini; a stays up");
        assert_eq!(announced("mini", &["a", "b", "c"], &["b".to_owned()]), "taking down b of mini; a, c stay up");
    }
}
