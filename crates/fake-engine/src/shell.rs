//! The part of a shell that tests of engines need: it behaves like `sh -c` in a container of busybox.

use std::sync::Arc;
use std::time::Duration;

use super::program::{
    CommandOutcome, ContainerView, ProcessLife, Program, ProgramMaker, ProgramRequest, ProgramResponse, Termination,
};

/// A program that runs the container's command, and further commands, as scripts of a small shell.
///
/// It supports `;`, `&&`, `||`, `&`, quotes, `>`, `>>` and `>&2`, and the commands `:`, `cat`, `echo`, `exit`, `false`,
/// `id -u`, `mkdir`, `rm`, `sleep`, `test -e`, `trap COMMANDS TERM`, `true` and `wait`. Like the first process of a
/// real container, it ignores a request to stop unless a trap is set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shell;

impl Shell {
    /// Returns the maker of the program, for [`super::FakeEngine::install_program`].
    pub fn maker(self) -> ProgramMaker {
        Arc::new(|| Box::new(RunningShell { trap: None }))
    }
}

struct RunningShell {
    trap: Option<String>,
}

/// The state of a running script.
struct ScriptRun<'s, 'a> {
    inside: &'s mut ContainerView<'a>,
    user: &'s str,
    /// Output: the time at which it was written, whether it goes to standard error, and the text.
    said: Vec<(Duration, bool, String)>,
    elapsed: Duration,
    /// Time at which the last background command ends.
    background: Duration,
    trap: Option<String>,
    exit: Option<i64>,
}

/// The condition under which a command runs, given the result of the previous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tie {
    Always,
    Succeeded,
    Failed,
}

/// One command of a script.
#[derive(Debug, PartialEq, Eq)]
struct ShellCommand {
    tie: Tie,
    words: Vec<String>,
    is_background: bool,
}

/// Splits a script into commands; redirections remain words that begin with `>`.
fn parse(script: &str) -> Vec<ShellCommand> {
    let mut steps = Vec::new();
    let mut step = ShellCommand { tie: Tie::Always, words: Vec::new(), is_background: false };
    let mut word: Option<String> = None;
    let mut characters = script.chars().peekable();
    let mut end = |step: &mut ShellCommand, word: &mut Option<String>, tie: Tie, is_background: bool| {
        step.words.extend(word.take());
        step.is_background = is_background;
        let ended = std::mem::replace(step, ShellCommand { tie, words: Vec::new(), is_background: false });
        if !ended.words.is_empty() {
            steps.push(ended);
        }
    };
    while let Some(character) = characters.next() {
        match character {
            '\'' | '"' => {
                let quoted: String = characters.by_ref().take_while(|next| *next != character).collect();
                word.get_or_insert_default().push_str(&quoted);
            }
            ' ' | '\t' => step.words.extend(word.take()),
            ';' | '\n' => end(&mut step, &mut word, Tie::Always, false),
            '>' => {
                step.words.extend(word.take());
                let mut redirection = ">".to_owned();
                while let Some(next) = characters.next_if(|next| matches!(next, '>' | '&')) {
                    redirection.push(next);
                }
                if redirection == ">&" {
                    redirection.extend(characters.next());
                }
                step.words.push(redirection);
            }
            '&' if characters.next_if_eq(&'&').is_some() => end(&mut step, &mut word, Tie::Succeeded, false),
            '&' => end(&mut step, &mut word, Tie::Always, true),
            '|' if characters.next_if_eq(&'|').is_some() => end(&mut step, &mut word, Tie::Failed, false),
            other => word.get_or_insert_default().push(other),
        }
    }
    end(&mut step, &mut word, Tie::Always, false);
    steps
}

impl ScriptRun<'_, '_> {
    fn say(&mut self, is_stderr: bool, text: &str) {
        if !text.is_empty() {
            self.said.push((self.elapsed, is_stderr, text.to_owned()));
        }
    }

    /// Runs a script and returns its exit code.
    fn run(&mut self, script: &str) -> i64 {
        let mut code = 0;
        for step in parse(script) {
            let is_due = match step.tie {
                Tie::Always => true,
                Tie::Succeeded => code == 0,
                Tie::Failed => code != 0,
            };
            if is_due {
                let before = self.elapsed;
                code = self.redirected(&step.words);
                if step.is_background {
                    self.background = self.background.max(self.elapsed);
                    self.elapsed = before;
                    code = 0;
                }
            }
            if let Some(exit) = self.exit {
                return exit;
            }
        }
        code
    }

    /// Runs a command whose output may be redirected to a file.
    fn redirected(&mut self, words: &[String]) -> i64 {
        let Some(place) = words.iter().position(|word| word.starts_with('>')) else {
            return self.command(words);
        };
        let said = self.said.len();
        let code = self.command(&words[..place]);
        if words[place] == ">&2" {
            for (_, is_stderr, _) in &mut self.said[said..] {
                *is_stderr = true;
            }
            return code;
        }
        let Some(file) = words.get(place + 1) else { return 2 };
        let output: String = self.said.drain(said..).map(|(_, _, text)| text).collect();
        let before = match words[place].as_str() {
            ">>" => self.inside.read(file).unwrap_or_default(),
            _ => bytes::Bytes::new(),
        };
        match self.inside.write(file, [before.as_ref(), output.as_bytes()].concat()) {
            Ok(()) => code,
            Err(error) => {
                self.say(true, &format!("sh: can't create {file}: {error}\n"));
                1
            }
        }
    }

    fn command(&mut self, words: &[String]) -> i64 {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            [] | [":" | "true", ..] => 0,
            ["false", ..] => 1,
            ["sh" | "/bin/sh", "-c", script, ..] => self.run(script),
            ["exec", command @ ..] => self.command(&command.iter().map(ToString::to_string).collect::<Vec<_>>()),
            ["echo", "-n", words @ ..] => {
                self.say(false, &words.join(" "));
                0
            }
            ["echo", words @ ..] => {
                self.say(false, &format!("{}\n", words.join(" ")));
                0
            }
            ["exit", code @ ..] => {
                let code = code.first().and_then(|code| code.parse().ok()).unwrap_or_default();
                self.exit = Some(code);
                code
            }
            ["id", "-u"] => {
                self.say(false, &format!("{}\n", self.user));
                0
            }
            ["sleep", seconds] => {
                let seconds = seconds.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
                self.elapsed = self.elapsed.saturating_add(seconds.unwrap_or_default());
                0
            }
            ["trap", commands, "TERM"] => {
                self.trap = Some((*commands).to_owned());
                0
            }
            ["wait"] => {
                self.elapsed = self.elapsed.max(self.background);
                0
            }
            ["test", "-e", path] => i64::from(!self.inside.exists(path)),
            ["cat", files @ ..] => self.cat(files),
            ["mkdir", folders @ ..] => self.each(folders, |inside, path| inside.make_folder(path)),
            ["rm", files @ ..] => self.each(files, |inside, path| inside.remove(path)),
            [command, ..] => {
                self.say(true, &format!("sh: {command}: not found\n"));
                127
            }
        }
    }

    fn cat(&mut self, files: &[&str]) -> i64 {
        let mut code = 0;
        if files.is_empty() {
            let input = self.inside.input().clone();
            self.say(false, &String::from_utf8_lossy(&input));
        }
        for file in files {
            match self.inside.read(file) {
                Some(content) => self.say(false, &String::from_utf8_lossy(&content)),
                None => {
                    self.say(true, &format!("cat: can't open '{file}': No such file or directory\n"));
                    code = 1;
                }
            }
        }
        code
    }

    /// Applies an action to each path. Words that begin with a dash are options, which have no effect.
    fn each(&mut self, paths: &[&str], act: impl Fn(&mut ContainerView<'_>, &str) -> std::io::Result<()>) -> i64 {
        let mut code = 0;
        for path in paths.iter().filter(|path| !path.starts_with('-')) {
            if let Err(error) = act(self.inside, path) {
                self.say(true, &format!("{path}: {error}\n"));
                code = 1;
            }
        }
        code
    }
}

impl RunningShell {
    /// Runs a command and returns its exit code, its duration and its output.
    fn execute(
        &mut self,
        command: &[String],
        user: &str,
        inside: &mut ContainerView<'_>,
    ) -> (i64, Duration, Vec<(Duration, bool, String)>) {
        let (said, elapsed) = (Vec::new(), Duration::ZERO);
        let mut script =
            ScriptRun { inside, user, said, elapsed, background: Duration::ZERO, trap: self.trap.take(), exit: None };
        let code = script.command(command);
        let code = script.exit.unwrap_or(code);
        self.trap = script.trap;
        (code, script.elapsed, script.said)
    }
}

impl Program for RunningShell {
    fn start(&mut self, inside: &mut ContainerView<'_>) -> ProcessLife {
        self.trap = None;
        let command = inside.command().to_vec();
        let (code, after, said) = self.execute(&command, "0", inside);
        for (at, is_stderr, text) in said {
            inside.print_after(at, is_stderr, text.trim_end_matches('\n'));
        }
        ProcessLife::Ends { after, code }
    }

    fn is_listening(&self, _port: u16, _uptime: Duration) -> bool {
        false
    }

    fn answer(&mut self, _request: &ProgramRequest, _inside: &mut ContainerView<'_>) -> ProgramResponse {
        ProgramResponse::text(404, "nothing is here\n")
    }

    fn run(&mut self, command: &[String], user: Option<&str>, inside: &mut ContainerView<'_>) -> CommandOutcome {
        let trap = self.trap.take();
        let (code, takes, said) = self.execute(command, user.unwrap_or("0"), inside);
        self.trap = trap;
        let output = |wanted: bool| {
            let pieces = said.iter().filter(|(_, is_stderr, _)| *is_stderr == wanted).map(|(_, _, text)| text.as_str());
            pieces.collect::<String>()
        };
        CommandOutcome { code, stdout: output(false), stderr: output(true), takes }
    }

    fn terminate(&mut self, inside: &mut ContainerView<'_>) -> Termination {
        let Some(trap) = self.trap.clone() else { return Termination::Ignored };
        let words = ["sh".to_owned(), "-c".to_owned(), trap];
        let (code, after, _) = self.execute(&words, "0", inside);
        Termination::Exits { after, code }
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn scripts_are_cut_into_commands() {
        let words = |script: &str| parse(script).into_iter().map(|step| step.words).collect::<Vec<_>>();
        assert_eq!(words("echo 'a b'; cat x"), [vec!["echo", "a b"], vec!["cat", "x"]]);
        assert_eq!(words("echo a >&2 && echo b >> /f"), [vec!["echo", "a", ">&2"], vec!["echo", "b", ">>", "/f"]]);
        let steps = parse("trap 'exit 7' TERM; sleep 9 & wait");
        assert_eq!(steps.iter().map(|step| step.is_background).collect::<Vec<_>>(), [false, true, false]);
    }
}
