//! What this release cannot do yet.

use std::path::Path;

use harness::{Server, c_program};

use crate::stage::json;

#[test]
fn what_comes_later_answers_its_documented_error_to_an_active_client() {
    let server = Server::timer(256);
    let before = (server.lsp(&["-c", "-p", "-A", "-t"]), json(&server, &["status"])["quantum"].clone());
    let program = server.directory().join("later");
    c_program(Path::new("effects/later.c"), &program);
    let ended = server.run(&program.to_string_lossy(), &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let after = (server.lsp(&["-c", "-p", "-A", "-t"]), json(&server, &["status"])["quantum"].clone());
    assert_eq!(after, before);
}
