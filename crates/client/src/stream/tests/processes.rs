//! A program in a process of its own. Each process opens the other's memory through /proc, as if it
//! had received the descriptors.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Child, ChildStdout, Command, Stdio};

use rt::shm::{Acknowledgement, RingShape};
use rt::stream::Wish;
use sys::futex::Futex;
use sys::memory::{OwnRing, Shared};

use super::device::Player;
use super::{in_a_minute, planes, shape, woven};
use crate::stream::{Samples, StreamWriter};

/// Set in the program's process.
const PROGRAM: &str = "CONSORT_TEST_STREAM_PROGRAM";
const LINE: &str = "the stream's ring is at ";

fn ring_shape() -> RingShape {
    shape(2, 4096)
}

fn open(path: &str) -> OwnedFd {
    File::open(path).expect("memory of the other process").into()
}

fn path(descriptor: &impl AsRawFd) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), descriptor.as_raw_fd())
}

/// In the program's process: makes the stream's ring, names it, and returns the writer once the
/// server has named its page. `None` in the server's process.
fn program() -> Option<StreamWriter> {
    std::env::var_os(PROGRAM)?;
    let ring = OwnRing::create(ring_shape()).expect("a ring");
    println!("\n{LINE}{}", path(&ring.segment().fd()));
    let mut page = String::new();
    std::io::stdin().read_line(&mut page).expect("a path");
    let page = Shared::receive(open(page.trim_end())).expect("the server's page");
    Some(StreamWriter::new(ring, page))
}

/// A program's process, and what it needs as long as it runs: the pipe that it writes to, and the
/// page that it opens.
struct Program {
    child: Child,
    _output: BufReader<ChildStdout>,
    _page: OwnedFd,
}

impl Drop for Program {
    fn drop(&mut self) {
        // Fails if it has ended, as it should have.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts the test `name` as the program, and returns the device that plays its stream.
fn start(name: &str) -> (Program, Player) {
    let name = format!("stream::tests::processes::{name}");
    let mut child = Command::new(std::env::current_exe().expect("this test"))
        .args([&name, "--exact", "--nocapture", "--test-threads=1"])
        .env(PROGRAM, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process");
    let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
    let named =
        output.by_ref().lines().find_map(|line| line.ok()?.strip_prefix(LINE).map(str::to_owned));
    let ring = named.expect("the program names its ring");
    let (player, page) = Player::receive(ring_shape(), open(&ring));
    let input = child.stdin.as_mut().expect("a pipe");
    writeln!(input, "{}", path(&page)).expect("the program reads it");
    (Program { child, _output: output, _page: page }, player)
}

#[test]
fn frames_and_wishes_reach_a_device_in_another_process() {
    const FRAMES: u64 = 100_000;
    if let Some(mut writer) = program() {
        while writer.position() < FRAMES {
            let frames = (FRAMES - writer.position()).min(1000) as usize;
            writer.write(Samples::Interleaved(&woven(writer.position(), frames, 2)));
            std::thread::yield_now();
        }
        let wish = writer.control_mut().wish(Wish::Drain { end: FRAMES }).unwrap();
        let outcome = writer.control().await_acknowledgement(wish, in_a_minute());
        assert_eq!(outcome, Some(Acknowledgement::At(FRAMES)));
        return;
    }
    let (mut program, mut player) = start("frames_and_wishes_reach_a_device_in_another_process");
    while player.position < FRAMES {
        let position = player.position;
        let played = player.play(700);
        assert_eq!(played, planes(position, played[0].len(), 2), "from {position} on");
        std::thread::yield_now();
    }
    let read = loop {
        match player.stream.next_wish() {
            Some(wish) => break wish,
            None => std::thread::yield_now(),
        }
    };
    assert_eq!(read, (1, Some(Wish::Drain { end: FRAMES })));
    player.stream.acknowledge(1, Some(FRAMES));
    player.stream.page().kick(&Futex);
    assert!(program.child.wait().unwrap().success(), "the program was told when");
    assert_eq!(player.stream.faults(), 0);
}

#[test]
fn what_a_killed_program_has_published_is_whole() {
    if let Some(mut writer) = program() {
        loop {
            writer.write(Samples::Interleaved(&woven(writer.position(), 333, 2)));
        }
    }
    let (mut program, mut player) = start("what_a_killed_program_has_published_is_whole");
    let mut killed = false;
    loop {
        let position = player.position;
        let played = player.play(500);
        assert_eq!(played, planes(position, played[0].len(), 2), "from {position} on");
        if killed && played[0].is_empty() {
            break;
        }
        if !killed && player.position > 20_000 {
            program.child.kill().unwrap();
            program.child.wait().unwrap();
            killed = true;
        }
    }
    assert!(player.position > 20_000 && player.stream.faults() == 0);
}
