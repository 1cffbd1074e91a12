//! Cards that other sound servers let go: a process for each, so that nothing of a bus is in the server.

use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

/// For a process to start, find the bus, and ask the card's owner.
const PATIENCE: Duration = Duration::from_secs(6);
/// What such a process says before the name of whoever does not let the card go; anything else if the card is ours.
pub const REFUSED: &str = "refused ";

/// The cards that are ours until this ends.
#[derive(Debug)]
pub struct Reservations(Vec<Child>);

impl Reservations {
    /// Reserves cards, before they are opened. Says on standard error who does not let one go; whether it is in use
    /// nevertheless, is found out then. Without a session bus nothing happens. `program` takes the arguments of `consort`.
    pub fn of(cards: &[u32], program: &Path) -> Self {
        Self(cards.iter().filter_map(|card| reserve(*card, program).ok()).collect())
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

fn reserve(card: u32, program: &Path) -> io::Result<Child> {
    let mut command = Command::new(program);
    command.args(["reserve", &card.to_string()]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
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
