//! Descriptors that are costly to examine or to close: only threads that nobody waits for pay.

use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use harness::{Program, Server, c_program, eventually, not_run};
use proto::encode;
use proto::request::{Numbered, Reply, Request};
use proto::stream::{Direction, NewStream, StreamRequest};
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, Signal, pidfd_getfd, pidfd_open};

use crate::streams::{self, begin, granted, opened, stereo};
use crate::wire::{ByHand, Wire, assert_says, in_modes, refused, server, with_bystanders};

/// To give this back takes much longer than to refuse it.
const MEMORY_BYTES: u64 = 256 << 20;
/// The first fifteen letters of `consort-disposal`.
const CLOSING_THREADS: &str = "consort-disposa";
/// They come and go.
const SEALING_THREADS: &str = "consort-sealing";

/// The CPU time of a server's threads so far, ns: of those that close descriptors, and of others.
fn cpu_times(server: &mut Server) -> [u64; 2] {
    let threads = format!("/proc/{}/task", server.program().id());
    let mut times = [0; 2];
    for thread in std::fs::read_dir(threads).expect("the server runs") {
        let thread = thread.expect("a thread").path();
        let of_thread = |file| std::fs::read_to_string(thread.join(file)).unwrap_or_default();
        let (name, time) = (of_thread("comm"), of_thread("schedstat"));
        let (name, time) = (name.trim(), time.split(' ').next().and_then(|time| time.parse().ok()));
        if !name.is_empty() && name != SEALING_THREADS {
            let time: Option<u64> = time;
            times[usize::from(name != CLOSING_THREADS)] +=
                time.expect("the kernel accounts for threads");
        }
    }
    times
}

/// Sends the server the last descriptor of some memory, and returns once it is given back.
fn send_memory(server: &mut Server, send: impl FnOnce(&[BorrowedFd<'_>])) {
    let memory = memfd_create("bulk", MemfdFlags::CLOEXEC).expect("memory");
    fallocate(&memory, FallocateFlags::empty(), 0, MEMORY_BYTES).expect("memory");
    let (mut end, after) = std::io::pipe().expect("a pipe");
    server.program().stop();
    // No request has three. They are closed one after the other.
    send(&[memory.as_fd(), after.as_fd(), after.as_fd()]);
    drop((memory, after));
    server.program().signal(Signal::CONT);
    assert_eq!(end.read(&mut [0]).expect("it ends"), 0);
}

#[test]
fn memory_that_a_program_sends_is_given_back_by_threads_that_nobody_waits_for() {
    let mut server = server();
    let numbered = |message| encode(&Numbered { number: 1, message });
    let player = Wire::observer(&server);
    let [observer, hello] = [Wire::observer(&server), Wire::connect(&server)];
    let [client, answering] = ["client", "answering"].map(|name| ByHand::active(&server, name));
    let begin = Request::Stream(StreamRequest::Begin { stream: 1, position: 0 });
    let mut expect_others_to_pay_less = |what: &str, send: &dyn Fn(&[BorrowedFd<'_>])| {
        let before = cpu_times(&mut server);
        send_memory(&mut server, send);
        let after = cpu_times(&mut server);
        let [closing_ns, others_ns] = [0, 1].map(|index| after[index] - before[index]);
        assert!(closing_ns > others_ns, "{what}: {closing_ns} ns, and {others_ns} of others");
    };
    expect_others_to_pay_less("a hello", &|all| hello.send(b"not a hello", all));
    let status = numbered(Request::Status);
    expect_others_to_pay_less("a status", &|all| observer.send(&status, all));
    let slab = numbered(Request::AddSlab);
    expect_others_to_pay_less("a slab", &|all| client.wire.send(&slab, all));
    let begin = numbered(begin);
    expect_others_to_pay_less("a stream", &|all| player.send(&begin, all));
    expect_others_to_pay_less("an answer", &|all| answering.send_event_answer(b"none", all));
}

/// A file of which nothing is answered (`victims/silent_file.c`).
struct SilentFile {
    // First: when its file system has ended, its close ends.
    owner: Program,
    file: OwnedFd,
}

impl SilentFile {
    /// Opens one; `None`: nobody may mount a file system of FUSE here.
    fn open(server: &Server) -> Option<Self> {
        let mut owner = Program::start(server.command(&c_program("victims/silent_file.c")));
        let line = eventually("there is a file", || {
            let line = owner.stdout().strip_suffix('\n').map(str::to_owned);
            assert!(line.is_some() || owner.is_running(), "{}", owner.stderr());
            line
        });
        let number = line.parse().ok()?;
        let process = Pid::from_raw(owner.id().try_into().expect("an id")).expect("an id");
        let process = pidfd_open(process, PidfdFlags::empty()).expect("it runs");
        let file = pidfd_getfd(process, number, PidfdGetfdFlags::empty()).expect("a child's file");
        Some(Self { owner, file })
    }

    /// Expects the server to answer others while the file system is there and silent.
    fn expect_others_answered(&mut self, server: &Server) {
        for _ in 0..10 {
            let mut other = Wire::observer(server);
            assert!(matches!(other.ask(Request::Status), Reply::Status(_)));
        }
        assert!(self.owner.is_running(), "the server answered when the file system had ended");
    }
}

/// Has `send` send a silent file; others are answered.
fn expect_no_delay(server: &Server, send: impl Fn(BorrowedFd<'_>)) {
    let Some(mut silent) = SilentFile::open(server) else {
        return not_run("nobody may mount a file system of FUSE here");
    };
    send(silent.file.as_fd());
    silent.expect_others_answered(server);
}

#[test]
fn a_silent_file_before_any_hello_delays_no_answer() {
    in_modes(|server| {
        expect_no_delay(server, |file| {
            let mut refused = Wire::connect(server);
            refused.send(b"not a hello", &[file]);
            assert_says("a hello", &refused.sent_away(), &["must not carry a descriptor"]);
            // The server closes this one, with a packet in it that it never receives.
            let unread = Wire::connect(server);
            unread.send(b"not a hello", &[]);
            let _ = unread.try_send(b"never received", &[file]);
        });
    });
}

#[test]
fn a_silent_file_in_place_of_a_slab_delays_no_answer() {
    in_modes(|server| {
        expect_no_delay(server, |file| {
            let mut client = ByHand::open(server, "bad");
            let text = client.refusal_with(Request::AddSlab, &[file]);
            assert_says("a slab", &text, &["not a memfd"]);
            client.wire.assert_closed();
        });
    });
}

fn expect_no_stream(mut wire: Wire, stream: u32, file: BorrowedFd<'_>) {
    assert_says("a stream", &refused(begin(&mut wire, stream, &[file])), &["not a memfd"]);
    wire.assert_closed();
}

#[test]
fn a_silent_file_in_place_of_a_streams_memory_delays_no_answer() {
    with_bystanders(streams::server, |server| {
        expect_no_delay(server, |file| {
            let mut player = Wire::observer(server);
            let (stream, _) = opened(&mut player);
            expect_no_stream(player, stream, file);
            let mut recorder = Wire::observer(server);
            let heard = NewStream { direction: Direction::Monitor, ..stereo() };
            let (stream, _) = granted(&mut recorder, heard);
            expect_no_stream(recorder, stream, file);
        });
    });
}
