//! One request: held, refused, or sent to the target and its answer passed on.
//!
//! A request is noted in the connection's link before it may reach a target, and the epoch is read again afterwards: either
//! this side sees the switch or the switch sees the request (see `route`).

use std::rc::Rc;
use std::time::Duration;

use http::header::{ACCEPT, CONNECTION};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::{Body, Incoming};
use tokio::time::Instant;

use super::body::{AnswerBody, PassedBody, Progress, RequestBody};
use super::client::Client;
use super::headers;
use super::link::Epoch;
use super::local::{InFlight, LocalRoute};
use super::phase::{RouteState, Target};
use super::pool::{ConnectError, TargetConnection};
use super::refusal::Refusal;

/// How often it is looked whether the client of a held request is still there.
const HELD_TICK: Duration = Duration::from_millis(250);

/// The client's connection was cut: there is nobody to answer.
#[derive(Debug, thiserror::Error)]
#[error("the client's connection was cut")]
pub(super) struct Gone;

/// What became of one attempt to have a request answered.
enum Attempt {
    Answered(Response<Incoming>, Box<TargetConnection>),
    Failed {
        /// The request, if no byte of it was sent.
        unsent: Option<Request<RequestBody>>,
        /// Whether the target may merely have closed a connection that it had kept long enough.
        is_stale: bool,
        refusal: Refusal,
    },
}

struct Forwarding {
    client: Rc<Client>,
    route: Rc<LocalRoute>,
    connect_timeout: Duration,
    wants_html: bool,
    is_upgrade: bool,
    is_safe: bool,
    /// Until when the request may be held, once it has been.
    patience: Option<Instant>,
}

/// Answers one request of a client.
pub(super) async fn answer(
    client: Rc<Client>,
    route: Rc<LocalRoute>,
    connect_timeout: Duration,
    request: Request<Incoming>,
) -> Result<Response<AnswerBody>, Gone> {
    let fault = client.begin_answer();
    let visit = InFlight::begin(Rc::clone(&route));
    let accept = request.headers().get(ACCEPT).map_or(&b""[..], HeaderValue::as_bytes);
    let mut forwarding = Forwarding {
        wants_html: memchr::memmem::find(accept, b"text/html").is_some(),
        is_upgrade: headers::is_upgrade(&request),
        is_safe: matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS),
        client,
        route,
        connect_timeout,
        patience: None,
    };
    if let Some(fault) = fault {
        return Ok(forwarding.own(&Refusal::head(fault)));
    }
    if let Err(refusal) = headers::examine(&request) {
        return Ok(forwarding.own(&refusal));
    }
    let (mut parts, incoming) = request.into_parts();
    headers::to_target(&mut parts, &forwarding.client.origin, forwarding.is_upgrade);
    let body = if incoming.is_end_stream() {
        RequestBody::None
    } else {
        let progress = Rc::new(Progress::default());
        RequestBody::Streamed {
            incoming,
            progress,
            route: Rc::clone(&forwarding.route),
        }
    };
    forwarding.run(Request::from_parts(parts, body), visit).await
}

impl Forwarding {
    async fn run(&mut self, mut request: Request<RequestBody>, visit: InFlight) -> Result<Response<AnswerBody>, Gone> {
        let client = Rc::clone(&self.client);
        let progress = request.body().progress();
        let can_resend = self.is_safe && progress.is_none();
        let mut was_retried = false;
        loop {
            let (epoch, state) = self.route.current();
            let target = match &*state {
                RouteState::Serving { target } => target,
                RouteState::Holding { reason } => match self.hold(epoch, reason).await {
                    Ok(()) => continue,
                    Err(refusal) => return Ok(self.own(&refusal)),
                },
                RouteState::Refusing { reason, retry_after } => {
                    return Ok(self.own(&Refusal::refusing(reason, *retry_after)));
                }
                RouteState::Closed => return Ok(self.own(&Refusal::closed())),
            };
            if !client.link.begin(epoch) {
                return Err(Gone);
            }
            if self.route.shared.epoch() != epoch {
                client.link.withdraw();
                continue;
            }
            if !self.is_safe || self.is_upgrade {
                self.route
                    .shared
                    .counters
                    .unsafe_requests
                    .fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            }
            let spare = can_resend.then(|| copy_of(&request));
            let again = match self.attempt(target, epoch, request, can_resend && !was_retried).await {
                Attempt::Answered(answer, connection) => {
                    let (mut parts, incoming) = answer.into_parts();
                    let is_upgraded = parts.status == StatusCode::SWITCHING_PROTOCOLS;
                    let is_passable = headers::to_client(&mut parts) && (self.is_upgrade || !is_upgraded);
                    if !is_passable {
                        self.route.shared.counters.target_failed();
                        if client.link.withdraw() {
                            let reason = "its answer has a form that cannot be passed on";
                            return Ok(self.own(&Refusal::bad_gateway(reason)));
                        }
                        spare
                    } else if client.link.commit(epoch) {
                        if is_upgraded {
                            // The answer never ends, so the link stays committed and a switch cuts the tunnel.
                            *client.upgraded.borrow_mut() = Some(connection.upgrade().await);
                            return Ok(Response::from_parts(parts, AnswerBody::Own(None)));
                        }
                        if client.is_last_answer() || self.route.shared.is_draining() {
                            parts.headers.insert(CONNECTION, HeaderValue::from_static("close"));
                        }
                        let body = PassedBody::new(incoming, connection, client, visit);
                        return Ok(Response::from_parts(parts, AnswerBody::Passed(body)));
                    } else {
                        client.link.withdraw();
                        spare
                    }
                }
                Attempt::Failed {
                    unsent,
                    is_stale,
                    refusal,
                } => {
                    let again = unsent.or(spare);
                    // A switch aborts the connection to the target, so a failure may be its doing: the link knows.
                    if client.link.withdraw() {
                        match again {
                            Some(again) if is_stale && !was_retried => {
                                was_retried = true;
                                request = again;
                                continue;
                            }
                            _ if progress.is_some_and(|progress| progress.is_broken.get()) => {
                                return Ok(
                                    self.own(&Refusal::malformed("a body that ends too early or is badly framed"))
                                );
                            }
                            _ => {
                                self.route.shared.counters.target_failed();
                                return Ok(self.own(&refusal));
                            }
                        }
                    }
                    again
                }
            };
            // A switch came first. What had no effect may be sent to the next target.
            if client.link.is_cut() {
                return Err(Gone);
            }
            match again {
                Some(again) => request = again,
                None => return Ok(self.own(&Refusal::overtaken())),
            }
        }
    }

    async fn attempt(&self, target: &Target, epoch: Epoch, request: Request<RequestBody>, can_resend: bool) -> Attempt {
        let pooled = self.route.pool.take(epoch, can_resend).await;
        let mut connection = match pooled {
            Some(connection) => connection,
            None => {
                let opened = TargetConnection::open(&self.route.shared, target.address, epoch, self.connect_timeout);
                // Boxed: it is rare, and would make every request's future larger.
                match Box::pin(opened).await {
                    Ok(connection) => connection,
                    Err(error) => return self.unreachable(target, request, &error),
                }
            }
        };
        let is_reused = connection.is_reused;
        match connection.send(request).await {
            Ok(answer) => Attempt::Answered(answer, connection),
            Err(mut error) => {
                let unsent = error.take_message();
                let is_stale = is_reused;
                let refusal = Refusal::bad_gateway(format!("it did not answer ({})", error.error()));
                Attempt::Failed {
                    unsent,
                    is_stale,
                    refusal,
                }
            }
        }
    }

    fn unreachable(&self, target: &Target, request: Request<RequestBody>, error: &ConnectError) -> Attempt {
        let refusal = match error {
            ConnectError::TimedOut => Refusal::gateway_timeout("it did not accept the connection in time"),
            ConnectError::Overtaken => Refusal::overtaken(),
            ConnectError::Io(error) => {
                tracing::debug!(site.name = %self.route.shared.name, instance.id = %target.instance, %error,
                    "target cannot be reached");
                Refusal::bad_gateway(format!("it does not accept connections ({})", error.kind()))
            }
        };
        Attempt::Failed {
            unsent: Some(request),
            is_stale: false,
            refusal,
        }
    }

    /// Waits until the route's state is no longer that of `epoch`.
    async fn hold(&mut self, epoch: Epoch, reason: &str) -> Result<(), Refusal> {
        let shared = &self.route.shared;
        let Some(_place) = shared.enter_held() else {
            return Err(Refusal::queue_is_full(reason));
        };
        let patience = *self
            .patience
            .get_or_insert_with(|| Instant::now() + shared.hold.timeout);
        // Subscribed before the epoch is read: a change after the reading wakes the receiver.
        let mut changes = shared.changes();
        while shared.epoch() == epoch {
            let now = Instant::now();
            if now >= patience {
                return Err(Refusal::waited_too_long(reason));
            }
            // hyper notices a client that leaves only if it has nothing to read from it.
            if self.client.link.wire.peer_gone() {
                self.client.link.cut();
                return Err(Refusal::waited_too_long(reason));
            }
            let _ = tokio::time::timeout(HELD_TICK.min(patience - now), changes.changed()).await;
        }
        Ok(())
    }

    fn own(&self, refusal: &Refusal) -> Response<AnswerBody> {
        let (mut parts, text) = refusal.answer(&self.route.shared.name, self.wants_html).into_parts();
        if self.client.is_last_answer() || self.route.shared.is_draining() {
            parts.headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        self.client.end_answer();
        Response::from_parts(parts, AnswerBody::Own(Some(text)))
    }
}

/// Copies a request without a body, to be sent again.
fn copy_of(request: &Request<RequestBody>) -> Request<RequestBody> {
    let mut copy = Request::new(RequestBody::None);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    copy
}
