//! Cases about the addresses of containers.

use std::net::IpAddr;

use arenad_model::subnet::Subnet;

use crate::bed::{Bed, PATIENCE, WantedContainer};

fn is_in(address: Option<IpAddr>, subnet: Subnet) -> bool {
    match address {
        Some(IpAddr::V4(address)) => subnet.contains(Subnet::new(address, 32)) && address != subnet.gateway(),
        _ => false,
    }
}

pub async fn containers_have_addresses_of_their_network(bed: Bed) {
    let (name, subnet) = bed.network("one").await;
    let wanted = || WantedContainer { network: Some(name.clone()), ..WantedContainer::default() };
    let first = bed.start("one", wanted()).await;
    let second = bed.start("two", wanted()).await;
    let first = bed.engine.inspect(&first).await.unwrap().address;
    let second = bed.engine.inspect(&second).await.unwrap().address;
    assert!(is_in(first, subnet) && is_in(second, subnet), "{first:?} {second:?} {subnet}");
    assert_ne!(first, second);
}

pub async fn addresses_are_given_up_at_the_end(bed: Bed) {
    let (name, subnet) = bed.network("one").await;
    let wanted = || WantedContainer { network: Some(name.clone()), ..WantedContainer::default() };
    let first = bed.obedient("one", wanted()).await;
    bed.engine.stop(&first, PATIENCE).await.unwrap();
    assert_eq!(bed.engine.inspect(&first).await.unwrap().address, None);
    // The network has sixteen addresses. Network, gateway and broadcast are not available to containers, so no more
    // than these fit.
    for number in 0..13 {
        bed.start(&format!("more-{number}"), wanted()).await;
    }
    let error = bed.engine.start(&first).await.unwrap_err();
    assert!(error.to_string().contains("no available IPv4 addresses"), "{error}");
    assert!(is_in(bed.engine.inspect(&bed.find("more-12").await).await.unwrap().address, subnet));
}

pub async fn the_first_network_gives_the_address(bed: Bed) {
    let (inner, subnet) = bed.network("inner").await;
    let (outward, _) = bed.network("another").await;
    let wanted = WantedContainer { network: Some(inner), outward: Some(outward.clone()), ..WantedContainer::default() };
    let handle = bed.start("one", wanted).await;
    assert!(is_in(bed.engine.inspect(&handle).await.unwrap().address, subnet));
    assert!(bed.engine.remove_network(&outward).await.is_err());
}
