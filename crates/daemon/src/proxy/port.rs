//! The port of the episode proxy.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use super::directory::EpisodeDirectory;
use arenad_gateway::OpenError;
use arenad_instance::shared::SharedParts;
use arenad_model::error::describe;

/// The port of the episode proxy, as the daemon is started with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyPort {
    /// The address on which the proxy listens.
    pub address: SocketAddr,
    /// Whether the daemon does not start without it. Otherwise it goes without a proxy, and says so in its status.
    pub is_required: bool,
}

/// The episode proxy, as the daemon offers it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenProxy {
    /// The address for clients, such as `http://127.0.0.1:7500`. `None` means that there is no proxy.
    pub server: Option<String>,
    /// The reason why there is no proxy, unless the operator has switched it off.
    pub note: Option<String>,
}

/// Opens the port, if there is to be one.
///
/// Errors: a required port cannot be opened.
pub(crate) async fn open(
    port: Option<ProxyPort>,
    shared: &SharedParts,
    directory: EpisodeDirectory,
) -> Result<OpenProxy, OpenError> {
    let Some(ProxyPort { address, is_required }) = port else { return Ok(OpenProxy::default()) };
    match shared.gateway.open_proxy(address, Arc::new(directory)) {
        Ok(proxy) => {
            let address = proxy.local_addr();
            tracing::info!(%address, "the episode proxy is offered");
            Ok(OpenProxy { server: Some(server(address)), note: None })
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
            let note = format!(
                "there is no episode proxy: {owner}; choose another address with ARENAD_PROXY, or `none`, and restart \
                 the daemon"
            );
            Ok(OpenProxy { server: None, note: Some(note) })
        }
    }
}

/// Returns the URL of the proxy. A proxy on all addresses is named by the one of this host.
fn server(address: SocketAddr) -> String {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    format!("http://{}", SocketAddr::new(ip, address.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_get_an_address_that_they_can_use() {
        let url = |address: &str| server(address.parse().expect("an address"));
        assert_eq!(url("127.0.0.1:7500"), "http://127.0.0.1:7500");
        assert_eq!(url("0.0.0.0:7500"), "http://127.0.0.1:7500");
        assert_eq!(url("[::]:7500"), "http://[::1]:7500");
        assert_eq!(url("192.0.2.7:7500"), "http://192.0.2.7:7500");
    }
}
