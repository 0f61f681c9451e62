//! The port of the episode proxy.

use std::sync::Arc;

use super::directory::EpisodeDirectory;
use crate::port::{ChosenPort, OfferedPort};
use arenad_gateway::OpenError;
use arenad_instance::shared::SharedParts;
use arenad_model::error::describe;

/// Opens the port, if there is to be one.
///
/// Errors: a required port cannot be opened.
pub(crate) async fn open(
    port: Option<ChosenPort>,
    shared: &SharedParts,
    directory: EpisodeDirectory,
) -> Result<OfferedPort, OpenError> {
    let Some(ChosenPort { address, is_required }) = port else { return Ok(OfferedPort::default()) };
    match shared.gateway.open_proxy(address, Arc::new(directory)) {
        Ok(proxy) => {
            let address = proxy.local_addr();
            tracing::info!(%address, "the episode proxy is offered");
            Ok(OfferedPort::at(address))
        }
        Err(error) if is_required => Err(error),
        Err(error) => {
            let owner = match &error {
                OpenError::PortTaken { .. } => {
                    let owner = shared.machine.port_owner(shared.engine.as_ref(), address).await;
                    format!("{address} is used by {owner}")
                }
                error => describe(error),
            };
            tracing::warn!(%address, owner, "there is no episode proxy");
            Ok(OfferedPort::missing(format!(
                "there is no episode proxy: {owner}; choose another address with ARENAD_PROXY, or `none`, and restart \
                 the daemon"
            )))
        }
    }
}
