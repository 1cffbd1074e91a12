//! The server's side: a process for each card, so that nothing of a bus is in the server.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use anyhow::Context;
use engine::DriverChoice;
use engine::driver::cards_of;

use super::{Answer, reserve};

/// For a process to start, find the bus, and ask the card's owner.
const PATIENCE: Duration = Duration::from_secs(6);
/// What it says when the card is ours, and before the name of whoever does not let it go.
const OURS: &str = "ours";
const REFUSED: &str = "refused ";

/// The cards that are ours until this ends.
#[derive(Debug, Default)]
pub(crate) struct Reservations(Vec<Child>);

impl Reservations {
    /// Reserves the cards of a driver, before it opens them. Says on standard error who does not let one go; whether it is
    /// in use nevertheless, its driver finds out. Without a session bus, and without cards, nothing happens.
    pub(crate) fn of(driver: &DriverChoice) -> Self {
        match driver {
            DriverChoice::Alsa(options) => Self::of_cards(&cards_of(options)),
            _ => Self::default(),
        }
    }

    /// As [`of`](Self::of).
    pub(crate) fn of_cards(cards: &[u32]) -> Self {
        Self(cards.iter().filter_map(|card| start(*card).ok()).collect())
    }
}

impl Drop for Reservations {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // The end of its standard input tells it to leave the bus.
            drop(child.stdin.take());
            let _ = child.wait();
        }
    }
}

fn start(card: u32) -> anyhow::Result<Child> {
    let mut command = Command::new(std::env::current_exe().context("this program's own file")?);
    command.args(["reserve", &card.to_string()]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let output = child.stdout.take().context("standard output")?;
    let (line, said) = channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        let read = BufReader::new(output).read_line(&mut text);
        // Nobody waits for it after the patience is over.
        let _ = line.send(read.map(|_| text));
    });
    let said = said.recv_timeout(PATIENCE).ok().and_then(Result::ok).unwrap_or_default();
    if let Some(owner) = said.trim_end().strip_prefix(REFUSED) {
        eprintln!("consort: sound card {card} is reserved by '{owner}', which does not let it go");
    }
    Ok(child)
}

/// `consort reserve`: asks for the card, says what became of it, and keeps it until standard input ends.
///
/// # Errors
/// If there is no session bus.
pub(crate) fn keep(card: u32) -> anyhow::Result<ExitCode> {
    let (connection, answer) = reserve(card).context("no session bus")?;
    let line = match answer {
        Answer::Ours => OURS.to_owned(),
        Answer::Refused(owner) => format!("{REFUSED}{}", owner.replace(char::is_control, " ")),
    };
    let mut output = std::io::stdout();
    writeln!(output, "{line}").and_then(|()| output.flush())?;
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    drop(connection);
    Ok(ExitCode::SUCCESS)
}
