//! The user at the other end of a connection within this host.

use std::net::SocketAddr;

use procfs::net::TcpNetEntry;

/// Returns whether the socket `peer` that is connected to `here` belongs to the user. Both are sockets of this host.
///
/// Proxies of browsers check it, because every user of the host reaches their ports. The call reads the kernel's table of
/// sockets, so it blocks.
pub fn belongs_to(user: u32, peer: SocketAddr, here: SocketAddr) -> bool {
    let is_peer = |socket: &TcpNetEntry| socket.local_address == peer && socket.remote_address == here;
    procfs::net::tcp().is_ok_and(|all| all.iter().any(|socket| is_peer(socket) && socket.uid == user))
}
