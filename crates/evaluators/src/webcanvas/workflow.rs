//! Recorded workflows to task entries. Source: `data/raw_data_processor.py`.

use serde_json::{Map, Value, json};

use super::Raised;
use super::matching::site_of;
use crate::text::python::is_falsy;
use crate::text::urls::{parse_qsl, unquote, urlsplit};

/// `process_file`: the tasks of a platform's export, in the form of a task file.
///
/// # Errors
///
/// Returns an error if the published code raises, for example for a step without a field that its functions need.
pub fn process_raw_workflow(workflow: &Value) -> Result<Value, Raised> {
    let tasks = workflow.as_array().ok_or_else(|| missing("list"))?;
    let mut out = Vec::new();
    for (index, task) in tasks.iter().enumerate() {
        let steps = field(task, "steps")?.as_array().ok_or_else(|| missing("steps"))?;
        let mut evaluation = Vec::new();
        for step in steps {
            evaluation.extend(nodes_of(step)?);
        }
        out.push(json!({
            "index": index, "task": field(task, "title")?, "reference_task_length": steps.len(), "evaluation": evaluation,
        }));
    }
    Ok(Value::Array(out))
}

fn missing(name: &str) -> Raised {
    Raised::new("KeyError", name.to_owned())
}

fn field<'a>(object: &'a Value, name: &str) -> Result<&'a Value, Raised> {
    object.get(name).ok_or_else(|| missing(name))
}

fn text<'a>(object: &'a Value, name: &str) -> Result<&'a str, Raised> {
    field(object, name)?.as_str().ok_or_else(|| Raised::new("TypeError", format!("`{name}` is not a text")))
}

fn parsed(url: &str) -> Result<crate::text::urls::Split, Raised> {
    urlsplit(url).map_err(|error| Raised::new("ValueError", error.to_string()))
}

fn nodes_of(step: &Value) -> Result<Vec<Value>, Raised> {
    let functions = match step.get("rewardFunction") {
        None => return Ok(Vec::new()),
        // Texts and objects have a length too.
        Some(empty @ (Value::Array(_) | Value::Object(_) | Value::String(_))) if is_falsy(empty) => {
            return Ok(Vec::new());
        }
        Some(Value::Array(functions)) => functions,
        Some(_) => return Err(Raised::new("TypeError", "`rewardFunction` is not a list".to_owned())),
    };
    let mut href = step.get("href").cloned();
    // `urlparse` takes everything that is false for an empty address.
    if step.get("description").is_some_and(|description| !is_falsy(description)) {
        let description = text(step, "description")?;
        let url = parsed(description)?;
        if !url.scheme.is_empty() && !url.netloc.is_empty() {
            href = Some(Value::from(description));
        }
    }
    let step = StepFields { fields: step, href };
    let mut functions: Vec<(String, &Value)> = functions
        .iter()
        .map(|function| Ok((text(function, "name").map(str::to_owned), function)))
        .collect::<Result<Vec<_>, Raised>>()?
        .into_iter()
        .map(|(name, function)| name.map(|name| (name, function)))
        .collect::<Result<_, _>>()?;
    let has = |part: &str| functions.iter().any(|(name, _)| name.contains(part));
    if has("element_value") && has("element_path") {
        // The value is then that of the element, and the last function for the path is dropped.
        let mut dropped = None;
        for (index, (name, _)) in functions.iter_mut().enumerate() {
            if name.contains("element_value") {
                name.push_str("_path");
            }
            if name.contains("element_path") {
                dropped = Some(index);
            }
        }
        if let Some(dropped) = dropped {
            functions.remove(dropped);
        }
    }
    functions.into_iter().map(|(name, function)| step.node(name, function)).collect()
}

struct StepFields<'a> {
    fields: &'a Value,
    href: Option<Value>,
}

impl StepFields<'_> {
    fn href(&self) -> Result<Value, Raised> {
        self.href.clone().ok_or_else(|| missing("href"))
    }

    fn node(&self, name: String, function: &Value) -> Result<Value, Raised> {
        if name.contains("element") {
            return self.element(name, function);
        }
        let key = || match function.get("key") {
            Some(_) => text(function, "key"),
            None => Ok(""),
        };
        let decoded = |field: &str| text(function, field).map(unquote);
        let content = if name.contains("url_include") {
            json!({ "key": unquote(key()?), "reference_answer": decoded("required")?, "url": self.href()? })
        } else if name.contains("url_exact") {
            let key = unquote(key()?);
            let reference = match function.get("optional") {
                Some(_) => text(function, "optional")?.to_owned(),
                None if !key.is_empty() => self.parameter(&key)?,
                None => self.href()?.as_str().ok_or_else(|| missing("href"))?.to_owned(),
            };
            json!({ "key": key, "reference_answer": unquote(&reference), "url": self.href()? })
        } else if name.contains("url_semantic") {
            // The key is decoded after it has been stored.
            json!({ "key": key()?, "reference_answer": field(function, "optional")?, "url": self.href()? })
        } else if name.contains("cache_data_exact") || name.contains("final_answer_exact") {
            json!({ "reference_answer": field(self.fields, "value")?, "url": self.href()? })
        } else if name.contains("cache_data_include") || name.contains("final_answer_include") {
            json!({ "reference_answer": decoded("required")?, "url": self.href()? })
        } else if name.contains("cache_data_semantic") || name.contains("final_answer_semantic") {
            json!({ "reference_answer": decoded("optional")?, "url": self.href()? })
        } else {
            return Ok(json!({ "match_function_name": name }));
        };
        Ok(json!({ "match_function_name": name, "content": content }))
    }

    /// The recorded value of a parameter. Without it, the published code waits for a key to be pressed.
    fn parameter(&self, key: &str) -> Result<String, Raised> {
        let url = self.href()?;
        let query = parsed(url.as_str().unwrap_or_default())?.query;
        let found = parse_qsl(&query).into_iter().find(|(name, value)| name == key && !value.is_empty());
        found.map(|(_, value)| value).ok_or_else(|| Raised::new("EOFError", format!("the URL has no `{key}`")))
    }

    fn element(&self, name: String, function: &Value) -> Result<Value, Raised> {
        let href = self.href()?;
        let netloc = parsed(href.as_str().ok_or_else(|| missing("href"))?)?.netloc;
        let netloc = site_of(&netloc).ok_or_else(|| Raised::new("IndexError", format!("the host `{netloc}`")))?;
        let mut node = Map::new();
        let mut content = |reference: &Value, path: Option<&Value>| {
            let mut content = json!({ "reference_answer": reference, "netloc": netloc, "url": href });
            if let Some(path) = path {
                content["path"] = path.clone();
            }
            node.insert("content".to_owned(), content);
        };
        let mut named = name.clone();
        if name.contains("element_path_exact") {
            content(field(self.fields, "selector")?, None);
            node.insert("method".to_owned(), json!("selector"));
        } else {
            let reference = if name.contains("element_value_exact") {
                Some(field(self.fields, "value")?)
            } else if name.contains("element_value_include") {
                Some(field(function, "required")?)
            } else if name.contains("element_value_semantic") {
                Some(field(function, "optional")?)
            } else {
                None
            };
            if let Some(reference) = reference {
                let path = if name.contains("path") { Some(field(self.fields, "selector")?) } else { None };
                content(reference, path);
                if path.is_some() {
                    named = name.replace("_path", "");
                }
            }
        }
        node.insert("match_function_name".to_owned(), Value::from(named));
        Ok(Value::Object(node))
    }
}
