//! The processes that a test's program has started, and those that they have started in turn.

use std::fs;

/// Every process that descends from `ancestor`, with its name.
pub fn descendants(ancestor: u32) -> Vec<(u32, String)> {
    let all: Vec<(u32, u32, String)> = fs::read_dir("/proc")
        .expect("processes")
        .flatten()
        .filter_map(|entry| parent_and_name(entry.file_name().to_str()?.parse().ok()?))
        .collect();
    let mut found: Vec<(u32, String)> = Vec::new();
    let mut looked = vec![ancestor];
    while let Some(parent) = looked.pop() {
        for (id, _, name) in all.iter().filter(|(_, of, _)| *of == parent) {
            found.push((*id, name.clone()));
            looked.push(*id);
        }
    }
    found
}

/// Whether a process of this id and name still runs.
pub fn is_alive((id, name): &(u32, String)) -> bool {
    parent_and_name(*id).is_some_and(|(_, _, now)| now == *name)
}

/// (id, parent, name) of a process that has not ended.
fn parent_and_name(id: u32) -> Option<(u32, u32, String)> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (before, after) = stat.rsplit_once(')')?;
    let mut fields = after.split_whitespace();
    let (state, parent) = (fields.next()?, fields.next()?.parse().ok()?);
    (state != "Z")
        .then(|| (id, parent, before.split_once('(').map_or("", |(_, name)| name).to_owned()))
}
