//! Two actors on one server, and the steps of a row.

use std::io::Write;
use std::path::PathBuf;

use harness::{Program, Server, c_program, eventually};
use rustix::process::Signal;

/// A C program that calls the functions that it is asked to call.
pub(crate) struct Actor {
    program: Program,
    pipe: PathBuf,
    answers: usize,
    /// The number of its events that have been checked.
    checked_events: usize,
}

impl Actor {
    /// Starts one that opens a client of this name; `option` is empty, `exact`, `new`,
    /// `plain-shutdown` or `both-shutdowns`. Returns it with the result of opening.
    pub(crate) fn open(server: &Server, pipe: &str, name: &str, option: &str) -> (Self, String) {
        let pipe = server.directory().join(format!("{pipe}.orders"));
        let program =
            server.spawn(&c_program("effects/actor.c"), &[&pipe.to_string_lossy(), name, option]);
        let mut actor = Self { program, pipe, answers: 0, checked_events: 0 };
        let answer = actor.answer("open");
        (actor, answer)
    }

    fn lines(&mut self, kind: &str) -> Vec<String> {
        let printed = self.program.stdout();
        // A line may have come in part.
        let whole = printed.rfind('\n').map_or("", |end| &printed[..end]);
        whole.lines().filter_map(|line| line.strip_prefix(kind)).map(str::to_owned).collect()
    }

    fn answer(&mut self, order: &str) -> String {
        let answer = eventually(&format!("an answer to '{order}'"), || {
            self.lines("= ").get(self.answers).cloned()
        });
        self.answers += 1;
        answer
    }

    /// Has a function called, and returns its result.
    pub(crate) fn ask(&mut self, order: &str) -> String {
        let mut pipe =
            std::fs::OpenOptions::new().write(true).open(&self.pipe).expect("the actor's pipe");
        writeln!(pipe, "{order}").expect("an actor that reads");
        self.answer(order)
    }

    /// What callbacks have reported so far.
    pub(crate) fn events(&mut self) -> Vec<String> {
        self.lines("! ")
    }

    /// Waits for an event after the last one that was waited for.
    pub(crate) fn await_event(&mut self, what: &str, event: &str) {
        let mut seen = Vec::new();
        let end = std::time::Instant::now() + harness::PATIENCE;
        while std::time::Instant::now() < end {
            seen = self.events();
            if let Some(at) = seen.iter().skip(self.checked_events).position(|found| found == event)
            {
                self.checked_events += at + 1;
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let newest = &seen[seen.len().saturating_sub(20)..];
        panic!(
            "{what}: no event '{event}' after {} others, the newest of all {newest:?}",
            self.checked_events
        );
    }

    pub(crate) fn id(&self) -> u32 {
        self.program.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        self.program.signal(signal);
    }
}

/// One step of a row. `a` and `b` are actors of that name, each a process of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    /// `a` calls a function, which answers this at once.
    A(&'static str, &'static str),
    /// `b` sees this, at once or after a while.
    B(&'static str, &'static str),
    /// `b` calls a function, which answers this at once.
    BDoes(&'static str, &'static str),
    /// A callback of `a` reports this, later than the previous event.
    EventA(&'static str),
    /// A callback of `b` reports this, later than the previous event.
    EventB(&'static str),
    /// `jack_lsp` with these arguments prints this.
    Lsp(&'static [&'static str], &'static str),
    /// `consort ls --json` has this, as JSON, at this pointer of this port; `null` also for what is
    /// absent.
    Ls(&'static str, &'static str, &'static str),
    /// `consort status --json` has this, as JSON, at this pointer.
    Status(&'static str, &'static str),
    /// `consort transport show --json` has this, as JSON, at this pointer.
    Transport(&'static str, &'static str),
}

/// What a function promises, and the steps that show it.
pub(crate) type Row = (&'static str, &'static [Step]);

fn at(value: Option<&serde_json::Value>, pointer: &str) -> String {
    value
        .and_then(|value| value.pointer(pointer))
        .map_or_else(|| "null".to_owned(), ToString::to_string)
}

fn await_equal(what: &str, expected: &str, mut found: impl FnMut() -> String) {
    let end = std::time::Instant::now() + harness::PATIENCE;
    let mut last = found();
    while last != expected {
        assert!(std::time::Instant::now() < end, "{what}: expected {expected:?}, found {last:?}");
        std::thread::sleep(std::time::Duration::from_millis(20));
        last = found();
    }
}

/// Takes the steps of each row on a server of its own.
pub(crate) fn take(rows: &[Row]) {
    for (promise, steps) in rows {
        let server = Server::timer(256);
        let (mut a, _) = Actor::open(&server, "a", "a", "");
        let (mut b, _) = Actor::open(&server, "b", "b", "");
        for step in *steps {
            let what = format!("{promise}: {step:?}");
            match *step {
                Step::A(order, answer) => assert_eq!(a.ask(order), answer, "{what}"),
                Step::BDoes(order, answer) => assert_eq!(b.ask(order), answer, "{what}"),
                Step::B(order, answer) => await_equal(&what, answer, || b.ask(order)),
                Step::EventA(event) => a.await_event(&what, event),
                Step::EventB(event) => b.await_event(&what, event),
                Step::Lsp(arguments, printed) => {
                    await_equal(&what, printed, || server.lsp(arguments))
                }
                Step::Ls(port, pointer, expected) => await_equal(&what, expected, || {
                    let ports = server.consort_json(&["ls"]);
                    at(
                        ports
                            .as_array()
                            .and_then(|ports| ports.iter().find(|found| found["name"] == port)),
                        pointer,
                    )
                }),
                Step::Status(pointer, expected) => {
                    await_equal(&what, expected, || {
                        at(Some(&server.consort_json(&["status"])), pointer)
                    });
                }
                Step::Transport(pointer, expected) => {
                    await_equal(&what, expected, || {
                        at(Some(&server.consort_json(&["transport", "show"])), pointer)
                    });
                }
            }
        }
    }
}
