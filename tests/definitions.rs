//! Definitions as people write them: broken ones with the exact messages, good ones with their resolved form.
//!
//! Each folder in `tests/definitions/bad/` and `tests/definitions/good/` is a root folder. `UPDATE_EXPECTED=1` rewrites
//! the golden files; review the diff before a commit.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use arenad_definition::{
    self as definition, DefinitionError, DefinitionSources, Diagnostics, LoadedEnvironment, Style, VariableOrigin,
    tasks,
};
use arenad_model::ids::EnvironmentName;
use arenad_model::locator::Value as LocatedValue;
use arenad_model::probe::{JsonExpectation, ProbeKind};
use arenad_model::schedule::Schedule;
use arenad_model::service::MountSpec;
use arenad_model::store::StoreKind;
use arenad_model::task::{CriterionKind, Matcher};
use serde_json::{Map, Value, json};

fn cases(kind: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/definitions").join(kind);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("read {}: {error}", folder.display()));
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.expect("a folder's entry").path()).collect();
    found.retain(|path| path.is_dir());
    found.sort();
    found
}

fn variables() -> BTreeMap<String, String> {
    BTreeMap::from([("GIVEN".to_owned(), "from the shell".to_owned())])
}

fn load(root: &Path) -> Result<LoadedEnvironment, DefinitionError> {
    let file = root.join("environments/x.yaml");
    let located = definition::locate_file(&file)?;
    let sources = definition::read(&located)?;
    definition::load(&sources, &variables()).map_err(DefinitionError::Invalid)
}

/// Returns the message that users see about a definition that does not load.
fn words(root: &Path, error: &DefinitionError) -> String {
    let text = match error {
        DefinitionError::Invalid(diagnostics) => diagnostics.render(Style::default()),
        other => {
            let cause = other.source().map(|cause| format!("caused by: {cause}\n")).unwrap_or_default();
            let hint = other.hint().map(|hint| format!("hint: {hint}\n")).unwrap_or_default();
            format!("error: {other}\n{cause}{hint}")
        }
    };
    text.replace(&root.canonicalize().expect("the case exists").display().to_string(), "<root>")
}

/// Compares with a golden file or rewrites it; returns the difference.
fn compare(golden: &Path, found: &str) -> Option<String> {
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        fs::write(golden, found).expect("write the golden file");
        return None;
    }
    let wanted = fs::read_to_string(golden).unwrap_or_default();
    if wanted == found {
        return None;
    }
    let (wanted, found): (Vec<&str>, Vec<&str>) = (wanted.lines().collect(), found.lines().collect());
    let same = |(a, b): &(&&str, &&str)| a == b;
    let before = wanted.iter().zip(&found).take_while(same).count();
    let after = wanted[before..].iter().rev().zip(found[before..].iter().rev()).take_while(same).count();
    let mut difference = format!("{} from line {}\n", golden.display(), before + 1);
    for (sign, lines) in [('-', &wanted), ('+', &found)] {
        for line in &lines[before..lines.len() - after] {
            difference += &format!("{sign} {line}\n");
        }
    }
    Some(difference)
}

fn assert_same(differences: &[String]) {
    assert!(differences.is_empty(), "run with UPDATE_EXPECTED=1 if this is meant:\n{}", differences.join("\n"));
}

#[test]
fn broken_definitions_are_answered_with_every_problem_and_its_place() {
    let cases = cases("bad");
    assert!(cases.len() >= 36, "only {} cases", cases.len());
    let mut differences = Vec::new();
    for root in &cases {
        let error = match load(root) {
            Ok(_) => panic!("{} loads", root.display()),
            Err(error) => error,
        };
        differences.extend(compare(&root.join("expected.txt"), &words(root, &error)));
    }
    assert_same(&differences);
}

#[test]
fn every_problem_points_at_a_line_that_exists() {
    for root in cases("bad") {
        let Err(DefinitionError::Invalid(diagnostics)) = load(&root) else {
            continue;
        };
        for problem in diagnostics.iter() {
            let bytes = fs::read(root.join(&problem.file))
                .unwrap_or_else(|_| panic!("{} has {}", root.display(), problem.file));
            let text = String::from_utf8_lossy(&bytes);
            let lines: Vec<&str> = text.split('\n').collect();
            assert!((1..=lines.len()).contains(&problem.line), "{problem:?}");
            let width = lines[problem.line - 1].chars().count();
            assert!((1..=width + 1).contains(&problem.column), "{problem:?}");
        }
    }
}

#[test]
fn good_definitions_resolve_as_recorded() {
    let mut differences = Vec::new();
    for root in cases("good") {
        let loaded = load(&root).unwrap_or_else(|error| panic!("{}:\n{}", root.display(), words(&root, &error)));
        let origin = |origin| match origin {
            VariableOrigin::Shell => "shell",
            VariableOrigin::DotEnv => ".env",
            VariableOrigin::Choice => "choice",
            VariableOrigin::Default => "default",
        };
        let used = loaded.variables.iter();
        let golden = json!({
            "resolved": loaded.resolved,
            "variables": used.map(|used| json!([used.name, origin(used.origin), used.value.expose()])).collect::<Value>(),
            "baseline_inputs": loaded.environment.sites.iter().map(|site| json!([site.name.as_str(), site.baseline_inputs])).collect::<Value>(),
        });
        let text = serde_json::to_string_pretty(&golden).expect("JSON prints") + "\n";
        differences.extend(compare(&root.join("expected.json"), &text));
    }
    assert_same(&differences);
}

#[test]
fn limits_of_stores_in_one_folder_add_up() {
    use arenad_model::ids::ServiceName;
    use arenad_model::store::StateLimit;

    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/definitions/good/stores");
    let loaded = load(&root).unwrap_or_else(|error| panic!("{}", words(&root, &error)));
    let site = |name: &str| loaded.environment.sites.iter().find(|site| site.name.as_str() == name).expect("a site");
    let limit = |name: &str, service: &str, folder: &str| {
        site(name).state_limit(&ServiceName::parse(service).expect("valid"), folder)
    };
    // In /data only the database declares a limit, so the other stores add the usual one.
    let declared = |bytes, has_usual| StateLimit { declared_bytes: Some(bytes), has_usual };
    assert_eq!(limit("forge", "web", "/data"), declared(40 << 30, true));
    assert_eq!(limit("forge", "db", "/uploads"), declared(3 << 29, false));
    assert_eq!(limit("forge", "web", "/cache"), StateLimit { declared_bytes: None, has_usual: true });
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("make a folder");
    for entry in fs::read_dir(from).expect("read a folder") {
        let path = entry.expect("a folder's entry").path();
        let target = to.join(path.file_name().expect("entries have names"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).expect("copy a file");
        }
    }
}

/// JSON is YAML: the output of `arenad config` can be saved and used, and has the same meaning.
#[test]
fn what_is_resolved_loads_again_and_means_the_same() {
    for root in cases("good") {
        let first = load(&root).expect("it loads");
        let folder = tempfile::tempdir().expect("a folder");
        copy(&root, folder.path());
        for (file, part) in [("environments/x.yaml", "environment"), ("compose/x.yaml", "compose")] {
            let text = serde_json::to_string_pretty(&first.resolved[part]).expect("JSON prints");
            fs::write(folder.path().join(file), text).expect("write a file");
        }
        // The resolved environment names its Compose file, which is `x.yaml` for every copy.
        let second =
            load(folder.path()).unwrap_or_else(|error| panic!("{}:\n{}", root.display(), words(folder.path(), &error)));
        let at_home = |loaded: &LoadedEnvironment| {
            let text = format!("{:#?}", loaded.environment);
            text.replace(&loaded.environment.root.display().to_string(), "<root>")
        };
        assert_eq!(at_home(&first), at_home(&second), "{}", root.display());
    }
}

/// The settings that the resolved form states by other keys, or that have no effect, by their type and key.
const RESTATED: [(&str, &str); 28] = [
    // Only the selected values, sites and services are left.
    ("RawChoice", "default"),
    ("RawChoice", "description"),
    ("RawChoice", "values"),
    ("RawEnvironment", "choices"),
    ("RawEnvironment", "only"),
    ("RawEnvironment", "profiles"),
    ("RawService", "profiles"),
    // A site that is not reset in place has no stores.
    ("RawReset", "in_place"),
    // `environment`.
    ("RawEnvFile", "path"),
    ("RawEnvFile", "required"),
    ("RawService", "env_file"),
    // `mem_limit`, `cpus` and `pids_limit`.
    ("RawDeploy", "resources"),
    ("RawLimits", "cpus"),
    ("RawLimits", "memory"),
    ("RawLimits", "pids"),
    ("RawResources", "limits"),
    ("RawService", "deploy"),
    // The text form of `ports`.
    ("RawPortSpec", "host_ip"),
    ("RawPortSpec", "protocol"),
    ("RawPortSpec", "published"),
    ("RawPortSpec", "target"),
    // `volumes`, and `test: [NONE]`.
    ("RawService", "tmpfs"),
    ("RawHealthCheck", "disable"),
    // Accepted without effect.
    ("RawCompose", "name"),
    ("RawCompose", "networks"),
    ("RawCompose", "version"),
    ("RawService", "expose"),
    ("RawService", "restart"),
];

/// Settings as the name of their type and their key.
type Settings = BTreeSet<(String, String)>;

/// A schema and its types by name.
struct SchemaTypes<'a> {
    schema: &'a Value,
    name: &'a str,
    types: &'a Map<String, Value>,
}

impl<'a> SchemaTypes<'a> {
    fn new(schema: &'a Value, name: &'a str) -> Self {
        Self { schema, name, types: schema["$defs"].as_object().expect("types") }
    }

    /// Returns all settings of the schema.
    fn all(&self) -> Settings {
        let mut found = Settings::new();
        self.add_all(self.schema, self.name, &mut found);
        for (name, part) in self.types {
            self.add_all(part, name, &mut found);
        }
        found
    }

    fn add_all(&self, part: &Value, name: &str, found: &mut Settings) {
        for form in forms(part).chain(["items", "additionalProperties"].iter().filter_map(|key| part.get(key))) {
            self.add_all(form, name, found);
        }
        for (key, property) in part["properties"].as_object().into_iter().flatten() {
            found.insert((name.to_owned(), key.clone()));
            self.add_all(property, &self.name_of(property, name, key), found);
        }
    }

    /// Adds the settings that a value has.
    fn add_used(&self, part: &Value, name: &str, value: &Value, found: &mut Settings) {
        if let Some(name) = part["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/")) {
            self.add_used(&self.types[name], name, value, found);
        }
        for form in forms(part) {
            self.add_used(form, name, value, found);
        }
        for item in value.as_array().into_iter().flatten() {
            self.add_used(&part["items"], name, item, found);
        }
        for (key, value) in value.as_object().into_iter().flatten() {
            let property = &part["properties"][key];
            if property.is_null() {
                self.add_used(&part["additionalProperties"], name, value, found);
            } else {
                found.insert((name.to_owned(), key.clone()));
                self.add_used(property, &self.name_of(property, name, key), value, found);
            }
        }
    }

    /// Returns the name of a property's type. Required properties contain their types, which may have no name.
    fn name_of(&self, property: &Value, parent: &str, key: &str) -> String {
        let is_it = |part: &Value| part["properties"].is_object() && part["properties"] == property["properties"];
        let name = self.types.iter().find(|(_, part)| is_it(part)).map(|(name, _)| name.clone());
        name.unwrap_or_else(|| format!("{parent}.{key}"))
    }
}

/// Returns the alternative forms of a schema.
fn forms(part: &Value) -> impl Iterator<Item = &Value> {
    ["anyOf", "oneOf"].into_iter().filter_map(|key| part[key].as_array()).flatten()
}

/// Together with the round trip above, this shows that `arenad config` prints every setting that a file can have. A new
/// setting must be used by a good definition, and printed or listed in [`RESTATED`].
#[test]
fn every_setting_of_the_schemas_is_printed_for_some_good_definition() {
    let loaded: Vec<LoadedEnvironment> = cases("good").iter().map(|root| load(root).expect("it loads")).collect();
    let (mut all, mut used) = (Settings::new(), Settings::new());
    for (file, name, schema) in [
        ("environment", "RawEnvironment", definition::environment_schema()),
        ("compose", "RawCompose", definition::compose_schema()),
    ] {
        let types = SchemaTypes::new(&schema, name);
        all.append(&mut types.all());
        for loaded in &loaded {
            types.add_used(&schema, name, &loaded.resolved[file], &mut used);
        }
    }
    let missing: BTreeSet<(&str, &str)> =
        all.difference(&used).map(|(name, key)| (name.as_str(), key.as_str())).collect();
    assert_eq!(missing, BTreeSet::from(RESTATED));
    assert!(all.len() > 150, "only {} settings", all.len());
}

fn good(name: &str) -> LoadedEnvironment {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/definitions/good").join(name);
    load(&root).unwrap_or_else(|error| panic!("{}", words(&root, &error)))
}

#[test]
fn shorthand_forms_and_defaults_become_domain_types() {
    let loaded = good("mini-like");
    let environment = &loaded.environment;
    let names: Vec<&str> = environment.sites.iter().map(|site| site.name.as_str()).collect();
    assert_eq!(names, ["shopping", "shopping_admin", "wikipedia"], "sites keep the file's order");
    let shop = &environment.sites[0];
    assert_eq!(shop.url(&environment.host), "http://localhost:7770");
    let service = &shop.services[0];
    assert_eq!(service.environment["WORKERS"], "2");
    assert_eq!(service.limits.memory_bytes, Some(512 << 20), "merged from an anchor");
    assert!(service.mounts.contains(&MountSpec::Tmpfs { target: "/tmp".to_owned(), size_bytes: Some(64 << 20) }));
    let ProbeKind::Http(http) = &shop.readiness.probes[0].kind else { panic!("not HTTP") };
    assert!(http.json.contains(&("/products".to_owned(), JsonExpectation::AtLeast(200.0))));
    assert!(http.json.contains(&("/ok".to_owned(), JsonExpectation::Equals("true".to_owned()))));
    assert_eq!(shop.health.shallow.probes, shop.readiness.probes, "shallow probes are the readiness probes");
    let deep = shop.health.deep.as_ref().expect("deep probes");
    let Schedule::Cron(cron) = &deep.schedule else { panic!("not by cron") };
    assert_eq!(cron.to_string(), "*/5 * * * * (Europe/Berlin)");
    assert_eq!((deep.timeout, deep.failures), (Duration::from_secs(10), 1));
    let recipes = shop.accounts.iter().map(|account| account.login.as_ref().expect("a log-in").recipe.name());
    assert_eq!(recipes.collect::<Vec<_>>(), ["form", "header", "token"]);
    let admin = &environment.sites[1];
    assert_eq!((admin.health.shallow.failures, &admin.health.deep), (2, &None));
    assert_eq!(admin.public.port, 7780, "taken from the Compose file");
    assert_eq!(admin.url("h"), "http://h:7780/admin");
    let wiki = &environment.sites[2];
    let order: Vec<&str> = wiki.services.iter().map(|service| service.name.as_str()).collect();
    assert_eq!(order, ["wiki-data", "wiki-web"], "dependencies come first");
    assert_eq!(wiki.services[1].command.as_deref().map(<[String]>::len), Some(4));
}

/// Loads an environment that is shipped, with as many slots as a site can have.
fn shipped(name: &str) -> arenad_model::site::Environment {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("environments/{name}.yaml"));
    let located = definition::locate_file(&file).expect("it exists");
    let sources = definition::read(&located).expect("it reads");
    let variables = BTreeMap::from([("ARENAD_SLOTS".to_owned(), "100".to_owned())]);
    definition::load(&sources, &variables).unwrap_or_else(|error| panic!("{error}")).environment
}

#[test]
fn own_ports_of_slots_of_shipped_environments_collide_with_nothing() {
    let environments = ["mini", "webarena", "webarena-verified", "visualwebarena"].map(shipped);
    let sites = || environments.iter().flat_map(|environment| &environment.sites);
    let mut taken: BTreeSet<u16> = sites().map(|site| site.public.port).collect();
    taken.extend(environments.iter().map(|environment| environment.reset_port));
    // The episode proxy and the reset server.
    taken.extend([7500, 7565]);
    let mut own = 0;
    for site in sites().filter(|site| !site.is_shared()) {
        let Some(ports) = site.ports else {
            assert_eq!(site.slots.max, 1, "{} has slots that clients without a proxy cannot reach", site.name);
            continue;
        };
        assert_eq!((site.slots.max, ports.bodies.name()), (100, "mapped"), "{}", site.name);
        for slot in 1..=site.slots.max {
            let port = ports.of(slot).expect("a port");
            // The kernel gives those above to outgoing connections.
            assert!((1024..32_768).contains(&port), "{} has {port}", site.name);
            assert!(taken.insert(port), "{port} of slot {slot} of {} is taken", site.name);
            own += 1;
        }
    }
    assert_eq!(own, 600, "six sites of mini have own ports");
}

#[test]
fn passwords_from_variables_are_shown_as_variables_and_never_in_debug_output() {
    let loaded = good("variables");
    let shown = loaded.resolved.to_string();
    assert!(shown.contains("${SHOP_PASSWORD}"), "{shown}");
    assert!(!shown.contains("from-dotenv-secret"), "{shown}");
    let debug = format!("{loaded:?}");
    assert!(!debug.contains("from-dotenv-secret"), "{debug}");
    let site = &loaded.environment.sites[0];
    assert_eq!(site.databases["shop"].password.expose(), "from-dotenv-secret");
}

#[test]
fn baseline_inputs_change_with_what_the_baseline_depends_on_and_with_nothing_else() {
    let edited = |file: &str, from: &str, to: &str| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/definitions/good/mini-like");
        let folder = tempfile::tempdir().expect("a folder");
        copy(&root, folder.path());
        let path = folder.path().join(file);
        let text = fs::read_to_string(&path).expect("read a file");
        assert!(text.contains(from), "{file} has no {from}");
        fs::write(&path, text.replacen(from, to, 1)).expect("write a file");
        let loaded = load(folder.path()).unwrap_or_else(|error| panic!("{}", words(folder.path(), &error)));
        loaded.environment.sites[0].baseline_inputs.clone()
    };
    let (environment, compose) = ("environments/x.yaml", "compose/x.yaml");
    let before = edited(environment, "One Stop Market", "One Stop Market");
    assert_eq!(before.len(), 64);
    let same = [
        (environment, "title: One Stop Market", "title: Another"),
        (environment, "Password.123", "Password.124"),
        (environment, "hold_requests: 1024", "hold_requests: 1"),
        (environment, "failures: 2", "failures: 3"),
        (environment, "contains: lamp", "contains: lamps"),
        (environment, "page: /customer/account/login/", "page: /login/"),
        (environment, "variable: SHOPPING }", "variable: SHOP }"),
        (compose, "MODE=admin", "MODE=other"),
    ];
    for (file, from, to) in same {
        assert_eq!(edited(file, from, to), before, "{to}");
    }
    let different = [
        (environment, "set-base-url", "set-other-url"),
        (environment, "at_least: 200", "at_least: 201"),
        (environment, "warm: [ /catalogue/", "warm: [ /other/"),
        (environment, "database: shop }\n    ready", "database: shop2 }\n    ready"),
        (compose, "WORKERS: 2", "WORKERS: 3"),
        (compose, "mem_limit: 512m", "mem_limit: 513m"),
        (compose, "image: arenad-mini-shop", "image: arenad-mini-shop:2"),
    ];
    for (file, from, to) in different {
        assert_ne!(edited(file, from, to), before, "{to}");
    }
}

#[test]
fn stores_say_what_is_mounted_and_only_that_is_the_baselines() {
    let loaded = good("stores");
    let forge = &loaded.environment.sites[0];
    let mounts: Vec<String> =
        forge.state_mounts().iter().map(|(service, folder)| format!("{service}:{folder}")).collect();
    assert_eq!(mounts, ["db:/uploads", "db:/var/lib/postgresql/data", "web:/cache/valkey", "web:/data"]);
    assert_eq!(loaded.environment.sites[1].state_mounts(), []);
    let server = forge.store("server").expect("declared");
    assert_eq!(server.service.as_str(), "db", "where its databases are");
    assert_eq!(server.kind, StoreKind::Postgres { databases: vec!["forge".to_owned(), "tiles".to_owned()] });
    let writers = forge.writers.as_ref().expect("declared");
    assert_eq!(writers.stop[1].command, ["/srv/db-stop", "--fast"]);
    let inputs = |from: &str, to: &str| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/definitions/good/stores");
        let located = definition::locate_file(&root.join("environments/x.yaml")).expect("it exists");
        let mut sources = definition::read(&located).expect("it reads");
        assert!(sources.environment.text.contains(from), "there is no {from}");
        sources.environment.text = sources.environment.text.replacen(from, to, 1);
        definition::load(&sources, &variables()).expect("it loads").environment.sites[0].baseline_inputs.clone()
    };
    assert_eq!(inputs("logs/**", "log/**"), forge.baseline_inputs, "what does not count");
    assert_eq!(inputs("/data/notes/notes", "/data/notes/other"), forge.baseline_inputs, "within what is mounted");
    assert_eq!(inputs("/srv/stop", "/srv/other"), forge.baseline_inputs, "who writes");
    assert_ne!(inputs("path: /uploads", "path: /downloads"), forge.baseline_inputs, "what is mounted");
}

#[test]
fn diagnostics_survive_json_and_colours_are_asked_for() {
    let root = cases("bad").into_iter().find(|path| path.ends_with("52-everything-at-once")).expect("the case");
    let Err(DefinitionError::Invalid(diagnostics)) = load(&root) else { panic!("it loads") };
    assert!(diagnostics.count() >= 15, "{diagnostics}");
    let json = serde_json::to_string(&diagnostics).expect("JSON prints");
    assert_eq!(serde_json::from_str::<Diagnostics>(&json).expect("JSON reads"), diagnostics);
    assert!(!diagnostics.to_string().contains('\u{1b}'));
    let style = Style { color: true, prefix: "../" };
    let colored = diagnostics.render(style);
    assert!(colored.contains("\u{1b}[") && colored.contains("../environments/x.yaml:"));
}

#[test]
fn line_ends_of_windows_and_a_byte_order_mark_change_nothing() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/definitions/good/mini-like");
    let located = definition::locate_file(&root.join("environments/x.yaml")).expect("it exists");
    let sources = definition::read(&located).expect("it reads");
    let mut windows = sources.clone();
    windows.environment.text = format!("\u{feff}{}", sources.environment.text.replace('\n', "\r\n"));
    windows.compose.text = sources.compose.text.replace('\n', "\r\n");
    let load = |sources: &DefinitionSources| definition::load(sources, &variables()).map(|loaded| loaded.resolved);
    assert_eq!(load(&windows), load(&sources));
    let text = windows.environment.text.replace("name: x", "nam: x");
    windows.environment.text = text;
    let diagnostics = definition::load(&windows, &variables()).expect_err("a key is missing");
    let places: Vec<_> = diagnostics.iter().map(|problem| (problem.line, problem.column)).collect();
    assert_eq!(places, [(1, 1)], "{diagnostics}");
}

#[test]
fn a_password_that_looks_like_a_number_is_text_when_a_variable_brings_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/definitions/good/variables");
    let located = definition::locate_file(&root.join("environments/x.yaml")).expect("it exists");
    let sources = definition::read(&located).expect("it reads");
    let given = BTreeMap::from([("SHOP_PASSWORD".to_owned(), "0012".to_owned()), ("GIVEN".to_owned(), "1".to_owned())]);
    let loaded = definition::load(&sources, &given).expect("it loads");
    let site = &loaded.environment.sites[0];
    assert_eq!(site.databases["shop"].password.expose(), "0012");
    assert_eq!(site.services[0].environment["PLAIN_NUMBER"], "1.10");
    assert_eq!(site.services[0].environment["EMPTY"], "");
}

#[test]
fn environments_are_found_by_name_folder_and_file() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/definitions/good/mini-like");
    let real = root.canonicalize().expect("it exists");
    assert_eq!(definition::find_root(&root.join("compose/wiki")), Some(real.clone()));
    assert_eq!(definition::find_root(Path::new("/")), None);
    let names = definition::list(&root);
    assert_eq!(names.iter().map(EnvironmentName::as_str).collect::<Vec<_>>(), ["x"]);
    let name = |text| EnvironmentName::parse(text).expect("a name");
    let located = definition::locate(&root, &name("x")).expect("it exists");
    assert_eq!(located.root, real);
    let unknown = definition::locate(&root, &name("y")).expect_err("there is none");
    assert_eq!(unknown.hint().as_deref(), Some("did you mean `x`?"));
    let unknown = definition::locate(&root, &name("something")).expect_err("there is none");
    assert_eq!(unknown.hint().as_deref(), Some("there are `x`"));
    for file in ["compose/x.yaml", "environments", "environments/none.yaml"] {
        definition::locate_file(&root.join(file)).expect_err(file);
    }
}

#[test]
fn schemas_describe_what_is_accepted() {
    for (schema, key) in [(definition::environment_schema(), "sites"), (definition::compose_schema(), "services")] {
        assert_eq!(schema["additionalProperties"], json!(false));
        assert!(schema["properties"][key]["description"].is_string());
    }
}

/// The folder of the task files, which belong to a valid environment.
fn tasks_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/definitions/tasks")
}

fn load_tasks(file: &Path) -> tasks::LoadedTasks {
    let root = tasks_root().canonicalize().expect("a folder");
    let environment = load(&root).expect("a good environment").environment;
    tasks::load(&[tasks::read_file(&root, file).expect("a file")], &environment)
}

#[test]
fn broken_task_files_are_answered_with_every_problem_and_its_place() {
    let mut differences = Vec::new();
    let mut count = 0;
    for entry in fs::read_dir(tasks_root().join("bad")).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            count += 1;
            let problems = load_tasks(&path).problems.unwrap_or_else(|| panic!("{} loads", path.display()));
            differences.extend(compare(&path.with_extension("txt"), &problems.render(Style::default())));
        }
    }
    assert!(count >= 4, "only {count} cases");
    assert_same(&differences);
}

#[test]
fn templates_become_tasks_with_their_variables_in_place() {
    let loaded = load_tasks(&tasks_root().join("good/shop.yaml"));
    assert!(loaded.problems.is_none(), "{}", loaded.problems.expect("problems"));
    let names: Vec<&str> = loaded.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["shop.order.1", "shop.order.2", "shop.find.1", "shop.find.2", "wiki.go", "wiki.never"]);
    let order = loaded.find("shop.order.2").expect("a task");
    assert_eq!(order.intent, "Order 1 of clock");
    assert_eq!(order.start, "http://localhost:7770/search/?q=clock");
    let CriterionKind::Site(reading, rule) = &order.criterion.leaves()[1].kind else { panic!("a site's value") };
    assert_eq!(rule.matcher, Matcher::Equals(LocatedValue::Integer(1)), "a variable keeps its type");
    assert_eq!((reading.arguments.get("sku"), reading.captured.as_slice()), (Some("C-7"), &["last".to_owned()][..]));
    let find = loaded.find("shop.find.1").expect("a task");
    assert_eq!(find.start, "http://localhost:8888/home");
    assert_eq!(find.snapshots[0].1, "full");
    let red = ["red", "green"].map(|colour| LocatedValue::Text(colour.to_owned())).to_vec();
    let CriterionKind::Answer(rule) = &find.criterion.leaves()[0].kind else { panic!("an answer") };
    assert_eq!(rule.matcher, Matcher::Set(red), "a list stays a list");
}
