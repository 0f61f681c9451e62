//! Queries over recorded traffic: requests to the site in a HAR.
//!
//! A HAR of the gateway's own (`_arenad`) is bounded and states which traffic is missing. If the missing traffic could
//! change the value, the locator returns no value, so that no check mistakes an incomplete recording for a complete
//! one.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value as Json, json};

use super::{FoundValue, LocateError, SIZE_MAX, Scene, json_query};
use arenad_accounts::VisitAddress;
use arenad_har::{Coverage, Own};
use arenad_model::locator::json::to_value;
use arenad_model::locator::{JsonQuery, TraceLocator, TracePart, Value};

#[derive(Deserialize)]
struct HarFile {
    log: HarLog,
}

#[derive(Deserialize)]
struct HarLog {
    entries: Vec<HarEntry>,
    #[serde(default, rename = "_arenad")]
    own: Option<Own>,
}

#[derive(Deserialize)]
struct HarEntry {
    request: HarRequest,
    response: HarResponse,
    /// Name of the site to which the gateway sent the request.
    #[serde(default, rename = "_site")]
    site: Option<String>,
    /// Parts of the exchange that the gateway did not keep: `body`, `answer`.
    #[serde(default, rename = "_lost")]
    lost: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HarRequest {
    method: String,
    url: String,
    #[serde(default)]
    headers: Vec<HarPair>,
    #[serde(default)]
    post_data: Option<HarContent>,
}

#[derive(Deserialize)]
struct HarResponse {
    status: i64,
    #[serde(default)]
    content: Option<HarContent>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HarContent {
    #[serde(default)]
    mime_type: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    encoding: Option<String>,
}

#[derive(Deserialize)]
struct HarPair {
    name: String,
    #[serde(default)]
    value: String,
}

/// A request that the locator matches.
struct MatchedRequest {
    shown: Json,
    lost: Vec<String>,
}

pub(super) async fn run(scene: &Scene<'_>, locator: &TraceLocator, limit: Duration) -> Result<FoundValue, LocateError> {
    let traffic = scene.traffic.ok_or_else(|| {
        let advice = "give a HAR of it, or have the gateway record it: `public: { record: all }` of the site";
        LocateError::Unavailable(format!("no traffic was recorded; {advice}"))
    })?;
    let found = requests(traffic, scene.site.name.as_str(), &scene.place, locator)?;
    let ran = format!("{} {}", locator.method.as_deref().unwrap_or("any"), locator.pattern);
    let mut notes = vec![("requests", found.len().to_string())];
    let lost = found.iter().filter(|request| !request.lost.is_empty()).count();
    if lost > 0 {
        notes.push(("requests_with_lost_bodies", lost.to_string()));
    }
    let found: Vec<Json> = found.into_iter().map(|request| request.shown).collect();
    let value = match (&locator.part, locator.all) {
        (TracePart::Count, _) => Value::Integer(i128::try_from(found.len()).unwrap_or(i128::MAX)),
        (TracePart::Whole, false) => found.into_iter().next_back().map_or(Value::Null, to_value),
        (TracePart::Whole, true) => to_value(Json::Array(found)),
        (TracePart::Json(query), false) => match found.last() {
            Some(last) => json_query::ask(query, last.to_string(), limit).await?,
            None => Value::Null,
        },
        (TracePart::Json(query), true) => {
            let mut all = Vec::new();
            for request in &found {
                all.push(arenad_model::locator::json::plain(
                    &json_query::ask(query, request.to_string(), limit).await?,
                ));
            }
            to_value(Json::Array(all))
        }
    };
    match &value {
        Value::Json(text) | Value::Text(text) if text.len() > SIZE_MAX => {
            Err(LocateError::too_many_bytes("the requests are large"))
        }
        _ => Ok(FoundValue { value, ran, notes }),
    }
}

/// Returns the requests that the locator matches, in order.
fn requests(
    traffic: &str,
    site: &str,
    place: &VisitAddress,
    locator: &TraceLocator,
) -> Result<Vec<MatchedRequest>, LocateError> {
    let har: HarFile = serde_json::from_str(traffic)
        .map_err(|error| LocateError::Failed(format!("the traffic is not a HAR: {error}")))?;
    let mut found = Vec::new();
    for mut entry in har.log.entries {
        // An entry without a valid URL was never sent to the site.
        let Ok(url) = reqwest::Url::parse(&entry.request.url) else { continue };
        let is_here = match &entry.site {
            Some(recorded) => recorded == site,
            None => {
                url.scheme() == "http"
                    && url.host_str() == Some(place.host.as_str())
                    && url.port_or_known_default() == Some(place.port)
            }
        };
        if is_here && locator.is_meant(&entry.request.method, url.path(), url.query()) {
            let lost = std::mem::take(&mut entry.lost);
            found.push(MatchedRequest { shown: shown(entry, &url), lost });
        }
    }
    if let Some(own) = har.log.own {
        let coverage = own.sites.iter().find(|coverage| coverage.site == site);
        let lacks = match coverage {
            Some(coverage) => lacks(coverage, locator, &found),
            None => Some(format!("{site} is not in it")),
        };
        if let Some(lacks) = lacks {
            let advice = "a reset of the site begins the recording anew";
            return Err(LocateError::Unavailable(format!("what was recorded does not say: {lacks}; {advice}")));
        }
    }
    Ok(found)
}

/// Returns the reason why a recording of the gateway cannot answer the locator, or `None` if it can.
fn lacks(coverage: &Coverage, locator: &TraceLocator, found: &[MatchedRequest]) -> Option<String> {
    match coverage.records.as_str() {
        "all" => {}
        "writes" if locator.is_of_writes() => {}
        "writes" => return Some("`record: writes` leaves out GET, HEAD and OPTIONS".to_owned()),
        _ => return Some("nothing is recorded of the site".to_owned()),
    }
    // The newest request is complete even if older ones were dropped.
    let wants_all = locator.all || locator.part == TracePart::Count || found.is_empty();
    if let Some(lacks) = coverage.lacks.as_ref().filter(|_| wants_all) {
        return Some(lacks.clone());
    }
    let asked = if locator.all { found } else { found.last().map(std::slice::from_ref).unwrap_or_default() };
    let lost = asked.iter().flat_map(|request| &request.lost).find(|part| may_ask_for(&locator.part, part))?;
    Some(format!("the {lost} of a request was not kept"))
}

/// Returns whether the selection may read a part of a request, `body` or `answer`. It errs on the side of true.
fn may_ask_for(taken: &TracePart, part: &str) -> bool {
    const OTHERS: [&str; 6] = ["method", "url", "path", "query", "headers", "status"];
    let text = match taken {
        TracePart::Whole => return true,
        TracePart::Count => return false,
        TracePart::Json(JsonQuery::Path { path, .. }) => path,
        TracePart::Json(JsonQuery::Jq { filter, .. }) => filter,
    };
    text.contains(part) || !OTHERS.iter().any(|other| text.contains(other))
}

fn shown(entry: HarEntry, url: &reqwest::Url) -> Json {
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

/// Converts a body: JSON, the fields of a form with the first text of each (for a file, its name), text, or null.
fn body(content: Option<HarContent>) -> Json {
    let Some(content) = content else { return Json::Null };
    // Base64 marks images and other binary content, in which no task looks for text.
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
    if let Some(fields) = parts(&text, &content.mime_type) {
        return Json::Object(fields);
    }
    if content.mime_type.contains("json")
        && let Ok(json) = serde_json::from_str(&text)
    {
        return json;
    }
    Json::from(text)
}

/// Returns the fields of a multipart form, or `None` for any other content.
fn parts(text: &str, kind: &str) -> Option<Map<String, Json>> {
    let (_, boundary) = kind.strip_prefix("multipart/form-data")?.split_once("boundary=")?;
    let boundary = boundary.split(';').next().unwrap_or_default().trim().trim_matches('"');
    let mut fields = Map::new();
    // Content before the first boundary belongs to no field.
    for part in text.split(&format!("--{boundary}")).skip(1) {
        let Some((head, content)) = part.split_once("\r\n\r\n") else { continue };
        let said = |what: &str| Some(head.split_once(what)?.1.split_once('"')?.0.to_owned());
        let Some(name) = said("; name=\"") else { continue };
        let value = match said("; filename=\"") {
            Some(file) => json!({ "file": file }),
            None => Json::from(content.strip_suffix("\r\n").unwrap_or(content)),
        };
        fields.entry(name).or_insert(value);
    }
    Some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arenad_model::locator::{LocatorKind, parse};

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
        let place = VisitAddress { host: "h".to_owned(), port: 7770, entry: ([127, 0, 0, 1], 1).into() };
        let found = requests(HAR, "toy", &place, &locator).expect("a HAR");
        found.into_iter().map(|request| request.shown).collect()
    }

    #[test]
    fn forms_in_parts_have_fields_like_others() {
        let text = "--b1\r\nContent-Disposition: form-data; name=\"price\"\r\n\r\n123.45\r\n\
            --b1\r\nContent-Disposition: form-data; name=\"price\"\r\n\r\n9\r\n\
            --b1\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\na\r\n\r\nb\r\n\
            --b1\r\nContent-Disposition: form-data; name=\"image\"; filename=\"a.png\"\r\nContent-Type: image/png\r\n\r\n\u{fffd}PNG\r\n--b1--\r\n";
        let fields = parts(text, "multipart/form-data; boundary=b1").expect("a form");
        let expected = json!({ "price": "123.45", "note": "a\r\n\r\nb", "image": { "file": "a.png" } });
        assert_eq!(Json::Object(fields), expected);
        assert_eq!(parts(text, "text/plain"), None);
        assert_eq!(parts("", "multipart/form-data; boundary="), Some(Map::new()));
    }

    #[test]
    fn what_a_recording_lacks_is_never_passed_over() {
        let entry = |path: &str, lost: &[&str]| {
            json!({
                "request": { "method": "POST", "url": format!("http://127.0.0.1:1{path}"), "headers": [] },
                "response": { "status": 200 }, "_site": "toy", "_lost": lost,
            })
        };
        let har = |records: &str, lacks: Option<&str>| {
            let own = json!({ "sites": [{ "site": "toy", "records": records, "lacks": lacks }] });
            let entries = [entry("/a", &[]), entry("/a", &[]), entry("/lost", &["answer"])];
            json!({ "log": { "_arenad": own, "entries": entries } }).to_string()
        };
        let place = VisitAddress { host: "h".to_owned(), port: 7770, entry: ([127, 0, 0, 1], 1).into() };
        let ask = |har: &str, text: &str| {
            let LocatorKind::Trace(locator) = parse(text).expect("a locator").kind else { panic!("trace") };
            requests(har, "toy", &place, &locator).map(|found| found.len()).map_err(|error| error.to_string())
        };
        let whole = har("all", None);
        assert_eq!(ask(&whole, "trace: POST /a | count"), Ok(2), "the site counts, whatever host the client used");
        assert_eq!(ask(&whole, "trace: GET /b | count"), Ok(0));
        for known in ["jsonpath: $.path", "jq: .status", "count"] {
            assert_eq!(ask(&whole, &format!("trace: POST /lost | {known}")), Ok(1), "{known}");
        }
        for lost in ["jsonpath: $.answer.x", "jq: .", "jsonpath: $..x"] {
            assert!(ask(&whole, &format!("trace: POST /lost | {lost}")).is_err(), "{lost}");
        }
        let cut = har("all", Some("12 earlier requests had to make room"));
        assert_eq!(ask(&cut, "trace: POST /a"), Ok(2), "the last one is known");
        for text in ["trace: POST /a | count", "trace(all): POST /a", "trace: POST /b"] {
            assert!(ask(&cut, text).is_err_and(|error| error.contains("12 earlier requests")), "{text}");
        }
        let writes = har("writes", None);
        assert_eq!(ask(&writes, "trace: POST /a | count"), Ok(2));
        assert!(ask(&writes, "trace: /a | count").is_err_and(|error| error.contains("record: writes")));
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
