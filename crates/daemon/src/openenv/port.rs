//! The port of the environment service, which exists only if the operator has chosen an address.

use std::net::SocketAddr;

use crate::server::{self, ListenError, PreparingListener};

/// Opens the port, if there is to be one. Requests wait until the listener is served.
pub(crate) async fn open(address: Option<SocketAddr>) -> Result<Option<PreparingListener>, ListenError> {
    let Some(address) = address else { return Ok(None) };
    let listener = server::listen_tcp(address).await?;
    let address = server::local_address(&listener).unwrap_or(address);
    tracing::info!(%address, "the environment service is offered");
    Ok(Some(listener))
}
