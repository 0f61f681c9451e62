//! `arenad run`: runs a command with an episode of its own.
//!
//! ```text
//!   request (held) ──► wait for the grant ──► command ──► end of the episode
//! ```
//! The episode is held by this process's connection from the beginning, so it ends with this process, however that
//! ends. If the environment fails the episode, the command is ended, because its result means nothing.

mod child;
mod hold;
mod proxy;
mod signals;

pub use self::hold::EpisodeHold;

use std::collections::BTreeMap;
use std::path::Path;

use futures_util::future::join_all;

use self::child::RunningChild;
use self::hold::HeldState;
use self::signals::{Interruption, Interruptions};
use super::args::{Global, RunArgs};
use super::client::ApiClient;
use super::episode::{export, wish};
use super::exit_code;
use super::failure::CommandFailure;
use arenad_api::episodes::{EpisodeSite, EpisodeStartRequest, ReportedEpisode, StartedEpisode};
use arenad_api::{EpisodeRecording, EpisodeStatus};

/// The time to live of an episode that loses its connection to this process without notice, in seconds.
pub const TTL_SECONDS: u64 = 60;

/// Runs the command, once or several times at once, and returns its exit code.
pub async fn run(global: &Global, args: &RunArgs) -> Result<u8, CommandFailure> {
    let client = ApiClient::new(global)?;
    let mut request = wish::request(&client, &args.sites, &args.terms).await?;
    request.ttl_seconds = Some(args.ttl.map_or(TTL_SECONDS, wish::seconds));
    // Held from the beginning, so that no end of this process leaves the episode behind.
    request.hold = true;
    if args.har.is_some() {
        match request.record {
            Some(EpisodeRecording::Nothing) => {
                return Err(CommandFailure::usage("--har requires a record, and --record none asks for no record"));
            }
            record => request.record = Some(record.unwrap_or(EpisodeRecording::All)),
        }
    }
    let interruptions = Interruptions::listen()?;
    let runs = (1..=args.n.get()).map(|number| {
        let one = SingleRun {
            client: &client,
            command: args.command.as_slice(),
            number,
            is_alone: args.n.get() == 1,
            has_proxy_env: args.proxy_env,
            uses_ports: args.ports,
            har: args.har.as_deref(),
        };
        one.run(&request, interruptions.subscribe())
    });
    let ended = tokio::select! {
        ended = join_all(runs) => ended,
        never = interruptions.forward() => match never {},
    };
    summary(global, ended)
}

/// Returns the exit code of several runs: void is told before the code of any command, then the first that is not 0.
fn summary(global: &Global, ended: Vec<Result<u8, CommandFailure>>) -> Result<u8, CommandFailure> {
    if ended.len() == 1 {
        return ended.into_iter().next().unwrap_or(Ok(exit_code::OK));
    }
    let mut code = exit_code::OK;
    for ended in ended {
        let next = ended.unwrap_or_else(|failure| {
            match global.json {
                true => failure.print_json(),
                false => failure.print(),
            }
            failure.code
        });
        if code == exit_code::OK || next == exit_code::VOID {
            code = next;
        }
    }
    Ok(code)
}

/// One of the runs.
struct SingleRun<'a> {
    client: &'a ApiClient,
    command: &'a [String],
    /// The number of the run, from 1.
    number: usize,
    /// Whether it is the only run, which gets the standard input.
    is_alone: bool,
    /// Whether the command's own HTTP clients use the episode proxy.
    has_proxy_env: bool,
    /// Whether all URLs are those at the own ports of slots.
    uses_ports: bool,
    /// The folder to which the requests of the episode are written.
    har: Option<&'a Path>,
}

impl SingleRun<'_> {
    async fn run(self, request: &EpisodeStartRequest, mut interruptions: Interruption) -> Result<u8, CommandFailure> {
        let (started, mut hold) = tokio::select! {
            held = EpisodeHold::start(self.client, request) => held?,
            _ = interruptions.next() => return Err(CommandFailure::interrupted()),
        };
        let granted = tokio::select! {
            granted = granted(&mut hold) => granted,
            _ = interruptions.next() => Err(CommandFailure::interrupted()),
        };
        let was_granted = granted.is_ok();
        let ended = match granted {
            Ok(episode) => self.attend(&episode, &started, &mut hold, &mut interruptions).await,
            Err(failure) => Err(failure),
        };
        let given_back = self.give_back(&hold).await;
        // Also if the command has failed, and if the episode is void: the requests may tell why.
        let written = self.write_har(&started.episode.id, was_granted).await;
        // The command may have ended just before this process was told that the episode is void.
        let outcome = ended.and_then(|code| given_back.map(|()| code));
        match (outcome, written) {
            (Ok(exit_code::OK), Err(failure)) => Err(failure),
            (outcome, Err(failure)) => {
                failure.print();
                outcome
            }
            (outcome, Ok(())) => outcome,
        }
    }

    /// Writes the requests of the episode, if they are asked for and the episode has begun.
    async fn write_har(&self, episode: &str, was_granted: bool) -> Result<(), CommandFailure> {
        match self.har {
            Some(folder) if was_granted => export::write_har(self.client, episode, folder).await,
            _ => Ok(()),
        }
    }

    /// Runs the command to its end.
    async fn attend(
        &self,
        episode: &ReportedEpisode,
        started: &StartedEpisode,
        hold: &mut EpisodeHold<'_>,
        interruptions: &mut Interruption,
    ) -> Result<u8, CommandFailure> {
        if self.has_proxy_env && started.proxy.is_none() {
            return Err(CommandFailure::usage(
                "--proxy-env requires the episode proxy, which the daemon does not offer",
            )
            .hint("`arenad status` says why; `arenad serve --proxy ADDRESS` offers it"));
        }
        if self.uses_ports && !episode.has_ports() {
            let lacking = episode.sites.iter().find(|site| site.direct_url().is_none());
            let lacking = lacking.or(episode.sites.first()).map_or("a site", |site| site.site.as_str());
            return Err(CommandFailure::usage(format!("--ports requires own ports of slots, and {lacking} has none"))
                .hint("give it `ports` in the environment file, or use the episode proxy"));
        }
        let mut child = RunningChild::start(self.command, &self.variables(episode, started), self.is_alone)?;
        loop {
            tokio::select! {
                ended = child.ended() => return ended,
                state = hold.next() => match state {
                    Ok(HeldState::Live(_)) => {}
                    Ok(HeldState::Ended(failure)) | Err(failure) => {
                        child.end().await;
                        return Err(failure);
                    }
                },
                signal = interruptions.next() => return child.interrupt(signal).await,
            }
        }
    }

    /// Ends the episode. Fails only if the episode is void.
    async fn give_back(&self, hold: &EpisodeHold<'_>) -> Result<(), CommandFailure> {
        match self.client.delete(&hold.path()).await {
            Err(failure) if failure.code == exit_code::VOID => Err(failure),
            // The connection that holds the episode ends with this process, and the episode with it.
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn variables(&self, episode: &ReportedEpisode, started: &StartedEpisode) -> BTreeMap<String, String> {
        let mut variables = if self.uses_ports { episode.port_variables.clone() } else { episode.variables.clone() };
        let is_proxied = episode.is_proxied();
        let url = |site: &EpisodeSite| match (self.uses_ports, is_proxied) {
            (true, _) => site.direct_url().cloned(),
            (false, true) => site.proxy_url.clone(),
            (false, false) => site.url.clone(),
        };
        let named = |prefix: &str, site: &EpisodeSite, url: Option<String>| Some((variable(prefix, &site.site), url?));
        variables.extend(episode.sites.iter().filter_map(|site| named("ARENAD_URL", site, url(site))));
        let ports = episode.sites.iter().filter_map(|site| named("ARENAD_PORT_URL", site, site.port_url.clone()));
        variables.extend(ports);
        if let Some(proxy) = &started.proxy {
            variables.extend(proxy::variables(proxy));
            if self.has_proxy_env {
                variables.extend(proxy::client_variables(proxy, &|name| std::env::var(name).ok()));
            }
        }
        variables.insert("ARENAD_EPISODE".to_owned(), episode.id.clone());
        variables.insert("ARENAD_EPISODE_TOKEN".to_owned(), started.token.clone());
        variables.insert("ARENAD_RUN".to_owned(), self.number.to_string());
        variables
    }
}

/// Returns the name of a variable that has a URL of a site.
fn variable(prefix: &str, site: &str) -> String {
    let name = site.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' });
    format!("{prefix}_{}", name.collect::<String>())
}

/// Waits until the episode has its slots.
pub async fn granted(hold: &mut EpisodeHold<'_>) -> Result<ReportedEpisode, CommandFailure> {
    loop {
        match hold.next().await? {
            HeldState::Live(episode) if episode.state == EpisodeStatus::Active => return Ok(*episode),
            HeldState::Live(_) => {}
            HeldState::Ended(failure) => return Err(failure),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_of_a_site_can_be_read_by_a_shell() {
        assert_eq!(variable("ARENAD_URL", "shopping_admin"), "ARENAD_URL_SHOPPING_ADMIN");
        assert_eq!(variable("ARENAD_PORT_URL", "my-forum"), "ARENAD_PORT_URL_MY_FORUM");
    }

    #[test]
    fn of_several_runs_void_counts_before_the_first_failure() {
        let global = Global { json: false, state_dir: None, host: None, token: None, token_file: None };
        let code = |codes: &[u8]| summary(&global, codes.iter().map(|code| Ok(*code)).collect()).expect("a code");
        assert_eq!(code(&[0, 0]), 0);
        assert_eq!(code(&[0, 3, 4]), 3);
        assert_eq!(code(&[3, exit_code::VOID, 4]), exit_code::VOID);
    }
}
