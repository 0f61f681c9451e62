//! The resolved definition: in the forms of the two files, with every default filled in.
//!
//! Each function takes its type apart without `..`, so that a new field does not compile until it is printed or its
//! omission is explained.

mod service;
mod site;
mod steps;

use std::net::IpAddr;
use std::path::Path;

use serde_json::{Map, Value as Json, json};
use sha2::{Digest, Sha256};

use self::service::service;
use self::site::{clock, database, entry, site};
use self::steps::{baseline, readiness};
use super::scope::Scope;
use arenad_model::archive::{DataSource, ImageSource, Placement, SourceArchive, Unpacking};
use arenad_model::clock::ClockStart;
use arenad_model::hex::hex;
use arenad_model::ids::ServiceName;
use arenad_model::service::MountSpec;
use arenad_model::site::{BenchmarkFamily, DatabaseEngine, Environment, Site};

/// Returns the SHA-256 (hex) over everything that the content of a site's baseline depends on.
///
/// Paths are hashed relative to the root folder, so that two checkouts have the same hash.
pub(crate) fn baseline_inputs(site: &Site, root: &Path) -> String {
    let services = site.services.iter().map(|spec| {
        let mut service = service(spec, root, "");
        service.remove("labels");
        (spec.name.to_string(), Json::Object(service))
    });
    let databases = site.databases.iter().map(|(name, raw)| (name.clone(), database(raw, raw.password.expose())));
    let mut inputs = json!({
        "services": services.collect::<Map<_, _>>(),
        "entry": entry(&site.entry),
        "databases": databases.collect::<Map<_, _>>(),
        "ready": readiness(&site.readiness),
        "baseline": baseline(&site.baseline),
    });
    // The key is added only where it is set, so that the hashes of sites without it stay unchanged.
    if !site.egress.is_empty() {
        inputs["egress"] = names(&site.egress);
    }
    // With the start `snapshot`, the clock is the host's while the baseline is made.
    if let Some(found) = site.clock.as_ref().filter(|clock| clock.start != ClockStart::Snapshot) {
        inputs["clock"] = clock(found);
    }
    let mounts = site.state_mounts();
    if !mounts.is_empty() {
        let mounts = mounts.iter().map(|(service, folder)| json!([service.as_str(), folder]));
        inputs["state"] = mounts.collect();
    }
    inputs.sort_all_objects();
    let digest = Sha256::digest(inputs.to_string().as_bytes());
    hex(&digest)
}

/// Returns both files in their own forms. Passwords appear as the environment file writes them.
pub(crate) fn resolved(environment: &Environment, compose_path: &Path, scope: Scope<'_>) -> Json {
    let Environment { name, description, root, host, listen, benchmark, reset_port, egress, sites, images, data } =
        environment;
    let sites_scope = scope.key("sites");
    let site_entries = sites.iter().map(|site| (site.name.to_string(), self::site(site)));
    let up = "../".repeat(compose_path.parent().map_or(0, |folder| folder.components().count()));
    let mut services = Map::new();
    let mut volumes = Map::new();
    for (site, spec) in sites.iter().flat_map(|site| site.services.iter().map(move |spec| (site, spec))) {
        let mut service = service(spec, root, &up);
        if spec.name == site.entry.service {
            let published = format!("{}:{}:{}", bracketed(*listen), site.public.port, site.entry.port);
            service.insert("ports".to_owned(), json!([published]));
        }
        services.insert(spec.name.to_string(), Json::Object(service));
        for mount in &spec.mounts {
            if let MountSpec::Volume { name, .. } = mount {
                volumes.insert(name.clone(), Json::Null);
            }
        }
    }
    let mut compose = Map::from_iter([("services".to_owned(), Json::Object(services))]);
    if !volumes.is_empty() {
        compose.insert("volumes".to_owned(), Json::Object(volumes));
    }
    let compose_file = compose_path.strip_prefix("compose").unwrap_or(compose_path);
    let sources = SourceSections { root, up: &up };
    let mut resolved = json!({
        "environment": filled(json!({
            "name": name.as_str(),
            "description": description,
            "compose": compose_file.to_string_lossy(),
            "host": host,
            "listen": listen.to_string(),
            "benchmark": match benchmark {
                BenchmarkFamily::WebArena => "webarena",
                BenchmarkFamily::VisualWebArena => "visualwebarena",
            },
            "reset_port": reset_port,
            "egress": egress.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "sites": site_entries.collect::<Map<_, _>>(),
            "images": images.iter().map(|image| sources.image(image)).collect::<Map<_, _>>(),
            "data": data.iter().map(|data| sources.data(data)).collect::<Map<_, _>>(),
        })),
        "compose": compose,
    });
    escape_dollars(&mut resolved);
    // The value is copied as the file writes it, because only a variable can name a folder outside the root.
    if let Some(scalar) = scope.has("data_folder").then(|| scope.key("data_folder").scalar()).flatten() {
        resolved["environment"]["data_folder"] = Json::from(scalar.written.as_deref().unwrap_or(&scalar.text));
    }
    for site in sites {
        let name = site.name.as_str();
        let accounts = site.accounts.iter().map(|account| ("accounts", &account.name, &account.password));
        let servers = site.databases.iter().filter(|(_, database)| database.engine != DatabaseEngine::Sqlite);
        let databases = servers.map(|(name, database)| ("databases", name, &database.password));
        for (section, key, password) in accounts.chain(databases) {
            let scalar = sites_scope.key(name).key(section).key(key).key("password").scalar();
            let written = scalar.and_then(|scalar| scalar.written.as_deref()).unwrap_or(password.expose());
            resolved["environment"]["sites"][name][section][key]["password"] = Json::from(written);
        }
    }
    resolved
}

/// The entries of the sections `images` and `data`.
struct SourceSections<'a> {
    root: &'a Path,
    /// Relative path from the Compose file's folder to the root folder.
    up: &'a str,
}

impl SourceSections<'_> {
    fn image(&self, image: &ImageSource) -> (String, Json) {
        let ImageSource { reference, archive, loaded_bytes } = image;
        let mut entry = archive.as_ref().map_or(json!({}), |archive| Self::archive("archive", archive));
        entry["loaded_size"] = json!(loaded_bytes);
        (reference.clone(), filled(entry))
    }

    fn data(&self, data: &DataSource) -> (String, Json) {
        let DataSource { name, archive, placement } = data;
        let mut entry = Self::archive("file", archive);
        match placement {
            Placement::Folder(folder) => entry["target"] = json!(self.folder(folder)),
            Placement::Unpacked(parts) => {
                let part = |Unpacking { from, to }: &Unpacking| json!({ "from": from, "to": self.folder(to) });
                entry["unpack"] = parts.iter().map(part).collect();
            }
        }
        (name.clone(), filled(entry))
    }

    fn archive(key: &str, archive: &SourceArchive) -> Json {
        let SourceArchive { file, size_bytes, sha256, mirrors } = archive;
        json!({ key: file, "size": size_bytes, "sha256": sha256, "mirrors": mirrors })
    }

    fn folder(&self, path: &Path) -> String {
        format!("{}{}", self.up, path.strip_prefix(self.root).unwrap_or(path).display())
    }
}

/// Escapes dollar signs as a file would, so that the output can be loaded again.
fn escape_dollars(value: &mut Json) {
    match value {
        Json::String(text) if text.contains('$') => *text = text.replace('$', "$$"),
        Json::Array(items) => items.iter_mut().for_each(escape_dollars),
        Json::Object(entries) => entries.values_mut().for_each(escape_dollars),
        _ => {}
    }
}

fn bracketed(address: IpAddr) -> String {
    if address.is_ipv6() { format!("[{address}]") } else { address.to_string() }
}

/// Removes the keys with null or empty values from a mapping.
fn filled(mut value: Json) -> Json {
    if let Json::Object(entries) = &mut value {
        entries.retain(|_, value| match value {
            Json::Null => false,
            Json::Array(items) => !items.is_empty(),
            Json::Object(entries) => !entries.is_empty(),
            _ => true,
        });
    }
    value
}

fn names(services: &[ServiceName]) -> Json {
    services.iter().map(ServiceName::as_str).collect()
}

fn texts(pairs: &[(String, String)]) -> Map<String, Json> {
    pairs.iter().map(|(name, value)| (name.clone(), Json::from(value.as_str()))).collect()
}
