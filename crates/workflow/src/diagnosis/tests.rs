//! Diagnoses of a task with a node of each kind, after replays of which one thing has changed.

use serde_json::{Value, json};

use super::*;
use crate::file::{ReachedNode, StepAction, WorkflowStep};
use crate::find::FoundBy;
use crate::version;
use arenad_evaluators::webcanvas;

const HOME: &str = "http://shop.test/";
const LIST: &str = "http://shop.test/list?q=kettle";
const ITEM: &str = "http://shop.test/item/7";

fn link(place: u32, name: &str) -> PageElement {
    PageElement {
        selector: format!("html > body:nth-child(2) > a:nth-child({place})"),
        tag: "a".to_owned(),
        role: "link".to_owned(),
        name: name.to_owned(),
        ..PageElement::default()
    }
}

/// The page of the list, with a link to the item in the given place.
fn html(place: usize, label: &str) -> String {
    let others = "<a>other</a>".repeat(place - 1);
    format!("<html><head></head><body>{others}<a>{label}</a></body></html>")
}

/// A task with a parameter, an element, its label, and a page.
fn entry() -> Value {
    let path = "body > a:nth-child(1)";
    json!({ "index": 3, "task": "Find the kettle", "reference_task_length": 3, "evaluation": [
        { "match_function_name": "url_exactly_match", "content": { "key": "q", "reference_answer": "kettle", "url": LIST } },
        { "match_function_name": "element_path_exactly_match", "method": "selector",
          "content": { "reference_answer": path, "netloc": "shop", "url": LIST } },
        { "match_function_name": "element_value_exactly_match",
          "content": { "reference_answer": "Steel kettle", "netloc": "shop", "path": path, "url": LIST } },
        { "match_function_name": "url_included_match", "content": { "key": "", "reference_answer": "shop.test/item/7", "url": ITEM } },
    ]})
}

/// A replay and its observations.
struct Seen {
    replay: Replay,
    steps: Vec<Observation>,
}

/// A replay in which nothing has changed: a link to the list, one to the item, and the end.
fn seen() -> Seen {
    let step = |element| ReplayedStep { page: PageSight::Same, element, error: None };
    let shown = |url: &str| Observation { url: url.to_owned(), ..Observation::default() };
    let on_list = Observation {
        html: Some(html(1, "Steel kettle")),
        selector: Some(link(1, "").selector),
        element_value: Some("Steel kettle".to_owned()),
        ..shown(LIST)
    };
    Seen {
        replay: Replay {
            steps: vec![step(Some(ElementSight::Same)), step(Some(ElementSight::Same)), step(None)],
            unreachable: None,
        },
        steps: vec![shown(HOME), on_list, shown(ITEM)],
    }
}

fn workflow() -> Workflow {
    let click = |url: &str, element| WorkflowStep {
        action: StepAction::Click,
        url: url.to_owned(),
        element: Some(element),
        value: None,
    };
    let stop =
        WorkflowStep { action: StepAction::Stop, url: ITEM.to_owned(), element: None, value: Some(String::new()) };
    let reached = [(0, 1), (1, 1), (2, 1), (3, 2)].map(|(node, step)| ReachedNode { node, step });
    Workflow {
        task: "3".to_owned(),
        title: "Find the kettle".to_owned(),
        start: HOME.to_owned(),
        steps: vec![click(HOME, link(1, "Kettles")), click(LIST, link(1, "Steel kettle")), stop],
        reached: reached.to_vec(),
        ..Workflow::default()
    }
}

fn diagnosed(seen: &Seen) -> Diagnosis {
    let task = webcanvas::read_one(&entry(), 0).expect("a task");
    diagnose(&task.nodes, &workflow(), &seen.replay, &seen.steps)
}

fn causes(diagnosis: &Diagnosis) -> Vec<Option<String>> {
    diagnosis.nodes.iter().map(|node| node.cause.as_ref().map(ToString::to_string)).collect()
}

fn repairs(diagnosis: &Diagnosis) -> Vec<(usize, &str, &str)> {
    let repair = |node: &'_ NodeFinding| node.repair.clone().map(|repair| (node.node, repair));
    let found: Vec<(usize, Repair)> = diagnosis.nodes.iter().filter_map(repair).collect();
    found.into_iter().map(|(node, repair)| (node, repair.field, &*repair.to.leak())).collect()
}

#[test]
fn an_unchanged_site_is_valid() {
    let diagnosis = diagnosed(&seen());
    assert_eq!((diagnosis.health, diagnosis.broken_at), (Health::Valid, None), "{diagnosis:#?}");
    assert_eq!(version(&entry(), &diagnosis, "now"), Ok(None));
}

#[test]
fn an_element_that_has_moved_breaks_its_node_and_is_its_repair() {
    let mut seen = seen();
    let moved = ElementSight::Moved { by: FoundBy::Label, element: Box::new(link(2, "Steel kettle")) };
    seen.replay.steps[1].element = Some(moved);
    (seen.steps[1].html, seen.steps[1].selector) = (Some(html(2, "Steel kettle")), Some(link(2, "").selector));
    let diagnosis = diagnosed(&seen);
    assert_eq!((diagnosis.health, &diagnosis.drifted[..]), (Health::Broken, &[1][..]));
    let gone = Some("element gone".to_owned());
    assert_eq!(causes(&diagnosis), [None, gone.clone(), gone, None]);
    let to = "html > body:nth-child(2) > a:nth-child(2)";
    assert_eq!(repairs(&diagnosis), [(1, "reference_answer", to), (2, "path", to)]);

    let next = version(&entry(), &diagnosis, "2026-01-01T00:00:00Z").expect("it is its task").expect("a version");
    assert_eq!((&next["version"], &next["versions"][0]["evaluation"]), (&json!(2), &entry()["evaluation"]));
    let repaired = webcanvas::read_one(&next, 0).expect("the benchmark reads it");
    let after = diagnose(&repaired.nodes, &workflow(), &seen.replay, &seen.steps);
    assert_eq!(after.health, Health::Drifted, "{after:#?}");
    // The next repair keeps both former versions.
    let again = version(&next, &diagnosis, "2026-02-01T00:00:00Z").expect("it is its task").expect("a version");
    assert_eq!((&again["version"], again["versions"].as_array().map(Vec::len)), (&json!(3), Some(2)));
}

#[test]
fn a_selector_that_matches_another_element_first_is_ambiguous() {
    let mut task = entry();
    task["evaluation"][1]["content"]["reference_answer"] = json!("body > a");
    let task = webcanvas::read_one(&task, 0).expect("a task");
    let mut seen = seen();
    (seen.steps[1].html, seen.steps[1].selector) = (Some(html(3, "Steel kettle")), Some(link(3, "").selector));
    let diagnosis = diagnose(&task.nodes, &workflow(), &seen.replay, &seen.steps);
    assert_eq!(diagnosis.nodes[1].cause, Some(NodeCause::SelectorAmbiguous { alike: 3 }));
}

#[test]
fn an_id_that_the_page_has_twice_is_no_repair() {
    let mut seen = seen();
    let twice = PageElement { id: "menu".to_owned(), ..link(2, "Steel kettle") };
    seen.replay.steps[1].element = Some(ElementSight::Moved { by: FoundBy::Label, element: Box::new(twice.clone()) });
    let page = html(2, "Steel kettle");
    seen.steps[1].selector = Some(twice.selector.clone());
    for (page, to) in [
        (page.replace("<a>", "<a id=menu>"), twice.selector.as_str()),
        (page.replacen("<a>", "<a id=menu>", 1), "#menu"),
    ] {
        seen.steps[1].html = Some(page);
        assert_eq!(repairs(&diagnosed(&seen))[0].2, to);
    }
}

#[test]
fn a_value_that_has_changed_is_named_with_both_values() {
    let mut seen = seen();
    seen.steps[1].element_value = Some("Steel kettle 2".to_owned());
    seen.steps[1].url = LIST.replace("kettle", "kettles");
    let diagnosis = diagnosed(&seen);
    let changed = |from: &str, to: &str| Some(format!("value changed: `{from}` is now `{to}`"));
    assert_eq!(
        causes(&diagnosis),
        [changed("kettle", "kettles"), None, changed("Steel kettle", "Steel kettle 2"), None]
    );
    assert_eq!(repairs(&diagnosis), [(0, "reference_answer", "kettles"), (2, "reference_answer", "Steel kettle 2")]);
}

#[test]
fn a_redirect_is_named_with_both_addresses() {
    let mut seen = seen();
    let to = "http://shop.test/products/steel-kettle";
    seen.replay.steps[2].page = PageSight::Redirected { from: ITEM.to_owned(), to: to.to_owned() };
    seen.steps[2].url = to.to_owned();
    let diagnosis = diagnosed(&seen);
    assert_eq!(causes(&diagnosis)[3], Some(format!("redirect: {ITEM} leads to {to}")));
    assert_eq!(repairs(&diagnosis), [(3, "reference_answer", "shop.test/products/steel-kettle")]);
}

#[test]
fn a_step_that_cannot_be_done_is_the_cause_of_all_later_nodes() {
    let mut seen = seen();
    let similar = PageElement { id: "kettle".to_owned(), ..link(4, "Steel kettle, 1.7 l") };
    seen.replay.steps.truncate(2);
    seen.replay.steps[1].element = Some(ElementSight::Gone { similar: Some(Box::new(similar)) });
    // The page is seen, and the action is not.
    seen.steps = vec![seen.steps[0].clone(), Observation { url: LIST.to_owned(), ..Observation::default() }];
    let diagnosis = diagnosed(&seen);
    assert_eq!((diagnosis.health, diagnosis.broken_at), (Health::Broken, Some(1)));
    let gone = Some("element gone".to_owned());
    assert_eq!(causes(&diagnosis), [None, gone.clone(), gone.clone(), gone]);
    assert_eq!(repairs(&diagnosis), [(1, "reference_answer", "#kettle"), (2, "path", "#kettle")]);

    for (status, cause, health) in [
        (404, format!("page gone: {LIST} answers with status 404"), Health::Broken),
        (403, "blocked: the site answers with status 403".to_owned(), Health::Blocked),
    ] {
        seen.replay.steps[1].page = PageSight::Failed { url: LIST.to_owned(), status };
        let diagnosis = diagnosed(&seen);
        assert_eq!((causes(&diagnosis)[3].clone(), diagnosis.health), (Some(cause), health));
    }
}

#[test]
fn a_site_that_is_down_says_nothing_about_the_task() {
    let replay = Replay { steps: Vec::new(), unreachable: Some("net::ERR_CONNECTION_REFUSED".to_owned()) };
    let diagnosis = diagnosed(&Seen { replay, steps: Vec::new() });
    assert_eq!(diagnosis.health, Health::SiteDown);
    assert!(causes(&diagnosis).iter().all(|cause| cause.as_deref() == Some("site down: net::ERR_CONNECTION_REFUSED")));
    assert!(repairs(&diagnosis).is_empty());
}
