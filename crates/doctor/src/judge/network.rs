//! Judges addresses and ports: whether instance networks can be created, and whether the public ports are available.

use super::answering;
use crate::facts::{AnsweringEngine, Facts, ImageOrigin, NetworkFacts, PortState, PublicPort, SlotPortRange};
use crate::finding::{Area, Finding, Level};
use arenad_model::subnet::Subnet;

/// Alternative blocks: private ranges that routers and Docker seldom use.
const OTHER_BLOCKS: [&str; 6] =
    ["10.231.0.0/16", "10.232.0.0/16", "10.77.0.0/16", "172.30.0.0/16", "100.64.0.0/16", "192.168.240.0/20"];

/// The number of networks in Docker's built-in pools: 172.17-31.0.0/16, and sixteen ranges in 192.168.0.0/16.
const BUILT_IN_NETWORKS: usize = 31;

/// The built-in address pools of Docker.
const BUILT_IN_POOLS: [(&str, u8); 6] = [
    ("172.17.0.0/16", 16),
    ("172.18.0.0/15", 16),
    ("172.20.0.0/14", 16),
    ("172.24.0.0/14", 16),
    ("172.28.0.0/14", 16),
    ("192.168.0.0/16", 20),
];

/// The number of networks left in the engine's pools below which other work on the host may fail.
const FEW_NETWORKS: usize = 8;

/// A setting that provides about four thousand networks.
const POOLS_SETTING: &str = "`docker network prune`, or `\"default-address-pools\": [{\"base\": \"172.16.0.0/12\", \
                             \"size\": 24}]` in /etc/docker/daemon.json and a restart of Docker";

fn finding(id: &'static str, level: Level, seen: impl Into<String>) -> Finding {
    Finding::new(Area::Network, id, level, seen)
}

pub(crate) fn judge(facts: &Facts) -> Vec<Finding> {
    let engine = answering(&facts.engine);
    let subnets = engine.map(|engine| engine.subnets.as_slice());
    let wanted = facts.environment.as_ref().map_or(1, |environment| environment.needs.sites.len());
    let mut findings = block(&facts.network, subnets, wanted);
    findings.extend(engine.map(pools));
    findings.extend(filters(facts, engine));
    if let Some(environment) = &facts.environment {
        findings.extend(environment.ports.iter().map(port));
        findings.extend(environment.slot_ports.iter().filter_map(slot_ports));
    }
    findings
}

/// Returns the host's routes into a block that do not belong to the engine's own networks, and whose addresses are
/// therefore in use elsewhere. If the engine does not answer, its networks are recognised by the names of their
/// bridges.
fn foreign<'a>(network: &'a NetworkFacts, block: Subnet, subnets: Option<&[Subnet]>) -> Vec<&'a (Subnet, String)> {
    let is_engines = |(range, interface): &(Subnet, String)| match subnets {
        Some(subnets) => subnets.contains(range),
        None => {
            interface.strip_prefix("br-").is_some_and(|id| id.len() == 12 && id.chars().all(|c| c.is_ascii_hexdigit()))
        }
    };
    network.routes.iter().filter(|route| route.0.overlaps(block) && !is_engines(route)).collect()
}

fn block(network: &NetworkFacts, subnets: Option<&[Subnet]>, wanted: usize) -> Vec<Finding> {
    let block = network.block;
    let taken = subnets.unwrap_or_default();
    let mut findings: Vec<Finding> = foreign(network, block, subnets)
        .into_iter()
        .map(|(range, interface)| {
            let seen = format!(
                "the host has a route to {range} through {interface}, and instance networks are cut from {block}"
            );
            let (level, so) = if range.contains(block) && *range != block {
                (
                    Level::Warning,
                    format!("hosts behind {interface} with addresses of instance networks cannot be reached from here"),
                )
            } else {
                (
                    Level::Problem,
                    "instance networks may get addresses of that route, and are then not reached".to_owned(),
                )
            };
            finding("address-block", level, seen).about(range).so(so).cure(another_block(network, taken))
        })
        .collect();
    let free = Subnet::count_free(block, Subnet::INSTANCE_PREFIX, taken);
    // While a site is reset, its old network and its new one exist at the same time.
    if free < 2 * wanted {
        let level = if free < wanted { Level::Problem } else { Level::Warning };
        let seen = format!("{block} has room for {free} more instance networks, and {wanted} sites are to be started");
        let so = "a site needs one, and two while it is reset: the rest cannot come up";
        findings.push(finding("address-block", level, seen).so(so).cure(another_block(network, taken)));
    }
    if findings.is_empty() {
        findings.push(finding("address-block", Level::Ok, format!("{block} has room for {free} instance networks")));
    }
    findings
}

fn another_block(network: &NetworkFacts, subnets: &[Subnet]) -> String {
    let is_free = |block: &Subnet| {
        let routes = network.routes.iter().map(|(range, _)| range);
        *block != network.block && !routes.chain(subnets).any(|taken| taken.overlaps(*block))
    };
    match OTHER_BLOCKS.iter().filter_map(|text| text.parse().ok()).find(is_free) {
        Some(block) => format!("`export ARENAD_SUBNETS={block}` before `arenad up` (nothing here uses that block)"),
        None => "name a block that nothing here uses with --subnets or ARENAD_SUBNETS".to_owned(),
    }
}

/// Judges the engine's address pools: arenad does not use them, but `docker network create` and Compose do.
fn pools(engine: &AnsweringEngine) -> Finding {
    let configured = &engine.details.address_pools;
    let (free, whole) = if configured.is_empty() {
        let built_in = BUILT_IN_POOLS.iter().filter_map(|(base, size)| Some((base.parse::<Subnet>().ok()?, *size)));
        (free_in(built_in, &engine.subnets), BUILT_IN_NETWORKS)
    } else {
        (free_in(configured.iter().copied(), &engine.subnets), free_in(configured.iter().copied(), &[]))
    };
    let seen = format!("the engine's own address pools have room for {free} more networks of {whole}");
    if free >= FEW_NETWORKS {
        return finding("address-pools", Level::Ok, seen);
    }
    finding("address-pools", Level::Warning, seen)
        .so("arenad takes its networks from its own block, but `docker-compose` and `docker network create` will fail")
        .cure(POOLS_SETTING)
}

fn free_in(pools: impl Iterator<Item = (Subnet, u8)>, taken: &[Subnet]) -> usize {
    pools.map(|(base, size)| Subnet::count_free(base, size, taken)).sum()
}

fn filters(facts: &Facts, engine: Option<&AnsweringEngine>) -> Vec<Finding> {
    let Some(engine) = engine else { return Vec::new() };
    let mut findings = Vec::new();
    match (facts.network.filters, &engine.details.firewall) {
        (Some(false), None) => findings.push(
            finding("filters", Level::Warning, "the engine's filter chains are not there (`--iptables=false`?)")
                .so("the networks of sites are not closed: an agent's site may reach the outside")
                .cure("remove `\"iptables\": false` from /etc/docker/daemon.json and restart Docker"),
        ),
        (Some(true), _) | (_, Some(_)) => {
            findings.push(finding("filters", Level::Ok, "the engine closes networks by packet filters"));
        }
        (None, None) => {}
    }
    let builds = facts
        .environment
        .iter()
        .any(|environment| environment.needs.missing_images.iter().any(|image| image.from == ImageOrigin::Build));
    if builds && !engine.details.forwards {
        findings.push(
            finding(
                "forwarding",
                Level::Warning,
                "the host does not pass on packets of containers (net.ipv4.ip_forward=0)",
            )
            .so("builds cannot fetch packages; sites that are built already do not need it")
            .cure("`sysctl -w net.ipv4.ip_forward=1`"),
        );
    }
    findings
}

fn port(port: &PublicPort) -> Finding {
    let PublicPort { site, address, state } = port;
    let problem = |seen: String| finding("port", Level::Problem, seen).so(format!("{site} cannot come up"));
    let finding = match state {
        PortState::Free => finding("port", Level::Ok, format!("{address} (for {site}) is free")),
        PortState::Ours => finding("port", Level::Ok, format!("{address} (for {site}) is served by arenad's daemon")),
        PortState::Held { owner } => problem(format!("{address} (for {site}) is held by {owner}"))
            .cure("stop what holds it, or change `public.port` of the site in the environment file"),
        PortState::OfDaemon { purpose } => problem(format!("{address} (for {site}) is {}", used_by_daemon(purpose)))
            .cure("change `public.port` of the site in the environment file, or the other use"),
        PortState::Denied => problem(format!("this user may not listen on {address} (for {site})")).cure(
            "choose a `public.port` from 1024 up, run arenad as root, or \
             `sysctl -w net.ipv4.ip_unprivileged_port_start=0`",
        ),
        PortState::Failed(said) => problem(format!("cannot listen on {address} (for {site}): {said}"))
            .cure("correct `listen` of the environment file: it is an address of this host"),
    };
    finding.about(site)
}

fn used_by_daemon(purpose: &str) -> String {
    format!("used by arenad's daemon for {purpose}")
}

/// Judges the own ports of a site's slots together, because they are many. The site comes up only with all of them.
fn slot_ports(range: &SlotPortRange) -> Option<Finding> {
    let SlotPortRange { site, ports } = range;
    let ((first, _), (last, _)) = (ports.first()?, ports.last()?);
    let shown = match ports.len() {
        1 => format!("{first} (own port of slot 1 of {site})"),
        _ => format!("{first} to {} (own ports of slots 1 to {} of {site})", last.port(), ports.len()),
    };
    let is = if ports.len() == 1 { "is" } else { "are" };
    let is_fine = |state: &PortState| matches!(state, PortState::Free | PortState::Ours);
    let mut wrong = ports.iter().zip(1..).filter(|((_, state), _)| !is_fine(state));
    let finding = match wrong.next() {
        None if ports.iter().all(|(_, state)| *state == PortState::Ours) => {
            finding("slot-ports", Level::Ok, format!("{shown} {is} served by arenad's daemon"))
        }
        // Some are served already if the number of slots has grown.
        None => finding("slot-ports", Level::Ok, format!("{shown} {is} available")),
        Some(((address, state), slot)) => {
            let why = match state {
                PortState::Held { owner } => format!("held by {owner}"),
                PortState::OfDaemon { purpose } => used_by_daemon(purpose),
                PortState::Denied => "not allowed for this user".to_owned(),
                PortState::Failed(said) => format!("no address to listen on: {said}"),
                PortState::Free | PortState::Ours => "available".to_owned(),
            };
            let others = match wrong.count() {
                0 => String::new(),
                count => format!(", and {count} more of its own ports cannot be opened either"),
            };
            finding(
                "slot-ports",
                Level::Problem,
                format!("{address} (own port of slot {slot} of {site}) is {why}{others}"),
            )
            .so(format!("{site} cannot come up"))
            .cure("stop what holds it, change `ports` of the site in the environment file, or lower `slots.max`")
        }
    };
    Some(finding.about(site))
}

#[cfg(test)]
mod tests {
    use super::super::prepared::{self, found, subnet};
    use super::*;

    fn network(routes: &[(&str, &str)]) -> NetworkFacts {
        let routes = routes.iter().map(|(range, interface)| (subnet(range), (*interface).to_owned())).collect();
        NetworkFacts { routes, ..prepared::facts().network }
    }

    #[test]
    fn a_route_into_our_block_is_a_problem_unless_it_is_a_network_of_the_engine() {
        let network = network(&[("10.231.4.0/24", "vpn0"), ("10.232.0.0/16", "vpn0")]);
        let findings = block(&network, Some(&[]), 1);
        let problem = found(&findings, "address-block");
        assert_eq!((problem.level, problem.subject.as_deref()), (Level::Problem, Some("10.231.4.0/24")));
        let cure = problem.cure.clone().unwrap_or_default();
        assert!(cure.contains("ARENAD_SUBNETS=10.77.0.0/16"), "the next free block is named: {cure}");
        let findings = block(&network, Some(&[subnet("10.231.4.0/24")]), 1);
        assert_eq!(found(&findings, "address-block").level, Level::Ok);
    }

    #[test]
    fn networks_of_an_engine_that_does_not_answer_are_known_by_their_bridges() {
        let network = network(&[("10.231.4.0/28", "br-73e9cb8b67dd"), ("10.231.5.0/28", "br-lan")]);
        let findings = block(&network, None, 1);
        let subjects: Vec<&str> = findings.iter().filter_map(|finding| finding.subject.as_deref()).collect();
        assert_eq!(subjects, ["10.231.5.0/28"]);
        assert_eq!(block(&network, Some(&[]), 1).len(), 2, "none of them is known to be free");
    }

    #[test]
    fn a_route_around_our_block_hides_hosts_and_is_warned_of() {
        let findings = block(&network(&[("10.0.0.0/8", "vpn0")]), Some(&[]), 1);
        let warning = found(&findings, "address-block");
        assert_eq!(warning.level, Level::Warning);
        assert!(warning.cure.as_ref().is_some_and(|cure| cure.contains("172.30.0.0/16")));
    }

    #[test]
    fn a_block_is_too_small_for_sites_that_reset() {
        let small = NetworkFacts { block: subnet("10.9.0.0/26"), ..network(&[]) };
        let level = |sites| found(&block(&small, Some(&[]), sites), "address-block").level;
        assert_eq!([level(2), level(3), level(5)], [Level::Ok, Level::Warning, Level::Problem]);
    }

    #[test]
    fn the_built_in_pools_are_thirty_one_networks() {
        let mut engine = prepared::engine();
        assert_eq!(pools(&engine).seen, "the engine's own address pools have room for 31 more networks of 31");
        engine.subnets = (17..32).map(|n| subnet(&format!("172.{n}.0.0/16"))).collect();
        engine.subnets.extend((0..10).map(|n| subnet(&format!("192.168.{}.0/20", n * 16))));
        assert_eq!(pools(&engine).level, Level::Warning);
        assert_eq!(pools(&engine).seen, "the engine's own address pools have room for 6 more networks of 31");
    }

    #[test]
    fn a_tiny_pool_is_warned_of_with_its_setting() {
        let mut engine = prepared::engine();
        engine.details.address_pools = vec![(subnet("10.99.0.0/24"), 26)];
        engine.subnets = vec![subnet("10.99.0.0/26")];
        let finding = pools(&engine);
        assert_eq!(finding.seen, "the engine's own address pools have room for 3 more networks of 4");
        assert!(
            finding.level == Level::Warning && finding.cure.is_some_and(|cure| cure.contains("default-address-pools"))
        );
    }

    #[test]
    fn ports_say_who_has_them() {
        let level = |state| {
            let port = PublicPort { site: "shop".to_owned(), address: ([127, 0, 0, 1], 80).into(), state };
            super::port(&port)
        };
        assert_eq!([level(PortState::Free).level, level(PortState::Ours).level], [Level::Ok; 2]);
        let held = level(PortState::Held { owner: "nginx (pid 7)".to_owned() });
        assert_eq!(held.seen, "127.0.0.1:80 (for shop) is held by nginx (pid 7)");
        assert!(
            [held, level(PortState::Denied), level(PortState::Failed("no such address".to_owned()))]
                .iter()
                .all(|finding| finding.level == Level::Problem && finding.cure.is_some())
        );
    }

    #[test]
    fn the_own_ports_of_a_site_are_one_finding() {
        let range = |states: &[PortState]| {
            let address = |at: usize| {
                (([127, 0, 0, 1], 17_771 + 10 * u16::try_from(at).expect("few")).into(), states[at].clone())
            };
            let ports = (0..states.len()).map(address).collect();
            slot_ports(&SlotPortRange { site: "shop".to_owned(), ports }).expect("a finding")
        };
        use PortState::{Denied, Free, Ours};
        assert_eq!(range(&[Free]).seen, "127.0.0.1:17771 (own port of slot 1 of shop) is available");
        let several = range(&[Free, Ours]);
        assert_eq!(several.seen, "127.0.0.1:17771 to 17781 (own ports of slots 1 to 2 of shop) are available");
        assert!(range(&[Ours, Ours]).seen.ends_with("are served by arenad's daemon"));
        let proxy = PortState::OfDaemon { purpose: "the episode proxy".to_owned() };
        let taken = range(&[Free, proxy, Denied, PortState::Held { owner: "nginx (pid 7)".to_owned() }]);
        assert_eq!(
            taken.seen,
            "127.0.0.1:17781 (own port of slot 2 of shop) is used by arenad's daemon for the episode proxy, and 2 more of \
             its own ports cannot be opened either"
        );
        assert!(taken.level == Level::Problem && taken.cure.is_some());
        assert!(slot_ports(&SlotPortRange { site: "shop".to_owned(), ports: Vec::new() }).is_none());
    }

    #[test]
    fn networks_that_are_not_closed_are_warned_of() {
        let mut facts = prepared::facts();
        facts.network.filters = Some(false);
        assert_eq!(found(&judge(&facts), "filters").level, Level::Warning);
        facts.network.filters = None;
        assert!(!judge(&facts).iter().any(|finding| finding.id == "filters"), "nothing is said of what was not seen");
    }
}
