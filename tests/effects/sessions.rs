//! Sessions: what clients answer, and the names that are kept for them.

use std::path::Path;

use harness::{Server, c_program};

#[test]
fn a_session_manager_gets_the_clients_answers_and_keeps_names_for_uuids() {
    let server = Server::timer(256);
    let program = server.directory().join("sessions");
    c_program(Path::new("effects/sessions.c"), &program);
    let session = server.directory().join("session");
    let ended = server.run(&program.to_string_lossy(), &[&session.to_string_lossy()]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(session.join("saver").is_dir());
    assert!(!session.join("manager").exists(), "it was not asked");
}
