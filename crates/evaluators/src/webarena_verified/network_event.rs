//! `NetworkEventEvaluator`: compares the browser's requests and the sites' responses with the expected ones.

use serde_json::{Map, Value};

use super::compare::ComparisonRules;
use super::failure::ReadingFailure;
use super::jsonpath;
use super::node::ValueNode;
use super::reading::{ReadingOptions, UrlOptions, ValueOrigin};
use super::schema;
use super::task::NetworkEvent;
use super::trace::{Trace, TraceEvent};
use super::values::url::{as_it_is, have_same_path};
use super::values::{TypedValue, ValueKind};
use crate::text::patterns::Mode;
use crate::text::python::is_falsy;
use arenad_verdict::Profile;

/// The result of a comparison.
pub(super) struct TrafficOutcome {
    /// Whether the traffic is as expected.
    pub(super) is_fine: bool,
    /// The examined requests, as they were read.
    pub(super) found: Vec<Value>,
    /// The differences of the last request.
    pub(super) reason: Option<String>,
}

/// Reads the values of one evaluator.
struct TrafficJudge<'a> {
    config: &'a NetworkEvent,
    /// The way in which the task's own values are read.
    reading: ReadingOptions<'a>,
}

/// Searches for the expected request. `reading` determines how the task's own values are read.
pub(super) fn judge(
    config: &NetworkEvent,
    trace: &Trace,
    is_navigation: bool,
    reading: &ReadingOptions<'_>,
) -> Result<TrafficOutcome, ReadingFailure> {
    let judge = TrafficJudge::of(config, reading);
    let mut events = judge.matching(&trace.relevant()?, is_navigation)?;
    if config.last_event_only {
        events.drain(..events.len().saturating_sub(1));
    }
    let expected = judge.expected()?;
    let actual: Vec<ValueNode> = events.iter().map(|event| judge.actual(event, &expected)).collect::<Result<_, _>>()?;
    let found: Vec<Value> = actual.iter().map(ValueNode::to_json).collect();
    if config.should_not_exist {
        let reason = (!found.is_empty()).then(|| "there is a request that should not have been made".to_owned());
        return Ok(TrafficOutcome { is_fine: found.is_empty(), found, reason });
    }
    let comparison =
        ComparisonRules { reading: &judge.reading, is_ordered: false, may_have_more_keys: true, ignored_key: None };
    let mut reason = "no request is like the one expected".to_owned();
    for actual in &actual {
        let differences = comparison.differences(actual, &expected, "network_event")?;
        if differences.is_empty() {
            return Ok(TrafficOutcome { is_fine: true, found, reason: None });
        }
        reason = differences
            .iter()
            .map(|difference| format!("{}: {}", difference.name, difference.message))
            .collect::<Vec<_>>()
            .join("; ");
    }
    if reading.profile == Profile::Strict
        && config.expected.post_data.is_some()
        && let Some(lost) = events.iter().find(|event| event.has_lost_body())
    {
        return Err(ReadingFailure::Unseen(format!(
            "the body of the request to {} was not recorded",
            lost.url().unwrap_or_default()
        )));
    }
    Ok(TrafficOutcome { is_fine: false, found, reason: Some(reason) })
}

/// Whether the task's own values can be read.
pub(super) fn is_understood(config: &NetworkEvent, reading: &ReadingOptions<'_>) -> bool {
    TrafficJudge::of(config, reading).expected().is_ok()
}

impl<'a> TrafficJudge<'a> {
    fn of(config: &'a NetworkEvent, reading: &ReadingOptions<'a>) -> Self {
        let url = UrlOptions {
            decode_base64_query: config.decode_base64_query,
            ignored: &config.ignored_query_params,
            ignored_patterns: &config.ignored_query_params_patterns,
            query: None,
            query_schema: config.query_params_schema.as_ref().filter(|schema| !is_falsy(schema)),
        };
        Self { config, reading: ReadingOptions { url, ..*reading } }
    }
}

impl TrafficJudge<'_> {
    fn of_browser(&self) -> ReadingOptions<'_> {
        ReadingOptions { side: ValueOrigin::Actual, ..self.reading }
    }

    /// Returns the requests to compare: those with the expected method and path, from the expected page. For a
    /// navigation it is the last page that the browser opened, at any URL.
    fn matching<'e>(
        &self,
        events: &[&'e TraceEvent],
        is_navigation: bool,
    ) -> Result<Vec<&'e TraceEvent>, ReadingFailure> {
        let expected = &self.config.expected;
        if events.is_empty() {
            return Ok(Vec::new());
        }
        if is_navigation && expected.http_method == "GET" {
            let mut last = None;
            // All events are read, because the benchmark's code raises on any malformed one.
            for event in events {
                if event.is_navigation()? {
                    last = Some(*event);
                }
            }
            return Ok(last.into_iter().collect());
        }
        let url = TypedValue::read(ValueKind::Url, &expected.url, &self.reading)?;
        let referer = expected.headers.as_ref().and_then(|headers| headers.get("referer"));
        let referer = referer.map(|referer| TypedValue::read(ValueKind::Url, referer, &self.reading)).transpose()?;
        let read = |url: &str| TypedValue::read(ValueKind::Url, &Value::from(url), &self.of_browser());
        let mut matching = Vec::new();
        let method = expected.http_method.to_lowercase();
        for event in events {
            if !method.is_empty() && event.method()?.to_lowercase() != method {
                continue;
            }
            if !have_same_path(&url, &read(event.url()?)?, &self.reading)? {
                continue;
            }
            let from = event.referer()?;
            if let (Some(referer), Some(from)) = (&referer, from) {
                let is_from = match read(&from) {
                    Ok(from) => have_same_path(referer, &from, &self.reading)?,
                    // The benchmark then compares the text itself, as if it were a normalised URL.
                    Err(ReadingFailure::Raised(_)) => have_same_path(referer, &as_it_is(&from), &self.reading)?,
                    Err(failure) => return Err(failure),
                };
                if !is_from {
                    continue;
                }
            }
            matching.push(*event);
        }
        Ok(matching)
    }

    fn expected(&self) -> Result<ValueNode, ReadingFailure> {
        let expected = &self.config.expected;
        let reading = &self.reading;
        let with_query =
            ReadingOptions { url: UrlOptions { query: expected.query_params.as_ref(), ..reading.url }, ..*reading };
        let url = schema::single(&expected.url, "url", &with_query)?;
        let headers = expected.headers.as_ref().map(|headers| self.headers(headers, reading)).transpose()?;
        let post_data = match expected.post_data.as_ref().filter(|data| !data.is_empty()) {
            Some(data) => self.post_data(self.counted(data)?, reading)?,
            None => ValueNode::None,
        };
        let content = expected.response_content.as_ref().filter(|content| !content.is_empty());
        let content = content.map_or(ValueNode::None, |content| ValueNode::raw(&Value::Object(content.clone())));
        let cookies = match expected.response_cookies.as_ref().filter(|cookies| !cookies.is_empty()) {
            Some(cookies) => self.cookies(cookies, reading)?,
            None => ValueNode::None,
        };
        let method = ValueNode::Raw(Value::from(expected.http_method.as_str()));
        Ok(event_node(url, headers, post_data, content, cookies, expected.response_status, method))
    }

    /// Reads the parts of a request that the task mentions.
    fn actual(&self, event: &TraceEvent, normal: &ValueNode) -> Result<ValueNode, ReadingFailure> {
        let expected = &self.config.expected;
        let reading = &self.of_browser();
        let url = schema::single(&Value::from(event.url()?), "url", reading)?;
        let named = expected.headers.as_ref().filter(|names| !names.is_empty());
        let headers = named.map(|names| given(names, |name| event.header(name))).transpose()?;
        let headers = headers.filter(|headers| !headers.is_empty());
        let headers = headers.map(|headers| self.headers(&headers, reading)).transpose()?;
        let post_data = match expected.post_data.as_ref().filter(|data| !data.is_empty()) {
            Some(_) => self.actual_post_data(event, normal.get("post_data"), reading)?,
            None => ValueNode::None,
        };
        let content = match expected.response_content.as_ref().filter(|content| !content.is_empty()) {
            Some(names) => actual_content(event, names, reading)?,
            None => ValueNode::None,
        };
        let cookies = expected.response_cookies.as_ref().filter(|names| !names.is_empty());
        let cookie = |name: &str| Ok(event.cookie(name)?.map(Value::from));
        let cookies = cookies.map(|names| given(names, cookie)).transpose()?.filter(|found| !found.is_empty());
        let cookies = cookies.map_or(Ok(ValueNode::None), |cookies| self.cookies(&cookies, reading))?;
        let method = ValueNode::Raw(Value::from(event.method()?));
        Ok(event_node(url, headers, post_data, content, cookies, event.status()?, method))
    }

    fn headers(&self, headers: &Map<String, Value>, reading: &ReadingOptions<'_>) -> Result<ValueNode, ReadingFailure> {
        let read = |(name, value): (&String, &Value)| {
            let node = if value.is_null() {
                ValueNode::None
            } else if ["redirect_url", "referer"].contains(&name.as_str()) && !is_falsy(value) {
                schema::single(value, "url", reading)?
            } else {
                match value {
                    Value::String(text) => {
                        let text = Value::from(reading.derender_text(text));
                        let bare = ReadingOptions { sites: None, ..*reading };
                        match schema::single(&text, "string", &bare) {
                            Err(ReadingFailure::Raised(_)) => ValueNode::raw(value),
                            other => other?,
                        }
                    }
                    other => schema::single(other, "string", reading)?,
                }
            };
            Ok((name.clone(), node))
        };
        headers.iter().map(read).collect::<Result<_, _>>().map(ValueNode::Object)
    }

    fn cookies(&self, cookies: &Map<String, Value>, reading: &ReadingOptions<'_>) -> Result<ValueNode, ReadingFailure> {
        let bare = ReadingOptions { sites: None, ..*reading };
        let read = |(name, value): (&String, &Value)| Ok((name.clone(), schema::single(value, "string", &bare)?));
        cookies.iter().map(read).collect::<Result<_, _>>().map(ValueNode::Object)
    }

    /// Returns the fields of a body that are not ignored.
    fn counted(&self, data: &Map<String, Value>) -> Result<Map<String, Value>, ReadingFailure> {
        let mut counted = Map::new();
        for (name, value) in data {
            let mut is_ignored = false;
            for pattern in &self.config.ignored_post_data_params_patterns {
                // An invalid pattern is ignored.
                is_ignored |=
                    match self.reading.patterns.is_match(pattern, Mode::Search, name).map_err(ReadingFailure::from) {
                        Ok(is_match) => is_match,
                        Err(ReadingFailure::Raised(_)) => false,
                        Err(failure) => return Err(failure),
                    };
            }
            if !is_ignored {
                counted.insert(name.clone(), value.clone());
            }
        }
        Ok(counted)
    }

    fn post_data(&self, data: Map<String, Value>, reading: &ReadingOptions<'_>) -> Result<ValueNode, ReadingFailure> {
        if data.is_empty() {
            return Ok(ValueNode::Object(Vec::new()));
        }
        let none = Value::Object(Map::new());
        let schema = self.config.post_data_schema.as_ref().filter(|schema| !is_falsy(schema)).unwrap_or(&none);
        schema::read(&Value::Object(data), schema, reading)
    }

    fn actual_post_data(
        &self,
        event: &TraceEvent,
        normal: Option<&ValueNode>,
        reading: &ReadingOptions<'_>,
    ) -> Result<ValueNode, ReadingFailure> {
        let Some(data) = event.post_data()?.filter(|data| !data.is_empty()) else {
            return Ok(ValueNode::None);
        };
        let data = self.counted(&data)?;
        let names = match normal {
            Some(ValueNode::Object(entries)) if !entries.is_empty() => entries.iter().map(|(name, _)| name.trim()),
            _ => return self.post_data(data, reading),
        };
        let (paths, plain): (Vec<&str>, Vec<&str>) = names.partition(|name| jsonpath::is_path(name));
        let mut fields = Map::new();
        for name in plain {
            fields.insert(name.to_owned(), data.get(name).cloned().unwrap_or_default());
        }
        for path in paths {
            fields.insert(path.to_owned(), jsonpath::find(&data, path, reading)?);
        }
        self.post_data(fields, reading)
    }
}

/// Returns the values found for the names; names without a value are left out.
fn given(
    names: &Map<String, Value>,
    find: impl Fn(&str) -> Result<Option<Value>, ReadingFailure>,
) -> Result<Map<String, Value>, ReadingFailure> {
    let mut found = Map::new();
    for name in names.keys() {
        found.extend(find(name)?.map(|value| (name.clone(), value)));
    }
    Ok(found)
}

/// Returns the named fields of a response's body without reading them. A missing field is left out if it is named
/// directly, and `null` if it is named by a path.
fn actual_content(
    event: &TraceEvent,
    names: &Map<String, Value>,
    reading: &ReadingOptions<'_>,
) -> Result<ValueNode, ReadingFailure> {
    let Some(data) = event.response_content()?.filter(|data| !data.is_empty()) else {
        return Ok(ValueNode::None);
    };
    let mut fields = Map::new();
    for name in names.keys().map(|name| name.trim()) {
        if jsonpath::is_path(name) {
            fields.insert(name.to_owned(), jsonpath::find(&data, name, reading)?);
        } else if let Some(value) = data.get(name) {
            fields.insert(name.to_owned(), value.clone());
        }
    }
    Ok(ValueNode::raw(&Value::Object(fields)))
}

fn event_node(
    url: ValueNode,
    headers: Option<ValueNode>,
    post_data: ValueNode,
    response_content: ValueNode,
    response_cookies: ValueNode,
    status: i64,
    method: ValueNode,
) -> ValueNode {
    let mut parts = vec![("url".to_owned(), url)];
    parts.extend(headers.map(|headers| ("headers".to_owned(), headers)));
    parts.extend([
        ("response_status".to_owned(), ValueNode::Raw(Value::from(status))),
        ("http_method".to_owned(), method),
        ("post_data".to_owned(), post_data),
        ("response_content".to_owned(), response_content),
        ("response_cookies".to_owned(), response_cookies),
    ]);
    ValueNode::Object(parts)
}
