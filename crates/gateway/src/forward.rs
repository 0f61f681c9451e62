//! Forwarding of one request: it is held, refused, or sent to the target, whose response goes back to the client.
//!
//! A request is noted in the connection's link before it may reach a target, and the epoch is read again afterwards:
//! either the worker sees the switch or the switch sees the request (see `route`).

use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONNECTION, CONTENT_LENGTH};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use hyper::body::{Body, Incoming};
use tokio::time::Instant;

use super::access::EpisodeAccess;
use super::alias::AliasMap;
use super::authority::HostPort;
use super::body::{AnswerBody, BodyProgress, PassedBody, RequestBody, StreamedBody, WholeBody};
use super::client::{ClientConnection, Continuation};
use super::directory::ProxyRefusal;
use super::gather::{Gather, RecordedEpisode, Track, TrackPlace};
use super::headers;
use super::link::{BeginDecision, Epoch, ExchangeLink};
use super::local::{InFlight, LocalRoute};
use super::mapped_body::{BodyMap, WHOLE_BODY_MAX};
use super::phase::{RouteState, Target};
use super::pool::{ConnectError, Reuse, TargetConnection};
use super::refusal::{RefusalResponse, RefusalSubject};
use super::writes::is_safe;

/// Interval at which the gateway checks whether the client of a held request is still connected.
const HELD_TICK: Duration = Duration::from_millis(250);

/// The reason for refusing a request whose body cannot be read.
const BROKEN_BODY: &str = "a body that ends too early or is badly framed";

/// The client's connection was cut, so no response can be sent.
#[derive(Debug, thiserror::Error)]
#[error("the client's connection was cut")]
pub(super) struct Gone;

/// The outcome of one attempt to obtain a response.
enum ForwardAttempt {
    Answered(Response<Incoming>, Box<TargetConnection>),
    Failed {
        /// The request, if no byte of it was sent.
        unsent: Option<Request<RequestBody>>,
        /// Whether the target may merely have closed a kept-alive connection after its own timeout.
        is_stale: bool,
        refusal: RefusalResponse,
    },
}

/// The way of one request: the connection that it came on, and the route that it goes to.
pub(super) struct RequestPath {
    pub(super) client: Rc<ClientConnection>,
    pub(super) route: Rc<LocalRoute>,
    /// The part that the route has in the client's connection.
    pub(super) exchange: Arc<ExchangeLink>,
    /// The further conditions of a request of an episode.
    pub(super) proxied: Option<ProxiedRequest>,
    pub(super) connect_timeout: Duration,
}

/// The conditions under which a request of an episode is forwarded.
pub(super) struct ProxiedRequest {
    pub(super) access: EpisodeAccess,
    /// The only generation that may answer; `None` if any may.
    pub(super) generation: Option<u64>,
    pub(super) door: RequestDoor,
    /// The addresses of the site; `None` if the target is outside of the arena.
    pub(super) alias: Option<AliasMap>,
    /// The addresses in the body of the response, if they are replaced.
    pub(super) bodies: Option<BodyMap>,
}

/// The door through which a request of an episode came.
pub(super) enum RequestDoor {
    /// The episode proxy, with the address that the client used.
    Proxy {
        place: HostPort,
        /// Whether the request arrived in TLS, which the gateway has ended.
        is_tls: bool,
    },
    /// The own port of a slot.
    Slot,
}

impl RequestDoor {
    fn is_tls(&self) -> bool {
        matches!(self, Self::Proxy { is_tls: true, .. })
    }

    fn refusal(&self, refusal: &ProxyRefusal) -> RefusalResponse {
        match self {
            Self::Proxy { place, .. } => RefusalResponse::of_proxy(refusal, &place.to_string()),
            Self::Slot => RefusalResponse::of_slot(refusal),
        }
    }
}

struct Forwarding {
    client: Rc<ClientConnection>,
    route: Rc<LocalRoute>,
    exchange: Arc<ExchangeLink>,
    proxied: Option<ProxiedRequest>,
    /// The request as counted in flight by the route; handed over with its response.
    visit: Option<InFlight>,
    connect_timeout: Duration,
    wants_html: bool,
    is_upgrade: bool,
    is_safe: bool,
    may_write: bool,
    /// The request as the recorder sees it, if it is recorded.
    track: Option<Rc<Track>>,
    /// Progress of the request's body, if it has one.
    progress: Option<Rc<BodyProgress>>,
    /// Time until which the request may be held; set at its first hold.
    patience: Option<Instant>,
    was_retried: bool,
}

/// Answers one request of a client of a public port.
pub(super) async fn answer(
    client: Rc<ClientConnection>,
    route: Rc<LocalRoute>,
    exchange: Arc<ExchangeLink>,
    connect_timeout: Duration,
    request: Request<Incoming>,
) -> Result<Response<AnswerBody>, Gone> {
    let fault = client.begin_answer();
    let path = RequestPath { client, route, exchange, proxied: None, connect_timeout };
    let mut forwarding = Forwarding::new(path, &request);
    if let Some(fault) = fault {
        return Ok(forwarding.own(&RefusalResponse::head(fault)).await);
    }
    if let Err(refusal) = headers::examine(&request) {
        return Ok(forwarding.own(&refusal).await);
    }
    forwarding.start(request, |_, _| {}).await
}

/// Answers one request of a client of an episode, which has been examined. `change` adapts its head to the target.
pub(super) async fn answer_proxied(
    path: RequestPath,
    request: Request<Incoming>,
    change: impl FnOnce(&mut ProxiedRequest, &mut HeaderMap),
) -> Result<Response<AnswerBody>, Gone> {
    let mut forwarding = Forwarding::new(path, &request);
    forwarding.start(request, change).await
}

/// Returns whether the client prefers a page to plain text.
pub(super) fn wants_html<B>(request: &Request<B>) -> bool {
    let accept = request.headers().get(ACCEPT).map_or(&b""[..], HeaderValue::as_bytes);
    memchr::memmem::find(accept, b"text/html").is_some()
}

impl Forwarding {
    fn new(path: RequestPath, request: &Request<Incoming>) -> Self {
        let RequestPath { client, route, exchange, proxied, connect_timeout } = path;
        Self {
            visit: Some(InFlight::begin(Rc::clone(&route))),
            wants_html: wants_html(request),
            is_upgrade: headers::is_upgrade(request),
            is_safe: is_safe(request.method()),
            may_write: route.shared.writes.may_write(request) || headers::is_upgrade(request),
            track: None,
            client,
            route,
            exchange,
            proxied,
            connect_timeout,
            progress: None,
            patience: None,
            was_retried: false,
        }
    }

    /// Records and prepares the request, and forwards it.
    async fn start(
        &mut self,
        request: Request<Incoming>,
        change: impl FnOnce(&mut ProxiedRequest, &mut HeaderMap),
    ) -> Result<Response<AnswerBody>, Gone> {
        if self.may_write && self.route.shared.writes.is_refused {
            return Ok(self.own(&RefusalResponse::read_only(request.method(), self.is_upgrade)).await);
        }
        // The recorder needs the head before it is changed for the target.
        let mut request = request;
        let mut change = Some(change);
        if let Some(proxied) = &mut self.proxied
            && let RequestDoor::Slot = proxied.door
        {
            // Recordings of all slots are to be the same, so they have canonical addresses.
            change.take().into_iter().for_each(|change| change(proxied, request.headers_mut()));
            if let Some(mapped) = proxied.alias.as_ref().and_then(|alias| alias.map_target(request.uri())) {
                *request.uri_mut() = mapped;
            }
        }
        let shared = &self.route.shared;
        let is_tls = self.proxied.as_ref().is_some_and(|proxied| proxied.door.is_tls());
        let place = TrackPlace { reached: shared.address, site: self.site_name(), is_tls };
        let track = Track::of(&request, place, shared.recorder.as_ref(), self.episode_recording());
        self.track = track.map(Rc::new);
        let (mut parts, incoming) = request.into_parts();
        // The type is the client's, which the changes below keep.
        let mapper = match &self.proxied {
            Some(ProxiedRequest { bodies: Some(bodies), .. }) if !incoming.is_end_stream() => {
                bodies.request_mapper(&parts.headers)
            }
            _ => None,
        };
        let mut is_external = false;
        if let Some(proxied) = &mut self.proxied {
            change.into_iter().for_each(|change| change(proxied, &mut parts.headers));
            is_external = proxied.alias.is_none();
            if let Some(bodies) = &mut proxied.bodies {
                bodies.map_request(&mut parts.headers);
            }
        }
        headers::to_target(&mut parts, (!is_external).then_some(&self.client.origin), self.is_upgrade);
        if incoming.is_end_stream() {
            return self.run(Request::from_parts(parts, RequestBody::None)).await;
        }
        let (progress, route) = (Rc::new(BodyProgress::default()), Rc::clone(&self.route));
        self.progress = Some(Rc::clone(&progress));
        let gather = self.track.as_ref().map(Gather::sent);
        let is_short = incoming.size_hint().exact().is_some_and(|size| size <= WHOLE_BODY_MAX);
        let body = match mapper {
            // Boxed: the bodies of few requests are mapped, and the future would enlarge that of every request.
            Some(mut mapper) if is_short => match Box::pin(self.read_whole(incoming)).await {
                Ok(sent) => {
                    let mapped = mapper.last(&sent);
                    if mapped != sent {
                        BodyMap::forget_bytes(&mut parts.headers);
                        parts.headers.insert(CONTENT_LENGTH, HeaderValue::from(mapped.len()));
                    }
                    RequestBody::Whole(Box::new(WholeBody::new(Bytes::from(mapped), progress, route, gather)))
                }
                Err(refusal) => return Ok(self.own(&refusal).await),
            },
            mapper => {
                if mapper.is_some() {
                    BodyMap::forget_bytes(&mut parts.headers);
                }
                RequestBody::Streamed(Box::new(StreamedBody::new(incoming, progress, route, gather, mapper)))
            }
        };
        self.run(Request::from_parts(parts, body)).await
    }

    /// Reads a client's body to its end. A revocation of the access does not wait for the client.
    async fn read_whole(&self, mut incoming: Incoming) -> Result<Vec<u8>, RefusalResponse> {
        let mut read = Vec::new();
        loop {
            let next = std::future::poll_fn(|cx| Pin::new(&mut incoming).poll_frame(cx));
            let frame = match &self.proxied {
                None => next.await,
                Some(proxied) => tokio::select! {
                    frame = next => frame,
                    () = proxied.access.revoked() => {
                        return Err(self.revocation().unwrap_or_else(RefusalResponse::overtaken));
                    }
                },
            };
            match frame {
                None => return Ok(read),
                Some(Ok(frame)) => read.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data)),
                Some(Err(_)) => return Err(RefusalResponse::malformed(BROKEN_BODY)),
            }
        }
    }

    async fn run(&mut self, mut request: Request<RequestBody>) -> Result<Response<AnswerBody>, Gone> {
        loop {
            if let Some(refusal) = self.revocation() {
                return Ok(self.own(&refusal).await);
            }
            let (epoch, state) = self.route.current();
            let target = match &*state {
                RouteState::Serving { target } if self.is_wanted(target) => target,
                RouteState::Serving { .. } => return Ok(self.own(&RefusalResponse::replaced()).await),
                RouteState::Holding { reason } => match self.hold(epoch, reason).await {
                    Ok(()) => continue,
                    Err(refusal) => return Ok(self.own(&refusal).await),
                },
                RouteState::Refusing { reason, retry_after } => {
                    return Ok(self.own(&RefusalResponse::refusing(reason, *retry_after)).await);
                }
                RouteState::Closed => return Ok(self.own(&RefusalResponse::closed()).await),
            };
            match self.exchange.begin(epoch) {
                BeginDecision::Begun => {}
                BeginDecision::Cut => return Err(Gone),
                BeginDecision::Revoked => continue,
            }
            if self.is_overtaken(epoch) {
                self.exchange.withdraw();
                continue;
            }
            if self.may_write {
                self.route.shared.counters.unsafe_requests.fetch_add(1, Ordering::SeqCst);
            }
            if let Some(track) = &self.track {
                track.sent_to(target.generation);
            }
            let spare = self.can_resend().then(|| copy_of(&request));
            let again = match self.attempt(target, epoch, request).await {
                ForwardAttempt::Answered(answer, connection) => match self.pass_on(epoch, answer, connection).await {
                    Some(answer) => return Ok(answer),
                    None => spare,
                },
                ForwardAttempt::Failed { unsent, is_stale, refusal } => {
                    let again = unsent.or(spare);
                    // A switch aborts the connection to the target before it visits the link, so a switch may have
                    // caused the failure although the link does not show it yet; the epoch changes before both.
                    if self.exchange.withdraw() && !self.is_overtaken(epoch) {
                        match again {
                            Some(again) if is_stale && !self.was_retried => {
                                self.was_retried = true;
                                request = again;
                                continue;
                            }
                            _ => return Ok(self.failed(refusal).await),
                        }
                    }
                    again
                }
            };
            // A switch or a revocation came first. A request without effect may be sent to the next target.
            if self.client.link.is_cut() {
                return Err(Gone);
            }
            match again {
                Some(again) => request = again,
                None => {
                    let refusal = self.revocation().unwrap_or_else(RefusalResponse::overtaken);
                    return Ok(self.own(&refusal).await);
                }
            }
        }
    }

    /// Returns the name of the site, for the record of an episode; `None` for a host outside of the arena.
    fn site_name(&self) -> Option<&str> {
        let is_external = self.proxied.as_ref().is_some_and(|proxied| proxied.alias.is_none());
        (!is_external).then_some(self.route.shared.name.as_str())
    }

    /// Returns the recorder of the episode that the request belongs to, if it is recorded.
    fn episode_recording(&self) -> Option<RecordedEpisode> {
        match &self.proxied {
            Some(ProxiedRequest { access, generation, .. }) => {
                let recorder = Arc::clone(access.recorder()?);
                Some(RecordedEpisode { recorder, generation: *generation })
            }
            None => self.route.shared.episode_recording(),
        }
    }

    /// Waits until the exchange is kept, if it has ended and is recorded for an episode.
    async fn kept(&self) {
        if let Some(receipt) = self.track.as_ref().and_then(|track| track.receipt()) {
            // A keeper that fails drops its end.
            let _ = receipt.await;
        }
    }

    /// Returns the answer to a request whose access has been revoked.
    fn revocation(&self) -> Option<RefusalResponse> {
        let proxied = self.proxied.as_ref()?;
        proxied.access.refusal().map(|refusal| proxied.door.refusal(&refusal))
    }

    /// Returns whether the generation of the target may answer the request.
    fn is_wanted(&self, target: &Target) -> bool {
        let wanted = self.proxied.as_ref().and_then(|proxied| proxied.generation);
        wanted.is_none_or(|generation| generation == target.generation)
    }

    fn is_overtaken(&self, epoch: Epoch) -> bool {
        self.route.shared.epoch() != epoch
    }

    /// Returns whether the request has the same effect if two targets receive it as if one target receives it once.
    fn can_resend(&self) -> bool {
        self.is_safe && self.progress.is_none()
    }

    /// Hands a target's response to the client, unless a switch came first.
    async fn pass_on(
        &mut self,
        epoch: Epoch,
        answer: Response<Incoming>,
        connection: Box<TargetConnection>,
    ) -> Option<Response<AnswerBody>> {
        let (mut parts, incoming) = answer.into_parts();
        let is_upgraded = parts.status == StatusCode::SWITCHING_PROTOCOLS;
        let bodies = self.proxied.as_ref().and_then(|proxied| proxied.bodies.as_ref());
        let fault = if !headers::to_client(&mut parts) || (is_upgraded && !self.is_upgrade) {
            Some("its answer has a form that cannot be passed on".to_owned())
        } else {
            bodies.and_then(|bodies| bodies.check(&parts).err()).map(|error| error.to_string())
        };
        if let Some(fault) = fault {
            let is_current = self.exchange.withdraw() && !self.is_overtaken(epoch);
            if !is_current {
                return None;
            }
            return Some(self.failed(RefusalResponse::bad_gateway(fault)).await);
        }
        if !self.exchange.commit(epoch) {
            self.exchange.withdraw();
            return None;
        }
        self.client.begin_writing(&self.exchange);
        let visit = self.visit.take()?;
        let is_canonical = self.proxied.as_ref().is_some_and(|proxied| matches!(proxied.door, RequestDoor::Slot));
        if let Some(track) = self.track.as_ref().filter(|_| is_canonical) {
            track.answered(parts.status, &parts.headers);
        }
        if let Some(alias) = self.proxied.as_ref().and_then(|proxied| proxied.alias.as_ref()) {
            alias.map_response(&mut parts.headers);
        }
        if let Some(track) = self.track.as_ref().filter(|_| !is_canonical) {
            track.answered(parts.status, &parts.headers);
        }
        if is_upgraded {
            if let Some(track) = &self.track {
                track.end();
            }
            self.kept().await;
            // The response never ends, so the link stays committed and a switch cuts the tunnel.
            self.client.continue_with(Continuation::Upgraded(connection.upgrade().await, visit));
            return Some(Response::from_parts(parts, AnswerBody::Own(None)));
        }
        self.end_if_last(&mut parts.headers);
        let mut gather = self.track.as_ref().map(|track| Gather::received(track, &parts.headers));
        if let (true, Some(gather)) = (incoming.is_end_stream(), &mut gather) {
            // There is no last chunk that could be withheld, so the head is.
            gather.end();
            self.kept().await;
        }
        let attached = self.proxied.is_some().then(|| Arc::clone(&self.exchange));
        let bodies = self.proxied.as_ref().and_then(|proxied| proxied.bodies.as_ref());
        let mapper = bodies.and_then(|bodies| bodies.map_response(&mut parts));
        let body = PassedBody::new(incoming, connection, Rc::clone(&self.client), attached, visit, gather, mapper);
        Some(Response::from_parts(parts, AnswerBody::Passed(Box::new(body))))
    }

    async fn attempt(&self, target: &Target, epoch: Epoch, request: Request<RequestBody>) -> ForwardAttempt {
        let reuse = match (self.was_retried, self.can_resend()) {
            (true, _) => Reuse::Never,
            (false, true) => Reuse::Always,
            (false, false) => Reuse::IfYoung,
        };
        let mut connection = match self.route.pool.take(epoch, reuse).await {
            Some(connection) => connection,
            None => {
                let opened = TargetConnection::open(&self.route.shared, target.address, epoch, self.connect_timeout);
                // Boxed: a new connection is rare, and its future would enlarge the future of every request.
                match Box::pin(opened).await {
                    Ok(connection) => connection,
                    Err(error) => return self.unreachable(target, request, &error),
                }
            }
        };
        // From here on a revocation can abort the connection; before, nothing has been sent on it.
        if self.proxied.is_some() && !self.exchange.attach(connection.wire()) {
            let refusal = RefusalResponse::overtaken();
            return ForwardAttempt::Failed { unsent: Some(request), is_stale: false, refusal };
        }
        let is_stale = connection.is_reused;
        match connection.send(request).await {
            Ok(answer) => ForwardAttempt::Answered(answer, connection),
            Err(mut error) => {
                let unsent = error.take_message();
                let refusal = RefusalResponse::bad_gateway(format!("it did not answer ({})", error.error()));
                ForwardAttempt::Failed { unsent, is_stale, refusal }
            }
        }
    }

    fn unreachable(&self, target: &Target, request: Request<RequestBody>, error: &ConnectError) -> ForwardAttempt {
        let refusal = match error {
            ConnectError::TimedOut => RefusalResponse::gateway_timeout("it did not accept the connection in time"),
            ConnectError::Overtaken => RefusalResponse::overtaken(),
            ConnectError::Io(error) => {
                tracing::debug!(site.name = %self.route.shared.name, instance.id = %target.instance, %error,
                    "target cannot be reached");
                RefusalResponse::bad_gateway(format!("it does not accept connections ({})", error.kind()))
            }
        };
        ForwardAttempt::Failed { unsent: Some(request), is_stale: false, refusal }
    }

    /// Waits until the route has left `epoch`, or the access of the request has been revoked.
    async fn hold(&mut self, epoch: Epoch, reason: &str) -> Result<(), RefusalResponse> {
        let shared = &self.route.shared;
        let Some(_place) = shared.enter_held() else {
            return Err(RefusalResponse::queue_is_full(reason));
        };
        let patience = *self.patience.get_or_insert_with(|| Instant::now() + shared.hold.timeout);
        // Subscribed before the epoch is read, so that a change after the read wakes the receiver.
        let mut changes = shared.changes();
        while shared.epoch() == epoch {
            let now = Instant::now();
            if now >= patience {
                return Err(RefusalResponse::waited_too_long(reason));
            }
            // hyper notices that a client has left only when it has nothing left to read from it.
            if self.client.link.wire.peer_gone() {
                self.client.link.cut();
                return Err(RefusalResponse::waited_too_long(reason));
            }
            let change = tokio::time::timeout(HELD_TICK.min(patience - now), changes.changed());
            match &self.proxied {
                None => drop(change.await),
                Some(proxied) => tokio::select! {
                    _ = change => {}
                    () = proxied.access.revoked() => return Ok(()),
                },
            }
        }
        Ok(())
    }

    /// Builds the response for a target that failed to answer; the fault may be the client's own body.
    async fn failed(&mut self, refusal: RefusalResponse) -> Response<AnswerBody> {
        if self.progress.as_ref().is_some_and(|progress| progress.is_broken.get()) {
            return self.own(&RefusalResponse::malformed(BROKEN_BODY)).await;
        }
        self.route.shared.counters.target_failed();
        self.own(&refusal).await
    }

    async fn own(&mut self, refusal: &RefusalResponse) -> Response<AnswerBody> {
        let subject = RefusalSubject::Site(&self.route.shared.name);
        let (mut parts, text) = refusal.answer(subject, self.wants_html).into_parts();
        if let Some(track) = &self.track {
            track.answered(parts.status, &parts.headers);
            let mut gather = Gather::received(track, &parts.headers);
            gather.add(&text);
            gather.end();
        }
        self.kept().await;
        self.end_if_last(&mut parts.headers);
        self.client.end_answer(self.visit.take());
        Response::from_parts(parts, AnswerBody::Own(Some(text)))
    }

    fn end_if_last(&self, headers: &mut HeaderMap) {
        if self.client.is_last_answer() {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }
}

/// Copies a request without a body, so that it can be sent again.
fn copy_of(request: &Request<RequestBody>) -> Request<RequestBody> {
    let mut copy = Request::new(RequestBody::None);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    copy
}
