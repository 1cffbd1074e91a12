//! `consort doctor` on a machine with a server, another project's server, and two libraries.

use harness::{Program, Server, binary, copy_program};
use serde_json::Value;

/// Verdict and text about a subject, in what `consort doctor --json` prints.
fn about(document: &Value, subject: &str) -> (String, String) {
    let list = document.as_array().expect("a list");
    let found = list.iter().find(|finding| finding["subject"] == subject);
    let text = |key: &str| found.and_then(|found| found[key].as_str()).expect(key).to_owned();
    (text("verdict"), text("found"))
}

/// What it finds, with these libraries first for the loader.
fn examine(server: &Server, libraries: Option<&str>) -> Value {
    let mut command = server.command(&binary("consort").to_string_lossy());
    command.args(["doctor", "--json"]);
    if let Some(libraries) = libraries {
        command.env("LD_LIBRARY_PATH", libraries);
    }
    let printed = Program::start(command).finish().stdout;
    serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"))
}

#[test]
fn the_doctor_names_the_server_and_whose_library_programs_get() {
    let server = Server::start(&[]);
    let found = examine(&server, None);
    let (verdict, text) = about(&found, "libjack");
    assert_eq!(verdict, "good", "{text}");
    let (_, text) = about(&found, "server");
    assert!(text.contains(&format!("process {}", server.status().process)), "{text}");
    let (verdict, text) = about(&examine(&server, Some("/usr/lib/x86_64-linux-gnu")), "libjack");
    assert_eq!(verdict, "wrong", "{text}");
}

#[test]
fn the_doctor_names_another_projects_server() {
    let server = Server::start(&[]);
    let program = server.directory().join("pulseaudio");
    copy_program("/bin/sleep", &program);
    let mut command = server.command(&program.to_string_lossy());
    command.arg("600");
    let other = Program::start(command);
    let expected = format!("pulseaudio (process {})", other.id());
    let (verdict, text) = about(&examine(&server, None), "servers");
    assert_eq!(verdict, "note");
    assert!(text.contains(&expected), "{text}");
}
