//! Reads facts from the engine: the commands of images; and the changed files, processes, databases and pages of
//! running containers.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::databases::{self, ObservedDatabase};
use super::dockerfile::DockerfileCommand;
use super::propose;
use super::services::{ComposeService, ComposeSource, ObservedContainer, ServicePage};
use crate::cli::failure::CommandFailure;
use arenad_engine::docker::DockerEngine;
use arenad_engine::{Engine, EngineHandle};

/// The time limit for the engine to describe images, where that is optional.
const PATIENCE: Duration = Duration::from_secs(3);

/// The time limit for loading a page.
const PAGE_LIMIT: Duration = Duration::from_secs(5);

/// The time limit for listing a server's databases, each of which needs a connection.
const LISTING_LIMIT: Duration = Duration::from_secs(20);

/// The label by which Compose marks the service of a container.
const SERVICE: &str = "com.docker.compose.service";

/// The label by which Compose marks the files that a container was created from.
const FILES: &str = "com.docker.compose.project.config_files";

/// The label by which Compose marks the folder of the project, by default that of the first file.
const FOLDER: &str = "com.docker.compose.project.working_dir";

/// A command that prints the listening TCP sockets, in the kernel's format.
const LISTENING: [&str; 3] = ["/bin/sh", "-c", "cat /proc/net/tcp /proc/net/tcp6 2>/dev/null"];

/// A command that prints the command lines of all processes, one per line.
const PROCESSES: [&str; 3] =
    ["/bin/sh", "-c", "for line in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <\"$line\" 2>/dev/null; echo; done"];

/// Adds the commands of the images that the engine has.
pub(super) async fn look_at_images(engine: &DockerEngine, services: &mut [ComposeService]) {
    let look = async {
        for service in services.iter_mut().filter(|service| !service.image.is_empty()) {
            if let Ok(Some((entrypoint, command, ports))) = engine.image_command(&service.image).await {
                service.of_image.get_or_insert(DockerfileCommand { entrypoint, command, ports });
            }
        }
    };
    // If the engine does not answer, the proposal relies on the files alone.
    let _ = tokio::time::timeout(PATIENCE, look).await;
}

/// Examines the containers that Compose runs from the file.
pub(super) async fn look(
    engine: &DockerEngine,
    source: &ComposeSource,
    services: &mut [ComposeService],
) -> Result<(), CommandFailure> {
    let all = engine.running().await.map_err(|error| crate::cli::engine::away(engine.endpoint(), error))?;
    let file = source.file.clone().unwrap_or_default();
    let of_file: Vec<_> = all.into_iter().filter(|found| is_from(&found.labels, &file)).collect();
    if of_file.is_empty() {
        let file = file.display();
        let failure = CommandFailure::usage(format!("no container of {file} is running"));
        return Err(failure.hint(format!("run `docker compose -f {file} up -d`, use the site, then try again")));
    }
    let mut handles = BTreeMap::new();
    for service in services.iter_mut() {
        let is_of = |found: &&arenad_engine::FoundContainer| found.labels.get(SERVICE) == Some(&service.name);
        let Some(found) = of_file.iter().find(is_of) else { continue };
        if let Some((entrypoint, command, ports)) = engine.image_command(&found.image).await? {
            service.of_image = Some(DockerfileCommand { entrypoint, command, ports });
        }
        service.seen = Some(see(engine, &found.handle).await?);
        handles.insert(service.name.clone(), &found.handle);
    }
    // The account of a server may be in the variables of another service, so all services must be known.
    let all = services.to_vec();
    for service in services.iter_mut() {
        let Some(handle) = handles.get(&service.name) else { continue };
        let found = list_databases(engine, handle, service, &all).await;
        if let Some(seen) = &mut service.seen {
            seen.databases = found;
        }
    }
    Ok(())
}

/// Returns whether Compose created a container with these labels from a file. Compose 1 notes the path as it was typed,
/// which may be relative to any folder.
fn is_from(labels: &BTreeMap<String, String>, file: &Path) -> bool {
    let folder = labels.get(FOLDER).map(Path::new).unwrap_or(Path::new(""));
    let is_it = |name: &str| {
        let typed = Path::new(name);
        let in_folder = typed.file_name().map(|name| folder.join(name)).unwrap_or_default();
        [folder.join(typed), in_folder].iter().any(|path| path.canonicalize().is_ok_and(|path| path == file))
    };
    labels.get(FILES).is_some_and(|files| files.split(',').any(is_it))
}

async fn see(engine: &DockerEngine, handle: &EngineHandle) -> Result<ObservedContainer, CommandFailure> {
    let changed = engine.changes(handle).await?.into_iter().map(|change| change.path).collect();
    let words = |command: [&str; 3]| command.map(str::to_owned);
    // The commands fail in an image without a shell, which leaves the facts unknown.
    let said = async |command: [&str; 3]| {
        let ran = engine.exec(handle, &words(command), None, PAGE_LIMIT).await;
        ran.map(|ran| ran.stdout).unwrap_or_default()
    };
    let processes = said(PROCESSES).await;
    let is_own = |line: &str| line.contains("/proc/[0-9]*") || line.is_empty();
    let processes = processes.lines().map(str::trim).filter(|line| !is_own(line)).map(str::to_owned).collect();
    let listens = listening(&said(LISTENING).await);
    let address = engine.inspect(handle).await?.address;
    let mut page = None;
    for port in listens.iter().filter(|_| address.is_some()) {
        let address = address.map(|address| format!("http://{address}:{port}/")).unwrap_or_default();
        page = ask(&address).await;
        if page.is_some() {
            break;
        }
    }
    Ok(ObservedContainer { changed, processes, listens, page, databases: Vec::new() })
}

/// Asks a database server for its databases, from inside its container. The list is empty if the server does not accept
/// the account, or if the container lacks its client.
async fn list_databases(
    engine: &DockerEngine,
    handle: &EngineHandle,
    service: &ComposeService,
    all: &[ComposeService],
) -> Vec<ObservedDatabase> {
    let role = propose::role(service);
    let account = databases::account(service, role, all);
    let Some((command, superuser)) = databases::listing(role, &account) else { return Vec::new() };
    for user in [None, Some(superuser)] {
        let listed = engine.exec(handle, &command, user, LISTING_LIMIT).await.map(|ran| databases::read(&ran.stdout));
        if let Ok(found) = listed
            && !found.is_empty()
        {
            return found;
        }
    }
    Vec::new()
}

/// Returns the ports of listening sockets, in ascending order.
fn listening(table: &str) -> Vec<u16> {
    let port = |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        let (local, _, state) = (fields.next()?, fields.next()?, fields.next()?);
        // Docker's embedded DNS server listens on a loopback address, which is ignored.
        let (address, port) = local.rsplit_once(':').filter(|_| state == "0A")?;
        (address != "0B00007F").then(|| u16::from_str_radix(port, 16).ok()).flatten()
    };
    let mut ports: Vec<u16> = table.lines().filter_map(port).collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

async fn ask(address: &str) -> Option<ServicePage> {
    let client =
        reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).timeout(PAGE_LIMIT).build();
    let answer = client.ok()?.get(address).send().await.ok()?;
    let status = answer.status().as_u16();
    let text = answer.text().await.unwrap_or_default();
    Some(ServicePage { status, title: title(&text) })
}

/// Returns the text of a page's title.
fn title(html: &str) -> Option<String> {
    let begin = html.find("<title>")? + "<title>".len();
    let text = html[begin..].split("</title>").next()?.trim();
    // A title with escaped characters is skipped, because a search for the literal text would fail.
    (!text.is_empty() && text.len() < 80 && !text.contains(['&', '\n'])).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_are_found_by_their_file_whichever_compose_made_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("a path");
        let file = root.join("compose.yaml");
        std::fs::write(&file, "services: {}").expect("write");
        let is_from = |files: &str| {
            let labels = [(FILES, files.to_owned()), (FOLDER, root.display().to_string())];
            is_from(&labels.map(|(key, value)| (key.to_owned(), value)).into(), &file)
        };
        let absolute = file.display().to_string();
        for files in [&absolute, "compose.yaml", "./compose.yaml", "projects/forum/compose.yaml"] {
            assert!(is_from(files), "{files}");
            assert!(is_from(&format!("other.yaml,{files}")), "{files}");
        }
        assert!(!is_from("other.yaml") && !is_from(""));
    }

    #[test]
    fn listening_ports_and_titles_are_read() {
        let table = "  sl  local_address rem_address   st\n   0: 00000000:1F40 00000000:0000 0A x\n   1: 0B00007F:9E63 00000000:0000 0A x\n   2: 0100007F:1538 0100007F:1000 01 x\n";
        assert_eq!(listening(table), [8000]);
        assert_eq!(title("<html><title> Notes </title>"), Some("Notes".to_owned()));
        assert_eq!(title("<title>a &amp; b</title>"), None);
    }
}
