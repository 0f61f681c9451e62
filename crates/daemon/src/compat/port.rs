//! The port of the compatible server.

use crate::port::{ChosenPort, OfferedPort, RefusedPort};
use crate::server::{self, ListenError, PreparingListener};
use arenad_instance::shared::SharedParts;

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
            let is_taken = error.is_taken();
            let (lack, variable) = ("there is no reset server for harnesses", "ARENAD_COMPAT");
            let refused = RefusedPort { address, error: &error, is_taken, lack, variable };
            Ok((OfferedPort::missing(refused, shared).await, None))
        }
    }
}
