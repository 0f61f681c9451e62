//! Examples for the help of each command: a command line, and an explanation if the line is not obvious.

/// Pairs of a command line and its explanation, which may be empty.
type Examples = &'static [(&'static str, &'static str)];

/// Returns the examples of a command by its path, such as `snapshot take`; `None` for the whole program.
pub fn of(path: &str) -> Option<Examples> {
    Some(match path {
        "up" => &[
            ("arenad up", "Brings up all sites of the environment `mini`."),
            ("arenad up mini shopping reddit", "Brings up two of them, as `arenad up mini/shopping mini/reddit` does."),
            ("arenad up webarena --dry-run", "Prints the steps without performing them."),
            ("arenad up lab --keep-failed", "If creating the baseline fails, keeps its containers for `arenad shell`."),
        ],
        "down" => &[
            ("arenad down", "Takes down everything that is up."),
            ("arenad down shopping", ""),
            ("arenad down -e tracker", "Takes down all sites of the environment `tracker`."),
            ("arenad down --purge --yes", "Also removes snapshots, built images and the daemon's files."),
        ],
        "reset" => &[
            ("arenad reset shopping", ""),
            ("arenad reset mini/shopping reddit -v", "Resets two sites, and shows the time of each stage."),
            ("arenad reset --all --if-dirty", "Resets only sites that differ from their snapshots, or may differ."),
            ("arenad reset gitlab --to two-projects", "Resets to a snapshot that `arenad snapshot take` took."),
        ],
        "verify" => &[
            ("arenad verify", "Compares all sites that declare stores."),
            ("arenad verify shopping", "Exits with 1 if there are differences."),
        ],
        "changes" => &[
            ("arenad changes shopping", "Lists the changes since the latest reset."),
            ("arenad changes shopping --values", "Also shows the values of rows."),
            ("arenad changes shopping --since 1", "Lists the changes since look 1."),
            ("arenad changes shopping --since 1 --until 2 --json", "Compares two looks."),
        ],
        "look" => {
            &[("arenad look shopping", ""), ("arenad changes shopping --since 1", "Lists the changes since look 1.")]
        }
        "status" => &[
            ("arenad status", ""),
            ("arenad status shopping mini/reddit -v", "Shows two sites in detail."),
            ("arenad status --json | jq -r '.environments[].sites[].state'", ""),
        ],
        "health" => {
            &[("arenad health", ""), ("arenad health shopping -n 1000", "Also lists the last ten rounds of each kind.")]
        }
        "ps" => &[("arenad ps", ""), ("arenad ps shopping", "")],
        "logs" => &[
            ("arenad logs shopping --tail 50", ""),
            ("arenad logs shopping reddit --follow", "Begins each line with the name of its site."),
            ("arenad logs map --service db --since 10m", ""),
        ],
        "events" => &[
            ("arenad events --since 1h", ""),
            ("arenad events shopping -n 10", "Shows the last ten events of one site."),
            ("arenad events --follow --json", ""),
        ],
        "replay" => &[
            ("arenad replay add airline session.har.zip", ""),
            ("arenad replay ls", "Lists the replays with their hits and misses."),
        ],
        "replay add" => &[
            ("arenad replay add airline session.har", ""),
            ("arenad replay add airline dump/task/1234 --moving sessionKey", "Reads all recordings in a folder."),
            (
                "arenad replay add shop crawl.wacz saved.mhtml --skip-broken",
                "Leaves out recordings that cannot be read.",
            ),
        ],
        "replay ls" => &[("arenad replay ls", "")],
        "replay show" => &[
            ("arenad replay show airline", "Shows the proxy to set, and the requests that had no answer."),
            ("arenad replay show airline --json | jq -r .proxy.server", ""),
        ],
        "replay rm" => &[("arenad replay rm airline", "")],
        "ca" => &[("arenad ca > arenad-replay.pem", "Writes the certificate for a client to trust.")],
        "verdict" => &[
            ("arenad verdict verify certificate.json", ""),
            ("arenad verdict key > key.hex", "Keeps the public key, which verifies the certificates elsewhere."),
        ],
        "verdict verify" => &[
            ("arenad verdict verify certificate.json", ""),
            (
                "arenad verdict verify certificate.json --key key.hex",
                "Verifies it on another machine, without a daemon.",
            ),
        ],
        "verdict key" => &[("arenad verdict key", "")],
        "open" => &[("arenad open shopping", ""), ("arenad open shopping --print", "Only prints the URL.")],
        "exec" => &[
            ("arenad exec shopping -- ls -l /data", ""),
            ("arenad exec map --service db -- psql -U postgres -c 'SELECT 1'", ""),
            ("tar c notes | arenad exec lab/forum -- tar x -C /tmp", "Passes standard input to the command."),
        ],
        "shell" => &[("arenad shell shopping", ""), ("arenad shell map --service db --user root", "")],
        "init" => &[
            ("arenad init lab", "Writes a Compose file and an environment file to complete."),
            ("arenad init lab --from ~/forum/compose.yaml", ""),
            (
                "arenad init lab --from ~/forum/compose.yaml --running",
                "Also examines the containers that Compose currently runs.",
            ),
        ],
        "validate" => {
            &[("arenad validate lab", "Reports all problems, each with its position."), ("arenad validate --json", "")]
        }
        "config" => &[("arenad config webarena", ""), ("arenad config webarena --variables", "")],
        "env" => &[
            ("eval \"$(arenad env mini)\"", ""),
            ("arenad env webarena --for browsergym --format dotenv > .env", ""),
            ("arenad env mini --slot 2", "For the client of an episode that has slot 2 and takes no proxy."),
        ],
        "schema" => &[("arenad schema environment > environment.schema.json", "")],
        "images" => &[("arenad images ls webarena", ""), ("arenad images pull webarena shopping", "")],
        "images ls" => &[("arenad images ls webarena", ""), ("arenad images ls webarena gitlab --json", "")],
        "images pull" => &[
            ("arenad images pull webarena shopping", "Resumes an earlier call that was interrupted."),
            ("arenad images pull webarena --discard", "Removes each archive once its image is loaded."),
        ],
        "images load" => &[("arenad images load webarena --from /mnt/archives", "")],
        "images verify" => &[("arenad images verify webarena", "")],
        "snapshot" => &[("arenad snapshot ls", ""), ("arenad snapshot take shopping --name full-basket", "")],
        "snapshot ls" => &[("arenad snapshot ls", ""), ("arenad snapshot ls shopping", "")],
        "snapshot take" => &[("arenad snapshot take shopping --name full-basket", "")],
        "snapshot diff" => &[("arenad snapshot diff 3f9a27c1 full-basket", "")],
        "snapshot export" => &[("arenad snapshot export full-basket --out basket.tar.zst", "")],
        "snapshot import" => &[("arenad snapshot import basket.tar.zst --name basket-of-lab-2", "")],
        "snapshot rm" => &[("arenad snapshot rm full-basket", "")],
        "login" => &[
            ("arenad login shopping > state.json", "For Playwright's `storageState`."),
            ("arenad login reddit --account moderator --format netscape -o cookies.txt", "For `curl -b cookies.txt`."),
            ("arenad login --check", "Tries every account of every site."),
        ],
        "locate" => &[
            ("arenad locate shopping 'sql(shop): SELECT COUNT(*) FROM order_order'", ""),
            (
                "arenad locate shopping 'sql(shop): SELECT title FROM catalogue_product WHERE upc = {upc}' -a upc=LRK-1",
                "",
            ),
            ("arenad locate reddit 'js: document.title @ /threads/'", ""),
        ],
        "har" => &[("arenad har shopping --out shopping.har", "")],
        "run" => &[
            ("arenad run --sites shopping,reddit -- python agent.py", ""),
            ("arenad run --task shopping.order.1 -- python agent.py", "Starts the sites as the task demands."),
            ("arenad run -s mini/shopping -n 4 -l run=7 --wait 1h -- ./agent.sh", "Runs four agents at once."),
            ("arenad run -s shopping --har hars -- python agent.py", "Leaves the requests of the episode in hars/."),
        ],
        "episode" => &[("arenad episode start shopping", ""), ("arenad episode ls", "")],
        "episode start" => &[
            ("arenad episode start shopping reddit --ttl 30m", ""),
            ("arenad episode start --task shopping.order.1 --label run=7 --json", ""),
            ("arenad episode start shopping --slot shopping=1", "Gets the slot at the site's public port."),
        ],
        "episode ls" => &[("arenad episode ls", ""), ("arenad episode ls --label run=7 --all", "")],
        "episode show" => &[("arenad episode show ep-0123456789abcdef0123", "")],
        "episode extend" => &[("arenad episode extend ep-0123456789abcdef0123 20m", "")],
        "episode changes" => &[
            ("arenad episode changes ep-0123456789abcdef0123", ""),
            ("arenad episode changes ep-0123456789abcdef0123 shopping --values --since 1", ""),
        ],
        "episode look" => &[("arenad episode look ep-0123456789abcdef0123", "")],
        "episode freeze" => &[("arenad episode freeze ep-0123456789abcdef0123", "")],
        "episode unfreeze" => &[("arenad episode unfreeze ep-0123456789abcdef0123", "")],
        "episode fork" => &[
            ("arenad episode fork ep-0123456789abcdef0123", ""),
            ("arenad episode fork ep-0123456789abcdef0123 -n 8 --wait 5m --json", "Starts eight episodes at once."),
        ],
        "episode export" => &[
            ("arenad episode export ep-0123456789abcdef0123 --output hars", ""),
            (
                "arenad episode export ep-0123456789abcdef0123 --format webarena-verified --task 21 --response answer.json",
                "`webarena-verified eval-tasks --output-dir .` scores the folder 21 that this writes.",
            ),
        ],
        "episode end" => &[("arenad episode end ep-0123456789abcdef0123", "")],
        "queue" => &[("arenad queue", ""), ("arenad queue --json", "")],
        "tasks" => &[("arenad tasks ls", ""), ("arenad tasks show shopping.order.1", "")],
        "tasks lint" => &[("arenad tasks lint mini", ""), ("arenad tasks lint my-tasks/ --live", "")],
        "tasks ls" => &[("arenad tasks ls", ""), ("arenad tasks ls mini --json", "")],
        "tasks show" => &[("arenad tasks show shopping.order.1", "")],
        "workflow record" => &[
            (
                "arenad workflow record lamp.json --site shopping --start http://shopping.arena.test/ --title 'Buy a lamp'",
                "Records in a window until you close it.",
            ),
            ("arenad workflow record news.json --start https://news.example.com/", "Records on a live site."),
        ],
        "workflow dump" => &[(
            "arenad workflow dump examples/webcanvas/workflows --output recorded",
            "Replays all workflows in a folder, and writes them as tasks of Mind2Web.",
        )],
        "workflow review" => &[("arenad workflow review lamp.json", "Writes lamp.html.")],
        "workflow" | "workflow check" => &[
            ("arenad workflow check examples/webcanvas/workflows", "Replays all workflows in a folder."),
            (
                "arenad workflow check kettle.json --tasks tasks.json --write",
                "Writes repaired key nodes as a new version of the task.",
            ),
            (
                "arenad workflow check workflows --cron '0 6 * * *' --history checks.jsonl",
                "Replays each morning, and keeps the results, one line for each replay.",
            ),
        ],
        "turkle" | "turkle load" => &[
            ("arenad turkle load examples/turkingbench/tasks", "Publishes all task folders in a folder."),
            (
                "arenad turkle load 'tasks/Sentiment 5 point' --workers worker,worker2",
                "Assigns its HITs to two workers in turn.",
            ),
            ("arenad turkle load tasks --check", "Prints the problems of the folders, each with its place."),
        ],
        "tasks render" => &[("arenad tasks render --tasks test.raw.json --out config_files", "")],
        "check" => &[
            ("arenad check begin shopping.order.1 --reset --out begun.json", "Run this before the agent starts."),
            ("arenad check shopping.order.1 --begun begun.json --answer 'done'", "Run this after the agent has ended."),
        ],
        "check begin" => &[("arenad check begin shopping.order.1 --reset --out begun.json", "")],
        "eval" => &[
            (
                "arenad eval --benchmark webarena --task 310 --answer tokudu --tasks test.raw.json",
                "Judges one episode.",
            ),
            ("arenad eval --results results/ --tasks test.raw.json --profile both", "Judges all results of a run."),
        ],
        "df" => &[("arenad df", "")],
        "prune" => &[
            ("arenad prune", "Lists the items to remove, and asks for confirmation."),
            ("arenad prune --older 7d --keep-bytes 20G --yes", ""),
        ],
        "storage" => &[("arenad storage status", ""), ("sudo arenad storage init --size 50G", "")],
        "storage init" => &[("sudo arenad storage init --size 50G", "")],
        "storage status" => &[("arenad storage status", "")],
        "doctor" => &[
            ("arenad doctor", ""),
            ("arenad doctor webarena", "Also checks the ports, memory and images that the environment needs."),
        ],
        "serve" => {
            &[("arenad serve", ""), ("ARENAD_TOKEN=$(openssl rand -hex 32) arenad serve --listen 127.0.0.1:7700", "")]
        }
        "completions" => &[
            ("arenad completions bash > /etc/bash_completion.d/arenad", ""),
            ("arenad completions zsh > ~/.zfunc/_arenad", ""),
            ("arenad completions fish > ~/.config/fish/completions/arenad.fish", ""),
        ],
        "version" => &[("arenad version --json", "")],
        _ => return None,
    })
}

/// Splits a line into words, as a shell does; operators are words of their own.
#[cfg(test)]
pub fn words(line: &str) -> Vec<String> {
    let line = line.replace("\"$(", "$( ").replace(")\"", " )");
    let mut words = Vec::new();
    let (mut word, mut quote, mut is_begun) = (String::new(), None, false);
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (None, '\'' | '"') => (quote, is_begun) = (Some(letter), true),
            (None, ' ') => {
                if is_begun {
                    words.push(std::mem::take(&mut word));
                }
                is_begun = false;
            }
            (_, letter) => {
                word.push(letter);
                is_begun = true;
            }
        }
    }
    if is_begun {
        words.push(word);
    }
    words
}
