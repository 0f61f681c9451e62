//! Right and wrong answers to every text task of the benchmarks, made from the tasks' own references.

use std::collections::BTreeMap;

use arenad_evaluators::webarena::{self, EpisodeContext, WebArenaTask};
use arenad_evaluators::{visualwebarena as visual, webarena_verified as verified};
use arenad_verdict::question::KnownAnswers;
use arenad_verdict::{Profile, Report, Verdict};
use serde_json::{Value, json};

use super::benchmark;

/// The number of answers of a kind, and the numbers that each profile accepts.
#[derive(Default)]
struct AcceptedCount {
    all: usize,
    compat: usize,
    strict: usize,
    /// The answers that the strict profile judges wrongly.
    mistakes: Vec<String>,
}

type Counts = BTreeMap<String, AcceptedCount>;

impl AcceptedCount {
    fn add(&mut self, is_right: bool, verdicts: [Verdict; 2], what: impl FnOnce() -> String) {
        let [compat, strict] = verdicts.map(|verdict| verdict == Verdict::Passed);
        self.all += 1;
        self.compat += usize::from(compat);
        self.strict += usize::from(strict);
        if strict != is_right {
            self.mistakes.push(what());
        }
    }
}

/// Prints a line for each kind, and fails if the strict profile misjudges any answer.
fn settle(counts: &Counts) {
    for (kind, count) in counts {
        println!("{kind}: {} answers, compat accepts {}, strict {}", count.all, count.compat, count.strict);
    }
    let mistakes: Vec<&String> = counts.values().flat_map(|count| count.mistakes.iter().take(12)).collect();
    let all: usize = counts.values().map(|count| count.mistakes.len()).sum();
    assert!(mistakes.is_empty(), "strict is mistaken about {all}:\n{mistakes:#?}");
}

/// The tasks of WebArena and VisualWebArena whose answer a text rule judges, each with whether it is VisualWebArena's.
fn tasks() -> Vec<(WebArenaTask, bool)> {
    let names = ["SHOPPING", "SHOPPING_ADMIN", "REDDIT", "GITLAB", "MAP", "WIKIPEDIA", "HOMEPAGE", "CLASSIFIEDS"];
    let urls = names.map(|name| (format!("__{name}__"), format!("http://{}.test", name.to_lowercase()))).into();
    let files = [
        ("webarena/test.raw.json", false),
        ("visualwebarena/test_classifieds.raw.json", true),
        ("visualwebarena/test_shopping.raw.json", true),
        ("visualwebarena/test_reddit.raw.json", true),
    ];
    let mut tasks = Vec::new();
    for (file, is_visual) in files {
        for mut task in webarena::read(&benchmark::file(file), &urls).unwrap_or_else(|error| panic!("{error}")) {
            task.eval.eval_types.retain(|kind| kind == "string_match");
            task.eval.reference_answers.retain(|rule, _| rule != "fuzzy_match");
            if !task.eval.eval_types.is_empty() && !task.eval.reference_answers.is_empty() {
                tasks.push((task, is_visual));
            }
        }
    }
    tasks
}

fn verdicts(task: &WebArenaTask, is_visual: bool, answer: &str) -> [Verdict; 2] {
    let context = EpisodeContext { intent: task.intent.clone(), answer: answer.to_owned(), url: String::new() };
    let told = KnownAnswers::default();
    let judge = |profile| -> Report {
        let report = if is_visual {
            visual::evaluate(&context, &task.eval, &told, profile)
        } else {
            webarena::evaluate(&context, &task.eval, &told, profile)
        };
        report.unwrap_or_else(|error| panic!("{}: {error}", task.task_id))
    };
    [Profile::Compat, Profile::Strict].map(|profile| judge(profile).verdict)
}

/// Returns the texts that an answer must contain, each with its alternatives.
fn wanted(task: &WebArenaTask) -> Vec<Vec<String>> {
    let split = |text: &Value| text.as_str().unwrap_or_default().split(" |OR| ").map(str::to_owned).collect::<Vec<_>>();
    let of_rule = |(rule, value): (&String, &Value)| match value {
        Value::Array(all) if rule == "one_of" => vec![all.iter().flat_map(split).collect()],
        Value::Array(all) => all.iter().map(split).collect(),
        one => vec![split(one)],
    };
    task.eval.reference_answers.iter().flat_map(of_rule).collect()
}

fn is_number(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit() || "-$".contains(c))
        && text.trim_start_matches(['-', '$']).parse::<f64>().is_ok()
        && (!text.starts_with('0') || text.len() == 1 || text.starts_with("0."))
}

fn asks_how_much(task: &WebArenaTask) -> bool {
    let intent = task.intent.to_lowercase();
    ["how much", "price", "cost", "spend", "spent", "refund", "amount", "payment"]
        .iter()
        .any(|word| intent.contains(word))
}

/// Formats an answer in several ways without adding other content.
fn wrapped(text: &str) -> Vec<String> {
    vec![
        text.to_owned(),
        format!("{text}."),
        format!("  {text}\n"),
        format!("**{text}**"),
        format!("`{text}`"),
        format!("\"{text}\""),
        format!("```\n{text}\n```"),
        json!({ "answer": text }).to_string(),
        json!([text]).to_string(),
        format!("```json\n{}\n```", json!({ "answer": text, "reason": "I looked" })),
        format!("The answer is {text}."),
        format!("The answer is **{text}**."),
        format!("Answer: {text}"),
        format!("**Answer:** {text}"),
        format!("Final answer: {text}"),
    ]
}

/// Right answers by kind.
fn right(task: &WebArenaTask) -> Vec<(&'static str, String)> {
    let wanted = wanted(task);
    let first: Vec<&str> = wanted.iter().map(|any| any[0].as_str()).collect();
    let mut answers: Vec<(&str, String)> = Vec::new();
    answers.extend(wrapped(&first.join(", ")).into_iter().map(|answer| ("wrapped", answer)));
    if let [only] = first[..] {
        if ["yes", "no"].contains(&only.to_lowercase().as_str()) {
            answers.push(("yes and no", format!("{only}, it is.")));
        }
        let unit = |short: &str, long: &str| {
            only.strip_suffix(short).filter(|bare| is_number(bare)).map(|bare| format!("{bare} {long}"))
        };
        let measured = unit("km", "kilometers").or_else(|| unit("m", "meters"));
        if let Some(measured) = measured {
            answers.push(("units", measured.clone()));
            answers.push(("units", format!("about {measured}")));
            answers.push(("units", format!("The distance is {measured}.")));
        }
    } else {
        answers.push(("lists", first.join(" and ")));
        answers.push(("lists", first.iter().map(|item| format!("- {item}\n")).collect()));
        answers.push(("lists", first.iter().enumerate().map(|(at, item)| format!("{}. {item}\n", at + 1)).collect()));
        answers.push(("lists", first.iter().map(|item| format!("**{item}**\n")).collect()));
        answers.push(("lists", json!(first).to_string()));
    }
    let is_count = task.eval.reference_answers.contains_key("must_include") && first.iter().all(|item| is_number(item));
    match first[..] {
        [number] if is_count => {
            let bare = number.trim_start_matches('$');
            let forms =
                ["{} in total", "Total: {}", "total:{}", "≈{}", "It is {}, as far as I can see.", "({})", "= {}"];
            answers.extend(forms.map(|form| ("numbers", form.replace("{}", number))));
            if asks_how_much(task) {
                let forms = ["${}", "{}USD", "{} USD", "${}/each", "total:${}", "I spent ${} in total."];
                let money = |form: &str| form.replace("{}", bare);
                answers.extend(forms.map(|form| {
                    ("money", if number.starts_with('$') { money(&form.replace("/each", "")) } else { money(form) })
                }));
            }
            let words = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
            if let Some(word) = number.parse::<usize>().ok().and_then(|number| words.get(number)) {
                answers.extend([("number words", (*word).to_owned()), ("number words", format!("There are {word}."))]);
            }
            if number == "0" {
                answers.extend(["None", "none.", "There are none.", "Zero"].map(|none| ("none", none.to_owned())));
                if asks_how_much(task) {
                    answers.push(("none", "$0.00".to_owned()));
                }
            }
        }
        [low, high] if is_count && !low.starts_with('-') && task.intent.contains("price range") => {
            let forms = [
                "${a}-${b}",
                "${a} - ${b}",
                "${a}–${b}",
                "between ${a} and ${b}",
                "from ${a} to ${b}",
                "Min: ${a}, max: ${b}",
            ];
            answers.extend(forms.map(|form| ("ranges", form.replace("{a}", low).replace("{b}", high))));
        }
        [latitude, longitude] if is_count && longitude.starts_with('-') => {
            for form in [
                "{a}4191, {b}7388",
                "{a}4191,{b}7388",
                "({a}4191, {b}7388)",
                "Latitude: {a}4191, Longitude: {b}7388",
                "{a}4191°, {b}7388°",
            ] {
                answers.push(("cut decimals", form.replace("{a}", latitude).replace("{b}", longitude)));
            }
        }
        _ => {}
    }
    answers
}

/// Wrong answers by kind. `everything` contains the expected texts of all tasks.
fn wrong(task: &WebArenaTask, everything: &[String], index: usize) -> Vec<(&'static str, String)> {
    let wanted = wanted(task);
    let first: Vec<&str> = wanted.iter().map(|any| any[0].as_str()).collect();
    let mut answers: Vec<(&str, String)> = ["", "I don't know", "N/A", "done", "Yes and No, yes", "..."]
        .map(|answer| ("nothing said", answer.to_owned()))
        .into();
    // Each answer uses one separator only, because the tokenizers are slow on long texts.
    let separator = [", ", "\n", "; ", " | ", " or "][index % 5];
    let number = |number: i32| {
        ["{}", "It may be {}.", "{} reviews", "{}.", "maybe {}"][index / 5 % 5].replace("{}", &number.to_string())
    };
    answers.push(("dumps", everything.join(separator)));
    answers.push(("dumps", (0..1000).map(number).collect::<Vec<_>>().join(separator)));
    answers.push(("dumps", (0..10).map(number).collect::<Vec<_>>().join(separator)));
    if index.is_multiple_of(7) {
        answers.push(("dumps", json!(everything).to_string()));
    }
    let colours = "red, orange, yellow, green, blue, purple, violet, pink, brown, black, white, gold, cyan";
    answers.push(("dumps", colours.to_owned()));
    answers.push(("dumps", "yes, no".to_owned()));
    let all = wanted.concat().concat().to_lowercase();
    let is_other = |other: &&String| {
        let (other, own) = (other.to_lowercase(), &all);
        !is_number(&other)
            && !own.contains(&other)
            && wanted.iter().flatten().all(|own| !other.contains(&own.to_lowercase()))
    };
    if let Some(other) = everything.iter().find(is_other) {
        answers.push(("others", other.clone()));
        if let [only] = first[..]
            && !is_number(only)
        {
            answers.extend(
                ["{a} or {b}", "{b} or {a}", "either {a} or {b}", "not {a}", "It is not {a}, but {b}"]
                    .map(|form| ("hedges", form.replace("{a}", only).replace("{b}", other))),
            );
        }
    }
    if first.len() > 1 {
        for (at, missing) in wanted.iter().enumerate() {
            let left: Vec<&str> =
                first.iter().enumerate().filter(|(index, _)| *index != at).map(|(_, item)| *item).collect();
            let is_elsewhere =
                left.iter().any(|item| missing.iter().any(|any| item.to_lowercase().contains(&any.to_lowercase())));
            if !is_elsewhere {
                answers.push(("incomplete", left.join(", ")));
            }
        }
    }
    if let [number] = first[..]
        && is_number(number)
        && let Ok(value) = number.trim_start_matches('$').parse::<f64>()
        && wanted[0].len() == 1
    {
        let number = number.trim_start_matches('$');
        let next = value + 1.0;
        let minus = if number == "0" { "1-{a}" } else { "-{a}" };
        answers.extend(
            ["{b}", "1{a}", "{a}7", minus, "{a}1/2", "x{a}", "{a}x"]
                .map(|form| ("near misses", form.replace("{a}", number).replace("{b}", &next.to_string()))),
        );
        let hedges = [
            "{a} or {b}",
            "Not {a}, but {b}",
            "either {a} or {b}",
            "between {a} and {b}",
            "{a}, {b}",
            "{a}-{b}",
            "{a} / {b}",
            "maybe {a}, maybe {b}",
            "It is not {a}",
            "{b} rather than {a}",
        ];
        answers.extend(hedges.map(|form| ("hedges", form.replace("{a}", number).replace("{b}", &next.to_string()))));
        if number.len() == 1 && number != "0" {
            let list: String = (1..10).map(|number| format!("{number}. something\n")).collect();
            answers.extend([
                ("one digit", format!("order 00000{number}")),
                ("one digit", format!("+{number}")),
                ("one digit", list),
            ]);
            if !asks_how_much(task) {
                answers.push(("one digit", format!("total ${number}.00")));
            }
        }
    }
    answers
}

/// For every task whose answer is judged as text, right answers as people and models write them pass. Wrong answers,
/// hedged answers and answers that name everything fail.
#[test]
#[ignore = "reads the benchmarks' task files: set ARENAD_BENCHMARK_DATA"]
fn answers_to_every_textual_task_are_told_apart() {
    let tasks = tasks();
    let mut everything: Vec<String> = tasks.iter().flat_map(|(task, _)| wanted(task).concat()).collect();
    everything.sort();
    everything.dedup();
    let mut counts = Counts::new();
    for (index, (task, is_visual)) in tasks.iter().enumerate() {
        let benchmark = if *is_visual { "visualwebarena" } else { "webarena" };
        let what = |answer: &str| {
            let answer: String = answer.chars().take(200).collect();
            format!("{benchmark} {} {:?}: {answer:?}", task.task_id, task.eval.reference_answers)
        };
        for (kind, answer) in right(task) {
            let count = counts.entry(format!("right, {kind}")).or_default();
            count.add(true, verdicts(task, *is_visual, &answer), || what(&answer));
        }
        for (kind, answer) in wrong(task, &everything, index) {
            let count = counts.entry(format!("wrong, {kind}")).or_default();
            count.add(false, verdicts(task, *is_visual, &answer), || what(&answer));
        }
    }
    println!("{} tasks", tasks.len());
    settle(&counts);
}

/// Paraphrases of right answers pass in WebArena-Verified, and wrong answers fail.
#[test]
#[ignore = "reads the benchmark's task file: set ARENAD_BENCHMARK_DATA"]
fn answers_to_verified_tasks_are_told_apart() {
    let raw: Vec<Value> =
        serde_json::from_str(&benchmark::file("webarena-verified/webarena-verified.json")).expect("a list of tasks");
    let mut counts = Counts::new();
    for raw in raw.iter().filter(|raw| raw["eval"].as_array().is_some_and(|eval| eval.len() == 1)) {
        let config = &raw["eval"][0];
        let mut answer = config["expected"].clone();
        for item in answer["retrieved_data"].as_array_mut().into_iter().flatten() {
            if let Some(first) = item.as_array().and_then(|items| items.first()) {
                *item = first.clone();
            }
        }
        let data = answer["retrieved_data"].to_string();
        // Neither a pattern nor the alternatives of an object's field count as an answer.
        if data.trim_start_matches('[').contains(['^', '[']) || config["expected"].get("retrieved_data").is_none() {
            continue;
        }
        let urls = ["gitlab", "map", "reddit", "shopping_admin", "shopping", "wikipedia"]
            .map(|site| (format!("__{}__", site.to_uppercase()), vec![format!("http://{site}.test")]));
        let task = verified::read_one(raw.clone(), &urls.into()).unwrap_or_else(|error| panic!("{error}"));
        let mut add = |kind: &str, is_right: bool, text: &str| {
            let submission = verified::Submission::read(text, super::verified::HAR.as_bytes());
            let verdicts = [Profile::Compat, Profile::Strict]
                .map(|profile| verified::evaluate(&task, &submission, profile).verdict);
            let kind = format!("{}, {kind}", if is_right { "right" } else { "wrong" });
            counts.entry(kind).or_default().add(is_right, verdicts, || format!("{} {text}", task.task_id));
        };
        let text = answer.to_string();
        add("plain", true, &text);
        add("prose around JSON", true, &format!("I have found it. The result: {text}\nThat is all {{I think}}."));
        add("fenced", true, &format!("```json\n{text}\n```"));
        let mut other = answer.clone();
        other["retrieved_data"] = json!(["something else"]);
        add("two results", false, &format!("{text}\n{other}"));
        if answer["status"] != "SUCCESS" {
            continue;
        }
        add("status", false, &text.replace("\"SUCCESS\"", "\"SUCCESS 🆗\""));
        add("no JSON", false, &answer["retrieved_data"].to_string());
        let schema = &config["results_schema"]["items"];
        let kind = schema["format"].as_str().or(schema["type"].as_str()).unwrap_or_default();
        let Some(first) = answer["retrieved_data"].get(0).cloned() else { continue };
        if answer["status"] != "SUCCESS" || answer["retrieved_data"].as_array().is_some_and(|items| items.len() > 1) {
            continue;
        }
        let with = |item: String| {
            let mut answer = answer.clone();
            answer["retrieved_data"] = json!([item]);
            answer.to_string()
        };
        let plain = first.as_str().map_or_else(|| first.to_string(), str::to_owned);
        let forms: (&[&str], &[&str]) = match kind {
            "boolean" => {
                (&["{b}.", "{b}, it is.", "**{b}**", "The answer is {b}."], &["Yes and no", "maybe", "yes or no"])
            }
            "duration" => (&["about {a}", "{a}.", "approximately {a}"], &["not {a}", "{a} or 99 days", "99 days"]),
            "distance" => (&["about {a}", "{a}.", "**{a}**"], &["not {a}", "99999 km"]),
            "number" => (
                &["{a} items", "about {a}", "{a}.", "**{a}**"],
                &["not {a}", "{a} or 123456", "between {a} and 123456", "123456"],
            ),
            "currency" => (&["{a} USD", "${a} in total", "**${a}**"], &["not {a}", "${a} or $123456", "$123456"]),
            "string" => (&["**{a}**", "`{a}`"], &["not {a}", "{a} or anything", "anything"]),
            _ => (&[], &[]),
        };
        let truth = if first == json!(true) { "Yes" } else { "No" };
        let fill = |form: &&str| with(form.replace("{a}", &plain).replace("{b}", truth));
        forms.0.iter().for_each(|form| add(kind, true, &fill(form)));
        forms.1.iter().for_each(|form| add(kind, false, &fill(form)));
    }
    settle(&counts);
}
