//! A look into recorded traffic: requests to the site in a HAR.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value as Json, json};

use super::confined::Confined;
use super::json::to_value;
use super::{Found, LocateError, SIZE_MAX, Scene, json_query};
use crate::accounts::Place;
use crate::domain::locator::{TraceLocator, TracePart, Value};

#[derive(Deserialize)]
struct Har {
    log: Log,
}

#[derive(Deserialize)]
struct Log {
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    request: Request,
    response: Response,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    method: String,
    url: String,
    #[serde(default)]
    headers: Vec<Pair>,
    #[serde(default)]
    post_data: Option<Content>,
}

#[derive(Deserialize)]
struct Response {
    status: i64,
    #[serde(default)]
    content: Option<Content>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Content {
    #[serde(default)]
    mime_type: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    encoding: Option<String>,
}

#[derive(Deserialize)]
struct Pair {
    name: String,
    #[serde(default)]
    value: String,
}

pub(super) async fn run(
    confined: &Confined,
    scene: &Scene<'_>,
    locator: &TraceLocator,
    limit: Duration,
) -> Result<Found, LocateError> {
    let traffic = scene
        .traffic
        .ok_or_else(|| LocateError::Unavailable("nobody recorded the traffic; give a HAR of it".to_owned()))?;
    let found = requests(traffic, &scene.place, locator)?;
    let ran = format!("{} {}", locator.method.as_deref().unwrap_or("any"), locator.pattern);
    let notes = vec![("requests", found.len().to_string())];
    let value = match (&locator.part, locator.all) {
        (TracePart::Count, _) => Value::Integer(i128::try_from(found.len()).unwrap_or(i128::MAX)),
        (TracePart::Whole, false) => found.into_iter().next_back().map_or(Value::Null, to_value),
        (TracePart::Whole, true) => to_value(Json::Array(found)),
        (TracePart::Json(query), false) => match found.last() {
            Some(last) => json_query::ask(confined, query, last.to_string(), limit).await?,
            None => Value::Null,
        },
        (TracePart::Json(query), true) => {
            let mut all = Vec::new();
            for request in &found {
                all.push(super::json::plain(&json_query::ask(confined, query, request.to_string(), limit).await?));
            }
            to_value(Json::Array(all))
        }
    };
    match &value {
        Value::Json(text) | Value::Text(text) if text.len() > SIZE_MAX => {
            Err(LocateError::too_many_bytes("the requests are large"))
        }
        _ => Ok(Found { value, ran, notes }),
    }
}

/// The requests that are meant, in order.
fn requests(traffic: &str, place: &Place, locator: &TraceLocator) -> Result<Vec<Json>, LocateError> {
    let har: Har = serde_json::from_str(traffic)
        .map_err(|error| LocateError::Failed(format!("the traffic is no HAR: {error}")))?;
    let mut found = Vec::new();
    for entry in har.log.entries {
        // Whatever has no address was never sent to the site.
        let Ok(url) = reqwest::Url::parse(&entry.request.url) else { continue };
        let is_here = url.scheme() == "http"
            && url.host_str() == Some(place.host.as_str())
            && url.port_or_known_default() == Some(place.port);
        if is_here && locator.is_meant(&entry.request.method, url.path(), url.query()) {
            found.push(shown(entry, &url));
        }
    }
    Ok(found)
}

fn shown(entry: Entry, url: &reqwest::Url) -> Json {
    let mut query: Map<String, Json> = Map::new();
    for (name, value) in url.query_pairs() {
        if let Json::Array(values) = query.entry(name).or_insert_with(|| json!([])) {
            values.push(Json::from(value));
        }
    }
    let headers = entry.request.headers.into_iter();
    let headers: Map<String, Json> = headers.map(|pair| (pair.name.to_lowercase(), pair.value.into())).collect();
    json!({
        "method": entry.request.method,
        "url": entry.request.url,
        "path": url.path(),
        "query": query,
        "headers": headers,
        "body": body(entry.request.post_data),
        "status": entry.response.status,
        "answer": body(entry.response.content),
    })
}

/// A body: JSON, a form's fields with the first text of each, text, or nothing.
fn body(content: Option<Content>) -> Json {
    let Some(content) = content else { return Json::Null };
    // Pictures and the like, in Base64: nobody looks for a text in them.
    let Some(text) = content.text.filter(|text| !text.is_empty() && content.encoding.is_none()) else {
        return Json::Null;
    };
    if content.mime_type.contains("application/x-www-form-urlencoded") {
        let mut fields = Map::new();
        for (name, value) in form_urlencoded::parse(text.as_bytes()) {
            fields.entry(name).or_insert_with(|| Json::from(value));
        }
        return Json::Object(fields);
    }
    if content.mime_type.contains("json")
        && let Ok(json) = serde_json::from_str(&text)
    {
        return json;
    }
    Json::from(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::locator::{LocatorKind, parse};

    const HAR: &str = r#"{"log": {"entries": [
        {"request": {"method": "GET", "url": "http://h:7770/basket/", "headers": []}, "response": {"status": 200}},
        {"request": {"method": "POST", "url": "http://h:7770/basket/add/7?next=%2Fa", "headers": [{"name": "X-A", "value": "b"}],
          "postData": {"mimeType": "application/x-www-form-urlencoded", "text": "quantity=2&quantity=3&note="}},
          "response": {"status": 302, "content": {"mimeType": "application/json", "text": "{\"ok\": true}"}}},
        {"request": {"method": "POST", "url": "http://h:77700/basket/add/8"}, "response": {"status": 200}},
        {"request": {"method": "POST", "url": "http://h:7770/basket/add/9"},
          "response": {"status": 200, "content": {"mimeType": "image/png", "encoding": "base64", "text": "AAAA"}}},
        {"request": {"method": "GET", "url": "data:,x"}, "response": {"status": 200}}
    ]}}"#;

    fn found(text: &str) -> Vec<Json> {
        let LocatorKind::Trace(locator) = parse(text).expect("a locator").kind else { panic!("trace") };
        let place = Place { host: "h".to_owned(), port: 7770, entry: ([127, 0, 0, 1], 1).into() };
        requests(HAR, &place, &locator).expect("a HAR")
    }

    #[test]
    fn requests_of_the_site_are_found_with_what_they_carried() {
        let posts = found("trace: POST /basket/add/*");
        assert_eq!(posts.len(), 2, "another port is another site");
        assert_eq!(posts[0]["body"], json!({ "quantity": "2", "note": "" }));
        assert_eq!(posts[0]["query"], json!({ "next": ["/a"] }));
        assert_eq!(
            (&posts[0]["headers"]["x-a"], &posts[0]["status"], &posts[0]["answer"]),
            (&json!("b"), &json!(302), &json!({ "ok": true }))
        );
        assert_eq!((&posts[1]["body"], &posts[1]["answer"]), (&Json::Null, &Json::Null));
        assert_eq!(found("trace: *").len(), 3);
        assert_eq!(found("trace: /basket/add/7?next=*").len(), 1);
        assert!(found("trace: DELETE *").is_empty());
    }
}
