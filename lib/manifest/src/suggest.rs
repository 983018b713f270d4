//! What somebody probably meant.

/// Help for a name that is not among `known`: the nearest one, or all of them.
pub fn suggest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>, what: &str) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    match nearest(name, known.iter().copied()) {
        Some(candidate) => format!("did you mean `{candidate}`?"),
        None if known.is_empty() => format!("there are no {what}"),
        None => format!("{what}: {}", list(&known)),
    }
}

/// The name that was probably meant.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = known.into_iter().map(|candidate| (distance(name, candidate), candidate));
    let near = near.filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 4 || alike(name, candidate));
    near.min().map(|(_, candidate)| candidate)
}

/// Names in backticks, with commas.
pub fn list(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// One is the beginning of the other, as in `prio` and `priority`.
fn alike(name: &str, candidate: &str) -> bool {
    name.len() >= 3 && (candidate.starts_with(name) || name.starts_with(candidate))
}

/// Characters to insert, remove, replace or swap (optimal string alignment).
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut rows = vec![vec![0; to.len() + 1]; from.len() + 1];
    rows[0] = (0..=to.len()).collect();
    for i in 1..=from.len() {
        rows[i][0] = i;
        for j in 1..=to.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(from[i - 1] != to[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (from, to, expected) in
            [("", "", 0), ("", "abc", 3), ("net", "ent", 1), ("uart0", "uart1", 1), ("mac", "net", 3)]
        {
            assert_eq!(distance(from, to), expected, "{from} {to}");
            assert_eq!(distance(to, from), expected, "{to} {from}");
        }
    }

    #[test]
    fn near_names_are_meant_and_far_ones_listed() {
        assert_eq!(suggest("prio", ["stack", "priority"], "keys"), "did you mean `priority`?");
        assert_eq!(suggest("ent", ["net", "mac"], "tasks"), "did you mean `net`?");
        assert_eq!(suggest("zebra", ["net", "mac"], "tasks"), "tasks: `net`, `mac`");
        assert_eq!(suggest("zebra", [], "tasks"), "there are no tasks");
    }
}
