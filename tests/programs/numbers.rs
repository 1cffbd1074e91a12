//! Small tools that print or change a setting of the server, or wait for it.

use std::path::Path;

use rustix::process::Signal;

use harness::{Program, Server, Sound, Stretch, command_in, eventually, in_three_attempts, noise};

/// What a tool prints, without the space around it.
fn printed_by(server: &Server, tool: &str) -> String {
    server.run(tool, &[]).expect_success().stdout.trim().to_owned()
}

#[test]
fn jack_samplerate_and_jack_bufsize_print_the_servers_settings() {
    for (rate_hz, quantum) in [("44100", "64"), ("96000", "333"), ("48000", "8192")] {
        // The last one's first cycle comes only after 170 ms.
        let server = Server::start(&["--rate", rate_hz, "--quantum", quantum]);
        assert_eq!(printed_by(&server, "jack_samplerate"), rate_hz);
        assert_eq!(printed_by(&server, "jack_bufsize"), quantum);
    }
}

#[test]
fn a_running_client_sounds_on_after_jack_bufsize() {
    const FRAMES: usize = 4 * 48_000;
    let sent = noise(1, FRAMES);
    in_three_attempts(|| {
        let server =
            Server::playing(&Sound::of(48_000, std::slice::from_ref(&sent)), &["--quantum", "256"]);
        let mut client = server.spawn(env!("CARGO_BIN_EXE_jack-crate-through"), &[]);
        server.await_active("through");
        server.run("jack_connect", &["through:out", "system:playback_1"]).expect_success();
        server.run("jack_connect", &["system:capture_1", "through:in"]).expect_success();
        server.run("jack_bufsize", &["512"]).expect_success();
        assert_eq!(printed_by(&server, "jack_bufsize"), "512");
        eventually("the client is notified", || {
            client.stdout().contains("quantum 512\n").then_some(())
        });
        let recorded = server.played();
        let end = FRAMES - 48_000;
        if recorded.channels[0].get(end..) == Some(&sent[end..]) {
            return Ok(());
        }
        Err(format!("{:?} of {FRAMES}", Stretch::longest(&sent, &recorded.channels[0])))
    });
}

#[test]
fn jack_wait_waits_until_a_server_comes_or_goes() {
    let directory = tempfile::TempDir::with_prefix("consort-test-").expect("a temporary directory");
    let wait = |directory: &Path, option: &str| {
        let mut command = command_in(directory, Path::new("jack_wait"));
        command.args([option, "-t", "60"]);
        Program::start(command)
    };
    let place = directory.path().to_owned();
    let absent = wait(&place, "-c").finish();
    assert_eq!(absent.expect_success().stdout, "not running\n");

    let mut coming = wait(&place, "-w");
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(coming.is_running(), "there is nothing yet: {}", coming.stdout());
    let mut server = Server::start_in(directory, &[]);
    assert_eq!(coming.finish().expect_success().stdout, "server is available\n");
    assert_eq!(wait(&place, "-c").finish().expect_success().stdout, "running\n");

    let mut going = wait(&place, "-q");
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(going.is_running(), "the server runs: {}", going.stdout());
    // Only the process ends: the directory must stay until jack_wait has seen it.
    server.program().signal(Signal::TERM);
    going.finish().expect_success();
}

#[test]
fn jack_cpu_load_tells_the_load_that_a_client_makes() {
    let server = Server::timer(1024);
    let mut load = server.spawn("jack_cpu_load", &[]);
    let _busy = server.spawn("jack_cpu", &["-c", "50"]);
    let read = |printed: &str| -> Vec<f32> {
        let numbers = printed.lines().filter_map(|line| line.strip_prefix("jack DSP load "));
        numbers.filter_map(|number| number.parse().ok()).collect()
    };
    // Its first second may lie before the client; the load is averaged.
    eventually("half the time is spent", || {
        read(load.stdout()).iter().any(|load| *load > 40.0).then_some(())
    });
    let loads = read(load.stdout());
    assert!(loads.iter().all(|load| (0.0..=100.0).contains(load)), "{loads:?}");
}
