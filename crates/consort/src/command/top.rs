//! `consort top`: the server on a terminal, live.

use std::io::{IsTerminal, stdout};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use client::{Follower, Recorded};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
use rt::record::Record;

use crate::exit::UsageError;
use crate::top::model::Model;
use crate::top::screen::{self, View};

/// Show clients, load and xruns on the terminal, live
#[derive(Debug, Args)]
#[command(after_help = "Example:
  consort top   # q quits")]
pub(crate) struct Top {}

/// How often the picture is drawn.
const FRAME: Duration = Duration::from_millis(250);
/// Xruns that are kept to be shown.
const XRUNS: usize = 100;

impl Top {
    pub(crate) fn run(self, server: &str) -> anyhow::Result<ExitCode> {
        let mut follower = Follower::of(server)?;
        if !stdout().is_terminal() {
            return Err(UsageError("top draws on a terminal: use status or profile show here".into()).into());
        }
        let mut terminal = ratatui::try_init()?;
        let ended = show(&mut terminal, &mut follower);
        ratatui::restore();
        ended.map(|()| ExitCode::SUCCESS)
    }
}

fn show(terminal: &mut DefaultTerminal, follower: &mut Follower) -> anyhow::Result<()> {
    let mut model = Model::default();
    let mut xruns = Vec::new();
    loop {
        let view = look(follower, &mut model, &mut xruns)?;
        terminal.draw(|frame| screen::draw(frame, &view))?;
        let next = Instant::now() + FRAME;
        while Instant::now() < next {
            // More often than the picture: the ring of a large server turns round in less than that.
            gather(follower, &mut model);
            if event::poll(Follower::LOOK)? && is_end(&event::read()?) {
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

fn gather(follower: &mut Follower, model: &mut Model) {
    let Ok(()) = follower.catch_up(|told| {
        match told {
            Recorded::Name(id, name) => model.name(id, name),
            Recorded::Record(words) => {
                Record::from_words(words).into_iter().for_each(|record| model.add(record))
            }
            // The last second is shown, not all of it.
            Recorded::Lost(_) => {}
        }
        Ok::<(), std::convert::Infallible>(())
    });
}

fn look(
    follower: &mut Follower,
    model: &mut Model,
    xruns: &mut Vec<proto::xrun::Xrun>,
) -> Result<View, client::Error> {
    gather(follower, model);
    let status = follower.observer().status()?;
    // From the first one on whose verdict was not known.
    let judged = xruns.iter().take_while(|xrun| xrun.verdict.is_some()).count();
    xruns.truncate(judged);
    // At most all that are remembered: more may come meanwhile.
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

fn transport(follower: &Follower, model: &Model) -> String {
    let transport = follower.observer().transport();
    let seconds = f64::from(transport.position.frame) / f64::from(model.newest().sample_rate_hz.max(1));
    let state = format!("{:?}", transport.state).to_lowercase();
    format!("transport {state} {seconds:.1} s")
}
