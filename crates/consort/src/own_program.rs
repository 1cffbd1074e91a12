//! Processes of this same program that a server, or a device's process, starts for itself: their
//! command lines, and the lines that they exchange.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::sync::Arc;

use cli::own_program;
use device::{CardClaim, CardReservation, ClaimNews, Reservation};
use engine::{BrokerConnection, Platform, PluginLaunch, PluginLauncher, PriorityBroker};
use sys::clock::now_ns;
use sys::helper::{Ending, Helper, Lines};

use crate::realtime_kit::{GIVEN, HIGHEST};
use crate::reservation::{Answer, closed};

/// Time limit for `consort reserve` to start, find the bus, and get the answer of the card's owner.
const RESERVE_TIMEOUT_NS: u64 = 6_000_000_000;
/// Time limit for `consort reserve` to leave the bus.
const RELEASE_TIMEOUT_NS: u64 = 2_000_000_000;
/// Time limit for `consort realtime-kit` to start and find the bus, and for one answer.
const PRIORITY_TIMEOUT_NS: u64 = 5_000_000_000;
/// Maximum number of requests without an answer: their bytes fit into a pipe.
const MAX_REQUESTED: u32 = 256;

/// This same program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnProgram;

impl OwnProgram {
    /// Returns the platform of a server that runs in this process.
    pub(crate) fn platform() -> Platform {
        Platform { cards: Arc::new(Self), priorities: Box::new(Self), plugins: Box::new(Self) }
    }
}

impl CardReservation for OwnProgram {
    fn reserve(&self, card: u32, priority: i32) -> Option<Reservation> {
        let mut command = own_program().ok()?;
        command.args(["reserve", &card.to_string(), &format!("--priority={priority}")]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let ending = Ending::CloseInput { timeout_ns: RELEASE_TIMEOUT_NS };
        let mut process = Helper::spawn(&mut command, ending).ok()?;
        let mut lines = process.lines()?;
        let answer = lines.next_until(Some(now_ns() + RESERVE_TIMEOUT_NS));
        let refused_by = match answer.as_deref().and_then(Answer::read) {
            Some(Answer::Refused(owner)) => Some(owner),
            _ => None,
        };
        Some(Reservation { refused_by, claim: Box::new(ReservedCard { process, lines }) })
    }
}

/// A process that reserves a card.
#[derive(Debug)]
struct ReservedCard {
    process: Helper,
    lines: Lines,
}

impl CardClaim for ReservedCard {
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.lines.as_fd()
    }

    fn news(&mut self) -> Option<ClaimNews> {
        loop {
            let Some(line) = self.lines.next_until(Some(0)) else {
                return self.lines.has_ended().then_some(ClaimNews::Ended);
            };
            match Answer::read(&line) {
                Some(Answer::Ours) => return Some(ClaimNews::Ours),
                Some(Answer::Asked { request, by }) => {
                    return Some(ClaimNews::Asked { request, by });
                }
                Some(Answer::Refused(_)) | None => {}
            }
        }
    }

    fn card_is_closed(&mut self, request: u32) {
        if let Some(input) = self.process.input() {
            // Fails if the process has ended, which is news of its own.
            let _ = writeln!(input, "{}", closed(request));
        }
    }
}

impl PriorityBroker for OwnProgram {
    fn connect(&self) -> Result<Box<dyn BrokerConnection>, String> {
        let mut command = own_program().map_err(|error| error.to_string())?;
        command.arg("realtime-kit");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        // It ends with its standard input, but not while it waits for the bus.
        let process = Helper::spawn(&mut command, Ending::Kill);
        let mut process = process.map_err(|error| error.to_string())?;
        let lines = process.lines().ok_or("the helper process has no pipes")?;
        let mut kit = RealtimeKit { process, lines, requested: 0, highest: 0 };
        let first = kit.answer()?;
        let highest = first.strip_prefix(HIGHEST).and_then(|highest| highest.parse().ok());
        kit.highest = highest.ok_or(first)?;
        Ok(Box::new(kit))
    }

    fn favour(&self, thread: u32) {
        cli::ask_to_favour(thread);
    }
}

/// A process that asks RealtimeKit.
#[derive(Debug)]
struct RealtimeKit {
    process: Helper,
    lines: Lines,
    /// Requests without an answer.
    requested: u32,
    highest: u32,
}

impl RealtimeKit {
    fn send(&mut self, process: u32, thread: u32, priority: u32) -> io::Result<()> {
        let input = self.process.input().ok_or(io::ErrorKind::BrokenPipe)?;
        input.write_all(format!("{process} {thread} {priority}\n").as_bytes())
    }

    fn answer(&mut self) -> Result<String, String> {
        let answer = self.lines.next_until(Some(now_ns() + PRIORITY_TIMEOUT_NS));
        answer.ok_or_else(|| "it does not answer".into())
    }
}

impl BrokerConnection for RealtimeKit {
    fn highest(&self) -> u32 {
        self.highest
    }

    fn grant(&mut self, process: u32, thread: u32, priority: u32) -> Result<(), String> {
        self.send(process, thread, priority).map_err(|error| error.to_string())?;
        match self.answer()? {
            answer if answer == GIVEN => Ok(()),
            refused => Err(refused),
        }
    }

    fn request(&mut self, process: u32, thread: u32, priority: u32) {
        while self.requested > 0 && self.lines.next_until(Some(0)).is_some() {
            self.requested -= 1;
        }
        // A process that does not answer gets no further requests: its pipe would fill up.
        if self.requested < MAX_REQUESTED && self.send(process, thread, priority).is_ok() {
            self.requested += 1;
        }
    }
}

impl PluginLauncher for OwnProgram {
    fn launch(&self, launch: &PluginLaunch<'_>, socket: OwnedFd) -> io::Result<Helper> {
        let PluginLaunch { server, client, exact, object, parameters } = launch;
        let mut command = own_program()?;
        command.arg("host").arg(format!("--name={client}")).arg(format!("--object={object}"));
        command.arg(format!("--parameters={parameters}"));
        if *exact {
            command.arg("--exact");
        }
        command
            .env("JACK_DEFAULT_SERVER", server)
            .env("JACK_NO_START_SERVER", "1")
            .stdin(Stdio::from(socket))
            // The terminal's signals are for the server.
            .process_group(0);
        Helper::spawn(&mut command, Ending::Kill)
    }
}
