//! The memory of a server with its front end, as the kernel counts it (proc_pid_smaps(5)).

use std::path::Path;

use harness::{Program, Server, binary, command_in, eventually};

use crate::beside_server::{await_front_end, await_socket};

/// A mapping of a process.
struct Mapped {
    file: String,
    is_code: bool,
    bytes_kib: u64,
    resident_kib: u64,
    /// Of memory that several processes have, each has a part.
    part_kib: u64,
    is_locked: bool,
}

fn mappings(process: u32) -> Vec<Mapped> {
    let maps = std::fs::read_to_string(format!("/proc/{process}/smaps")).expect("a process");
    let mut mappings: Vec<Mapped> = Vec::new();
    for line in maps.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let kib = || words[1].parse::<u64>().expect("a size");
        match (words[0], mappings.last_mut()) {
            ("Size:", Some(mapped)) => mapped.bytes_kib = kib(),
            ("Rss:", Some(mapped)) => mapped.resident_kib = kib(),
            ("Pss:", Some(mapped)) => mapped.part_kib = kib(),
            ("VmFlags:", Some(mapped)) => mapped.is_locked = words.contains(&"lo"),
            (name, _) if name.ends_with(':') => {}
            _ => mappings.push(Mapped {
                file: words[5..].join(" "),
                is_code: words[1].contains('x'),
                bytes_kib: 0,
                resident_kib: 0,
                part_kib: 0,
                is_locked: false,
            }),
        }
    }
    mappings
}

/// The program's code: how much of it is in memory, of how much.
fn code_kib(mappings: &[Mapped]) -> (u64, u64) {
    let program = binary("consort");
    let is_code = |mapped: &&Mapped| mapped.is_code && Path::new(&mapped.file) == program;
    let code = mappings.iter().find(is_code).expect("the program's code");
    (code.resident_kib, code.bytes_kib)
}

/// The program's code that is in memory once the process has given back what its own start took,
/// soon after it can be reached.
fn settled_code_kib(process: u32) -> u64 {
    let (mut last, mut unchanged) = (0, 0);
    eventually("the process has started", || {
        let code = code_kib(&mappings(process)).0;
        unchanged = if code == last { unchanged + 1 } else { 0 };
        last = code;
        (unchanged == 50).then_some(code)
    })
}

/// What the process has beside its program's file, which all its processes share.
fn own_kib(mappings: &[Mapped]) -> u64 {
    let program = binary("consort");
    let is_other = |mapped: &&Mapped| {
        Path::new(&mapped.file) != program && !mapped.file.starts_with("/memfd:consort-ring")
    };
    mappings.iter().filter(is_other).map(|mapped| mapped.part_kib).sum()
}

#[test]
fn a_server_and_its_front_end_have_little_of_their_program_in_memory() {
    let mut server = Server::start(&["--driver", "timer", "--quantum", "1024", "--pulse"]);
    await_socket(&server);
    let mut command = command_in(server.directory(), Path::new("pacat"));
    command.args(["--raw", "--format=s16le", "--rate=48000", "--channels=2", "/dev/zero"]);
    let _player = Program::start(command);
    eventually("it plays", || server.status().driver.contains("deep").then_some(()));
    let front_end = mappings(await_front_end(&mut server));
    let server = mappings(server.program().id());
    let ((of_server, all), (of_front_end, _)) = (code_kib(&server), code_kib(&front_end));
    // All of it would be what the server populates without sections of real-time threads' code.
    assert!(2 * of_server < all, "{of_server} of {all} KiB in the server");
    // Half of it is what starting reads.
    assert!(3 * of_front_end < all, "{of_front_end} of {all} KiB in the front end");
    assert!(server.iter().any(|mapped| mapped.is_locked));
    assert!(!front_end.iter().any(|mapped| mapped.is_locked), "it has no real-time threads");
    let own = [own_kib(&server), own_kib(&front_end)];
    assert!(own[0] + own[1] < 12 * 1024, "{own:?} KiB without the program and the ring");
}

#[test]
fn a_server_has_no_memory_for_ports_and_cards_that_it_does_not_have() {
    let mut server = Server::start(&["--driver", "timer", "--quantum", "1024"]);
    let mappings = mappings(server.program().id());
    let of_file = |name| mappings.iter().filter(move |mapped| mapped.file.contains(name));
    let code = of_file("/libm.so").find(|mapped| mapped.is_code).expect("it is linked with it");
    // Where it is linked at the start, some of it is read.
    let (resident, all) = (code.resident_kib, code.bytes_kib);
    assert!(resident < all, "{resident} of {all} KiB of the mathematical library");
    let slabs: Vec<(u64, u64)> = of_file("/memfd:consort-slab")
        .map(|mapped| (mapped.resident_kib, mapped.bytes_kib))
        .collect();
    assert!(!slabs.is_empty(), "it has two capture ports");
    // There is room for sixteen.
    let is_small = |(resident, all): &(u64, u64)| 4 * resident < *all;
    assert!(slabs.iter().all(is_small), "{slabs:?} KiB of slabs");
}

#[test]
fn a_front_end_gives_back_what_the_start_of_a_program_has_taken() {
    let mut server = Server::start(&["--driver", "timer", "--quantum", "1024", "--pulse"]);
    await_socket(&server);
    let front_end = await_front_end(&mut server);
    let before = settled_code_kib(front_end);
    let mut command = command_in(server.directory(), Path::new("pacat"));
    command.args(["--raw", "--format=s16le", "--rate=48000", "--channels=2", "/dev/zero"]);
    let _player = Program::start(command);
    let mut most = 0;
    let left = eventually("it has given back a part of it", || {
        let code = code_kib(&mappings(front_end)).0;
        most = most.max(code);
        // What plays on is read again, with what lies around it.
        (most > before && 10 * code < 9 * most).then_some(code)
    });
    eprintln!("{before} KiB of code without a program, {most} when it came, {left} while it plays");
}
