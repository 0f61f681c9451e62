use arenad_api::browser::{PageElement, PageSnapshot};
use serde_json::{Value, json};

use super::*;

/// `<html><head><title>T</title></head><body><a href="/x" @click="go()"><b>Read &amp; buy</b></a><input value="1">
/// <iframe><p>within</p></iframe></body></html>`, with the inner editor that the browser gives an input.
fn snapshot() -> Value {
    let strings = [
        "#document",
        "HTML",
        "HEAD",
        "TITLE",
        "#text",
        "T",
        "BODY",
        "A",
        "href",
        "/x",
        "@click",
        "go()",
        "B",
        "Read & buy",
        "INPUT",
        "value",
        "1",
        "#document-fragment",
        "user-agent",
        "DIV",
        "IFRAME",
        "P",
        "within",
        "9",
    ];
    json!({
        "strings": strings,
        "documents": [
            {
                "nodes": {
                    "parentIndex": [-1, 0, 1, 2, 3, 1, 5, 6, 7, 5, 9, 10, 5],
                    "nodeType": [9, 1, 1, 1, 3, 1, 1, 1, 3, 1, 11, 1, 1],
                    "nodeName": [0, 1, 2, 3, 4, 6, 7, 12, 4, 14, 17, 19, 20],
                    "nodeValue": [-1, -1, -1, -1, 5, -1, -1, -1, 13, -1, -1, -1, -1],
                    "backendNodeId": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13],
                    "attributes": [[], [], [], [], [], [], [8, 9, 10, 11], [], [], [15, 16], [], [], []],
                    "shadowRootType": { "index": [10], "value": [18] },
                    "inputValue": { "index": [9], "value": [23] },
                    "isClickable": { "index": [6] },
                    "contentDocumentIndex": { "index": [12], "value": [1] },
                },
                "layout": {
                    "nodeIndex": [1, 5, 6, 7, 8, 9, 12],
                    "bounds": [
                        [0, 0, 800, 600], [0, 0, 800, 600], [10, 10, 100, 20], [10, 10, 90, 20], [10, 10, 90, 20],
                        [10, 50, 200, 20], [10, 100, 300, 100],
                    ],
                },
            },
            {
                "nodes": {
                    "parentIndex": [-1, 0, 1],
                    "nodeType": [9, 1, 3],
                    "nodeName": [0, 21, 4],
                    "nodeValue": [-1, -1, 22],
                    "backendNodeId": [21, 22, 23],
                    "attributes": [[], [], []],
                },
                "layout": { "nodeIndex": [1, 2], "bounds": [[5, 45, 50, 20], [5, 45, 50, 20]] },
                "scrollOffsetX": 0, "scrollOffsetY": 40,
            },
        ],
    })
}

fn page(element: Option<i64>) -> PageSnapshot {
    PageSnapshot { dom: snapshot(), element, ..PageSnapshot::default() }
}

fn workflow(steps: &[(StepAction, &str)]) -> Workflow {
    let steps = steps.iter().map(|(action, value)| WorkflowStep {
        action: *action,
        url: "http://shop.test/".to_owned(),
        element: action.has_element().then(|| PageElement {
            tag: "a".to_owned(),
            role: "link".to_owned(),
            name: "Read & buy".to_owned(),
            ..PageElement::default()
        }),
        value: (!value.is_empty()).then(|| (*value).to_owned()),
    });
    Workflow {
        title: "Buy it".to_owned(),
        sites: vec!["shop".to_owned()],
        steps: steps.collect(),
        ..Workflow::default()
    }
}

fn dumped(workflow: &Workflow, element: Option<i64>) -> DumpedTask {
    let actions: Vec<DumpedAction<'_>> = workflow
        .steps
        .iter()
        .enumerate()
        .filter(|(_, step)| is_dumped(step))
        .map(|(position, step)| DumpedAction { position, step, before: page(element), after: page(None) })
        .collect();
    dump(workflow, &actions)
}

fn ids(candidates: &Value) -> Vec<&str> {
    candidates.as_array().expect("candidates").iter().filter_map(|one| one["backend_node_id"].as_str()).collect()
}

#[test]
fn a_page_is_written_with_texts_frames_and_the_label() {
    let task = dumped(&workflow(&[(StepAction::Click, "")]), Some(8));
    let action = &task.entry["actions"][0];
    let uid = &task.actions[0];
    let expected = format!(
        "<html backend_node_id=\"2\" bounding_box_rect=\"0,0,800,600\"><body backend_node_id=\"6\" \
         bounding_box_rect=\"0,0,800,600\"><a backend_node_id=\"7\" bounding_box_rect=\"10,10,100,20\" \
         is_clickable=\"true\" href=\"/x\" _click=\"go()\"><b backend_node_id=\"8\" bounding_box_rect=\"10,10,90,20\" \
         data_pw_testid_buckeye=\"{uid}\"><text backend_node_id=\"9\">Read &amp; buy</text></b></a><input \
         backend_node_id=\"10\" bounding_box_rect=\"10,50,200,20\" value=\"1\" input_value=\"9\"></input><iframe \
         backend_node_id=\"13\" bounding_box_rect=\"10,100,300,100\"><p backend_node_id=\"22\" \
         bounding_box_rect=\"15,105,50,20\"><text backend_node_id=\"23\">within</text></p></iframe></body></html>"
    );
    assert_eq!(action["raw_html"], expected);
    let cleaned = "<html backend_node_id=\"2\"><body backend_node_id=\"6\"><a backend_node_id=\"7\"><b \
                   backend_node_id=\"8\"><text backend_node_id=\"9\">Read &amp; buy</text></b></a><input \
                   backend_node_id=\"10\" value=\"1\" input_value=\"9\"></input><iframe backend_node_id=\"13\"><p \
                   backend_node_id=\"22\"><text backend_node_id=\"23\">within</text></p></iframe></body></html>";
    assert_eq!(action["cleaned_html"], cleaned);
}

#[test]
fn the_clickable_element_around_the_label_is_right_too() {
    let task = dumped(&workflow(&[(StepAction::Click, "")]), Some(8));
    let action = &task.entry["actions"][0];
    assert_eq!(ids(&action["pos_candidates"]), ["7", "8"]);
    assert_eq!(ids(&action["neg_candidates"]), ["10", "13", "22"]);
    let marks = |at: usize| {
        let candidate = &action["pos_candidates"][at];
        (candidate["is_original_target"] == true, candidate["is_top_level_target"] == true)
    };
    assert_eq!((marks(0), marks(1)), ((false, true), (true, false)));
    let attributes = action["pos_candidates"][1]["attributes"].as_str().expect("a text");
    let attributes: Value = serde_json::from_str(attributes).expect("JSON");
    assert_eq!(attributes["bounding_box_rect"], "10,10,90,20");
}

#[test]
fn an_element_that_nothing_clickable_contains_is_right_alone() {
    let task = dumped(&workflow(&[(StepAction::Hover, "")]), Some(22));
    assert_eq!(ids(&task.entry["actions"][0]["pos_candidates"]), ["22"]);
    // The labelled element is lost, as in hundreds of the published steps.
    let lost = dumped(&workflow(&[(StepAction::Click, "")]), None);
    assert_eq!(ids(&lost.entry["actions"][0]["pos_candidates"]), Vec::<&str>::new());
}

#[test]
fn actions_have_the_names_of_the_data_and_others_are_left_out() {
    let workflow = workflow(&[
        (StepAction::Goto, "http://shop.test/"),
        (StepAction::Type, "red shoes"),
        (StepAction::Press, "Enter"),
        (StepAction::Press, "Escape"),
        (StepAction::Hover, ""),
        (StepAction::Select, "Newest"),
        (StepAction::Stop, "done"),
    ]);
    let task = dumped(&workflow, Some(10));
    let operations: Vec<&Value> =
        task.entry["actions"].as_array().expect("actions").iter().map(|action| &action["operation"]).collect();
    let operation =
        |op: &str, original: &str, value: &str| json!({ "op": op, "original_op": original, "value": value });
    let wanted = [
        operation("TYPE", "TYPE", "red shoes"),
        operation("CLICK", "ENTER", ""),
        operation("CLICK", "HOVER", ""),
        operation("SELECT", "SELECT", "Newest"),
    ];
    assert_eq!(operations, wanted.iter().collect::<Vec<_>>());
    let reprs = [
        "[link]  Read & buy -> TYPE: red shoes",
        "[input]   -> ENTER",
        "[link]  Read & buy -> HOVER",
        "[link]  Read & buy -> SELECT: Newest",
    ];
    assert_eq!(task.entry["action_reprs"], json!(reprs));
    assert_eq!(task.actions.len(), 4);
    assert_eq!(task.dom_content[1]["action_uid"], task.actions[1].as_str());
}

#[test]
fn identifiers_are_the_same_each_time_and_differ_between_tasks() {
    let one = workflow(&[(StepAction::Click, ""), (StepAction::Click, "")]);
    let other = Workflow { title: "Sell it".to_owned(), ..one.clone() };
    let (first, again, third) = (dumped(&one, Some(8)), dumped(&one, Some(8)), dumped(&other, Some(8)));
    assert_eq!(first, again);
    assert_ne!(first.id, third.id);
    assert_ne!(first.actions[0], first.actions[1]);
    let lengths: Vec<usize> = first.id.split('-').map(str::len).collect();
    assert_eq!(lengths, [8, 4, 4, 4, 12]);
}

#[test]
fn damaged_snapshots_are_read_as_far_as_they_go() {
    let mut damaged = snapshot();
    damaged["strings"] = json!([]);
    damaged["documents"][0]["nodes"]["parentIndex"] = json!([5, 5, 99, -1]);
    damaged["documents"][0]["nodes"]["contentDocumentIndex"] = json!({ "index": [3, 12], "value": [0, 70] });
    // Nodes without a parent are at the top.
    let cases = [(damaged, vec!["8"]), (json!(null), vec![]), (json!({ "documents": 5 }), vec![])];
    for (dom, right) in cases {
        let before = PageSnapshot { dom, element: Some(8), ..PageSnapshot::default() };
        let workflow = workflow(&[(StepAction::Click, "")]);
        let action = DumpedAction { position: 0, step: &workflow.steps[0], before, after: page(None) };
        let task = dump(&workflow, &[action]);
        assert_eq!(ids(&task.entry["actions"][0]["pos_candidates"]), right);
    }
}
