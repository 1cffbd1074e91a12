//! What a shell completes, asked of the shell.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};

/// A command that users see.
struct Shown {
    /// Its words: `consort device add`.
    words: String,
    /// Its options, from `--help` on.
    options: BTreeSet<String>,
    /// The commands below it, and its help.
    commands: BTreeSet<String>,
}

fn shown() -> Vec<Shown> {
    let mut definition = consort::command();
    definition.build();
    let (mut found, mut open) = (Vec::new(), vec![("consort".to_owned(), &definition)]);
    while let Some((words, command)) = open.pop() {
        let below = || command.get_subcommands().filter(|command| !command.is_hide_set());
        let deeper = below().filter(|command| command.get_name() != "help");
        open.extend(deeper.map(|command| (format!("{words} {}", command.get_name()), command)));
        let options = command.get_arguments().filter(|argument| !argument.is_hide_set());
        let options = options.filter_map(|option| Some(format!("--{}", option.get_long()?)));
        let commands = below().map(|command| command.get_name().to_owned()).collect();
        found.push(Shown { words, options: options.collect(), commands });
    }
    found
}

#[test]
fn bash_completes_the_commands_and_options_that_users_see() {
    let consort = env!("CARGO_BIN_EXE_consort");
    let shown = shown();
    assert!(shown.len() > 30, "{}", shown.len());
    let mut script = format!("source <({consort} completions bash)\n");
    for begin in ["--", "''"] {
        for Shown { words, .. } in &shown {
            let count = words.split(' ').count();
            script.push_str(&format!(
                "COMP_WORDS=({words} {begin}); COMP_CWORD={count}; COMPREPLY=()\n\
                 _consort consort {begin} {words}; echo \"${{COMPREPLY[*]}}\"\n"
            ));
        }
    }
    let mut bash = Command::new("bash")
        .args(["--norc", "-s"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("bash runs");
    let mut input = bash.stdin.take().expect("a pipe");
    input.write_all(script.as_bytes()).expect("it reads");
    drop(input);
    let completed = bash.wait_with_output().expect("it ends");
    let completed = String::from_utf8(completed.stdout).expect("text");
    let lines: Vec<BTreeSet<String>> =
        completed.lines().map(|line| line.split(' ').map(str::to_owned).collect()).collect();
    let (options, all) = lines.split_at(shown.len());
    for (expected, (options, all)) in shown.iter().zip(options.iter().zip(all)) {
        assert_eq!(*options, expected.options, "{}", expected.words);
        let is_name = |word: &&String| word.starts_with(|c: char| c.is_alphabetic());
        let commands: BTreeSet<String> = all.iter().filter(is_name).cloned().collect();
        // Other words are values of what it takes.
        if !expected.commands.is_empty() {
            assert_eq!(commands, expected.commands, "{}", expected.words);
        }
    }
}
