//! Reservation of sound cards against other sound servers.
//!
//! A desktop's sound server keeps every card open. On the session bus it owns a name for each, and
//! releases the card when a program of higher priority asks for it. The program that owns the name
//! has the card until it leaves the bus, or is asked in its turn.
//!
//! Source: "A simple device reservation scheme with D-Bus", reserve.txt of
//! git.0pointer.net/reserve.git.

mod lines;

use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use zbus::connection::Builder;
use zbus::fdo::RequestNameFlags;
use zbus::message::Header;
use zbus::{Connection, interface};

pub(crate) use self::lines::{Answer, closed, read_closed};

const INTERFACE: &str = "org.freedesktop.ReserveDevice1";
/// Time limit for the owner's answer, within what JACK2 and PulseAudio allow (5 s).
const ANSWER_TIMEOUT: Duration = Duration::from_secs(4);
/// Time limit for closing the card, so that the program that asks gets an answer in its own time.
const CLOSING_TIMEOUT: Duration = Duration::from_secs(3);
/// How long the name of a card that was given up stays free for the program that has asked.
const PRECEDENCE: Duration = Duration::from_secs(5);
/// Interval of the attempts to get a card back.
const RETRY: Duration = Duration::from_millis(250);

/// The object that other programs see for a card that we own.
struct Reservation {
    card: u32,
    priority: i32,
    /// Number of the newest request.
    requests: AtomicU32,
    /// The requests for which the card was closed. It ends with standard input.
    closed: Mutex<Receiver<u32>>,
    events: Sender<Event>,
}

/// What ends the main thread's wait.
enum Event {
    /// The card was given up.
    GivenUp,
    /// Standard input has ended.
    InputEnded,
}

#[interface(name = "org.freedesktop.ReserveDevice1")]
impl Reservation {
    /// Releases the card if the priority is higher than ours, and the driver has closed it in time.
    async fn request_release(
        &self,
        priority: i32,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] connection: &Connection,
    ) -> bool {
        if priority <= self.priority {
            return false;
        }
        let by = match header.sender() {
            Some(sender) => program(connection, sender.as_str()).await,
            None => "a program".into(),
        };
        if !self.close(by) {
            return false;
        }
        // Before the answer: the asking program takes the name when it has that.
        let released = connection.release_name(name(self.card)).await;
        let _ = self.events.send(Event::GivenUp);
        released.is_ok()
    }

    #[zbus(property)]
    fn priority(&self) -> i32 {
        self.priority
    }

    #[zbus(property)]
    fn application_name(&self) -> &str {
        "consort"
    }

    #[zbus(property)]
    fn application_device_name(&self) -> String {
        format!("hw:{}", self.card)
    }
}

impl Reservation {
    /// Has the card closed; returns whether it is. Blocks the bus's thread, which has nothing else
    /// to do meanwhile.
    fn close(&self, by: String) -> bool {
        // One request at a time.
        let closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        // Relaxed: the lock orders it.
        let request = self.requests.fetch_add(1, Ordering::Relaxed);
        let deadline = Instant::now() + CLOSING_TIMEOUT;
        if print(&Answer::Asked { request, by }).is_err() {
            return false;
        }
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match closed.recv_timeout(left) {
                Ok(number) if number == request => return true,
                // The answer to a request that was withdrawn.
                Ok(_) => {}
                Err(_) => {
                    // The request is withdrawn.
                    let _ = print(&Answer::Ours);
                    return false;
                }
            }
        }
    }
}

/// `consort reserve`: reserves the card, prints the result, and keeps the card until standard input
/// ends. Each program that asks with a higher priority is reported, and gets the card once a line
/// has said that it is closed. That the card is ours again is reported, too.
///
/// # Errors
/// There is no session bus.
pub(crate) fn keep(card: u32, priority: i32) -> anyhow::Result<ExitCode> {
    let ((closed_in, closed), (events, coming)) = (channel(), channel());
    let ended = events.clone();
    let requests = AtomicU32::new(0);
    let object = Reservation { card, priority, requests, closed: Mutex::new(closed), events };
    let (connection, answer) = reserve(object).context("no session bus")?;
    print(&answer)?;
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let _ = read_closed(&line).map(|request| closed_in.send(request));
        }
        let _ = ended.send(Event::InputEnded);
    });
    await_end(&connection, card, &coming)?;
    drop(connection);
    Ok(ExitCode::SUCCESS)
}

/// Takes a card back that was given up, as soon as it is free, until standard input ends.
fn await_end(connection: &Connection, card: u32, coming: &Receiver<Event>) -> anyhow::Result<()> {
    let mut given_up: Option<GivenUp> = None;
    loop {
        let event = match &given_up {
            None => coming.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(_) => coming.recv_timeout(RETRY),
        };
        match event {
            Ok(Event::GivenUp) => given_up = Some(GivenUp::new(Instant::now())),
            Err(RecvTimeoutError::Timeout) => {}
            Ok(Event::InputEnded) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        let Some(waiting) = &mut given_up else { continue };
        let is_owned = zbus::block_on(has_owner(connection, card))?;
        if waiting.may_take_back(is_owned, Instant::now())
            && zbus::block_on(take(connection, card))?
        {
            given_up = None;
            print(&Answer::Ours)?;
        }
    }
}

/// A card that was given up.
struct GivenUp {
    since: Instant,
    /// The program that asked has been seen to own the name.
    was_taken: bool,
}

impl GivenUp {
    fn new(since: Instant) -> Self {
        Self { since, was_taken: false }
    }

    /// Returns whether the name is free for us: the program that asked has had it, or does not
    /// take it.
    fn may_take_back(&mut self, is_owned: bool, now: Instant) -> bool {
        self.was_taken |= is_owned;
        let has_precedence = !self.was_taken && now.duration_since(self.since) < PRECEDENCE;
        !is_owned && !has_precedence
    }
}

/// Takes the card's name on the bus; if it is taken, asks its owner to release it first.
///
/// # Errors
/// There is no session bus, or it fails.
fn reserve(object: Reservation) -> zbus::Result<(Connection, Answer)> {
    zbus::block_on(async {
        let (card, priority) = (object.card, object.priority);
        let (name, path) = (name(card), path(card));
        let connection = Builder::session()
            .method_timeout(ANSWER_TIMEOUT)
            .serve_at(path.as_str(), object)
            .build()
            .await?;
        if take(&connection, card).await? {
            return Ok((connection, Answer::Ours));
        }
        // No answer counts as a refusal: the owner has just left, or does not know the method.
        if !request_release(&connection, priority, &name, &path).await.unwrap_or(false) {
            let owner = owner(&connection, &name, &path).await.unwrap_or_else(|_| name.clone());
            return Ok((connection, Answer::Refused(owner)));
        }
        let flags = RequestNameFlags::DO_NOT_QUEUE | RequestNameFlags::REPLACE_EXISTING;
        match connection.request_name_with_flags(name.as_str(), flags).await {
            // Another program was quicker.
            Err(zbus::Error::NameTaken) => Ok((connection, Answer::Refused(name))),
            asked => asked.map(|_| (connection, Answer::Ours)),
        }
    })
}

fn print(answer: &Answer) -> std::io::Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{answer}").and_then(|()| output.flush())
}

fn name(card: u32) -> String {
    format!("{INTERFACE}.Audio{card}")
}

fn path(card: u32) -> String {
    format!("/org/freedesktop/ReserveDevice1/Audio{card}")
}

/// Takes the card's name if it is free; returns whether it was.
async fn take(connection: &Connection, card: u32) -> zbus::Result<bool> {
    let flags = RequestNameFlags::DO_NOT_QUEUE;
    match connection.request_name_with_flags(name(card), flags).await {
        Err(zbus::Error::NameTaken) => Ok(false),
        asked => asked.map(|_| true),
    }
}

const BUS: &str = "org.freedesktop.DBus";
const BUS_OBJECT: &str = "/org/freedesktop/DBus";

async fn has_owner(connection: &Connection, card: u32) -> zbus::Result<bool> {
    let (method, name) = ("NameHasOwner", name(card));
    let answer = connection.call_method(Some(BUS), BUS_OBJECT, Some(BUS), method, &name).await?;
    answer.body().deserialize()
}

/// Returns a name for the program behind a connection to the bus.
async fn program(connection: &Connection, sender: &str) -> String {
    let method = "GetConnectionUnixProcessID";
    let answer = connection.call_method(Some(BUS), BUS_OBJECT, Some(BUS), method, &sender).await;
    let process = answer.and_then(|answer| answer.body().deserialize::<u32>());
    let comm = process.ok().and_then(|id| std::fs::read_to_string(format!("/proc/{id}/comm")).ok());
    comm.map_or_else(|| sender.to_owned(), |comm| comm.trim_end().to_owned())
}

async fn request_release(
    connection: &Connection,
    priority: i32,
    name: &str,
    path: &str,
) -> zbus::Result<bool> {
    let answer = connection
        .call_method(Some(name), path, Some(INTERFACE), "RequestRelease", &priority)
        .await?;
    answer.body().deserialize()
}

/// Returns the application name of a card's owner.
async fn owner(connection: &Connection, name: &str, path: &str) -> zbus::Result<String> {
    let properties = "org.freedesktop.DBus.Properties";
    let asked = (INTERFACE, "ApplicationName");
    let answer = connection.call_method(Some(name), path, Some(properties), "Get", &asked).await?;
    let value: zbus::OwnedVariant = answer.body().deserialize()?;
    String::try_from(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_that_asked_has_precedence_for_a_while() {
        let begin = Instant::now();
        let mut given_up = GivenUp::new(begin);
        assert!(!given_up.may_take_back(false, begin + PRECEDENCE / 2), "it may still take it");
        assert!(given_up.may_take_back(false, begin + PRECEDENCE), "it does not");
        assert!(!given_up.may_take_back(true, begin + PRECEDENCE), "it has it");
        let mut given_up = GivenUp::new(begin);
        assert!(!given_up.may_take_back(true, begin));
        assert!(given_up.may_take_back(false, begin), "it has had it");
    }
}
