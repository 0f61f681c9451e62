//! The order in which the services of a site start.

use std::collections::BTreeMap;

/// Sorts names so that each comes after its dependencies; otherwise the given order is kept.
///
/// Errors: the names along a cycle, with the first one repeated at the end.
pub(super) fn start_order<'a>(
    names: &[&'a str],
    depends_on: &BTreeMap<&'a str, Vec<&'a str>>,
) -> Result<Vec<&'a str>, Vec<&'a str>> {
    let mut order = Vec::new();
    let mut path = Vec::new();
    for name in names {
        visit(name, names, depends_on, &mut order, &mut path)?;
    }
    Ok(order)
}

fn visit<'a>(
    name: &'a str,
    names: &[&'a str],
    depends_on: &BTreeMap<&'a str, Vec<&'a str>>,
    order: &mut Vec<&'a str>,
    path: &mut Vec<&'a str>,
) -> Result<(), Vec<&'a str>> {
    if order.contains(&name) || !names.contains(&name) {
        return Ok(());
    }
    if let Some(start) = path.iter().position(|earlier| *earlier == name) {
        let mut cycle = path[start..].to_vec();
        cycle.push(name);
        return Err(cycle);
    }
    path.push(name);
    for dependency in depends_on.get(name).into_iter().flatten() {
        visit(dependency, names, depends_on, order, path)?;
    }
    path.pop();
    order.push(name);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_come_first_and_file_order_decides_the_rest() {
        let depends_on = BTreeMap::from([("web", vec!["db", "cache"]), ("cache", vec!["db"])]);
        assert_eq!(start_order(&["web", "db", "cache"], &depends_on), Ok(vec!["db", "cache", "web"]));
        assert_eq!(start_order(&["b", "a"], &BTreeMap::new()), Ok(vec!["b", "a"]));
    }

    #[test]
    fn a_cycle_is_named_along_its_way() {
        let depends_on = BTreeMap::from([("start", vec!["a"]), ("a", vec!["b"]), ("b", vec!["a"])]);
        assert_eq!(start_order(&["start", "a", "b"], &depends_on), Err(vec!["a", "b", "a"]));
        let itself = BTreeMap::from([("a", vec!["a"])]);
        assert_eq!(start_order(&["a"], &itself), Err(vec!["a", "a"]));
    }
}
