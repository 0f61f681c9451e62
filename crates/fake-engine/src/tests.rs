//! Tests of the effects of scripts on calls, and of calls whose callers have gone.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{CallFailure, CallFate, EngineCall, EngineMethod, FakeEngine, FakeImage, ProgramRequest, ToySite};
use arenad_engine::{ContainerSpec, ContainerState, CpuWeight, Engine, EngineError, EngineHandle};
use arenad_model::ids::ServiceName;
use arenad_model::service::ServiceSpec;

const LABEL: &str = "test";

fn service() -> ServiceSpec {
    ServiceSpec::new(ServiceName::parse("web").expect("a name"), "toy:1")
}

fn labels() -> BTreeMap<String, String> {
    BTreeMap::from([(LABEL.to_owned(), "yes".to_owned())])
}

fn spec<'a>(name: &str, service: &'a ServiceSpec) -> ContainerSpec<'a> {
    ContainerSpec {
        name: name.to_owned(),
        image: "toy:1".to_owned(),
        service,
        labels: labels(),
        network: "net".to_owned(),
        outward: None,
        volumes: BTreeMap::new(),
        binds: BTreeMap::new(),
        environment: BTreeMap::new(),
        weight: CpuWeight::Serving,
        keeps_stores_in_layer: false,
    }
}

/// Creates an engine with a network and the toy site's image.
async fn engine_with(site: ToySite) -> FakeEngine {
    let engine = FakeEngine::new();
    engine.clock().enter();
    engine.install_program("toy", site.maker());
    engine.add_image(&FakeImage::new("toy:1", "toy"));
    let subnet = "10.9.0.0/28".parse().expect("a range");
    engine.create_network("net", subnet, false, &labels()).await.expect("a network");
    engine
}

async fn engine() -> FakeEngine {
    engine_with(ToySite::default()).await
}

async fn running(engine: &FakeEngine, name: &str) -> EngineHandle {
    let service = service();
    let handle = engine.create(&spec(name, &service)).await.expect("a container");
    engine.start(&handle).await.expect("it starts");
    handle
}

fn socket(engine: &FakeEngine, name: &str) -> SocketAddr {
    SocketAddr::new(engine.address_of(name).expect("an address"), 80)
}

/// Sets the fate of one kind of calls; all others proceed.
fn on(operation: EngineMethod, fate: CallFate) -> impl FnMut(&EngineCall<'_>) -> CallFate + Send {
    move |call: &EngineCall<'_>| if call.operation == operation { fate.clone() } else { CallFate::proceed() }
}

async fn state(engine: &FakeEngine, handle: &EngineHandle) -> ContainerState {
    engine.inspect(handle).await.expect("it is there").state
}

#[tokio::test(start_paused = true)]
async fn a_script_is_told_what_is_called_and_how_often() {
    let engine = engine().await;
    let heard: Arc<Mutex<Vec<(EngineMethod, String, u64)>>> = Arc::default();
    let noted = heard.clone();
    engine.set_script(move |call: &EngineCall<'_>| {
        noted.lock().expect("not poisoned").push((call.operation, call.subject.to_owned(), call.nth));
        CallFate::proceed()
    });
    let handle = running(&engine, "one").await;
    engine.inspect(&handle).await.expect("it is there");
    engine.inspect(&handle).await.expect("it is there");
    let wanted =
        [(EngineMethod::Create, 1), (EngineMethod::Start, 1), (EngineMethod::Inspect, 1), (EngineMethod::Inspect, 2)];
    let wanted = wanted.map(|(operation, nth)| (operation, "one".to_owned(), nth));
    assert_eq!(*heard.lock().expect("not poisoned"), wanted);
}

#[tokio::test(start_paused = true)]
async fn scripted_failures_have_no_effect() {
    let engine = engine().await;
    let service = service();
    for (failure, is_transient) in [
        (CallFailure::Transient, true),
        (CallFailure::NoSpace, true),
        (CallFailure::Unreachable, true),
        (CallFailure::Broken, true),
        (CallFailure::TimedOut, true),
        (CallFailure::Refused, false),
        (CallFailure::NotFound, false),
        (CallFailure::Conflict, false),
    ] {
        engine.set_script(on(EngineMethod::Create, CallFate::fail(failure)));
        let error = engine.create(&spec("one", &service)).await.expect_err("it fails");
        assert_eq!(
            (error.is_transient(), failure.is_transient()),
            (is_transient, is_transient),
            "{failure:?}: {error:?}"
        );
        assert!(engine.containers(LABEL, "yes").await.expect("a list").is_empty(), "{failure:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_leaves_the_effect() {
    let engine = engine().await;
    let service = service();
    engine.set_script(on(EngineMethod::Create, CallFate::lose_reply()));
    let error = engine.create(&spec("one", &service)).await.expect_err("the reply is lost");
    assert!(matches!(error, EngineError::Unreachable { .. }), "{error:?}");
    assert_eq!(engine.containers(LABEL, "yes").await.expect("a list").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_never_comes_times_out_at_the_callers_limit() {
    let engine = engine().await;
    engine.set_script(on(EngineMethod::CreateVolume, CallFate::never_reply()));
    let before = engine.clock().now();
    let error = engine.create_volume("v", &labels()).await.expect_err("no reply");
    assert!(matches!(error, EngineError::TimedOut { .. }), "{error:?}");
    assert_eq!(engine.clock().now() - before, Duration::from_secs(60));
    assert_eq!(engine.volumes(LABEL, "yes").await.expect("a list").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_effect_comes_before_its_reply() {
    let engine = engine().await;
    let seconds = Duration::from_secs;
    engine.set_script(on(EngineMethod::CreateVolume, CallFate::delay(seconds(2), seconds(3))));
    let labels = labels();
    let mut call = Box::pin(engine.create_volume("v", &labels));
    assert!((&mut call).now_or_never().is_none());
    tokio::time::advance(seconds(1)).await;
    assert!(engine.volumes(LABEL, "yes").await.expect("a list").is_empty());
    tokio::time::advance(seconds(1)).await;
    assert_eq!(engine.volumes(LABEL, "yes").await.expect("a list").len(), 1);
    call.await.expect("it is made");
    assert_eq!(engine.clock().now(), seconds(5));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_sent_takes_effect_without_its_caller() {
    let engine = engine().await;
    let service = service();
    engine.set_script(on(EngineMethod::Create, CallFate::delay(Duration::from_secs(5), Duration::ZERO)));
    let wanted = spec("one", &service);
    let call = tokio::time::timeout(Duration::from_secs(1), engine.create(&wanted)).await;
    assert!(call.is_err(), "it is not there yet");
    assert_eq!(engine.pending(), 1);
    assert!(engine.containers(LABEL, "yes").await.expect("a list").is_empty());
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(engine.containers(LABEL, "yes").await.expect("a list").len(), 1);
    // A call that was never polled was never sent.
    engine.clear_script();
    drop(engine.create(&spec("two", &service)));
    assert_eq!(engine.containers(LABEL, "yes").await.expect("a list").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_name_is_taken_while_its_container_is_being_made() {
    let engine = engine().await;
    let service = service();
    let wanted = spec("one", &service);
    engine.set_script(|call: &EngineCall<'_>| match (call.operation, call.nth) {
        (EngineMethod::Create, 1) => CallFate::delay(Duration::from_secs(5), Duration::ZERO),
        _ => CallFate::proceed(),
    });
    assert!(tokio::time::timeout(Duration::from_secs(1), engine.create(&wanted)).await.is_err());
    assert!(matches!(engine.create(&wanted).await, Err(EngineError::Conflict { .. })));
    assert!(engine.containers(LABEL, "yes").await.expect("a list").is_empty());
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(engine.containers(LABEL, "yes").await.expect("a list").len(), 1);
}

#[test]
fn effects_outlive_the_runtime_of_their_caller() {
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_time().start_paused(true).build().expect("a runtime")
    };
    let first = runtime();
    let engine = first.block_on(async {
        let engine = engine().await;
        let handle = running(&engine, "one").await;
        engine.set_script(on(EngineMethod::Remove, CallFate::delay(Duration::from_secs(5), Duration::ZERO)));
        let removing = engine.clone();
        tokio::spawn(async move { removing.remove(&handle).await });
        tokio::time::sleep(Duration::from_secs(1)).await;
        engine.clock().leave();
        engine
    });
    drop(first);
    assert_eq!(engine.clock().now(), Duration::from_secs(1));
    assert_eq!(engine.all_containers().len(), 1);
    runtime().block_on(async {
        engine.clock().enter();
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(engine.all_containers().len(), 1);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(engine.all_containers().is_empty());
        engine.clock().leave();
    });
    assert_eq!(engine.clock().now(), Duration::from_secs(5));
    engine.pass(Duration::from_secs(2));
    assert_eq!(engine.clock().now(), Duration::from_secs(7));
}

#[tokio::test(start_paused = true)]
async fn containers_die_later_by_themselves() {
    let engine = engine().await;
    engine.set_script(on(EngineMethod::Start, CallFate::die_later(Duration::from_secs(3), 9)));
    let one = running(&engine, "one").await;
    engine.set_script(on(EngineMethod::Start, CallFate::oom(Duration::from_secs(3))));
    let two = running(&engine, "two").await;
    assert_eq!(state(&engine, &one).await, ContainerState::Running);
    let mut events = engine.events(LABEL, "yes");
    let first = events.next().await.expect("an event").expect("no error");
    assert_eq!((first.handle, first.action.as_str()), (one.clone(), "die"));
    assert_eq!(engine.clock().now(), Duration::from_secs(3));
    assert_eq!(state(&engine, &one).await, ContainerState::Exited(9));
    let status = engine.inspect(&two).await.expect("it is there");
    assert_eq!((status.state, status.oom_killed), (ContainerState::Exited(137), true));
    // A scheduled end of one run does not apply to the next.
    engine.clear_script();
    engine.die_later("one", Duration::from_secs(3), 9);
    engine.start(&one).await.expect("it starts");
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(state(&engine, &one).await, ContainerState::Running);
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_is_down_forgets_calls_on_their_way() {
    let engine = engine().await;
    let handle = running(&engine, "one").await;
    let mut events = engine.events(LABEL, "yes");
    engine.set_script(on(EngineMethod::Remove, CallFate::delay(Duration::from_secs(5), Duration::ZERO)));
    let mut removing = Box::pin(engine.remove(&handle));
    assert!((&mut removing).now_or_never().is_none());
    engine.go_down(false);
    assert!(matches!(engine.ping().await, Err(EngineError::Unreachable { .. })));
    assert!(matches!(removing.await, Err(EngineError::Unreachable { .. })));
    assert!(matches!(events.next().await, Some(Err(EngineError::Unreachable { .. }))));
    assert!(events.next().await.is_none());
    engine.come_up();
    assert_eq!(state(&engine, &handle).await, ContainerState::Running);
    engine.go_down(true);
    engine.come_up();
    assert_eq!(state(&engine, &handle).await, ContainerState::Exited(137));
}

#[tokio::test(start_paused = true)]
async fn another_engine_behind_the_same_address_has_another_id_and_nothing_else() {
    let engine = engine().await;
    running(&engine, "one").await;
    let id = engine.details().await.expect("it answers").id;
    let earlier = engine.replace();
    assert_ne!(engine.details().await.expect("it answers").id, id);
    assert!(engine.containers(LABEL, "yes").await.expect("a list").is_empty());
    assert!(engine.image("toy:1").await.expect("it answers").is_none());
    engine.restore(earlier);
    assert_eq!(engine.details().await.expect("it answers").id, id);
    assert_eq!(engine.containers(LABEL, "yes").await.expect("a list").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_full_disk_refuses_what_needs_space() {
    let engine = engine().await;
    let handle = running(&engine, "one").await;
    engine.fill_disk(true);
    let error = engine.commit(&handle, "c", "1", &labels()).await.expect_err("no space");
    assert!(error.to_string().contains("no space left on device"), "{error}");
    let service = service();
    assert!(engine.create(&spec("two", &service)).await.is_err());
    let address = socket(&engine, "one");
    assert_eq!(engine.request(address, &ProgramRequest::post("/layer/x", "1")).expect("an answer").status, 500);
    engine.remove(&handle).await.expect("removing needs no space");
    engine.fill_disk(false);
    engine.create(&spec("two", &service)).await.expect("there is room");
}

#[tokio::test(start_paused = true)]
async fn lost_events_are_lost_and_broken_streams_say_so() {
    let engine = engine().await;
    let mut events = engine.events(LABEL, "yes");
    engine.drop_events(true);
    let handle = running(&engine, "one").await;
    engine.drop_events(false);
    engine.freeze(&handle).await.expect("it freezes");
    assert_eq!(events.next().await.expect("an event").expect("no error").action, "pause");
    engine.break_events();
    assert!(events.next().await.expect("an item").is_err());
    assert!(events.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn networks_with_foreign_endpoints_stay() {
    let engine = engine().await;
    engine.attach_foreign("net", "another").expect("an address");
    let error = engine.remove_network("net").await.expect_err("it is in use");
    assert!(error.to_string().contains("has active endpoints"), "{error}");
    assert!(engine.detach_foreign("net", "another"));
    engine.remove_network("net").await.expect("it goes");
}

#[tokio::test(start_paused = true)]
async fn archives_whose_reply_is_lost_break_off_in_the_middle() {
    let engine = engine().await;
    let handle = running(&engine, "one").await;
    engine.write_file("one", "/root/x", &[7; 200_000]).expect("it is written");
    engine.set_script(on(EngineMethod::ReadArchive, CallFate::lose_reply()));
    let pieces: Vec<_> = engine.read_archive(&handle, "/root").collect().await;
    assert!(pieces.len() > 1);
    assert!(pieces[..pieces.len() - 1].iter().all(Result::is_ok));
    assert!(pieces[pieces.len() - 1].is_err());
}

#[tokio::test(start_paused = true)]
async fn the_toy_site_keeps_entries_where_sites_keep_state() {
    let site = ToySite { boot: Duration::from_secs(2), ..ToySite::default() };
    let engine = engine_with(site).await;
    let folder = tempfile::tempdir().expect("a folder");
    let service = service();
    let mut wanted = spec("one", &service);
    wanted.binds.insert("/data".to_owned(), folder.path().to_owned());
    let handle = engine.create(&wanted).await.expect("a container");
    engine.start(&handle).await.expect("it starts");
    let address = socket(&engine, "one");
    let refused = engine.request(address, &ProgramRequest::get("/")).expect_err("it boots");
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let page =
        |engine: &FakeEngine| engine.request(address, &ProgramRequest::get("/")).map(|answer| answer.body_text());
    for kind in ["data", "layer", "memory"] {
        let written = engine.request(address, &ProgramRequest::post(&format!("/{kind}/x"), kind)).expect("an answer");
        assert_eq!(written.status, 200);
    }
    assert_eq!(page(&engine).expect("a page"), "data/x=data\nlayer/x=layer\nmemory/x=memory\n");
    assert_eq!(std::fs::read(folder.path().join("x")).expect("on the host"), b"data");
    // The site uses its copy in memory until its writers are started.
    std::fs::write(folder.path().join("x"), "other").expect("written");
    assert!(page(&engine).expect("a page").contains("data/x=data"));
    let exec = async |command: &str| {
        let command = [command.to_owned()];
        engine.exec(&handle, &command, None, Duration::from_secs(9)).await.expect("it runs").code
    };
    assert_eq!(exec("stop-writers").await, 0);
    assert_eq!(engine.request(address, &ProgramRequest::get("/")).expect("an answer").status, 503);
    assert_eq!(exec("start-writers").await, 0);
    assert_eq!(page(&engine).expect("a page"), "data/x=other\nlayer/x=layer\n");
    assert_eq!(exec("no-such-command").await, 127);
    // After a commit, the layer's entry is in every container of the image, but the entry in the mounted folder is not.
    let image = engine.commit(&handle, "toy", "2", &BTreeMap::new()).await.expect("an image");
    let mut copy = spec("two", &service);
    copy.image = image;
    let copy = engine.create(&copy).await.expect("a container");
    engine.start(&copy).await.expect("it starts");
    tokio::time::sleep(Duration::from_secs(2)).await;
    let body = engine.request(socket(&engine, "two"), &ProgramRequest::get("/")).expect("an answer").body_text();
    assert_eq!(body, "layer/x=layer\n");
}

#[tokio::test(start_paused = true)]
async fn changes_of_the_layer_are_told_and_those_of_mounts_are_not() {
    let engine = engine().await;
    let mut image = FakeImage::new("toy:1", "toy");
    for path in ["/a/changed", "/a/gone", "/b/same"] {
        image.files.insert(path.to_owned(), b"before".to_vec());
    }
    engine.add_image(&image);
    let service = service();
    let mut wanted = spec("one", &service);
    wanted.volumes.insert("/volume".to_owned(), ("volume".to_owned(), false));
    let handle = engine.create(&wanted).await.expect("a container");
    assert_eq!(engine.layer_changes("one"), Some(Vec::new()));
    for path in ["/a/changed", "/root/new", "/volume/x"] {
        engine.write_file("one", path, b"after").expect("it is written");
    }
    engine.remove_file("one", "/a/gone").expect("it goes");
    let changes: Vec<(String, char)> = engine.layer_changes("one").expect("it is there");
    let changes: Vec<(&str, char)> = changes.iter().map(|(path, kind)| (path.as_str(), *kind)).collect();
    assert_eq!(changes, [("/a", 'C'), ("/a/changed", 'C'), ("/a/gone", 'D'), ("/root", 'A'), ("/root/new", 'A')]);
    engine.remove(&handle).await.expect("it goes");
    assert_eq!(engine.layer_changes("one"), None);
}

#[tokio::test(start_paused = true)]
async fn a_frozen_container_answers_once_it_goes_on() {
    let engine = engine().await;
    let handle = running(&engine, "one").await;
    let address = socket(&engine, "one");
    engine.freeze(&handle).await.expect("it freezes");
    assert_eq!(
        engine.request(address, &ProgramRequest::get("/")).expect_err("frozen").kind(),
        std::io::ErrorKind::TimedOut
    );
    let mut connection = engine.dial(address).await.expect("its kernel accepts");
    connection.write_all(b"GET / HTTP/1.1\r\nhost: toy\r\n\r\n").await.expect("sent");
    let mut answer = [0; 12];
    let waiting = tokio::time::timeout(Duration::from_secs(1), connection.read_exact(&mut answer)).await;
    assert!(waiting.is_err(), "it is frozen");
    engine.thaw(&handle).await.expect("it goes on");
    connection.read_exact(&mut answer).await.expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 200");
    engine.kill("one");
    let mut rest = Vec::new();
    connection.read_to_end(&mut rest).await.expect("the connection ends");
    assert!(engine.dial(address).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn saved_images_load_into_another_engine() {
    let engine = engine().await;
    let handle = running(&engine, "one").await;
    engine.write_file("one", "/root/x", b"kept").expect("it is written");
    let id = engine.commit(&handle, "toy", "2", &labels()).await.expect("an image");
    let archive: Vec<_> = engine.save(std::slice::from_ref(&id)).collect().await;
    let archive: Vec<std::io::Result<bytes::Bytes>> =
        archive.into_iter().map(|piece| piece.map_err(std::io::Error::other)).collect();
    engine.replace();
    engine.load(Box::pin(futures_util::stream::iter(archive)), &|_| {}).await.expect("it loads");
    let image = engine.image(&id).await.expect("it answers").expect("it is there");
    assert!(image.tags.is_empty());
    assert_eq!(image.labels.get(LABEL).map(String::as_str), Some("yes"));
}
