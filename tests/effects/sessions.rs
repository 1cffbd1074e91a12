//! Sessions: what clients answer, and the names that are kept for them.

use harness::{Server, c_program};

#[test]
fn a_session_manager_gets_the_clients_answers() {
    let server = Server::timer(256);
    let program = c_program("effects/sessions.c");
    let session = server.directory().join("session");
    let ended = server.run(&program, &[&session.to_string_lossy()]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(session.join("saver").is_dir());
    assert!(!session.join("manager").exists(), "it was not asked");
}
