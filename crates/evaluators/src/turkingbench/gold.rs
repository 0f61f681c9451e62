//! The labels of an instance, and the input of a task's batch. Source: `retrieve_gold_labels` in
//! `src/evaluation_class.py`, and `src/2_generate_input_csv.py`.

use std::collections::BTreeMap;

use super::label::Label;
use super::table::Table;
use crate::text::raised::Raised;

/// The prefix of columns with answers.
pub const ANSWER: &str = "Answer.";

/// A `batch.csv`: one row for each response of an annotator.
#[derive(Debug, Clone)]
pub struct Batch {
    table: Table,
    inputs: Vec<usize>,
    /// For each instance, the rows of its responses.
    instances: Vec<Vec<usize>>,
}

impl Batch {
    /// Reads the file.
    ///
    /// # Errors
    ///
    /// Returns an error if pandas raises.
    pub fn read(csv: &str) -> Result<Self, Raised> {
        let table = Table::read(csv)?;
        let inputs = table.without_prefix(ANSWER);
        let instances = table.groups(&inputs);
        Ok(Self { table, inputs, instances })
    }

    /// The number of instances.
    #[must_use]
    pub fn instances(&self) -> usize {
        self.instances.len()
    }

    /// The number of responses.
    #[must_use]
    pub fn responses(&self) -> usize {
        self.table.rows
    }

    /// The names of the fields that have answers, in the order of the columns.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.table.columns.iter().filter_map(|column| column.strip_prefix(ANSWER))
    }

    fn first_row(&self, instance: usize) -> Option<usize> {
        self.instances.get(instance)?.first().copied()
    }

    /// The input of an instance by column, in order.
    #[must_use]
    pub fn input(&self, instance: usize) -> Vec<(String, String)> {
        let Some(row) = self.first_row(instance) else { return Vec::new() };
        let cell = |column: &usize| {
            let label = &self.table.cells[*column][row];
            (self.table.columns[*column].clone(), if label.is_nan() { String::new() } else { label.text() })
        };
        self.inputs.iter().map(cell).collect()
    }

    /// Returns the first column in which the input of an instance has an empty cell. Such an instance has no labels.
    #[must_use]
    pub fn gap(&self, instance: usize) -> Option<&str> {
        let row = self.first_row(instance)?;
        let column = self.inputs.iter().find(|column| self.table.cells[**column][row].is_nan())?;
        Some(&self.table.columns[*column])
    }

    /// `retrieve_gold_labels`: the answers of all annotators to an instance, by field. `fields` are names and kinds, and
    /// `tasks` is the number of tasks that the server has. A negative instance counts from the end.
    ///
    /// # Errors
    ///
    /// Returns an error if the benchmark's code raises: the server has another number of tasks, there is no such
    /// instance, or a cell of its input is empty.
    pub fn labels(
        &self,
        instance: i64,
        fields: &[(&str, &str)],
        tasks: Option<usize>,
    ) -> Result<BTreeMap<String, Vec<Label>>, Raised> {
        let count = self.instances.len();
        if tasks.is_some_and(|tasks| tasks != count) {
            let what = format!("{count} distinct inputs, and {} tasks on the server", tasks.unwrap_or_default());
            return Err(Raised::new("AssertionError", what));
        }
        let length = i64::try_from(count).unwrap_or(i64::MAX);
        if instance > length {
            return Err(Raised::new("AssertionError", format!("there is no instance {instance}")));
        }
        let at = if instance < 0 { instance + length } else { instance };
        let at = usize::try_from(at).ok().filter(|at| *at < count);
        let at = at.ok_or_else(|| Raised::new("IndexError", format!("there is no instance {instance}")))?;
        if self.gap(at).is_some() {
            return Err(Raised::new("AssertionError", "an empty cell equals nothing".to_owned()));
        }
        // Without columns of inputs, all rows have the same input, although each is an instance.
        let all: Vec<usize>;
        let rows = if self.inputs.is_empty() {
            all = (0..self.table.rows).collect();
            &all
        } else {
            &self.instances[at]
        };
        let labels = |(name, kind): &(&str, &str)| {
            let column = self.table.column(&format!("{ANSWER}{name}")).unwrap_or_default();
            let own = rows.iter().filter_map(|row| column.get(*row)).cloned();
            let labels = match *kind {
                "checkbox" | "radio" => {
                    own.map(|label| if label.is_nan() { Label::Text(String::new()) } else { label }).collect()
                }
                _ => own.collect(),
            };
            ((*name).to_owned(), labels)
        };
        Ok(fields.iter().map(labels).collect())
    }
}

/// `create_input`: the content of `input.csv`, with a byte order mark.
///
/// # Errors
///
/// Returns an error if pandas raises.
pub fn create_input_csv(csv: &str) -> Result<String, Raised> {
    let batch = Batch::read(csv)?;
    let rows: Vec<usize> = (0..batch.instances()).filter_map(|instance| batch.first_row(instance)).collect();
    Ok(format!("\u{feff}{}", batch.table.write(&batch.inputs, &rows)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_that_are_the_same_float_are_different_inputs() {
        let batch =
            Batch::read("id,Answer.a\n9007199254740993,x\n9007199254740992,y\n9007199254740993,z\n").expect("a batch");
        let labels = |instance| batch.labels(instance, &[("a", "text")], Some(2)).map(|mut labels| labels.remove("a"));
        let text = |text: &str| Label::Text(text.to_owned());
        assert_eq!(labels(0), Ok(Some(vec![text("x"), text("z")])));
        assert_eq!(labels(1), Ok(Some(vec![text("y")])));
        assert!(labels(2).is_err());
    }

    #[test]
    fn without_inputs_every_response_answers_every_instance() {
        let batch = Batch::read("Answer.a\nx\ny\n").expect("a batch");
        let labels = batch.labels(1, &[("a", "text")], None).expect("labels");
        assert_eq!((batch.instances(), labels["a"].len()), (2, 2));
    }
}
