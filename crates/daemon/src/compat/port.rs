//! The port of the compatible server.

use crate::port::{ChosenPort, OfferedPort};
use crate::server::{self, ListenError, PreparingListener};
use arenad_instance::shared::SharedParts;
use arenad_model::error::describe;

/// Opens the port, if there is to be one. Requests wait until the listener is served.
///
/// Errors: a required port cannot be opened.
pub(crate) async fn open(
    port: Option<ChosenPort>,
    shared: &SharedParts,
) -> Result<(OfferedPort, Option<PreparingListener>), ListenError> {
    let Some(ChosenPort { address, is_required }) = port else { return Ok((OfferedPort::default(), None)) };
    match server::listen_tcp(address).await {
        Ok(listener) => {
            let address = server::local_address(&listener).unwrap_or(address);
            tracing::info!(%address, "the reset server of harnesses is offered");
            Ok((OfferedPort::at(address), Some(listener)))
        }
        Err(error) if is_required => Err(error),
        Err(error) => {
            let owner = match error.is_taken() {
                true => {
                    let owner = shared.machine.port_owner(shared.engine.as_ref(), address).await;
                    format!("{address} is used by {owner}")
                }
                false => describe(&error),
            };
            tracing::warn!(%address, owner, "there is no reset server for harnesses");
            let note = format!(
                "there is no reset server for harnesses: {owner}; choose another address with ARENAD_COMPAT, or `none`, \
                 and restart the daemon"
            );
            Ok((OfferedPort::missing(note), None))
        }
    }
}
