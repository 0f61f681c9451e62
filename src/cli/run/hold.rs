//! The connection that holds an episode. When it breaks because the daemon was restarted, the episode is held again.

use std::time::Duration;

use anyhow::Context;
use tokio::time::Instant;

use crate::cli::client::ApiClient;
use crate::cli::exit_code;
use crate::cli::failure::{CommandFailure, of_ending};
use crate::cli::server_events::ServerEvents;
use arenad_api::episodes::{EpisodeStartRequest, ReportedEpisode, StartedEpisode};
use arenad_model::episode::life::HOLD_AGAIN_WITHIN;

/// The pause between two attempts to hold an episode again.
const PAUSE: Duration = Duration::from_millis(200);

/// The state of an episode, as its holder is told.
pub enum HeldState {
    /// The episode has not ended.
    Live(Box<ReportedEpisode>),
    /// The episode has ended, for the reason that the failure gives.
    Ended(CommandFailure),
}

/// Holds an episode until it is dropped.
pub struct EpisodeHold<'a> {
    client: &'a ApiClient,
    id: String,
    /// `None` while there is no connection.
    events: Option<ServerEvents>,
    /// The time until which another attempt makes sense, since the connection broke.
    deadline: Option<Instant>,
}

impl<'a> EpisodeHold<'a> {
    /// Requests an episode that a connection of this process holds from the beginning.
    pub async fn start(
        client: &'a ApiClient,
        request: &EpisodeStartRequest,
    ) -> Result<(StartedEpisode, Self), CommandFailure> {
        let mut events = ServerEvents::of(client.start_held(request).await?);
        let first = events.next().await?.filter(|event| event.name == "started");
        let first = first.context("the daemon ended its answer before it told the id of the episode")?;
        let started: StartedEpisode = serde_json::from_str(&first.data)?;
        let id = started.episode.id.clone();
        Ok((started, Self { client, id, events: Some(events), deadline: None }))
    }

    /// Returns the address of the episode.
    pub fn path(&self) -> String {
        format!("/v1/episodes/{}", self.id)
    }

    fn address(&self) -> String {
        format!("{}/hold", self.path())
    }

    /// Waits for the next state of the episode.
    ///
    /// Errors: the daemon could not be reached again in time.
    ///
    /// Cancellation: no state is lost.
    pub async fn next(&mut self) -> Result<HeldState, CommandFailure> {
        loop {
            let Some(events) = &mut self.events else {
                if let Some(refused) = self.hold_again().await? {
                    return Ok(HeldState::Ended(refused));
                }
                continue;
            };
            // An answer that breaks off is the same as one that ends.
            let Ok(Some(event)) = events.next().await else {
                self.events = None;
                self.deadline = Some(Instant::now() + HOLD_AGAIN_WITHIN);
                continue;
            };
            if event.name != "episode" {
                continue;
            }
            let episode: ReportedEpisode = serde_json::from_str(&event.data)?;
            return Ok(match &episode.ending {
                Some(ending) => HeldState::Ended(of_ending(&self.id, ending)),
                None => HeldState::Live(Box::new(episode)),
            });
        }
    }

    /// Makes one attempt to hold the episode again. Returns the refusal of a daemon that answers.
    async fn hold_again(&mut self) -> Result<Option<CommandFailure>, CommandFailure> {
        match self.client.stream(&self.address()).await {
            Ok(answer) => {
                self.events = Some(ServerEvents::of(answer));
                Ok(None)
            }
            // Until the earlier daemon has noticed the end of the connection, it says that the episode is held.
            Err(failure) if failure.is_answer && failure.code != exit_code::BUSY => Ok(Some(failure)),
            Err(failure) if self.deadline.is_none_or(|deadline| Instant::now() >= deadline) => Err(failure),
            Err(_) => {
                tokio::time::sleep(PAUSE).await;
                Ok(None)
            }
        }
    }
}
