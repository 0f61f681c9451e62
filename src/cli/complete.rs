//! Completion: suggests the words that can stand at the cursor. The shells' scripts call it for each word.
//!
//! Names come from the definitions at hand and from the daemon, which has a short time limit. A failure yields no
//! words, because an error message below a half-typed command line would not help.

use std::time::Duration;

use clap::{Arg, Command};
use reqwest::Method;

use super::args::{CompleteArgs, CompletionsArgs, Global, command};
use super::client::ApiClient;
use super::failure::CommandFailure;
use super::{definition, exit_code};
use arenad_api::episodes::EpisodeList;
use arenad_api::{EpisodeLooks, Looks, Snapshots, Status};
use arenad_model::episode::ids::EpisodeId;

/// The daemon's time limit, short because the user waits at every word.
const PATIENCE: Duration = Duration::from_millis(400);

const BASH: &str = r#"_arenad() {
    local word
    COMPREPLY=()
    while IFS= read -r word; do
        COMPREPLY+=("$word")
    done < <("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o bashdefault -o default -F _arenad arenad
"#;

const ZSH: &str = r#"#compdef arenad
_arenad() {
    local -a found
    found=("${(@f)$(arenad complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "${found[1]}" ]]; then
        compadd -- "${found[@]}"
    else
        _files
    fi
}
if [[ "${funcstack[1]}" = _arenad ]]; then
    _arenad "$@"
else
    compdef _arenad arenad
fi
"#;

const FISH: &str = r#"function __arenad_complete
    set -l words (commandline -opc)[2..-1]
    set -l current (commandline -ct)
    arenad complete -- $words "$current" 2>/dev/null
end
complete -c arenad -a '(__arenad_complete)'
"#;

/// Prints the completion script of a shell.
pub fn script(args: &CompletionsArgs) -> u8 {
    match args.shell {
        clap_complete::Shell::Bash => out!("{BASH}"),
        clap_complete::Shell::Zsh => out!("{ZSH}"),
        clap_complete::Shell::Fish => out!("{FISH}"),
        other => {
            let mut script = Vec::new();
            clap_complete::generate(other, &mut command(), "arenad", &mut script);
            out!("{}", String::from_utf8_lossy(&script));
        }
    }
    exit_code::OK
}

/// Prints the words that can replace the last one, one per line.
pub async fn run(global: &Global, args: &CompleteArgs) -> Result<u8, CommandFailure> {
    let mut command = command();
    command.build();
    let (typed, before) = match args.words.split_last() {
        Some((typed, before)) => (typed.as_str(), before),
        None => ("", [].as_slice()),
    };
    let place = CursorPosition::find(&command, before);
    let mut words = place.words(typed);
    for names in place.names(typed) {
        words.extend(self::names(global, names, &place.positionals).await);
    }
    words.retain(|word| word.starts_with(typed));
    words.sort();
    words.dedup();
    for word in words {
        outln!("{word}");
    }
    Ok(exit_code::OK)
}

/// The position of the cursor in the command line.
struct CursorPosition<'a> {
    command: &'a Command,
    /// The option whose value is being typed.
    option: Option<&'a Arg>,
    positionals: Vec<&'a str>,
    /// Whether `--` precedes the cursor and ends the options.
    has_ended_options: bool,
}

/// The kinds of names that arguments take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NameKind {
    /// Sites that are up, as `SITE` if that is unambiguous, else as `ENVIRONMENT/SITE`.
    Sites,
    /// Environments that are up.
    Up,
    /// Environments that are defined.
    Defined,
    /// Environments that are defined; after the first name, the sites of that environment.
    ToBringUp,
    /// Snapshots, by name and id.
    Snapshots,
    /// Looks of the site or episode that is named before.
    Looks,
    /// Services of the sites that are up.
    Services,
    /// Tasks of the default environment.
    Tasks,
    /// Episodes that have not ended.
    Episodes,
}

impl<'a> CursorPosition<'a> {
    fn find(root: &'a Command, before: &'a [String]) -> Self {
        let mut place = Self { command: root, option: None, positionals: Vec::new(), has_ended_options: false };
        for word in before {
            place.pass(word);
        }
        place
    }

    fn pass(&mut self, word: &'a str) {
        if self.option.take().is_some() {
            return;
        }
        match word {
            _ if self.has_ended_options => self.positionals.push(word),
            "--" => self.has_ended_options = true,
            _ if word.starts_with("--") => {
                let name = &word[2..];
                self.option = self.options().find(|arg| arg.get_long() == Some(name) && takes_value(arg));
            }
            _ if word.len() > 1 && word.starts_with('-') => {
                let last = word.chars().next_back();
                self.option = self.options().find(|arg| arg.get_short() == last && takes_value(arg));
            }
            _ => match self.command.find_subcommand(word).filter(|_| self.positionals.is_empty()) {
                Some(inner) => self.command = inner,
                None => self.positionals.push(word),
            },
        }
    }

    fn options(&self) -> impl Iterator<Item = &'a Arg> + use<'a> {
        let command = self.command;
        command.get_arguments().filter(|arg| !arg.is_positional())
    }

    /// Returns the positional argument that is being typed.
    fn positional(&self) -> Option<&'a Arg> {
        let all: Vec<&Arg> = self.command.get_positionals().filter(|arg| !arg.is_last_set()).collect();
        let many = |arg: &&Arg| arg.get_num_args().is_some_and(|range| range.max_values() > 1);
        all.get(self.positionals.len()).copied().or_else(|| all.last().copied().filter(many))
    }

    /// Returns the words that the command line itself defines.
    fn words(&self, typed: &str) -> Vec<String> {
        if let Some(option) = self.option {
            return possible(option);
        }
        if self.has_ended_options {
            return Vec::new();
        }
        if typed.starts_with('-') {
            let visible = self.options().filter(|arg| !arg.is_hide_set());
            return visible.filter_map(|arg| arg.get_long()).map(|long| format!("--{long}")).collect();
        }
        let mut words: Vec<String> = self.positional().map(possible).unwrap_or_default();
        if self.positionals.is_empty() {
            let inner = self.command.get_subcommands().filter(|inner| !inner.is_hide_set());
            words.extend(inner.map(|inner| inner.get_name().to_owned()));
        }
        words
    }

    /// Returns the kinds of names that are possible here.
    fn names(&self, typed: &str) -> Vec<NameKind> {
        if self.has_ended_options || (self.option.is_none() && typed.starts_with('-')) {
            return Vec::new();
        }
        let Some(arg) = self.option.or_else(|| self.positional()) else { return Vec::new() };
        let value = arg.get_value_names().and_then(|names| names.first()).map(|name| name.as_str()).unwrap_or_default();
        let is_of_definition = self.command.get_arguments().any(|arg| arg.get_id() == "file");
        match (value, arg.get_long()) {
            ("ENVIRONMENT] [SITE" | "ENVIRONMENT] [NAME", _) => vec![NameKind::ToBringUp],
            ("ENVIRONMENT" | "FILE|DIR|ENVIRONMENT", _) => vec![NameKind::Defined],
            ("NAME", Some("environment")) if is_of_definition => vec![NameKind::Defined],
            ("NAME", Some("environment")) => vec![NameKind::Up],
            ("SITE", _) if arg.get_num_args().is_some_and(|range| range.max_values() > 1) => {
                vec![NameKind::Sites, NameKind::Up]
            }
            ("SITE", _) => vec![NameKind::Sites],
            ("SNAPSHOT" | "FROM" | "TO", _) => vec![NameKind::Snapshots],
            ("LOOK", _) => vec![NameKind::Looks],
            ("NAME", Some("service")) => vec![NameKind::Services],
            ("TASK" | "TASK|FILE", _) => vec![NameKind::Tasks],
            ("EPISODE", _) => vec![NameKind::Episodes],
            _ => Vec::new(),
        }
    }
}

fn takes_value(arg: &Arg) -> bool {
    arg.get_num_args().is_some_and(|range| range.takes_values())
}

fn possible(arg: &Arg) -> Vec<String> {
    let values = if takes_value(arg) || arg.is_positional() { arg.get_possible_values() } else { Vec::new() };
    values.iter().filter(|value| !value.is_hide_set()).map(|value| value.get_name().to_owned()).collect()
}

async fn names(global: &Global, names: NameKind, positionals: &[&str]) -> Vec<String> {
    match names {
        NameKind::Sites => ask::<Status>(global, "/v1/status").await.map(|status| sites(&status)).unwrap_or_default(),
        NameKind::Up => {
            let status = ask::<Status>(global, "/v1/status").await;
            status.into_iter().flat_map(|status| status.environments).map(|known| known.name).collect()
        }
        NameKind::Services => {
            let status = ask::<Status>(global, "/v1/status").await;
            let sites = status.into_iter().flat_map(|status| status.environments).flat_map(|known| known.sites);
            sites.flat_map(|site| site.containers).map(|container| container.service).collect()
        }
        NameKind::Looks => looks(global, positionals).await.unwrap_or_default(),
        NameKind::Snapshots => {
            let found = ask::<Snapshots>(global, "/v1/snapshots").await;
            let all = found.into_iter().flat_map(|found| found.snapshots);
            all.map(|snapshot| snapshot.name.unwrap_or(snapshot.id)).collect()
        }
        NameKind::Episodes => {
            let found = ask::<EpisodeList>(global, "/v1/episodes?live=true").await;
            found.into_iter().flat_map(|found| found.episodes).map(|episode| episode.id).collect()
        }
        NameKind::Defined => defined(),
        NameKind::ToBringUp => match positionals.first() {
            Some(environment) => sites_of_definition(environment),
            None => defined(),
        },
        NameKind::Tasks => {
            let chosen = super::tasks::choice::ChosenTasks::of_environment(None, None);
            let loaded = chosen.map(|chosen| arenad_definition::tasks::load(&chosen.files, &chosen.environment).tasks);
            loaded.unwrap_or_default().into_iter().map(|task| task.name).collect()
        }
    }
}

/// Returns the names of sites, in the short form if only one environment has the name.
fn sites(status: &Status) -> Vec<String> {
    let all: Vec<_> = status.environments.iter().flat_map(|known| &known.sites).collect();
    let is_unique = |name: &str| all.iter().filter(|site| site.name == name).count() == 1;
    let names = all.iter().flat_map(|site| {
        let whole = format!("{}/{}", site.environment, site.name);
        if is_unique(&site.name) { vec![site.name.clone(), whole] } else { vec![whole] }
    });
    names.collect()
}

/// Returns the numbers of the looks of an episode, or of a site or slot.
async fn looks(global: &Global, positionals: &[&str]) -> Option<Vec<String>> {
    let first = positionals.first()?;
    let looks = if let Ok(episode) = first.parse::<EpisodeId>() {
        ask::<EpisodeLooks>(global, &format!("/v1/episodes/{episode}/looks")).await?.looks
    } else {
        let status = ask::<Status>(global, "/v1/status").await?;
        let (site, name) = super::find::slot(&status, None, first).ok()?;
        let path = format!("/v1/environments/{}/sites/{name}/looks", site.environment);
        ask::<Looks>(global, &path).await?.looks
    };
    Some(looks.into_iter().map(|look| look.number.to_string()).collect())
}

fn defined() -> Vec<String> {
    let Ok(root) = definition::root(None) else { return Vec::new() };
    arenad_definition::list(&root).into_iter().map(|name| name.to_string()).collect()
}

fn sites_of_definition(environment: &str) -> Vec<String> {
    let loaded = definition::locate(Some(environment), None, None).and_then(|located| definition::load(&located));
    let sites = loaded.map(|found| found.loaded.environment.sites).unwrap_or_default();
    sites.into_iter().map(|site| site.name.to_string()).collect()
}

async fn ask<T: serde::de::DeserializeOwned>(global: &Global, path: &str) -> Option<T> {
    let client = ApiClient::new(global).ok()?;
    tokio::time::timeout(PATIENCE, client.json(Method::GET, path)).await.ok()?.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: &[&str]) -> (Vec<String>, Vec<NameKind>) {
        let mut command = command();
        command.build();
        let words: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
        let (typed, before) = words.split_last().expect("a word");
        let place = CursorPosition::find(&command, before);
        let mut known = place.words(typed);
        known.retain(|word| word.starts_with(typed.as_str()));
        (known, place.names(typed))
    }

    #[test]
    fn commands_options_and_kinds_of_names_are_known_by_their_place() {
        assert_eq!(at(&["res"]).0, ["reset"]);
        assert_eq!(at(&["snapshot", "ta"]).0, ["take"]);
        assert!(at(&["comp"]).0 == ["completions"], "the command that scripts ask is not offered");
        assert_eq!(at(&["reset", "--if"]).0, ["--if-dirty"]);
        assert_eq!(at(&["reset", ""]).1, [NameKind::Sites, NameKind::Up]);
        assert_eq!(at(&["reset", "shopping", "-v", ""]).1, [NameKind::Sites, NameKind::Up]);
        assert_eq!(at(&["reset", "-e", ""]).1, [NameKind::Up]);
        assert_eq!(at(&["reset", "shopping", "--to", ""]).1, [NameKind::Snapshots]);
        assert_eq!(at(&["snapshot", "rm", ""]).1, [NameKind::Snapshots]);
        assert_eq!(at(&["up", ""]).1, [NameKind::ToBringUp]);
        assert_eq!(at(&["up", "mini", "--dry-run", ""]).1, [NameKind::ToBringUp]);
        assert_eq!(at(&["validate", ""]).1, [NameKind::Defined]);
        assert_eq!(at(&["locate", ""]).1, [NameKind::Sites]);
        assert_eq!(at(&["locate", "shopping", ""]).1, []);
        assert_eq!(at(&["changes", "shopping", "--since", ""]).1, [NameKind::Looks]);
        assert_eq!(at(&["look", ""]).1, [NameKind::Sites]);
        assert_eq!(at(&["episode", "changes", "ep-1", "--since", ""]).1, [NameKind::Looks]);
        assert_eq!(at(&["episode", "changes", "ep-1", ""]).1, [NameKind::Sites, NameKind::Up]);
        assert_eq!(at(&["completions", "z"]).0, ["zsh"]);
        assert_eq!(at(&["env", "--format", "d"]).0, ["dotenv"]);
        assert_eq!(at(&["exec", "shopping", "--", "l"]), (vec![], vec![]));
        assert_eq!(at(&["episode", "show", ""]).1, [NameKind::Episodes]);
        assert_eq!(at(&["episode", "end", "ep-1", ""]).1, [NameKind::Episodes]);
        assert_eq!(at(&["episode", "start", ""]).1, [NameKind::Sites, NameKind::Up]);
        assert_eq!(at(&["run", "--sites", ""]).1, [NameKind::Sites]);
        assert_eq!(at(&["run", "--task", ""]).1, [NameKind::Tasks]);
    }
}
