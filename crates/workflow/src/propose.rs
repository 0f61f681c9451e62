//! Key nodes for a recorded workflow, for a person to choose from.

use arenad_evaluators::webcanvas::matching::{Rule, get_netloc, url_part};
use serde_json::{Value, json};
use url::Url;

use crate::file::{StepAction, Workflow, WorkflowStep};

/// Returns the entry of a task file with a key node for each step that leads somewhere. Where an action changes the
/// address, the node is about the new address; otherwise it is about the element and its value, as the paper advises.
pub fn propose(workflow: &Workflow) -> Value {
    let mut nodes = Vec::new();
    for (at, step) in workflow.steps.iter().enumerate() {
        let next = workflow.steps.get(at + 1).map(|next| &next.url).or(workflow.end.as_ref());
        let changed = next.map(|next| address_nodes(&step.url, next)).unwrap_or_default();
        match (changed.is_empty(), &step.action) {
            (false, _) => nodes.extend(changed),
            (true, StepAction::Stop) => nodes.extend(answer_node(step)),
            (true, _) => nodes.extend(element_nodes(step)),
        }
    }
    json!({
        "index": workflow.task,
        "task": workflow.title,
        "reference_task_length": workflow.steps.len(),
        "evaluation": nodes,
    })
}

/// Returns nodes for the differences between two addresses.
fn address_nodes(from: &str, to: &str) -> Vec<Value> {
    let (Ok(before), Ok(after)) = (Url::parse(from), Url::parse(to)) else { return Vec::new() };
    let node = |function: &str, key: &str, reference: &str| {
        let content = json!({ "key": key, "reference_answer": reference, "url": to });
        json!({ "match_function_name": function, "content": content })
    };
    let mut nodes = Vec::new();
    if (before.host_str(), before.path()) != (after.host_str(), after.path()) {
        nodes.push(node("url_included_match", "", &url_part(to, "", Rule::Included).unwrap_or_default()));
    }
    let known: Vec<(String, String)> = before.query_pairs().into_owned().collect();
    let fresh = after.query_pairs().into_owned().filter(|pair| !known.contains(pair) && !pair.1.is_empty());
    nodes.extend(fresh.map(|(key, value)| node("url_exactly_match", &key, &value)));
    nodes
}

fn element_nodes(step: &WorkflowStep) -> Vec<Value> {
    let Some(element) = &step.element else { return Vec::new() };
    let site = get_netloc(&step.url).unwrap_or_default();
    let path = json!({ "reference_answer": element.selector, "netloc": site, "url": step.url });
    let mut nodes =
        vec![json!({ "match_function_name": "element_path_exactly_match", "method": "selector", "content": path })];
    if let (StepAction::Type, Some(value)) = (step.action, &step.value) {
        let content = json!({ "reference_answer": value, "netloc": site, "path": element.selector, "url": step.url });
        nodes.push(json!({ "match_function_name": "element_value_exactly_match", "content": content }));
    }
    nodes
}

fn answer_node(step: &WorkflowStep) -> Option<Value> {
    let answer = step.value.as_ref().filter(|answer| !answer.is_empty())?;
    let content = json!({ "reference_answer": answer, "url": step.url });
    Some(json!({ "match_function_name": "final_answer_exact_match", "content": content }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arenad_api::browser::PageElement;
    use arenad_evaluators::webcanvas;

    #[test]
    fn nodes_are_about_addresses_first_then_about_elements_and_answers() {
        let step = |action, url: &str, value: Option<&str>| WorkflowStep {
            action,
            url: url.to_owned(),
            element: matches!(action, StepAction::Click | StepAction::Type)
                .then(|| PageElement { selector: "#q".to_owned(), ..PageElement::default() }),
            value: value.map(str::to_owned),
        };
        let workflow = Workflow {
            task: "7".to_owned(),
            title: "Find the kettle".to_owned(),
            steps: vec![
                step(StepAction::Type, "http://shop.test/", Some("kettle")),
                step(StepAction::Press, "http://shop.test/", Some("Enter")),
                step(StepAction::Click, "http://shop.test/list?q=kettle", None),
                step(StepAction::Stop, "http://shop.test/item/7?from=list", Some("$30")),
            ],
            end: Some("http://shop.test/item/7?from=list".to_owned()),
            ..Workflow::default()
        };
        let entry = propose(&workflow);
        let task = webcanvas::read_one(&entry, 0).expect("the benchmark reads it");
        let nodes: Vec<(&str, &str)> =
            task.nodes.iter().map(|node| (node.function.as_str(), node.reference.as_str())).collect();
        assert_eq!(
            nodes,
            [
                ("element_path_exactly_match", "#q"),
                ("element_value_exactly_match", "kettle"),
                ("url_included_match", "shop.test/list"),
                ("url_exactly_match", "kettle"),
                ("url_included_match", "shop.test/item/7"),
                ("url_exactly_match", "list"),
                ("final_answer_exact_match", "$30"),
            ]
        );
        assert!(webcanvas::lint(&task).is_empty(), "{:?}", webcanvas::lint(&task));
    }
}
