//! TurkingBench's evaluators: the fields of a web form against the answers of annotators.

mod evaluate;
mod fields;
mod gold;
mod label;
mod porter;
mod rouge;
mod strict;
mod table;
mod template;

pub use evaluate::{Baseline, Instance, InstanceError, baseline, evaluate, field_scores};
pub use fields::{EXCLUDED, FieldScore, FieldState, InstanceScore, calculate_metrics, is_text, score_outputs};
pub use gold::{ANSWER, Batch, create_input_csv};
pub use label::{Label, clean_values, try_numeric};
pub use rouge::{normalize_answer, rouge, tokenize};
pub use table::Table;
pub use template::{Template, placeholders, populate_html_template, process_template};
