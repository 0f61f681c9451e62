//! Ports of this host that the daemon listens on besides the API: a default one, without which it goes on, or one that
//! the operator has chosen.

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use arenad_instance::shared::SharedParts;
use arenad_model::error::describe;

/// A port, as the daemon is started with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChosenPort {
    /// The address to listen on.
    pub address: SocketAddr,
    /// Whether the daemon does not start without it. Otherwise it goes on without, and says so in its status.
    pub is_required: bool,
}

/// A port, as the daemon offers it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OfferedPort {
    /// The address for clients, such as `http://127.0.0.1:7500`. `None` means that nothing listens.
    pub server: Option<String>,
    /// The reason why nothing listens, unless the operator has switched it off.
    pub note: Option<String>,
}

impl OfferedPort {
    /// Returns the port on which the daemon listens.
    pub(crate) fn at(address: SocketAddr) -> Self {
        Self { server: Some(server(address)), note: None }
    }

    /// Returns a port that could not be opened, with the reason and the variable by which the operator chooses another.
    pub(crate) async fn missing(refused: RefusedPort<'_>, shared: &SharedParts) -> Self {
        let RefusedPort { address, error, is_taken, lack, variable } = refused;
        let owner = match is_taken {
            true => {
                let owner = shared.machine.port_owner(shared.engine.as_ref(), address).await;
                format!("{address} is used by {owner}")
            }
            false => describe(error),
        };
        tracing::warn!(%address, owner, "{lack}");
        let note =
            format!("{lack}: {owner}; choose another address with {variable}, or `none`, and restart the daemon");
        Self { server: None, note: Some(note) }
    }
}

/// A port without which the daemon goes on.
pub(crate) struct RefusedPort<'a> {
    pub(crate) address: SocketAddr,
    pub(crate) error: &'a (dyn Error + 'static),
    /// Whether another program listens on the address.
    pub(crate) is_taken: bool,
    /// The statement about the missing server, such as `there is no episode proxy`.
    pub(crate) lack: &'static str,
    /// The environment variable that chooses the address.
    pub(crate) variable: &'static str,
}

/// Returns the URL of a server. One on all addresses is named by the one of this host.
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
