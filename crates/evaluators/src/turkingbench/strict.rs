//! The paper's rules, without the loopholes of the published code: see `docs/guides/turkingbench.md`.

use std::collections::BTreeSet;

use super::fields::FieldScore;
use super::label::{Label, try_numeric};
use super::rouge::rouge;
use crate::text::numbers::float;
use crate::text::python;

/// The score of a field; `Err` with a reason if the labels do not allow one.
pub(super) fn score(field: &FieldScore) -> Result<f64, &'static str> {
    let labels: Vec<&Label> = field.labels.iter().collect();
    match field.kind.as_str() {
        "checkbox" => {
            if labels.is_empty() {
                return Err("there are no labels");
            }
            // The paper leaves open how several annotators combine.
            Ok(labels.iter().map(|label| overlap(&field.output, &label.text())).fold(0.0, f64::max))
        }
        "radio" | "select" => choice(&field.output, &labels),
        "range" => range(&field.output, &labels),
        _ => {
            let filled = labels.iter().map(|label| label.text()).filter(|label| !label.is_empty() && label != "nan");
            let plain = |text: &str| try_numeric(&text.replace("&amp;", "&"));
            let output = plain(&field.output);
            filled.map(|label| text(&output, &plain(&label))).reduce(f64::max).ok_or("all labels are empty")
        }
    }
}

/// Texts without a Latin letter or digit have no tokens for ROUGE, so words count there.
fn text(output: &str, label: &str) -> f64 {
    if let (Some(one), Some(other)) = (float(output), float(label)) {
        return f64::from(u8::from(one == other));
    }
    if is_same(output, label) { 1.0 } else { rouge(output, label) }
}

/// Whether two short texts are the same: numbers by their value, others without regard to case and white space. The
/// published code deletes punctuation, so that `-3` is `3` there.
fn is_same(one: &str, other: &str) -> bool {
    match (float(one), float(other)) {
        (Some(one), Some(other)) => one == other || (one.is_nan() && other.is_nan()),
        (None, None) => {
            let plain = |text: &str| python::split(&text.to_lowercase()).collect::<Vec<_>>().join(" ");
            plain(one) == plain(other)
        }
        _ => false,
    }
}

/// The size of the intersection by the size of the union; 1 for two empty sets.
fn overlap(output: &str, label: &str) -> f64 {
    let parts = |text: &str| -> BTreeSet<String> {
        text.split('|').map(str::trim).filter(|part| !part.is_empty() && *part != "nan").map(try_numeric).collect()
    };
    let (output, label) = (parts(output), parts(label));
    let union = output.union(&label).count();
    #[expect(clippy::cast_precision_loss, reason = "sets are small")]
    let share = |count: usize| count as f64 / union as f64;
    if union == 0 { 1.0 } else { share(output.intersection(&label).count()) }
}

/// Any of the labels with the most votes is right; the published code takes the one that it saw first.
fn choice(output: &str, labels: &[&Label]) -> Result<f64, &'static str> {
    let votes = |label: &&&Label| labels.iter().filter(|other| is_same(&label.text(), &other.text())).count();
    let most = labels.iter().map(|label| votes(&label)).max().ok_or("there are no labels")?;
    let fits = |label: &&Label| {
        let text = if label.is_nan() { String::new() } else { label.text() };
        is_same(output, &text)
    };
    Ok(f64::from(u8::from(labels.iter().filter(|label| votes(label) == most).any(fits))))
}

/// One minus the mean distance by the largest label, and not below 0.
fn range(output: &str, labels: &[&Label]) -> Result<f64, &'static str> {
    let numbers: Vec<f64> =
        labels.iter().filter_map(|label| label.float()).filter(|number| number.is_finite()).collect();
    if numbers.is_empty() {
        return Err("no label is a number");
    }
    let Some(output) = float(output).filter(|output| output.is_finite()) else { return Ok(0.0) };
    let largest = numbers.iter().fold(0.0_f64, |largest, number| largest.max(number.abs()));
    #[expect(clippy::cast_precision_loss, reason = "there are few annotators")]
    let mean = numbers.iter().map(|number| (number - output).abs()).sum::<f64>() / numbers.len() as f64;
    Ok(if largest > 0.0 { (1.0 - mean / largest).max(0.0) } else { f64::from(u8::from(mean == 0.0)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scored(kind: &str, output: &str, labels: &[&str]) -> Result<f64, &'static str> {
        let labels = labels.iter().map(|label| Label::Text((*label).to_owned())).collect();
        score(&FieldScore { name: String::new(), kind: kind.to_owned(), output: output.to_owned(), labels, score: 0.0 })
    }

    #[test]
    fn sets_overlap_and_signs_count() {
        assert_eq!(scored("checkbox", "a|b", &["b|c"]), Ok(1.0 / 3.0));
        assert_eq!(scored("checkbox", "", &[""]), Ok(1.0));
        assert_eq!(scored("checkbox", "ab", &["a|b"]), Ok(0.0));
        assert_eq!([scored("radio", "3", &["-3"]), scored("radio", "3.0", &["3"])], [Ok(0.0), Ok(1.0)]);
        assert_eq!(scored("radio", "b", &["a", "b"]), Ok(1.0), "both have one vote");
    }

    #[test]
    fn a_range_is_measured_by_the_largest_label() {
        assert_eq!(scored("range", "25", &["50"]), Ok(0.5));
        assert_eq!(scored("range", "1000", &["50"]), Ok(0.0));
        assert_eq!(
            [scored("range", "x", &["50"]), scored("range", "5", &["x"])],
            [Ok(0.0), Err("no label is a number")]
        );
    }
}
