//! A client in the child of the process that opened it.

use harness::{Server, c_program};

#[test]
fn calls_of_a_forked_child_fail_without_effect_on_the_parent() {
    let server = Server::timer(256);
    let ended = server.run(&c_program("effects/forked.c"), &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}
