//! Scheduling and threads, as the kernel reports them to another process.

use harness::{Server, eventually};

use crate::actors::Actor;

/// `SCHED_OTHER` and `SCHED_FIFO`
const ORDINARY: (u32, u32) = (0, 0);
const FIFO: u32 = 1;

/// Policy and priority of a thread (`policy` and `rt_priority` in proc_pid_stat(5)); `None`: there
/// is none.
fn scheduling(process: u32, thread: u32) -> Option<(u32, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/task/{thread}/stat")).ok()?;
    let (_, numbers) = stat.rsplit_once(") ")?;
    let mut numbers = numbers.split(' ').skip(37).map(|number| number.parse().expect("a number"));
    let priority = numbers.next()?;
    Some((numbers.next()?, priority))
}

fn await_scheduling(what: &str, process: u32, thread: u32, expected: Option<(u32, u32)>) {
    eventually(&format!("{what}: {expected:?}"), || {
        (scheduling(process, thread) == expected).then_some(())
    });
}

/// Whether this user may have real-time threads; inherited by what the test starts.
fn may_be_realtime() -> bool {
    let tried =
        std::process::Command::new("chrt").args(["-f", "60", "true"]).output().expect("chrt runs");
    tried.status.success()
}

/// Has a thread started; returns its id.
fn start_thread(actor: &mut Actor, how: &str) -> u32 {
    let answer = actor.ask(&format!("start_thread {how}"));
    let thread = answer.strip_prefix("0 ").and_then(|thread| thread.parse().ok());
    thread.unwrap_or_else(|| panic!("start_thread {how}: {answer}"))
}

fn active(server: &Server, name: &str) -> Actor {
    let (mut actor, _) = Actor::open(server, name, name, "");
    assert_eq!(actor.ask("activate"), "0");
    assert_eq!(actor.ask("await_cycle"), "ran");
    actor
}

#[test]
fn process_threads_have_the_priority_that_libjack_reports() {
    let mut server = Server::start(&["--quantum", "1024", "--realtime-priority", "60"]);
    let mut actor = active(&server, "a");
    let process_thread = actor.ask("process_thread_id").parse().expect("a thread");
    if !may_be_realtime() {
        assert_eq!(
            (actor.ask("is_realtime"), actor.ask("priorities")),
            ("0".into(), "-1 -1".into())
        );
        await_scheduling("the process thread", actor.id(), process_thread, Some(ORDINARY));
        return;
    }
    assert_eq!((actor.ask("is_realtime"), actor.ask("priorities")), ("1".into(), "55 59".into()));
    // Late on a busy machine, it loses its priority for a while.
    await_scheduling("the process thread", actor.id(), process_thread, Some((FIFO, 55)));
    let server = server.program().id();
    let tasks = std::fs::read_dir(format!("/proc/{server}/task")).expect("the server runs");
    let threads = tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok());
    let found: Vec<_> = threads.filter_map(|thread| scheduling(server, thread)).collect();
    assert!(found.contains(&(FIFO, 60)), "the driver's thread is not among {found:?}");
    // It was in time for long enough.
    await_scheduling("the process thread", actor.id(), process_thread, Some((FIFO, 56)));
}

#[test]
fn process_threads_of_an_ordinary_server_have_no_priority() {
    let server = Server::start(&["--quantum", "1024", "--no-realtime"]);
    let mut actor = active(&server, "a");
    assert_eq!((actor.ask("is_realtime"), actor.ask("priorities")), ("0".into(), "-1 -1".into()));
    let process_thread = actor.ask("process_thread_id").parse().expect("a thread");
    await_scheduling("the process thread", actor.id(), process_thread, Some(ORDINARY));
}

#[test]
fn a_thread_made_by_libjack_is_scheduled_as_its_calls_ask() {
    let server = Server::timer(1024);
    let (mut actor, _) = Actor::open(&server, "a", "a", "");
    for end in ["client_stop_thread", "client_kill_thread"] {
        let thread = start_thread(&mut actor, "ordinary");
        assert_eq!(scheduling(actor.id(), thread), Some(ORDINARY));
        // EPERM where it is not allowed.
        let acquired = if may_be_realtime() { ("0", (FIFO, 7)) } else { ("1", ORDINARY) };
        assert_eq!(actor.ask("acquire_real_time_scheduling 7"), acquired.0);
        assert_eq!(scheduling(actor.id(), thread), Some(acquired.1));
        assert_eq!(actor.ask("drop_real_time_scheduling"), "0");
        assert_eq!(scheduling(actor.id(), thread), Some(ORDINARY));
        // EINVAL, and the thread stays as it was.
        assert_eq!(actor.ask("acquire_real_time_scheduling 1000"), "22");
        assert_eq!(scheduling(actor.id(), thread), Some(ORDINARY));
        assert_eq!(actor.ask(end), "0");
        await_scheduling(end, actor.id(), thread, None);
    }
    if may_be_realtime() {
        let thread = start_thread(&mut actor, "real-time 9");
        assert_eq!(scheduling(actor.id(), thread), Some((FIFO, 9)));
        assert_eq!(actor.ask("client_kill_thread"), "0");
    } else {
        assert_eq!(actor.ask("start_thread real-time 9"), "1 0");
    }
}

#[test]
fn threads_are_made_by_the_programs_creator_while_it_is_set() {
    let server = Server::timer(1024);
    let (mut actor, _) = Actor::open(&server, "a", "a", "");
    let made = |actor: &mut Actor| {
        actor
            .events()
            .iter()
            .filter(|event| *event == "creates a thread with a stack of 524288 bytes")
            .count()
    };
    assert_eq!(actor.ask("set_thread_creator own"), "done");
    let thread = start_thread(&mut actor, "ordinary");
    assert_eq!(scheduling(actor.id(), thread), Some(ORDINARY));
    let by_creator = made(&mut actor);
    assert!(by_creator >= 1, "{:?}", actor.events());
    assert_eq!(actor.ask("client_stop_thread"), "0");
    assert_eq!(actor.ask("set_thread_creator none"), "done");
    start_thread(&mut actor, "ordinary");
    assert_eq!(made(&mut actor), by_creator);
    assert_eq!(actor.ask("client_kill_thread"), "0");
}

#[test]
fn a_freewheeling_file_server_is_not_real_time() {
    let directory = tempfile::TempDir::with_prefix("consort-test-").expect("a temporary directory");
    let output = directory.path().join("out.wav").to_string_lossy().into_owned();
    let options = ["--driver", "file", "--output", &output, "--fast", "--realtime-priority", "60"];
    let mut server = Server::start_in(directory, &options);
    let mut actor = active(&server, "a");
    let process_thread = actor.ask("process_thread_id").parse().expect("a thread");
    server.run("jack_connect", &["a:out", "system:playback_1"]);
    await_scheduling("the process thread", actor.id(), process_thread, Some(ORDINARY));
    let server = server.program().id();
    let tasks = std::fs::read_dir(format!("/proc/{server}/task")).expect("the server runs");
    let threads = tasks.filter_map(|task| {
        let task = task.ok()?;
        let name = std::fs::read_to_string(task.path().join("comm")).ok()?;
        // Others come and go.
        let stays = name.trim() != "consort-sealing";
        task.file_name().to_str()?.parse().ok().filter(|_| stays)
    });
    let threads: Vec<u32> = threads.collect();
    for thread in threads {
        await_scheduling("a thread of the server", server, thread, Some(ORDINARY));
    }
}
