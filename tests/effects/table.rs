//! `docs/jack.md`: its tables have every function and every callback, on the threads that the
//! library's sources state.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The repository.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a directory of the repository")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The files of a directory with that ending.
fn files(directory: &str, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join(directory)).expect("a directory of the repository");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.filter(|path| path.extension().is_some_and(|found| found == ending)).collect()
}

/// The rows of the tables, in their order: the cells of each, without quotes.
fn rows() -> Vec<Vec<String>> {
    let text = read(&root().join("docs/jack.md"));
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    let cells = |row: &str| {
        row.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect()
    };
    rows.map(cells).collect()
}

/// The thread that each function's documentation states: "any", "cycle", or, if it says nothing,
/// "app".
fn stated() -> BTreeMap<String, String> {
    let mut stated = BTreeMap::new();
    for path in files("crates/jack/src", "rs") {
        let mut documentation = String::new();
        for line in read(&path).lines() {
            if let Some(text) = line.strip_prefix("///") {
                documentation.push_str(text);
            } else if !line.starts_with('#') {
                if let Some((_, name)) = line.split_once("extern \"C\" fn jack_") {
                    let name = name.split(['(', '<']).next().unwrap_or_default();
                    let states =
                        |thread: &str| documentation.contains(&format!("Thread: {thread}."));
                    let thread =
                        ["cycle", "any"].into_iter().find(|thread| states(thread)).unwrap_or("app");
                    stated.insert(format!("jack_{name}"), thread.to_owned());
                }
                documentation.clear();
            }
        }
    }
    stated
}

#[test]
fn the_documented_table_lists_every_exported_symbol_with_its_thread() {
    let symbols = include_str!("../../crates/jack/abi/symbols.txt");
    let (variables, functions): (Vec<&str>, Vec<&str>) =
        symbols.lines().partition(|symbol| symbol.ends_with(" DATA"));
    let variables: Vec<&str> =
        variables.iter().map(|symbol| symbol.trim_end_matches(" DATA")).collect();
    let stated = stated();
    let (mut listed, mut listed_variables) = (Vec::new(), Vec::new());
    for row in rows() {
        match &row[..] {
            [name, thread, difference] => {
                assert_eq!(
                    stated.get(name),
                    Some(thread),
                    "{name}: in the table, and in its documentation"
                );
                assert!(!difference.is_empty(), "{name}: '–' if it is as in JACK2");
                listed.push(name.clone());
            }
            [name, what] => {
                assert!(!what.is_empty(), "{name}");
                listed_variables.push(name.clone());
            }
            _ => {}
        }
    }
    assert_eq!(listed, functions);
    assert_eq!(listed_variables, variables);
}

#[test]
fn the_documented_table_has_every_callback_of_the_headers_with_its_thread() {
    let mut types: Vec<String> = Vec::new();
    // There is no network audio, so its callbacks are never called.
    let headers = files("crates/jack/include/jack", "h");
    for path in headers.into_iter().filter(|path| !path.ends_with("net.h")) {
        let text = read(&path);
        let names = text.match_indices("(*Jack").filter_map(|(at, _)| {
            let name = text[at + 2..].split(')').next()?;
            name.ends_with("Callback").then(|| name.to_owned())
        });
        types.extend(names);
    }
    types.sort();
    types.dedup();
    assert!(types.len() > 15, "{types:?}");
    let mut listed = Vec::new();
    for row in rows().into_iter().filter(|row| row.len() == 4) {
        let threads = ["process", "notification", "calling"];
        assert!(threads.iter().any(|thread| row[1].contains(thread)), "{row:?}: on which thread?");
        assert!(row.iter().all(|cell| !cell.is_empty()), "{row:?}");
        listed.push(row[0].clone());
    }
    listed.retain(|name| name != "JackThreadCreator");
    listed.sort();
    assert_eq!(listed, types);
}
