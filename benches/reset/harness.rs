//! The reset of all sites by BrowserGym's own code, from its package on PyPI.

use std::process::Command;

use serde_json::Value;

use super::figures::quantile;
use super::resetter::Resetter;
use super::sites::SITES;
use crate::arena::Arena;

/// Measures `full_reset()` from the call to its return: the request, the wait, and BrowserGym's visit to each site.
pub fn full_reset(arena: &Arena, resetter: &Resetter, rounds: usize) {
    let installed = Command::new("scripts/harnesses.sh").current_dir(env!("CARGO_MANIFEST_DIR")).output();
    let Some(python) = installed.ok().filter(|installed| installed.status.success()).map(|installed| installed.stdout)
    else {
        println!("\nBrowserGym's full_reset(): not measured, because its package cannot be installed");
        return;
    };
    let python = String::from_utf8_lossy(&python).trim().to_owned();
    let printed = arena.arenad(&["env", "mini", "--for", "browsergym", "--format", "dotenv"]).stdout;
    let printed = String::from_utf8_lossy(&printed).into_owned();
    let variables: Vec<(&str, &str)> = printed.lines().filter_map(|line| line.split_once('=')).collect();
    let status = arena.json(&["status", "--json"]);
    let server = status["daemon"]["compat"].as_str().expect("a reset server").to_owned();
    let names: Vec<&str> = SITES.iter().map(|site| site.name).collect();
    let mut all = Vec::new();
    for _ in 0..rounds {
        resetter.await_standbys(&names);
        let output = Command::new(&python)
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/harnesses/client.py"))
            .arg("browsergym")
            .envs(variables.iter().copied())
            .env("WA_FULL_RESET", &server)
            .output()
            .expect("python runs");
        let done: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(done["raised"], Value::Null, "{done:#}");
        all.push(done["seconds"].as_f64().expect("seconds") * 1e3);
    }
    println!(
        "\nBrowserGym's full_reset() of all of mini, with its visit to each site: p50 {:.0} ms, worst {:.0} ms, {rounds} times",
        quantile(&all, 0.5),
        quantile(&all, 1.0)
    );
}
