//! The next server is of another release, as after an update: a front end cannot speak with it, and
//! makes room for one that can.

use std::fs;

use harness::{OtherRelease, Program, Server, binary, eventually};

use crate::beside_server::{
    LONG, await_front_end, await_no_process, await_socket, listener, options, run,
};
use crate::{Scene, listens_at, path};

#[test]
fn a_front_end_that_a_server_of_another_release_refuses_ends_with_the_reason() {
    for (begin, words) in OtherRelease::WAYS {
        let Scene { front_end, mut server } =
            Scene::with(&["--driver", "timer", "--quantum", "1024", "--grace", "600000"]);
        let listens = listener(&server);
        server.kill();
        let _other = begin(server.directory());
        let ended = front_end.finish();
        assert_eq!(ended.code, Some(1), "a failure, after which a service manager starts it again");
        assert!(ended.stderr.contains("is of another release than this front end"), "{ended:?}");
        assert!(ended.stderr.contains(words), "{ended:?}");
        assert_ne!(listens.finish().code, Some(0), "its connection has ended");
    }
}

#[test]
fn a_server_starts_its_own_front_end_after_one_that_another_release_has_ended() {
    let mut server = Server::start(&options(&LONG));
    await_socket(&server);
    let first = await_front_end(&mut server);
    let listens = listener(&server);
    server.kill();
    let other = OtherRelease::of_another_protocol(server.directory());
    await_no_process(first);
    listens.finish();
    drop(other);
    server.start_again();
    eventually("the next one serves", || {
        (run(server.directory(), "pactl", &["info"]).code == Some(0)).then_some(())
    });
    assert_ne!(await_front_end(&mut server), first);
}

/// A service manager that listens for programs, and starts the front end with the first one.
fn activated(server: &Server) -> Program {
    let socket = server.directory().join("pulse/native");
    fs::create_dir_all(socket.parent().expect("a directory")).expect("a directory");
    let mut command = server.command("systemd-socket-activate");
    for variable in ["XDG_RUNTIME_DIR", "HOME", "JACK_DEFAULT_SERVER", "LD_LIBRARY_PATH"] {
        command.args(["-E", variable]);
    }
    command.arg("--listen").arg(&socket).arg(binary("consort")).arg("pulse");
    let manager = Program::start(command);
    eventually("it listens", || listens_at(&socket).then_some(()));
    run(server.directory(), "pactl", &["info"]).expect_success();
    manager
}

#[test]
fn a_front_end_of_a_service_manager_ends_with_its_server_if_no_program_is_connected() {
    let mut server = Server::start(&options(&[]));
    let front_end = activated(&server);
    server.kill();
    front_end.finish().expect_success();
    let socket = server.directory().join("pulse/native");
    assert!(socket.exists(), "{} is the manager's", path(&socket));
}

#[test]
fn a_front_end_of_a_service_manager_outlives_its_server_if_a_program_is_connected() {
    let mut server = Server::start(&options(&["--grace", "0"]));
    let mut front_end = activated(&server);
    let listens = listener(&server);
    server.kill();
    server.start_again();
    eventually("it has found the next server", || {
        let sinks = run(server.directory(), "pactl", &["list", "short", "sinks"]);
        sinks.stdout.contains("consort").then_some(())
    });
    assert!(front_end.is_running());
    drop(listens);
}
