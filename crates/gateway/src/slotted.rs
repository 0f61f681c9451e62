//! One request to the own port of a slot: whether it may go to the slot, and under which addresses.

use std::rc::Rc;
use std::sync::Arc;

use http::header::HOST;
use http::{HeaderMap, Request, Response};
use hyper::body::Incoming;

use super::address_table::{AddressRow, AddressTable};
use super::alias::AliasMap;
use super::authority::HostPort;
use super::body::AnswerBody;
use super::client::ClientConnection;
use super::forward::{self, Gone, ProxiedRequest, RequestDoor, RequestPath};
use super::guests::GuestExchanges;
use super::headers;
use super::mapped_body::BodyMap;
use super::refusal::{RefusalResponse, RefusalSubject};
use super::slot_port::{OtherPlace, SharedSlotPort, SlotLease, SlotPortDecision, SlotPortSite};
use super::workers::GatewayWorker;

/// One client connection to the own port of a slot, on its worker.
pub(super) struct SlotConnection {
    slot: Arc<SharedSlotPort>,
    worker: Rc<GatewayWorker>,
    client: Rc<ClientConnection>,
    /// The lease that the slot had when the connection was accepted.
    lease: Option<SlotLease>,
    exchanges: GuestExchanges,
}

impl SlotConnection {
    pub(super) fn new(
        slot: Arc<SharedSlotPort>,
        worker: Rc<GatewayWorker>,
        client: Rc<ClientConnection>,
        lease: Option<SlotLease>,
    ) -> Self {
        let exchanges = GuestExchanges::new(Rc::clone(&client));
        Self { slot, worker, client, lease, exchanges }
    }

    /// Answers one request, from the site or with the reason for which it goes nowhere.
    pub(super) async fn answer(&self, request: Request<Incoming>) -> Result<Response<AnswerBody>, Gone> {
        self.slot.port.count_request();
        let fault = self.client.begin_answer();
        let wants_html = forward::wants_html(&request);
        let path = match fault {
            Some(fault) => Err(RefusalResponse::head(fault)),
            None => headers::examine(&request).and_then(|()| self.decide(&request)),
        };
        match path {
            Ok(path) => {
                let change = |proxied: &mut ProxiedRequest, headers: &mut HeaderMap| {
                    if let Some(alias) = &mut proxied.alias {
                        // The map knows the addresses of all sites.
                        alias.map_request(headers, |_| None);
                    }
                };
                forward::answer_proxied(path, request, change).await
            }
            Err(refusal) => {
                let subject = RefusalSubject::Site(&self.slot.name);
                Ok(self.slot.port.own(&self.client, &refusal, subject, wants_html))
            }
        }
    }

    fn decide<B>(&self, request: &Request<B>) -> Result<RequestPath, RefusalResponse> {
        let used = self.used(request)?;
        match self.slot.directory.resolve(self.lease.as_ref(), &used.host, used.port) {
            SlotPortDecision::Site(site) => self.path(site, used),
            SlotPortDecision::Refused(refusal) => Err(RefusalResponse::of_slot(&refusal)),
            SlotPortDecision::NoLease { reason, retry_after } => Err(RefusalResponse::no_lease(&reason, retry_after)),
            SlotPortDecision::OtherLease { reason } => Err(RefusalResponse::gone(&reason)),
            SlotPortDecision::Unmappable { instead } => Err(RefusalResponse::unmappable(&instead)),
        }
    }

    /// Returns the address that the client uses. HTTP/1.0 permits requests that name none.
    fn used<B>(&self, request: &Request<B>) -> Result<HostPort, RefusalResponse> {
        let Some(host) = request.headers().get(HOST) else {
            let address = self.slot.port.address;
            return Ok(HostPort { host: address.ip().to_string(), port: address.port() });
        };
        let used = host.to_str().ok().and_then(HostPort::of);
        used.ok_or_else(|| RefusalResponse::malformed("a Host that names no host"))
    }

    fn path(&self, site: SlotPortSite, used: HostPort) -> Result<RequestPath, RefusalResponse> {
        let SlotPortSite { route, canonical, generation, access, others, maps_bodies } = site;
        let invalid = || RefusalResponse::bad_gateway("the address that a site was made for is not valid");
        let own = HostPort::of(&canonical).ok_or_else(invalid)?;
        // A client that names the canonical address maps addresses to ports by itself, and needs no other addresses.
        let mut rows = Vec::new();
        if used != own {
            rows.push(AddressRow { canonical: own, used: used.clone() });
            for other in others {
                let place = match other.place {
                    OtherPlace::Port(port) => Some(HostPort { host: used.host.clone(), port }),
                    OtherPlace::Host(host) => HostPort::of(&host),
                };
                let canonical = HostPort::of(&other.canonical).ok_or_else(invalid)?;
                rows.push(AddressRow { canonical, used: place.ok_or_else(invalid)? });
            }
        }
        let table = Rc::new(AddressTable::new(rows));
        let bodies = (maps_bodies && !table.is_empty()).then(|| BodyMap::new(Rc::clone(&table)));
        let alias = AliasMap::of_slot(used, &canonical, table).ok_or_else(invalid)?;
        let exchange = self.exchanges.enter(&route.shared, &access);
        let exchange = exchange.map_err(|refusal| RefusalResponse::of_slot(&refusal))?;
        let proxied = ProxiedRequest { access, generation, door: RequestDoor::Slot, alias: Some(alias), bodies };
        Ok(RequestPath {
            client: Rc::clone(&self.client),
            route: self.worker.local(&route.shared),
            exchange,
            proxied: Some(proxied),
            connect_timeout: self.worker.team.settings.connect_timeout,
        })
    }
}
