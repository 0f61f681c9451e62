//! Judges the images of an environment: whether each is present or can be made.

use super::{answering, size};
use crate::facts::{EngineState, EnvironmentRequirements, ImageOrigin, MissingData, MissingImage};
use crate::finding::{Area, Finding, Level};

fn finding(id: &'static str, level: Level, seen: impl Into<String>) -> Finding {
    Finding::new(Area::Images, id, level, seen)
}

pub(crate) fn judge(environment: &EnvironmentRequirements, engine: &EngineState) -> Vec<Finding> {
    if answering(engine).is_none() {
        return Vec::new();
    }
    let missing = &environment.needs.missing_images;
    let is_built = |image: &&MissingImage| image.from == ImageOrigin::Build;
    let fetched = missing.iter().filter(|image| !is_built(image)).map(|image| image_found(environment, image));
    let mut findings: Vec<Finding> = fetched.collect();
    let builds: Vec<&str> = missing.iter().filter(is_built).map(|image| image.reference.as_str()).collect();
    if !builds.is_empty() {
        let seen = format!("still to be built: {}", builds.join(", "));
        findings
            .push(finding("images", Level::Note, seen).so("the first `arenad up` takes minutes, later ones seconds"));
        findings.extend(environment.bases.iter().map(|(reference, is_here)| base(environment, reference, *is_here)));
    }
    if missing.is_empty() {
        findings.push(finding("images", Level::Ok, format!("all images of {} are here", environment.name)));
    }
    findings.extend(environment.needs.missing_data.iter().map(|data| data_found(environment, data)));
    findings
}

/// Returns a size such as ` (117.0 GiB)`; empty if the definition states none.
fn shown(size_bytes: Option<u64>) -> String {
    size_bytes.map(|bytes| format!(" ({})", size(bytes))).unwrap_or_default()
}

fn image_found(environment: &EnvironmentRequirements, image: &MissingImage) -> Finding {
    let reference = &image.reference;
    let seen = format!("{reference}{} is not here", shown(image.size_bytes));
    let finding = finding("images", Level::Warning, seen).about(reference);
    match image.from {
        ImageOrigin::Archive => finding
            .so("its sites do not come up without it")
            .cure(format!("`arenad images pull {} {reference}`, or `arenad images load` of a copy", environment.name)),
        ImageOrigin::Registry | ImageOrigin::Build => finding
            .so("`arenad up` pulls it, and fails where no registry can be reached")
            .cure(format!("`docker pull {reference}`, or `docker load --input FILE` of a saved one")),
    }
}

fn data_found(environment: &EnvironmentRequirements, data: &MissingData) -> Finding {
    let name = &data.name;
    finding("data", Level::Warning, format!("the data `{name}`{} is not here", shown(data.size_bytes)))
        .about(name)
        .so("the sites that mount it do not come up without it")
        .cure(format!("`arenad images pull {} {name}`", environment.name))
}

fn base(environment: &EnvironmentRequirements, reference: &str, is_here: bool) -> Finding {
    if is_here {
        return finding("base-image", Level::Ok, format!("the base image {reference} is here")).about(reference);
    }
    let finding = finding("base-image", Level::Warning, format!("the base image {reference} is not here"))
        .about(reference)
        .so("builds pull it, and fail where no registry can be reached");
    if environment.can_make_base {
        finding.cure("`scripts/base-image.sh` pulls it, or makes one from Debian packages")
    } else {
        finding.cure(format!(
            "`docker pull {reference}`; making one without a registry takes root and mmdebstrap (`apt-get install \
             mmdebstrap`)"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::prepared::{self, found};
    use super::*;

    #[test]
    fn missing_images_say_how_to_get_them() {
        let image =
            |reference: &str, from, size_bytes| MissingImage { reference: reference.to_owned(), from, size_bytes };
        let mut environment = prepared::environment();
        let engine = EngineState::Answers(Box::new(prepared::engine()));
        assert_eq!(found(&judge(&environment, &engine), "images").level, Level::Ok);
        environment.needs.missing_images =
            vec![image("gitlab:1", ImageOrigin::Registry, None), image("mini/shop:1", ImageOrigin::Build, None)];
        environment.bases.insert("debian:bookworm-slim".to_owned(), false);
        let findings = judge(&environment, &engine);
        assert!(found(&findings, "images").cure.as_ref().is_some_and(|cure| cure.contains("docker pull gitlab:1")));
        let base = found(&findings, "base-image").cure.clone().unwrap_or_default();
        assert!(base.contains("scripts/base-image.sh"), "{base}");
        environment.needs.missing_images = vec![image("shop", ImageOrigin::Archive, Some(117 << 30))];
        environment.needs.missing_data = vec![MissingData { name: "maps".to_owned(), size_bytes: None }];
        let findings = judge(&environment, &engine);
        assert_eq!(found(&findings, "images").seen, "shop (117.0 GiB) is not here");
        assert!(
            found(&findings, "images").cure.as_ref().is_some_and(|cure| cure.contains("arenad images pull mini shop"))
        );
        assert_eq!(found(&findings, "data").level, Level::Warning);
    }

    #[test]
    fn who_cannot_make_a_base_image_is_told_what_it_takes() {
        let mut environment = prepared::environment();
        let engine = EngineState::Answers(Box::new(prepared::engine()));
        let build = MissingImage { reference: "mini/shop:1".to_owned(), from: ImageOrigin::Build, size_bytes: None };
        environment.needs.missing_images = vec![build];
        environment.bases.insert("debian:bookworm-slim".to_owned(), false);
        environment.can_make_base = false;
        let base = found(&judge(&environment, &engine), "base-image").cure.clone().unwrap_or_default();
        assert!(base.contains("apt-get install mmdebstrap"), "{base}");
    }
}
