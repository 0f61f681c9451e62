//! Limits of a container's resources. Every container has a limit of memory and of processes, whether its definition
//! sets one or not: a compromised site must not use up the host's.

use arenad_model::service::Limits;

/// The smallest memory limit that Docker accepts, in bytes.
pub const MEMORY_MIN: u64 = 6 << 20;

/// The number of processes and threads that a container may have whose definition has no limit: more than any site of
/// the benchmarks needs, and too few to exhaust the host's.
const PIDS_DEFAULT: u64 = 4096;

/// The default memory limit in bytes if the kernel does not report the amount of memory.
const MEMORY_UNKNOWN: u64 = 2 << 30;

/// Returns the memory limit of containers whose definition has none, in bytes: half of the host's memory.
pub(super) fn default_memory() -> u64 {
    procfs::Current::current().map_or(MEMORY_UNKNOWN, |memory: procfs::Meminfo| half_of(memory.mem_total))
}

fn half_of(total: u64) -> u64 {
    (total / 2).max(MEMORY_MIN)
}

/// Returns the memory limit of a container, in bytes. A reservation above the default is granted: the engine refuses a
/// limit below the reservation.
pub(super) fn memory(limits: &Limits, default: u64) -> u64 {
    limits.memory_bytes.unwrap_or_else(|| default.max(limits.reserved_memory_bytes.unwrap_or(0)))
}

/// Returns the maximum number of processes and threads of a container.
pub(super) fn pids(limits: &Limits) -> u64 {
    limits.pids.unwrap_or(PIDS_DEFAULT)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::docker::DockerEngine;
    use crate::{ContainerSpec, CpuWeight, Engine};
    use arenad_model::ids::ServiceName;
    use arenad_model::service::ServiceSpec;

    /// The default memory limit of the tests' engines, in bytes.
    const DEFAULT: u64 = 3 << 30;

    fn service(limits: Limits) -> ServiceSpec {
        ServiceSpec { limits, ..ServiceSpec::new(ServiceName::parse("web").expect("a name"), "image") }
    }

    /// Returns the `HostConfig` of the request with which an engine is asked to create a container. Each role of
    /// containers is created by this request.
    async fn requested(limits: Limits, role: &str) -> Value {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let server = tokio::spawn(async move {
            let (mut client, _) = listener.accept().await.expect("a client");
            let (mut heard, mut piece) = (Vec::new(), [0; 4096]);
            loop {
                let read = client.read(&mut piece).await.expect("a request");
                assert_ne!(read, 0, "the request is cut off");
                heard.extend_from_slice(&piece[..read]);
                let Some(head) = heard.windows(4).position(|end| end == b"\r\n\r\n") else { continue };
                if let Ok(body) = serde_json::from_slice::<Value>(&heard[head + 4..]) {
                    assert!(heard.starts_with(b"POST "), "{}", String::from_utf8_lossy(&heard));
                    let answer = r#"{"Id":"c0ffee","Warnings":[]}"#;
                    let head = "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nConnection: close\r\n";
                    let answer = format!("{head}Content-Length: {}\r\n\r\n{answer}", answer.len());
                    client.write_all(answer.as_bytes()).await.expect("an answer");
                    break body;
                }
            }
        });
        let service = service(limits);
        let spec = ContainerSpec {
            name: "container".to_owned(),
            image: "sha256:0".to_owned(),
            service: &service,
            labels: BTreeMap::from([(crate::labels::ROLE.to_owned(), role.to_owned())]),
            network: "network".to_owned(),
            outward: None,
            volumes: BTreeMap::new(),
            binds: BTreeMap::new(),
            environment: BTreeMap::new(),
            weight: CpuWeight::Serving,
            keeps_stores_in_layer: false,
        };
        let engine = DockerEngine::new(&format!("http://{address}")).with_container_memory(DEFAULT);
        engine.create(&spec).await.expect("a container");
        server.await.expect("a request")["HostConfig"].clone()
    }

    #[tokio::test]
    async fn every_container_is_requested_with_limits_of_memory_and_processes() {
        for role in [crate::labels::ROLE_INSTANCE, crate::labels::ROLE_BUILDER] {
            let asked = requested(Limits::default(), role).await;
            assert_eq!(asked["PidsLimit"], 4096, "{role}: {asked}");
            assert_eq!(asked["Memory"], DEFAULT, "{role}: {asked}");
            // Equal to the memory limit: no swap in addition.
            assert_eq!(asked["MemorySwap"], DEFAULT, "{role}: {asked}");
        }
    }

    #[tokio::test]
    async fn the_limits_of_a_definition_reach_the_request() {
        let limits = Limits {
            memory_bytes: Some(64 << 20),
            reserved_memory_bytes: Some(32 << 20),
            pids: Some(50),
            ..Limits::default()
        };
        let asked = requested(limits, crate::labels::ROLE_INSTANCE).await;
        assert_eq!(asked["PidsLimit"], 50);
        assert_eq!((&asked["Memory"], &asked["MemorySwap"]), (&(64 << 20).into(), &(64 << 20).into()));
        assert_eq!(asked["MemoryReservation"], 32 << 20);
    }

    #[test]
    fn a_reservation_above_the_default_raises_the_limit() {
        let limits = Limits { reserved_memory_bytes: Some(5 << 30), ..Limits::default() };
        assert_eq!(memory(&limits, DEFAULT), 5 << 30);
        let limits = Limits { reserved_memory_bytes: Some(1 << 30), ..Limits::default() };
        assert_eq!(memory(&limits, DEFAULT), DEFAULT);
    }

    #[test]
    fn one_container_leaves_half_of_the_host_to_the_others() {
        assert_eq!(half_of(16 << 30), 8 << 30);
        assert_eq!(half_of(1 << 20), MEMORY_MIN);
        let meminfo: procfs::Meminfo = procfs::Current::current().expect("the kernel tells");
        assert_eq!(default_memory(), meminfo.mem_total / 2);
    }
}
