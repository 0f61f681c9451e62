//! What an image will run, by its Dockerfile: the last ENTRYPOINT and CMD of the last stage. Enough for a proposal.

/// What an image runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ImageCommand {
    /// Its entry point; empty: none.
    pub(super) entrypoint: Vec<String>,
    /// Its command; empty: none.
    pub(super) command: Vec<String>,
    /// The ports that it says it listens on.
    pub(super) ports: Vec<u16>,
    /// The packages and programs that its text mentions, as far as they tell what runs in it.
    pub(super) text: String,
}

/// Reads a Dockerfile. `None` where its last stage says neither, because the image that it stands on does.
pub(super) fn read(text: &str) -> Option<ImageCommand> {
    let mut found = ImageCommand { text: text.to_lowercase(), ..ImageCommand::default() };
    let mut has_any = false;
    for line in joined(text) {
        let Some((instruction, rest)) = line.trim().split_once(char::is_whitespace) else { continue };
        let rest = rest.trim();
        match instruction.to_ascii_uppercase().as_str() {
            "FROM" => (found.entrypoint, found.command, has_any) = (Vec::new(), Vec::new(), false),
            "ENTRYPOINT" => (found.entrypoint, has_any) = (words(rest), true),
            "CMD" => (found.command, has_any) = (words(rest), true),
            "EXPOSE" => found
                .ports
                .extend(rest.split_whitespace().filter_map(|port| port.split('/').next()?.parse::<u16>().ok())),
            _ => {}
        }
    }
    has_any.then_some(found)
}

/// Lines with those joined that end in a backslash; without comments.
fn joined(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
        let part = line.strip_suffix('\\').unwrap_or(line);
        match lines.last_mut().filter(|_| is_open) {
            Some(last) => *last += part,
            None => lines.push(part.to_owned()),
        }
        is_open = line.ends_with('\\');
    }
    lines
}

/// The exec form as it is; the shell form as Docker runs it.
fn words(text: &str) -> Vec<String> {
    serde_json::from_str(text).unwrap_or_else(|_| vec!["/bin/sh".to_owned(), "-c".to_owned(), text.to_owned()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_stage_counts() {
        let text = "FROM a AS build\nCMD [\"make\"]\nFROM b\n# CMD [\"no\"]\nEXPOSE 8000/tcp 9000\nENTRYPOINT [\"/entry\", \\\n  \"-x\"]\nCMD serve it\n";
        let found = read(text).expect("a command");
        assert_eq!(found.entrypoint, ["/entry", "-x"]);
        assert_eq!(found.command, ["/bin/sh", "-c", "serve it"]);
        assert_eq!(found.ports, [8000, 9000]);
        assert_eq!(read("FROM a\nCMD [\"x\"]\nFROM b\nRUN true\n"), None);
    }
}
