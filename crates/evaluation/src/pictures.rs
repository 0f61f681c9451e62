//! Reference pictures that no site has: files of the benchmark's repository, and pictures fetched in advance.

use std::path::{Component, Path};

use arenad_verdict::question::{Answer, Picture, Question};

/// Maximum size of a picture that is read, in bytes.
const LARGEST: u64 = 32 << 20;

/// Answers a question for a reference picture from a folder, or returns `None` for any other question.
///
/// A path such as `coco_images/1.jpg` is resolved below the folder. A picture of the Web is searched by the last part
/// of its URL's path, so that a repeated judgement uses the same picture, whatever the Web then shows.
#[must_use]
pub fn answer(folder: Option<&Path>, question: &Question) -> Option<Answer> {
    let Question::Reference { source } = question else { return None };
    let Some(folder) = folder else {
        let reason = format!("the location of {source} is unknown: name a folder that has it with --pictures");
        return Some(Answer::Unavailable(reason));
    };
    let name = file_name(source);
    let is_inside = Path::new(&name).components().all(|part| matches!(part, Component::Normal(_)));
    if !is_inside || name.is_empty() {
        return Some(Answer::Unsupported(format!("{source} is neither a URL nor a path below a folder")));
    }
    let path = folder.join(&name);
    let read = std::fs::metadata(&path).and_then(|found| {
        if found.len() > LARGEST {
            Err(std::io::Error::other("it is larger than 32 MiB"))
        } else {
            std::fs::read(&path)
        }
    });
    Some(match read {
        Ok(bytes) => Answer::Pictures(vec![Picture { url: source.clone(), bytes: bytes.into() }]),
        Err(error) => Answer::Unavailable(format!("{source} is not at {}: {error}", path.display())),
    })
}

fn file_name(source: &str) -> String {
    match url::Url::parse(source) {
        Ok(url) => url.path().rsplit('/').next().unwrap_or_default().to_owned(),
        Err(_) => source.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_found_by_path_and_by_name() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("coco_images")).expect("a folder");
        std::fs::write(folder.path().join("coco_images/1.jpg"), b"one").expect("a file");
        std::fs::write(folder.path().join("photo.jpeg"), b"two").expect("a file");
        let ask = |source: &str| {
            answer(Some(folder.path()), &Question::Reference { source: source.to_owned() }).expect("an answer")
        };
        let bytes = |answer: Answer| match answer {
            Answer::Pictures(pictures) => pictures[0].bytes.to_vec(),
            other => panic!("{other:?}"),
        };
        assert_eq!(bytes(ask("coco_images/1.jpg")), b"one");
        assert_eq!(bytes(ask("https://images.example/photos/2/photo.jpeg?w=1260")), b"two");
        assert!(
            matches!(ask("https://images.example/other.jpeg"), Answer::Unavailable(said) if said.contains("other.jpeg"))
        );
        assert!(matches!(ask("../../etc/passwd"), Answer::Unsupported(_)));
        let nowhere = answer(None, &Question::Reference { source: "a.png".to_owned() });
        assert!(matches!(nowhere, Some(Answer::Unavailable(said)) if said.contains("--pictures")));
    }
}
