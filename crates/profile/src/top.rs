//! `consort top`: a running server on a terminal.

use std::io::{IsTerminal, stdout};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use cli::UsageError;
use observe::{Recorded, RecordingFollower};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
use rt::record::Record;

mod model;
mod screen;

use model::Model;
use screen::View;

/// Show clients, load and xruns on the terminal, live
#[derive(Debug, Args)]
#[command(after_help = "Example:
  consort top   # q quits")]
pub struct Top {}

/// Interval of the redraws.
const FRAME: Duration = Duration::from_millis(250);
/// Limit of the xruns that are kept.
const XRUNS: usize = 100;

impl Top {
    /// Shows the server `server` until the user quits.
    ///
    /// # Errors
    /// There is no such server, it ends, or standard output is not a terminal.
    pub fn run(self, server: &str) -> anyhow::Result<ExitCode> {
        let mut follower = RecordingFollower::open(server)?;
        if !stdout().is_terminal() {
            return Err(UsageError(
                "top draws on a terminal: use status or profile show here".into(),
            )
            .into());
        }
        let mut terminal = ratatui::try_init()?;
        let ended = show(&mut terminal, &mut follower);
        ratatui::restore();
        ended.map(|()| ExitCode::SUCCESS)
    }
}

fn show(terminal: &mut DefaultTerminal, follower: &mut RecordingFollower) -> anyhow::Result<()> {
    let mut model = Model::default();
    let mut xruns = Vec::new();
    loop {
        let view = update(follower, &mut model, &mut xruns)?;
        terminal.draw(|frame| screen::draw(frame, &view))?;
        let next = Instant::now() + FRAME;
        while Instant::now() < next {
            // More often than a redraw: the ring of a server with many clients wraps in less
            // time.
            gather(follower, &mut model);
            if event::poll(RecordingFollower::POLL)? && is_end(&event::read()?) {
                return Ok(());
            }
        }
    }
}

fn is_end(event: &Event) -> bool {
    let Event::Key(KeyEvent { code, modifiers, .. }) = event else { return false };
    let control_c = *code == KeyCode::Char('c') && modifiers.contains(KeyModifiers::CONTROL);
    control_c || matches!(code, KeyCode::Char('q') | KeyCode::Esc)
}

fn gather(follower: &mut RecordingFollower, model: &mut Model) {
    let Ok(()) = follower.catch_up(|entry| {
        match entry {
            Recorded::Name(id, name) => model.name(id, name),
            Recorded::Record(words) => {
                Record::from_words(words).into_iter().for_each(|record| model.add(record))
            }
            // Only the last second is shown.
            Recorded::Lost(_) => {}
        }
        Ok::<(), std::convert::Infallible>(())
    });
}

fn update(
    follower: &mut RecordingFollower,
    model: &mut Model,
    xruns: &mut Vec<proto::xrun::Xrun>,
) -> Result<View, client::Error> {
    gather(follower, model);
    let status = follower.observer().status()?;
    // Ask again from the first xrun on that had no verdict.
    let judged = xruns.iter().take_while(|xrun| xrun.verdict.is_some()).count();
    xruns.truncate(judged);
    // Bounded, since more xruns may happen meanwhile.
    for _ in 0..XRUNS {
        let new = follower.observer().xruns(xruns.last().map_or(0, |xrun| xrun.number))?;
        if new.is_empty() {
            break;
        }
        xruns.extend(new);
    }
    xruns.drain(..xruns.len().saturating_sub(XRUNS));
    let rows = status.clients.iter().map(|client| model.row(client.id)).collect();
    let transport = transport(follower, model);
    Ok(View { status, rows, xruns: xruns.clone(), transport })
}

fn transport(follower: &RecordingFollower, model: &Model) -> String {
    let transport = follower.observer().transport();
    let seconds =
        f64::from(transport.position.frame) / f64::from(model.newest().sample_rate_hz.max(1));
    let state = format!("{:?}", transport.state).to_lowercase();
    format!("transport {state} {seconds:.1} s")
}
