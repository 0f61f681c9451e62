//! The port of the episode proxy.

use std::sync::Arc;

use super::directory::EpisodeDirectory;
use crate::port::{ChosenPort, OfferedPort, RefusedPort};
use arenad_gateway::OpenError;
use arenad_instance::shared::SharedParts;

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
            let is_taken = matches!(error, OpenError::PortTaken { .. });
            let (lack, variable) = ("there is no episode proxy", "ARENAD_PROXY");
            Ok(OfferedPort::missing(RefusedPort { address, error: &error, is_taken, lack, variable }, shared).await)
        }
    }
}
