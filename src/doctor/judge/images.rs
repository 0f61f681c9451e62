//! The images of an environment: whether they are there or can be made.

use super::answering;
use crate::doctor::facts::{Engine, Environment, MissingImage};
use crate::doctor::finding::{Area, Finding, Level};

fn finding(id: &'static str, level: Level, seen: impl Into<String>) -> Finding {
    Finding::new(Area::Images, id, level, seen)
}

pub(super) fn judge(environment: &Environment, engine: &Engine) -> Vec<Finding> {
    if answering(engine).is_none() {
        return Vec::new();
    }
    let missing = &environment.needs.missing_images;
    let mut findings: Vec<Finding> = missing.iter().filter(|image| !image.is_built).map(fetched).collect();
    let builds: Vec<&str> =
        missing.iter().filter(|image| image.is_built).map(|image| image.reference.as_str()).collect();
    if !builds.is_empty() {
        let seen = format!("still to be built: {}", builds.join(", "));
        findings
            .push(finding("images", Level::Note, seen).so("the first `arenad up` takes minutes, later ones seconds"));
        findings.extend(environment.bases.iter().map(|(reference, is_here)| base(environment, reference, *is_here)));
    }
    if missing.is_empty() {
        findings.push(finding("images", Level::Ok, format!("all images of {} are here", environment.name)));
    }
    findings
}

fn fetched(image: &MissingImage) -> Finding {
    let reference = &image.reference;
    finding("images", Level::Warning, format!("{reference} is not here"))
        .about(reference)
        .so("`arenad up` pulls it, and fails where no registry can be reached")
        .cure(format!("`docker pull {reference}`, or `docker load --input FILE` of a saved one"))
}

fn base(environment: &Environment, reference: &str, is_here: bool) -> Finding {
    if is_here {
        return finding("base-image", Level::Ok, format!("the base image {reference} is here")).about(reference);
    }
    let finding = finding("base-image", Level::Warning, format!("the base image {reference} is not here"))
        .about(reference)
        .so("builds pull it, and fail where no registry can be reached");
    if environment.can_make_base {
        finding.cure("`scripts/base-image.sh` pulls it, or makes one from Debian packages")
    } else {
        finding.cure(format!("`docker pull {reference}`; making one without a registry takes root and mmdebstrap (`apt-get install mmdebstrap`)"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::prepared::{self, found};
    use super::*;

    #[test]
    fn missing_images_say_how_to_get_them() {
        let image = |reference: &str, is_built| MissingImage { reference: reference.to_owned(), is_built };
        let mut environment = prepared::environment();
        let engine = Engine::Answers(Box::new(prepared::engine()));
        assert_eq!(found(&judge(&environment, &engine), "images").level, Level::Ok);
        environment.needs.missing_images = vec![image("gitlab:1", false), image("mini/shop:1", true)];
        environment.bases.insert("debian:bookworm-slim".to_owned(), false);
        let findings = judge(&environment, &engine);
        assert!(found(&findings, "images").cure.as_ref().is_some_and(|cure| cure.contains("docker pull gitlab:1")));
        let base = found(&findings, "base-image").cure.clone().unwrap_or_default();
        assert!(base.contains("scripts/base-image.sh"), "{base}");
        environment.can_make_base = false;
        let base = found(&judge(&environment, &engine), "base-image").cure.clone().unwrap_or_default();
        assert!(base.contains("apt-get install mmdebstrap"), "{base}");
    }
}
