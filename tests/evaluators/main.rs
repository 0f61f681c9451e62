//! scratch
#[test]
fn fuzz_tokens() {
    let text = std::fs::read_to_string("/tmp/prep/nltk/fuzz.jsonl").unwrap();
    let mut bad = 0;
    let mut n = 0;
    for line in text.lines() {
        let (input, expected): (String, Vec<String>) = serde_json::from_str(line).unwrap();
        n += 1;
        let got = arenad::evaluators::text::word_tokenize(&input);
        if got != expected {
            bad += 1;
            if bad < 15 { eprintln!("{input:?}\n  exp {expected:?}\n  got {got:?}"); }
        }
    }
    panic!("{bad} of {n}");
}
