//! `consort doctor` on a machine with a server, another project's server, and two libraries.

use harness::{Program, Server, binary, copy_program, eventually};
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

#[test]
fn the_doctor_says_who_listens_for_programs_of_pulseaudio() {
    let server = Server::start(&[]);
    let pulse = || about(&examine(&server, None), "pulse");
    assert_eq!(pulse().0, "note");
    let front_end = server.spawn_consort(&["pulse"]);
    let expected = format!("here, through process {}", front_end.id());
    eventually("it listens", || pulse().1.contains(&expected).then_some(()));
    front_end.terminate().expect_success();
    let path = server.directory().join("pulse/native");
    let _ = std::fs::remove_file(&path);
    let _listener = std::os::unix::net::UnixListener::bind(&path).expect("nobody listens there");
    let (verdict, text) = pulse();
    assert_eq!(verdict, "note");
    assert!(text.contains(&format!("(process {})", std::process::id())), "{text}");
}
