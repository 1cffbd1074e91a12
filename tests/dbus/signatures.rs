//! The interfaces are those of jackdbus.

use std::process::Command;

use crate::bus::{Bus, on_bus};

/// Methods and signals of the service's own interfaces: interface, kind, name, types of arguments
/// and answer.
fn members(bus: &Bus) -> Vec<String> {
    let listed = bus.run(
        "busctl",
        &[
            "--user",
            "--no-pager",
            "--no-legend",
            "introspect",
            "org.jackaudio.service",
            "/org/jackaudio/Controller",
        ],
    );
    let mut members = Vec::new();
    let mut interface = String::new();
    for line in listed.expect_success().stdout.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [name, "interface", ..] => interface = name.to_owned(),
            [name, kind, arguments, answer, ..] if interface.starts_with("org.jackaudio.") => {
                members.push(format!("{interface}{name} {kind} {arguments} {answer}"));
            }
            _ => {}
        }
    }
    members.sort();
    members
}

#[test]
fn every_method_of_jackdbus_is_there_with_the_same_types() {
    let ours = members(&Bus::start());
    let theirs = members(&Bus::with(|directory| {
        let mut command: Command = on_bus(directory, "/usr/bin/jackdbus".as_ref());
        // With Debian's own library, since the other implementation is asked.
        command.env_remove("LD_LIBRARY_PATH").arg("auto");
        command
    }));
    assert!(theirs.len() > 40, "{theirs:?}");
    let missing: Vec<&String> = theirs.iter().filter(|member| !ours.contains(member)).collect();
    assert!(missing.is_empty(), "missing: {missing:#?}\nthere: {ours:#?}");
    let more: Vec<&String> = ours.iter().filter(|member| !theirs.contains(member)).collect();
    // Methods that jack_control calls and jackdbus does not announce.
    assert_eq!(
        more,
        [
            "org.jackaudio.JackControl.Exit method - -",
            "org.jackaudio.JackControl.IsManuallyActivated method - b"
        ]
    );
}
