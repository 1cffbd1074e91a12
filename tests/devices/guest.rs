//! What is tested inside the virtual machine. Card 0 is HDA, 1 a loopback, 2 a dummy, 9 USB.

mod asleep;
mod beside_pipewire;
mod cold_start;
mod elements;
mod far;
mod midi;
mod quick;
mod realtime_group;
mod second_card;
mod streams;
mod thorough;

use std::process::Command;
use std::time::Duration;

use harness::{Program, Server, eventually};

/// Like [`eventually`], but polls less often: starting a program takes this machine long, and
/// sleeping takes nothing.
fn awaited<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    eventually(what, || {
        found().or_else(|| {
            std::thread::sleep(Duration::from_millis(100));
            None
        })
    })
}

/// Starts a server on a card.
fn server_on(device: &str, options: &[&str]) -> Server {
    Server::start(&[&["--driver", "alsa", "--device", device], options].concat())
}

/// The server's driver, in words.
fn driver(server: &Server) -> String {
    server.status().driver
}

/// (xruns, cycles) so far.
fn xruns_and_cycles(server: &Server) -> (u64, u64) {
    let status = server.status();
    (status.xruns.into(), status.cycles)
}

/// The state of a device of the graph, as `consort device list` reports it.
fn device_state(server: &Server, name: &str) -> Option<String> {
    let listed = server.consort(&["device", "list"]).expect_success().stdout;
    let line = listed.lines().find(|line| line.trim_start().starts_with(&format!("{name} ")));
    line.map(str::to_owned)
}

/// The number before a word of a device's state.
fn count(state: &str, word: &str) -> u64 {
    let words: Vec<&str> =
        state.split_whitespace().map(|word| word.trim_end_matches(',')).collect();
    let at = words
        .iter()
        .position(|found| *found == word)
        .unwrap_or_else(|| panic!("no {word}: {state}"));
    words[at - 1].parse().unwrap_or_else(|_| panic!("no number of {word}: {state}"))
}

/// Passes a command to the machine's monitor.
fn monitor(command: &[&str]) {
    let status = Command::new("vm-monitor").args(command).status().expect("inside the machine");
    assert!(status.success(), "{command:?}");
}

/// Whether the kernel has a card of this number.
fn has_card(number: u32) -> bool {
    let cards = std::fs::read_to_string("/proc/asound/cards").expect("a kernel with sound");
    cards.lines().any(|line| line.trim_start().starts_with(&format!("{number} [")))
}

/// Pulls a card out.
fn pull(device: &str, number: u32) {
    monitor(&["device_del", device]);
    awaited("the card is gone", || (!has_card(number)).then_some(()));
}

/// Runs a program that is independent of the server, to its end.
fn run(program: &str, arguments: &[&str]) -> harness::Finished {
    let mut command = Command::new(program);
    command.args(arguments);
    Program::start(command).finish()
}
