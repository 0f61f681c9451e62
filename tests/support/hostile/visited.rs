//! A site with one service, which is a server of the test.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use arenad_accounts::VisitAddress;
use arenad_definition::{self as definition, DefinitionSources, SourceFile};
use arenad_launch::Incarnation;
use arenad_locators::Scene;
use arenad_locators::js::LivePage;
use arenad_model::site::Site;

/// A site and its address.
pub struct Visited {
    pub site: Site,
    pub incarnation: Incarnation,
    address: SocketAddr,
}

impl Visited {
    /// The site of a server, with further keys in the format of a definition, such as `stores: { … }`.
    pub fn at(address: SocketAddr, keys: &str) -> Self {
        let port = address.port();
        let environment = format!(
            "name: x\nsites:\n  web:\n    entry: {{ port: {port} }}\n    public: {{ port: 7770 }}\n    ready: {{ probes: [ {{ http: {{ path: / }} }} ] }}\n    {keys}\n"
        );
        let root = std::env::temp_dir();
        let sources = DefinitionSources {
            root,
            environment: SourceFile::new(Path::new("environments/x.yaml"), environment),
            compose: SourceFile::new(Path::new("compose/x.yaml"), "services: { web: { image: web:1 } }\n".to_owned()),
            dotenv: None,
        };
        let loaded = definition::load(&sources, &BTreeMap::new()).unwrap_or_else(|error| panic!("{error}"));
        let site = loaded.environment.sites.into_iter().next().expect("a site");
        let service = site.entry.service.clone();
        let incarnation = Incarnation {
            generation: 1,
            made: 1,
            containers: BTreeMap::new(),
            addresses: BTreeMap::from([(service, Ipv4Addr::LOCALHOST.into())]),
            started_at: 0,
            pristine: None,
        };
        Self { site, incarnation, address }
    }

    /// The context in which locators are evaluated.
    pub fn scene(&self) -> Scene<'_> {
        Scene {
            site: &self.site,
            place: VisitAddress { entry: self.address, host: "127.0.0.1".to_owned(), port: 7770 },
            incarnation: &self.incarnation,
            folders: BTreeMap::new(),
            instance: "web-1".to_owned(),
            page: None,
            live: Some(LivePage::Address(format!("http://{}", self.address))),
            traffic: None,
        }
    }
}
