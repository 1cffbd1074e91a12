//! A server of another release, as programs of this one see it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use proto::MAX_PACKET_BYTES;
use proto::hello::{Welcome, encode_first};
use proto::request::RequestError;
use sys::lock::LockFile;
use sys::runtime_directory::lock_path;
use sys::socket::{Connection, Listener};

use crate::server::NAME;

/// How long a program may take to send its first packet, ns.
const PATIENCE_NS: u64 = 5_000_000_000;

/// What a server answers whose layout of shared memory is another one.
const LAYOUT: &str =
    "the program uses memory layout 1, this server 2: restart the older of the two";

/// Begins in the directory of a server that has ended.
type Begin = fn(&Path) -> OtherRelease;

/// Listens where a server did that has ended, and refuses all programs until it is dropped.
#[derive(Debug)]
pub struct OtherRelease {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl OtherRelease {
    /// The ways in which releases differ, each with words of the error that programs get.
    pub const WAYS: [(Begin, &str); 2] = [
        (Self::of_another_layout, LAYOUT),
        (Self::of_another_protocol, "version 99 of the protocol"),
    ];

    /// A server that refuses the memory layout of programs.
    pub fn of_another_layout(directory: &Path) -> Self {
        let refusal = Welcome::Refused(RequestError::Version(LAYOUT.to_owned()));
        Self::answering(directory, encode_first(&refusal))
    }

    /// A server whose messages programs cannot decode.
    pub fn of_another_protocol(directory: &Path) -> Self {
        let refusal = Welcome::Refused(RequestError::Version(String::new()));
        let mut packet = encode_first(&refusal);
        packet[8..12].copy_from_slice(&99_u32.to_le_bytes());
        Self::answering(directory, packet)
    }

    fn answering(directory: &Path, packet: Vec<u8>) -> Self {
        let directory = directory.join("consort").join(NAME);
        let listener = Listener::bind(&directory.join("control"));
        let listener = listener.expect("the server's socket is free");
        let lock = LockFile::acquire(&lock_path(&directory)).expect("no server runs");
        let ends = Arc::new(AtomicBool::new(false));
        let of_thread = Arc::clone(&ends);
        let thread = std::thread::spawn(move || {
            let _serving = lock.serve().expect("a lock");
            while !of_thread.load(Ordering::Acquire) {
                match listener.try_accept() {
                    Ok(program) => refuse(&program, &packet),
                    Err(_) => std::thread::sleep(Duration::from_millis(10)),
                }
            }
        });
        Self { ends, thread: Some(thread) }
    }
}

fn refuse(program: &Connection, packet: &[u8]) {
    let deadline_ns = Some(sys::clock::now_ns() + PATIENCE_NS);
    let mut hello = vec![0; MAX_PACKET_BYTES];
    // One that has gone is not answered.
    if program.receive_until(&mut hello, deadline_ns).is_ok() {
        let _ = program.send_until(packet, &[], deadline_ns);
    }
}

impl Drop for OtherRelease {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
