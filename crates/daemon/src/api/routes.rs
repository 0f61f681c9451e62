//! The routes of the API together with their descriptions, of which the OpenAPI document consists.
//!
//! A route cannot be added without its description, and the document has no other source.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::handler::Handler;
use axum::routing::{MethodFilter, MethodRouter, on};
use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use super::Api;
use super::described::{DescribedHandler, Schemas, Signature};
use arenad_api::Problem;

/// Routes and their descriptions.
pub(super) struct DescribedRoutes {
    router: Router<Arc<Api>>,
    operations: Vec<DescribedOperation>,
}

/// One operation: a method of a path.
struct DescribedOperation {
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    /// Describes the signature of the handler. It is called for the document alone, because each start of a daemon makes
    /// the routes.
    signature: fn(&mut Schemas) -> Signature,
    /// Describes the JSON of a response that the handler builds by hand.
    answer: Option<fn(&mut Schemas) -> Value>,
    /// The statuses of successes, if they are not the only one that the signature implies.
    statuses: &'static [u16],
    /// The types of successes that are not JSON, by their names.
    media: &'static [&'static str],
}

/// Options of a route that its handler's signature does not show.
#[derive(Default)]
pub(super) struct RouteOptions {
    /// The maximum size of the request's body in bytes; that of axum by default.
    pub body_max: Option<usize>,
    /// The statuses of successes. Default: 204 without content, else 200.
    pub statuses: &'static [u16],
    /// The types of successes that are not JSON.
    pub media: &'static [&'static str],
}

impl DescribedRoutes {
    pub(super) fn new() -> Self {
        Self { router: Router::new(), operations: Vec::new() }
    }

    /// Adds `GET path`. `summary` is a sentence in the third person, without its full stop.
    pub(super) fn get<H, A, B>(self, path: &'static str, summary: &'static str, handler: H) -> Self
    where
        H: Handler<A, Arc<Api>> + DescribedHandler<B>,
        A: 'static,
    {
        self.with("get", path, summary, RouteOptions::default(), handler)
    }

    /// Adds `POST path`, as `get` does.
    pub(super) fn post<H, A, B>(self, path: &'static str, summary: &'static str, handler: H) -> Self
    where
        H: Handler<A, Arc<Api>> + DescribedHandler<B>,
        A: 'static,
    {
        self.with("post", path, summary, RouteOptions::default(), handler)
    }

    /// Adds `PUT path`, as `get` does.
    pub(super) fn put<H, A, B>(self, path: &'static str, summary: &'static str, handler: H) -> Self
    where
        H: Handler<A, Arc<Api>> + DescribedHandler<B>,
        A: 'static,
    {
        self.with("put", path, summary, RouteOptions::default(), handler)
    }

    /// Adds `DELETE path`, as `get` does.
    pub(super) fn delete<H, A, B>(self, path: &'static str, summary: &'static str, handler: H) -> Self
    where
        H: Handler<A, Arc<Api>> + DescribedHandler<B>,
        A: 'static,
    {
        self.with("delete", path, summary, RouteOptions::default(), handler)
    }

    /// Adds a route with options.
    pub(super) fn with<H, A, B>(
        mut self,
        method: &'static str,
        path: &'static str,
        summary: &'static str,
        options: RouteOptions,
        handler: H,
    ) -> Self
    where
        H: Handler<A, Arc<Api>> + DescribedHandler<B>,
        A: 'static,
    {
        let filter = match method {
            "get" => MethodFilter::GET,
            "put" => MethodFilter::PUT,
            "post" => MethodFilter::POST,
            "delete" => MethodFilter::DELETE,
            other => unreachable!("routes have no method {other}"),
        };
        let mut route: MethodRouter<Arc<Api>> = on(filter, handler);
        if let Some(size) = options.body_max {
            route = route.layer(DefaultBodyLimit::max(size));
        }
        self.router = self.router.route(path, route);
        let RouteOptions { statuses, media, .. } = options;
        let signature = H::signature;
        self.operations.push(DescribedOperation { method, path, summary, signature, answer: None, statuses, media });
        self
    }

    /// Declares the JSON of the last route, whose handler builds its response by hand.
    pub(super) fn answering<T: JsonSchema>(mut self) -> Self {
        if let Some(last) = self.operations.last_mut() {
            last.answer = Some(Schemas::of_answer::<T>);
        }
        self
    }

    /// Returns the router, without describing the routes.
    pub(super) fn router(self) -> Router<Arc<Api>> {
        self.router
    }

    /// Returns the OpenAPI document, which describes all routes.
    pub(super) fn document(self) -> Value {
        let mut schemas = Schemas::new();
        let mut paths = Map::new();
        for operation in &self.operations {
            let path = paths.entry(operation.path).or_insert_with(|| json!({}));
            path[operation.method] = operation.shown(&mut schemas);
        }
        let problem = schemas.of_answer::<Problem>();
        let mut paths = Value::Object(paths);
        let schemas = schemas.named(&mut paths);
        json!({
            "openapi": "3.1.0",
            "info": {
                "title": "arenad",
                "description": "The HTTP API of the daemon, on its Unix socket and optionally over TCP.",
                "version": env!("CARGO_PKG_VERSION"),
                "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
            },
            "servers": [{ "url": "http://127.0.0.1:7575", "description": "the address of `arenad serve --listen`" }],
            "security": [{ "token": [] }],
            "paths": paths,
            "components": {
                "schemas": schemas,
                "responses": {
                    "Problem": {
                        "description": "the request failed; `code` is a stable word for programs",
                        "content": { "application/problem+json": { "schema": problem } },
                    },
                },
                "securitySchemes": {
                    "token": {
                        "type": "http",
                        "scheme": "bearer",
                        "description": "The token of the daemon, or of an episode. The Unix socket needs none.",
                    },
                },
            },
        })
    }
}

impl DescribedOperation {
    fn shown(&self, schemas: &mut Schemas) -> Value {
        let mut signature = (self.signature)(schemas);
        if let Some(answer) = self.answer {
            signature.success = Some((200, Some(answer(schemas))));
        }
        let mut shown = Map::new();
        shown.insert("operationId".to_owned(), json!(self.id()));
        shown.insert("summary".to_owned(), json!(self.summary));
        shown.insert("tags".to_owned(), json!([self.tag()]));
        let parameters: Vec<Value> = self.path_parameters().chain(signature.query.iter().cloned()).collect();
        if !parameters.is_empty() {
            shown.insert("parameters".to_owned(), Value::Array(parameters));
        }
        if let Some(body) = &signature.body {
            shown.insert("requestBody".to_owned(), body.clone());
        }
        shown.insert("responses".to_owned(), self.responses(&signature));
        Value::Object(shown)
    }

    fn responses(&self, signature: &Signature) -> Value {
        let mut content = Map::new();
        if let Some((_, Some(schema))) = &signature.success {
            content.insert("application/json".to_owned(), json!({ "schema": schema }));
        }
        for kind in self.media {
            content.insert((*kind).to_owned(), json!({}));
        }
        let implied = signature.success.as_ref().map_or(200, |(status, _)| *status);
        let statuses = if self.statuses.is_empty() { &[implied] } else { self.statuses };
        let mut responses = Map::new();
        for status in statuses {
            let mut response = json!({ "description": self.summary });
            if !content.is_empty() {
                response["content"] = Value::Object(content.clone());
            }
            responses.insert(status.to_string(), response);
        }
        responses.insert("default".to_owned(), json!({ "$ref": "#/components/responses/Problem" }));
        Value::Object(responses)
    }

    /// Returns a name for generators of clients, such as `postEpisodesIdFork`.
    fn id(&self) -> String {
        let words = self.path.trim_start_matches("/v1/").split(['/', '-', '_', '.']);
        let capitals = words.map(|word| word.trim_matches(['{', '}'])).map(|word| {
            let mut letters = word.chars();
            letters.next().map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + letters.as_str())
        });
        self.method.to_owned() + &capitals.collect::<String>()
    }

    /// Returns the resource that the operation is listed under.
    fn tag(&self) -> &str {
        let mut words = self.path.trim_start_matches("/v1/").split('/');
        let first = words.next().unwrap_or_default();
        if words.any(|word| word == "sites") { "sites" } else { first }
    }

    fn path_parameters(&self) -> impl Iterator<Item = Value> {
        let mut before = "";
        self.path.split('/').filter_map(move |word| {
            let resource = before;
            before = word;
            let name = word.strip_prefix('{')?.strip_suffix('}')?;
            let description = match (name, resource) {
                ("environment" | "account", _) => format!("The name of the {name}."),
                ("site", "sites") => "The name of the site, or of one of its slots, such as `shopping:2`.".to_owned(),
                ("site", _) => "The name of the site.".to_owned(),
                ("index", _) => "The index of the part, from 0 on.".to_owned(),
                ("id", "snapshots") => "The id of the snapshot, the beginning of one, or its name.".to_owned(),
                (_, resource) => format!("The id of the {}.", resource.trim_end_matches('s')),
            };
            Some(json!({
                "name": name,
                "in": "path",
                "required": true,
                "description": description,
                "schema": { "type": "string" },
            }))
        })
    }
}
