//! One request to the episode proxy: whether it may go anywhere, and where.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HOST, PROXY_AUTHORIZATION};
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use hyper::body::Incoming;

use super::access::EpisodeAccess;
use super::alias::AliasMap;
use super::authority::{self, HostPort};
use super::body::AnswerBody;
use super::client::{ClientConnection, Continuation, SiteTunnel, TlsTunnel};
use super::directory::{ProxyCredentials, ProxyDecision, ProxyRefusal, ProxySite};
use super::egress;
use super::forward::{self, Gone, ProxiedRequest, RequestDoor, RequestPath};
use super::guests::GuestExchanges;
use super::headers;
use super::link::{BeginDecision, ExchangeLink};
use super::local::{InFlight, LocalRoute};
use super::phase::{HoldLimits, RouteCommand, Target};
use super::pool::{ConnectError, TargetSocket, Upgraded};
use super::proxy::SharedProxy;
use super::recording::RecordingFilter;
use super::refusal::{RefusalResponse, RefusalSubject};
use super::route::SharedRoute;
use super::wire::TargetIo;
use super::workers::GatewayWorker;
use super::writes::WriteRules;

/// One client connection to the proxy, on its worker.
pub(super) struct ProxyConnection {
    pub(super) proxy: Arc<SharedProxy>,
    pub(super) worker: Rc<GatewayWorker>,
    pub(super) client: Rc<ClientConnection>,
    /// The tunnel to a site in which the requests arrive, after CONNECT.
    pub(super) tunnel: RefCell<Option<Rc<SiteTunnel>>>,
    exchanges: GuestExchanges,
}

/// A request that the directory has decided on.
struct ProxiedHead {
    credentials: ProxyCredentials,
    place: HostPort,
}

impl ProxyConnection {
    pub(super) fn new(proxy: Arc<SharedProxy>, worker: Rc<GatewayWorker>, client: Rc<ClientConnection>) -> Self {
        let exchanges = GuestExchanges::new(Rc::clone(&client));
        Self { proxy, worker, client, tunnel: RefCell::new(None), exchanges }
    }

    /// Whether requests arrive in TLS, which the gateway has ended.
    fn is_tls(&self) -> bool {
        self.tunnel.borrow().as_ref().is_some_and(|tunnel| tunnel.is_tls)
    }

    fn connect_timeout(&self) -> Duration {
        self.worker.team.settings.connect_timeout
    }

    fn resolve(&self, credentials: &ProxyCredentials, place: &HostPort) -> ProxyDecision {
        self.proxy.directory.resolve(credentials, &place.host, place.port)
    }

    /// Answers one request, from a site or an external host, or with the reason for which it goes nowhere.
    pub(super) async fn answer(&self, mut request: Request<Incoming>) -> Result<Response<AnswerBody>, Gone> {
        self.proxy.port.count_request();
        let fault = self.client.begin_answer();
        let wants_html = forward::wants_html(&request);
        if let Some(fault) = fault {
            return Ok(self.own(&RefusalResponse::head(fault), wants_html));
        }
        let head = match self.examine(&request) {
            Ok(head) => head,
            Err(refusal) => return Ok(self.own(&refusal, wants_html)),
        };
        headers::drop_proxy_headers(request.headers_mut());
        let is_connect = *request.method() == Method::CONNECT;
        let decision = self.resolve(&head.credentials, &head.place);
        let refusal = match decision {
            ProxyDecision::Site(site) if is_connect => return Ok(self.open_tunnel(head, site)),
            ProxyDecision::Site(site) => match self.path_to_site(&site, &head) {
                Ok(path) => {
                    let change = |proxied: &mut ProxiedRequest, headers: &mut HeaderMap| {
                        if let Some(alias) = &mut proxied.alias {
                            alias.map_request(headers, |place| self.canonical_of(&head.credentials, place));
                        }
                    };
                    return forward::answer_proxied(path, request, change).await;
                }
                Err(refusal) => refusal,
            },
            // Boxed: requests to other hosts are rare, and would enlarge the future of every request.
            ProxyDecision::External(access) if is_connect => {
                match Box::pin(self.open_external_tunnel(access, &head.place)).await {
                    Ok(answer) => return Ok(answer),
                    Err(refusal) => refusal,
                }
            }
            ProxyDecision::External(access) => match Box::pin(self.path_to_host(access, &head.place)).await {
                Ok(path) => {
                    let host = HeaderValue::try_from(head.place.to_string());
                    let change = |_: &mut ProxiedRequest, headers: &mut HeaderMap| {
                        // HTTP/1.0 permits requests without Host.
                        if let (false, Ok(host)) = (headers.contains_key(HOST), host) {
                            headers.insert(HOST, host);
                        }
                    };
                    return Box::pin(forward::answer_proxied(path, request, change)).await;
                }
                Err(refusal) => refusal,
            },
            ProxyDecision::Refused(refusal) => {
                if let ProxyRefusal::Outside { .. } = &refusal {
                    let ProxiedHead { credentials, place } = &head;
                    self.proxy.directory.refused_outside(credentials, request.method(), &place.host, place.port);
                }
                self.explained(&refusal, &head, is_connect)
            }
        };
        Ok(self.own(&refusal, wants_html))
    }

    /// Reads the credentials and the place of a request.
    fn examine<B>(&self, request: &Request<B>) -> Result<ProxiedHead, RefusalResponse> {
        if let Some(tunnel) = &*self.tunnel.borrow() {
            headers::examine_tunnelled(request, &tunnel.place, tunnel.is_tls)?;
            return Ok(ProxiedHead { credentials: tunnel.credentials.clone(), place: tunnel.place.clone() });
        }
        let place = headers::proxied_place(request)?;
        if let Some(client) = &self.proxy.only {
            return Ok(ProxiedHead { credentials: client.credentials.clone(), place });
        }
        let mut values = request.headers().get_all(PROXY_AUTHORIZATION).iter();
        let credentials = match (values.next(), values.next()) {
            (None, _) => return Err(RefusalResponse::no_credentials()),
            (Some(_), Some(_)) => return Err(RefusalResponse::malformed("more than one Proxy-Authorization")),
            (Some(value), None) => authority::basic_credentials(value.as_bytes()),
        };
        let credentials = credentials.ok_or_else(RefusalResponse::malformed_credentials)?;
        Ok(ProxiedHead { credentials, place })
    }

    /// Returns the response to a request that the directory refused.
    fn explained(&self, refusal: &ProxyRefusal, head: &ProxiedHead, is_connect: bool) -> RefusalResponse {
        // An https address of a site has port 443, on which no site listens.
        if let (true, ProxyRefusal::Outside { .. }, 443) = (is_connect, refusal, head.place.port) {
            let plain = HostPort { port: 80, ..head.place.clone() };
            if let ProxyDecision::Site(_) = self.resolve(&head.credentials, &plain) {
                return RefusalResponse::tls_tunnel(&plain.to_string());
            }
        }
        RefusalResponse::of_proxy(refusal, &head.place.to_string())
    }

    /// Returns the address that another site of the same episode was made for.
    fn canonical_of(&self, credentials: &ProxyCredentials, place: &HostPort) -> Option<HostPort> {
        match self.resolve(credentials, place) {
            ProxyDecision::Site(site) => HostPort::of(&site.canonical),
            ProxyDecision::External(_) | ProxyDecision::Refused(_) => None,
        }
    }

    fn path_to_site(&self, site: &ProxySite, head: &ProxiedHead) -> Result<RequestPath, RefusalResponse> {
        let alias = AliasMap::new(head.place.clone(), &site.canonical)
            .ok_or_else(|| RefusalResponse::bad_gateway("the address that its site was made for is not valid"))?;
        let route = self.worker.local(&site.route.shared);
        let exchange = self.enter(&route.shared, &site.access, &head.place)?;
        let proxied = ProxiedRequest {
            access: site.access.clone(),
            generation: site.generation,
            door: RequestDoor::Proxy { place: head.place.clone(), is_tls: self.is_tls() },
            alias: Some(alias),
            bodies: None,
        };
        let connect_timeout = self.connect_timeout();
        Ok(RequestPath { client: Rc::clone(&self.client), route, exchange, proxied: Some(proxied), connect_timeout })
    }

    /// Resolves an external host and makes a route to it that lasts for one request.
    async fn path_to_host(&self, access: EpisodeAccess, place: &HostPort) -> Result<RequestPath, RefusalResponse> {
        let connect_timeout = self.connect_timeout();
        let may_reach = self.worker.team.settings.may_be_external;
        let address = egress::resolve(place, connect_timeout, may_reach).await;
        let address = address.map_err(|error| RefusalResponse::egress(&error, &place.to_string()))?;
        let no_hold = HoldLimits { requests: 0, timeout: Duration::ZERO };
        let (writes, record) = (WriteRules::default(), RecordingFilter::Nothing);
        let shared = SharedRoute::new(0, &place.to_string(), address, no_hold, writes, record);
        let target = Target { address, instance: "external host".to_owned(), generation: 0 };
        shared.change(RouteCommand::Serve(target));
        let route = LocalRoute::new(shared);
        let exchange = self.enter(&route.shared, &access, place)?;
        let door = RequestDoor::Proxy { place: place.clone(), is_tls: false };
        let proxied = ProxiedRequest { access, generation: None, door, alias: None, bodies: None };
        Ok(RequestPath { client: Rc::clone(&self.client), route, exchange, proxied: Some(proxied), connect_timeout })
    }

    fn enter(
        &self,
        route: &Arc<SharedRoute>,
        access: &EpisodeAccess,
        place: &HostPort,
    ) -> Result<Arc<ExchangeLink>, RefusalResponse> {
        let entered = self.exchanges.enter(route, access);
        entered.map_err(|refusal| RefusalResponse::of_proxy(&refusal, &place.to_string()))
    }

    fn open_tunnel(&self, head: ProxiedHead, site: ProxySite) -> Response<AnswerBody> {
        let ProxiedHead { credentials, place } = head;
        let tunnel = SiteTunnel { credentials, place, is_tls: site.tls.is_some() };
        match site.tls {
            // The response never ends: the client owes no request outside of TLS.
            Some(server) => {
                let tls = TlsTunnel { tunnel, server, access: site.access };
                self.client.continue_with(Continuation::TlsTunnel(tls));
            }
            None => {
                self.client.continue_with(Continuation::SiteTunnel(tunnel));
                self.client.end_answer(None);
            }
        }
        Response::new(AnswerBody::Own(None))
    }

    /// Connects to an external host; afterwards bytes flow both ways until either side or a revocation ends it.
    async fn open_external_tunnel(
        &self,
        access: EpisodeAccess,
        place: &HostPort,
    ) -> Result<Response<AnswerBody>, RefusalResponse> {
        let RequestPath { route, exchange, proxied, connect_timeout, .. } = self.path_to_host(access, place).await?;
        let revocation = || {
            let refusal = proxied.as_ref().and_then(|proxied| proxied.access.refusal());
            refusal.map_or_else(RefusalResponse::overtaken, |refusal| {
                RefusalResponse::of_proxy(&refusal, &place.to_string())
            })
        };
        let shared = &route.shared;
        let epoch = shared.epoch();
        if exchange.begin(epoch) != BeginDecision::Begun {
            return Err(revocation());
        }
        let visit = InFlight::begin(Rc::clone(&route));
        let TargetSocket { read, wire, entry } =
            TargetSocket::open(shared, shared.address, epoch, connect_timeout).await.map_err(|error| {
                exchange.withdraw();
                match error {
                    ConnectError::TimedOut => {
                        RefusalResponse::gateway_timeout(format!("{place} did not answer in time"))
                    }
                    ConnectError::Overtaken => revocation(),
                    ConnectError::Io(error) => {
                        RefusalResponse::bad_gateway(format!("{place} does not accept connections ({})", error.kind()))
                    }
                }
            })?;
        if !exchange.attach(&wire) || !exchange.commit(epoch) {
            exchange.withdraw();
            return Err(revocation());
        }
        let upgraded = Upgraded { io: TargetIo::new(read, wire), ahead: Bytes::new(), entry };
        self.client.continue_with(Continuation::Upgraded(upgraded, visit));
        // The response never ends: its client owes no further request.
        Ok(Response::new(AnswerBody::Own(None)))
    }

    /// Answers a request that has no route.
    fn own(&self, refusal: &RefusalResponse, wants_html: bool) -> Response<AnswerBody> {
        self.proxy.port.own(&self.client, refusal, RefusalSubject::Proxy, wants_html)
    }
}
