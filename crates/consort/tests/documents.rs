//! What documents and help say to type is there: each command, and each of its options.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Command;

/// The repository.
fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The documents that say what to type.
fn documents() -> Vec<PathBuf> {
    let mut found = vec![root().join("README.md"), root().join("CHANGELOG.md")];
    for directory in ["docs", "docs/design"] {
        let entries = fs::read_dir(root().join(directory)).expect("documents");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        found.extend(paths.filter(|path| path.extension().is_some_and(|end| end == "md")));
    }
    found
}

/// Command lines of consort in a document: lines of code, and code in sentences.
fn command_lines(document: &str) -> Vec<String> {
    let (mut found, mut text) = (Vec::new(), String::new());
    let mut is_fenced = false;
    for line in document.lines() {
        if line.starts_with("```") {
            is_fenced = !is_fenced;
        } else if is_fenced || line.starts_with("    ") {
            // A comment may name another command, and a picture has several beside each other.
            let parts = line.split("  ").flat_map(|part| part.split(": "));
            found.extend(parts.map(|part| part.trim().trim_start_matches("sudo ").to_owned()));
        } else {
            text.push_str(line);
            text.push(' ');
        }
    }
    found.extend(text.split('`').skip(1).step_by(2).map(|span| span.trim().to_owned()));
    found.retain(|line| line.starts_with("consort "));
    found
}

/// The words of a command line that no command or option of its name is there for.
fn unknown(line: &str) -> Vec<String> {
    let definition = consort::command();
    let mut commands = vec![&definition];
    let mut unknown = Vec::new();
    let line = without_quoted(line);
    let mut words = line.split_whitespace().skip(1);
    while let Some(word) = words.next() {
        let word = word.trim_start_matches('[').trim_end_matches([']', ',']);
        let command = *commands.last().expect("the definition");
        if matches!(word, "--" | "|" | "&&" | ">") {
            break;
        }
        if word.starts_with('-') && word != "-" {
            match option(&commands, word) {
                Some(takes_value) if takes_value && !word.contains('=') => drop(words.next()),
                Some(_) => {}
                None => unknown.push(word.to_owned()),
            }
        } else if command.has_subcommands() {
            // Several may be named at once, and nothing after them.
            let mut found = Vec::new();
            for name in word.split('|') {
                let subcommand = command.find_subcommand(name);
                unknown.extend(subcommand.is_none().then(|| name.to_owned()));
                found.extend(subcommand);
            }
            match found[..] {
                [one] => commands.push(one),
                _ => break,
            }
        }
    }
    unknown
}

/// Quoted words are for other programs, or names.
fn without_quoted(line: &str) -> String {
    let mut quote = None;
    let keep = |letter: &char| {
        match quote {
            Some(open) if open == *letter => quote = None,
            None if ['\'', '"'].contains(letter) => quote = Some(*letter),
            None => return true,
            Some(_) => {}
        }
        false
    };
    line.chars().filter(keep).collect()
}

/// Whether an option takes a value; `None`: none of the commands has it.
fn option(commands: &[&Command], word: &str) -> Option<bool> {
    let name = word.split('=').next().unwrap_or_default();
    let mut arguments = commands.iter().flat_map(|command| command.get_arguments());
    let found = match name.strip_prefix("--") {
        Some("help" | "version") => return Some(false),
        Some(long) => arguments.find(|argument| {
            argument.get_long_and_visible_aliases().is_some_and(|all| all.contains(&long))
        }),
        None => {
            let short = name.chars().nth(1)?;
            // A value, such as -6dB.
            if short.is_ascii_digit() {
                return Some(false);
            }
            arguments.find(|argument| {
                argument.get_short_and_visible_aliases().is_some_and(|all| all.contains(&short))
            })
        }
    };
    found.map(|argument| argument.get_action().takes_values())
}

#[test]
fn documents_name_commands_and_options_that_there_are() {
    let mut count = 0;
    for path in documents() {
        let document = fs::read_to_string(&path).expect("text");
        for line in command_lines(&document) {
            assert_eq!(unknown(&line), [""; 0], "{}: {line}", path.display());
            count += 1;
        }
    }
    assert!(count > 150, "only {count} command lines were found");
}

#[test]
fn documents_name_the_oldest_rust_that_builds() {
    let expected = concat!("Rust ", env!("CARGO_PKG_RUST_VERSION"), " or later");
    for document in ["README.md", "docs/needs.md"] {
        let text = fs::read_to_string(root().join(document)).expect("text");
        assert!(text.contains(expected), "{document}: {expected}");
    }
}

#[test]
fn help_names_commands_and_options_that_there_are() {
    let definition = consort::command();
    let mut open = vec![&definition];
    let mut count = 0;
    while let Some(command) = open.pop() {
        open.extend(command.get_subcommands());
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let lines = help.lines().map(|line| line.trim().trim_start_matches("sudo "));
        for line in lines.filter(|line| line.starts_with("consort ")) {
            // What it does may stand beside it.
            let line = line.split("  ").next().unwrap_or_default();
            assert_eq!(unknown(line), [""; 0], "help of {}: {line}", command.get_name());
            count += 1;
        }
    }
    assert!(count > 50, "only {count} examples were found");
}

#[test]
fn words_that_are_no_command_and_no_option_are_found() {
    let document = "A `consort\nplai FILE` and `consortium`.\n\n    sudo consort run --loops  # it";
    let lines = command_lines(document);
    assert_eq!(lines, ["consort run --loops", "consort plai FILE"]);
    let words: Vec<String> = lines.iter().flat_map(|line| unknown(line)).collect();
    assert_eq!(words, ["--loops", "plai"]);
    for line in [
        "consort volume mpv -6dB",
        "consort -n studio device list|add",
        "consort exec -- fluidsynth --nonsense",
        "consort run [--loop] --quantum=64",
        "consort latency report --system \"run --nonsense\"",
    ] {
        assert_eq!(unknown(line), [""; 0], "{line}");
    }
}
