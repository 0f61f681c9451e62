//! Names of sites, environments and snapshots: all commands accept the same forms, and exit with the same code for
//! unknown ones.

use crate::support::World;

#[test]
fn a_site_is_named_in_the_same_ways_everywhere() {
    let world = World::single("named");
    let name = world.name.as_str();
    let whole = format!("{name}/toy");
    world.run(&["up", &whole]).code(0);
    world.run(&["up", "-e", name, "toy"]).code(0);
    for words in [["status"].as_slice(), &["ps"], &["health"], &["logs"], &["reset"], &["events"], &["snapshot", "ls"]]
    {
        for site in [["toy"].as_slice(), &[&whole], &["-e", name, "toy"], &[name, "toy"]] {
            if *words == ["logs"] && site == [name, "toy"] {
                continue;
            }
            world.run(&[words, site].concat()).code(0);
        }
        world.run(&[words, &["nothing"]].concat()).code(2);
    }
    for site in [["toy"].as_slice(), &[&whole], &["-e", name, "toy"]] {
        world.run(&[["open", "--print"].as_slice(), site].concat()).code(0).prints(&world.port.to_string());
    }
    world.run(&["status", "other/toy"]).code(2).says("environment `other` is not up");
    world.run(&["status", &whole, "-e", "other"]).code(2).says("name the environment once");
    world.run(&["up", &whole, "other/toy"]).code(2).says("one environment at a time");
    world.run(&["up", name, "toi"]).code(2).says("did you mean `toy`?");
    world.run(&["validate", "minni"]).code(2).says("there is no environment `minni`");
    for words in
        [["reset", "toy", "--to", "none"].as_slice(), &["snapshot", "rm", "none"], &["snapshot", "diff", "none", "nil"]]
    {
        world.run(words).code(2).says("there is no snapshot `none`").says("arenad snapshot ls");
    }
    let late = world.run(&["reset", "toy", "--wait-timeout", "1ms"]).code(124);
    assert!(late.err.contains("not done within 1ms: toy"), "{}", late.err);
    world.run(&["reset", "toy"]).code(0);

    // The last events of one site only.
    let events = world.run(&["events", &whole, "-n", "2"]).code(0);
    assert_eq!(events.out.lines().count(), 2, "{}", events.out);
    world.run(&["complete", "--", "reset", "t"]).code(0).prints("toy\n");
    world.run(&["complete", "--", "open", &name[..3]]).code(0).prints(&whole);
    world.run(&["complete", "--", "validate", &name[..3]]).code(0).prints(name);
    world.run(&["down", name]).code(0).says("toy");
    // Without a daemon, completion offers nothing and reports no error.
    let silent = world.run(&["complete", "--", "reset", ""]).code(0);
    assert!(silent.out.is_empty() && silent.err.is_empty(), "{}{}", silent.out, silent.err);
    world.assert_down();
}

#[test]
fn a_variable_that_is_not_repeated_does_not_make_a_site_anew() {
    let world = World::single("variable");
    world.edit("environment", "    title: Toy", "    title: ${TITLE:-Toy}");
    let with = |title: Option<&str>, words: &[&str]| {
        let mut command = world.command(words);
        title.map(|title| command.env("TITLE", title));
        world.start_command(command).ended()
    };
    with(Some("Other"), &["up", &world.name]).code(0);
    world.write("pears");
    let refused = with(None, &["up", &world.name]).code(1);
    refused.says("would be made anew").says("TITLE was set when it came up").says("--recreate");
    assert!(world.page().contains("pears"), "it was left alone");
    with(Some("Other"), &["up", &world.name]).code(0);
    assert!(world.page().contains("pears"));
    with(None, &["up", &world.name, "--recreate"]).code(0);
    assert!(!world.page().contains("pears"));
    world.run(&["down"]).code(0);
    world.assert_down();
}

#[test]
fn problems_of_a_definition_are_json_as_well() {
    let world = World::single("problems");
    world.edit("environment", "entry: { port: 80 }", "entry: { prot: 80 }");
    let answer = world.run(&["validate", &world.name, "--json"]).code(2).json();
    assert_eq!(answer["valid"], false);
    let problem = &answer["problems"][0];
    assert!(problem["file"].as_str().is_some_and(|file| file.ends_with(".yaml")), "{answer:#}");
    assert!(problem["line"].is_u64() || problem["span"].is_object(), "{answer:#}");
}
