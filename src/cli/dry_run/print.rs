//! Prints the plan in the form for people.

use crate::cli::output::{bytes, print_table, table};
use arenad_api::plan::{ImageAction, PlannedImage, PlannedSite, UpPlan};

/// Prints the steps of the plan, site by site.
pub(super) fn plan(plan: &UpPlan) {
    outln!("`arenad up {}` performs these steps, in this order; nothing has been done.", plan.environment);
    if plan.engine.is_none() {
        outln!("The engine does not answer, so every image counts as missing.");
    }
    heading("Images");
    let mut images = table(&["ACTION", "IMAGE", "FROM", "SIZE", "SITES"]);
    for image in &plan.images {
        let size = image.size_bytes.map_or_else(|| "-".to_owned(), bytes);
        let from = image.from.as_deref().unwrap_or("-");
        images.add_row([action(image), &image.reference, from, &size, &image.sites.join(", ")]);
    }
    print_table(&images);
    if !plan.data.is_empty() {
        heading("Data on this host");
        let mut data = table(&["STATE", "FOLDER", "USE", "SERVICE", "SITE"]);
        for found in &plan.data {
            let state = if found.exists { "present" } else { "missing" };
            let access = if found.is_written { "written" } else { "read" };
            data.add_row([state, &found.path, access, &found.service, &found.site]);
        }
        print_table(&data);
    }
    for found in &plan.sites {
        site(found);
    }
    outln!("\nIf the baseline of a site is already stored, its containers are created from the snapshot directly.");
}

fn heading(text: &str) {
    outln!("\n{text}");
}

fn action(image: &PlannedImage) -> &'static str {
    match image.action {
        ImageAction::Present => "present",
        ImageAction::Build => "build",
        ImageAction::Pull => "pull",
        ImageAction::Load => "load",
    }
}

fn site(site: &PlannedSite) {
    heading(&format!("{}  {}", site.name, site.url));
    line("network", "its own, without outbound access");
    if !site.network.egress.is_empty() {
        line("network", &format!("outbound access for {}", site.network.egress.join(", ")));
    }
    for volume in &site.volumes {
        line("volume", volume);
    }
    for container in &site.containers {
        let command = container.command.as_ref().map(|command| format!(" {command}")).unwrap_or_default();
        let memory = container.memory_bytes.map(|limit| format!(", at most {}", bytes(limit))).unwrap_or_default();
        line("container", &format!("{}: {}{command}{memory}", container.service, container.image));
        for mount in &container.mounts {
            line("", &format!("  {mount}"));
        }
    }
    for step in &site.configure {
        let unless = step.unless.as_ref().map(|probe| format!(", unless `{probe}` passes")).unwrap_or_default();
        line("configure", &format!("{} ({}){unless}", step.name, step.service));
        line("", &format!("  {}", step.run));
    }
    line("ready when", &site.ready.join("; "));
    for request in &site.warm {
        line("warm", request);
    }
    for command in &site.quiesce {
        line("quiesce", command);
    }
    line("snapshot", "stop cleanly, commit, start again from the snapshot, wait until ready, open the port");
}

fn line(what: &str, text: &str) {
    outln!("  {what:<11} {text}");
}
