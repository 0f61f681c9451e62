//! The diagrams of state machines, drawn from their decisions, so that a drawing in the documentation cannot diverge.

/// Draws the transitions of a state machine: a line for each pair of states, with the events that lead from one to the
/// other. `after` returns the state after an event, or `None` if the event is refused.
pub(crate) fn drawn<S, E>(
    states: &[S],
    events: &[(&'static str, E)],
    name: impl Fn(&S) -> &'static str,
    after: impl Fn(&S, &E) -> Option<S>,
) -> String {
    let mut drawn = "```text\n".to_owned();
    for state in states {
        let mut moves: Vec<(&str, Vec<&str>)> = Vec::new();
        for (event_name, event) in events {
            let Some(next) = after(state, event).map(|next| name(&next)) else { continue };
            match moves.iter_mut().find(|(to, _)| *to == next) {
                Some((_, names)) => names.push(event_name),
                None => moves.push((next, vec![event_name])),
            }
        }
        for (index, (to, names)) in moves.iter().enumerate() {
            let from = if index == 0 { name(state) } else { "" };
            drawn.push_str(&format!("{from:<10} ──► {to:<10} {}\n", names.join(", ")));
        }
    }
    drawn.push_str("```\n");
    drawn
}
