//! Converts a definition into the plan of bringing it up.

use std::collections::BTreeSet;

use arenad_api::plan::{
    ImageAction, PlannedContainer, PlannedData, PlannedImage, PlannedNetwork, PlannedSite, PlannedStep, UpPlan,
};
use arenad_build_context as context;
use arenad_engine::{Engine, EngineError, labels};
use arenad_model::archive::{ImageProvenance, NeededImage};
use arenad_model::configure::{ConfigureAction, ConfigureStep, ExecStep, HttpStep};
use arenad_model::service::{BuildSpec, MountSpec, ServiceSpec};
use arenad_model::site::{Environment, Site};

/// Returns the plan for the environment's sites. Without an engine every image counts as missing.
pub(super) async fn of(environment: &Environment, engine: Option<&dyn Engine>) -> Result<UpPlan, EngineError> {
    let mut images = Vec::new();
    for needed in environment.needed_images() {
        images.push(image(environment, needed, engine).await?);
    }
    let data = environment.sites.iter().flat_map(|site| {
        site.host_data().map(|(service, path, is_written)| PlannedData {
            path: path.display().to_string(),
            exists: path.exists(),
            is_written,
            service: service.to_string(),
            site: site.name.to_string(),
        })
    });
    Ok(UpPlan {
        environment: environment.name.to_string(),
        engine: engine.map(|engine| engine.endpoint().to_owned()),
        images,
        data: data.collect(),
        sites: environment.sites.iter().map(|found| site(environment, found)).collect(),
    })
}

async fn image(
    environment: &Environment,
    needed: NeededImage,
    engine: Option<&dyn Engine>,
) -> Result<PlannedImage, EngineError> {
    let found = match engine {
        Some(engine) => engine.image(&needed.reference).await?,
        None => None,
    };
    let services = environment.sites.iter().flat_map(|site| &site.services);
    let build = services.filter(|service| service.image == needed.reference).find_map(|service| service.build.as_ref());
    let (missing, from) = match &needed.origin {
        ImageProvenance::Built => (ImageAction::Build, build.map(|build| relative(environment, &build.context))),
        ImageProvenance::Registry => (ImageAction::Pull, None),
        ImageProvenance::Archive(archive) => (ImageAction::Load, Some(archive.file.clone())),
    };
    let is_current = found.is_some_and(|image| match build {
        Some(build) => image.labels.get(labels::BUILD_INPUTS).cloned() == inputs(build),
        None => true,
    });
    Ok(PlannedImage {
        action: if is_current { ImageAction::Present } else { missing },
        reference: needed.reference,
        from,
        size_bytes: needed.loaded_bytes,
        sites: needed.sites.iter().map(ToString::to_string).collect(),
    })
}

/// Returns the hash that identifies a build, so that it is not repeated; `None` if the build's inputs cannot be read.
fn inputs(build: &BuildSpec) -> Option<String> {
    context::pack(build).ok().map(|packed| packed.inputs)
}

fn relative(environment: &Environment, path: &std::path::Path) -> String {
    path.strip_prefix(&environment.root).unwrap_or(path).display().to_string()
}

fn site(environment: &Environment, site: &Site) -> PlannedSite {
    let mounts = site.services.iter().flat_map(|service| &service.mounts);
    let volumes: BTreeSet<&str> = mounts
        .filter_map(|mount| match mount {
            MountSpec::Volume { name, .. } => Some(name.as_str()),
            _ => None,
        })
        .collect();
    PlannedSite {
        name: site.name.to_string(),
        url: site.url(&environment.host),
        network: PlannedNetwork { egress: site.egress.iter().map(ToString::to_string).collect() },
        volumes: volumes.into_iter().map(str::to_owned).collect(),
        containers: site.services.iter().map(|service| container(environment, service)).collect(),
        configure: site.baseline.configure.iter().map(|found| step(site, found)).collect(),
        ready: site.readiness.probes.iter().map(|probe| probe.name.clone()).collect(),
        warm: site.baseline.warm.iter().map(request).collect(),
        quiesce: site.baseline.quiesce.iter().map(|step| command_line(&step.command)).collect(),
    }
}

fn container(environment: &Environment, service: &ServiceSpec) -> PlannedContainer {
    let read_only = |is: bool| if is { ":ro" } else { "" };
    let mount = |mount: &MountSpec| match mount {
        MountSpec::Volume { name, target, read_only: is } => format!("{name}:{target}{}", read_only(*is)),
        MountSpec::Bind { source, target } => format!("{}:{target}:ro", relative(environment, source)),
        MountSpec::Data { source, target, read_only: is } => {
            format!("{}:{target}{}", relative(environment, source), read_only(*is))
        }
        MountSpec::Tmpfs { target, .. } => format!("memory:{target}"),
    };
    PlannedContainer {
        service: service.name.to_string(),
        image: service.image.clone(),
        command: service.command.as_deref().map(command_line),
        memory_bytes: service.limits.memory_bytes,
        mounts: service.mounts.iter().map(mount).collect(),
    }
}

fn step(site: &Site, step: &ConfigureStep) -> PlannedStep {
    let (service, run) = match &step.action {
        ConfigureAction::Exec(ExecStep { service, command, .. }) => (service.to_string(), command_line(command)),
        ConfigureAction::Http(step) => (step.service.to_string(), request(step)),
        ConfigureAction::Sql { database, statement } => {
            let service = site.databases.get(database).map(|database| database.service.to_string());
            (service.unwrap_or_default(), statement.clone())
        }
    };
    PlannedStep {
        name: step.name.clone(),
        service,
        run,
        unless: step.unless.as_ref().map(|unless| unless.probe.name.clone()),
    }
}

fn request(step: &HttpStep) -> String {
    format!("{} {}", step.method, step.path)
}

/// Returns a command in the syntax of a shell.
fn command_line(words: &[String]) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    let quoted = words.iter().map(|word| match !word.is_empty() && word.chars().all(is_plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::command_line;

    #[test]
    fn what_is_shown_can_be_pasted() {
        let words = |words: &[&str]| command_line(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(words(&["sed", "-i", "s/a b/c/", "x"]), "sed -i 's/a b/c/' x");
        assert_eq!(words(&["echo", "it's", ""]), r"echo 'it'\''s' ''");
    }
}
