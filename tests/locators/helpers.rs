//! Helpers of the benchmarks on the mini sites, and the answers that evaluators get.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use arenad_daemon::{Daemon, Settings};
use arenad_engine::docker::DockerEngine;
use arenad_verdict::question::{Answer, Call, Comparison, Place, Question, Sameness, Wording};
use serde_json::{Value, json};

use super::arena::Arena;
use super::{locate_with, refused, value};

const PRODUCT: &str = "/catalogue/elsing-audio-skylark-wireless-headphones-ivory_1/";

pub fn helpers_find_what_tasks_ask_for(arena: &Arena) {
    let is = |call: &str, expected: Value| {
        assert_eq!(value(arena, "shopping", &format!("helper: {call}")), expected, "{call}")
    };
    let origin = arena.url("shopping");
    is("shopping_get_latest_order_url()", json!(format!("{origin}/accounts/orders/100300/")));
    is("shopping_get_sku_latest_review_author('OSM00198')", json!("Ava Winslow"));
    is("shopping_get_sku_latest_review_rating(\"OSM00198\")", json!("100"));
    is("shopping_get_sku_latest_review_title('OSM00198')", json!("The best one yet"));
    is("shopping_get_sku_latest_review_text('x\\' OR 1=1 -- ')", json!(""));
    is("shopping_get_sku_product_page_url('OSM00001')", json!(format!("{origin}{PRODUCT}")));
    let on_page = |call: &str, page: &str| {
        locate_with(arena, "shopping", &format!("helper: {call}"), &["--page", page])["value"].clone()
    };
    assert_eq!(on_page("shopping_get_product_price(__page__)", PRODUCT), json!(168.99));
    assert_eq!(on_page("shopping_get_num_reviews(__page__)", PRODUCT), json!(2));
    assert_eq!(
        on_page("shopping_get_product_attributes(__page__, 'color |OR| Material')", PRODUCT),
        json!("Ivory, aluminium and leather")
    );
    assert_eq!(on_page("get_query_text(__page__, '.price_color')", PRODUCT), json!("$168.99"));
    assert_eq!(on_page("get_query_text(__page__, '.no-such')", PRODUCT), json!(""));
    assert!(refused(arena, "shopping", "helper: nothing()").contains("it has shopping_get_latest_order_url"));
    assert!(
        refused(arena, "shopping", "helper: shopping_get_sku_latest_review_title()").contains("takes 1 argument (sku)")
    );
    assert!(refused(arena, "shopping", "helper: __import__('os').system('x')").contains("column"));
}

/// Queries the same sites through a daemon in this process.
pub async fn evaluators_get_their_answers(arena: &Arena) {
    arena.stop_daemon();
    let settings = Settings {
        state_dir: arena.state_dir(),
        engine: Arc::new(DockerEngine::new("unix:///var/run/docker.sock")),
        block: "10.231.0.0/16".parse().expect("a block"),
        parallel: NonZeroUsize::new(2),
        standby_boots: NonZeroUsize::MIN,
        memory_reserve: 512 << 20,
        tcp: None,
        socket_group: None,
        background: false,
    };
    arenad_confined::set_program(env!("CARGO_BIN_EXE_arenad").into());
    let daemon = Daemon::start(settings).await.expect("a daemon");
    arena.json(&["up", "mini", "shopping", "--json"]);
    let origin = arena.url("shopping");
    let accounts = BTreeMap::new();
    let ask = async |question: Question| daemon.answer("mini", &question, None, &accounts).await;
    let page = |path: &str| Place::Url(format!("{origin}{path}"));
    let call = |name: &str, arguments: &[&str]| Call {
        name: name.to_owned(),
        arguments: arguments.iter().map(|text| (*text).to_owned()).collect(),
    };
    let script = |place: Place, expression: &str, prepare: &[&str]| Question::Script {
        place,
        prepare: prepare.iter().map(|text| (*text).to_owned()).collect(),
        expression: expression.to_owned(),
    };

    let Answer::Value(Value::String(html)) = ask(Question::Content { place: page("/accounts/profile/") }).await else {
        panic!("a page")
    };
    assert!(
        html.starts_with("<!DOCTYPE html>") && html.contains("emma.lopez@gmail.com"),
        "signed in as the first account"
    );
    assert_eq!(ask(script(page("/"), "document.title", &[])).await, Answer::Value(json!("One Stop Market")));
    let prepared = script(page("/"), "document.title", &["null.x", "document.title = 'prepared'"]);
    assert_eq!(ask(prepared).await, Answer::Value(json!("prepared")));
    assert!(matches!(ask(script(page("/"), "document.querySelector('#none').value", &[])).await, Answer::Threw(_)));
    let title =
        Question::Helper { place: Place::Last, call: call("shopping_get_sku_latest_review_title", &["OSM00198"]) };
    assert_eq!(ask(title).await, Answer::Value(json!("The best one yet")));
    let price = Question::Helper { place: page(PRODUCT), call: call("shopping_get_product_price", &[]) };
    assert_eq!(ask(price).await, Answer::Value(json!(168.99)));
    // The latest order belongs to another customer, so this account cannot see its page.
    let order = script(Place::Found(call("shopping_get_latest_order_url", &[])), "document.title", &[]);
    assert!(matches!(ask(order).await, Answer::Value(Value::String(_))));

    let foreign = script(Place::Url("http://example.com/".to_owned()), "1", &[]);
    assert!(matches!(ask(foreign).await, Answer::Unsupported(_)));
    let unknown = Question::Helper { place: Place::Last, call: call("nothing", &[]) };
    assert!(matches!(ask(unknown).await, Answer::Unsupported(_)));
    assert!(
        matches!(ask(script(Place::Last, "1", &[])).await, Answer::Unavailable(_)),
        "the address of the agent's browser is unknown"
    );
    let comparison = Comparison {
        kind: Sameness::Answer,
        wording: Wording::Strict,
        intent: String::new(),
        reference: String::new(),
        answer: String::new(),
    };
    assert!(matches!(ask(Question::Judge(comparison)).await, Answer::Unsupported(_)));

    arena.kill("shopping");
    let down = ask(script(page("/"), "document.title", &[])).await;
    assert!(matches!(down, Answer::Unavailable(_)), "{down:?}");
    let down = ask(Question::Helper { place: Place::Last, call: call("shopping_get_latest_order_url", &[]) }).await;
    assert!(matches!(down, Answer::Unavailable(_)), "{down:?}");
    daemon.stop().await;
    arena.json(&["up", "mini", "shopping", "--json"]);
}
