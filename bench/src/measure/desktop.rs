//! What a desktop's sound costs: consort, PulseAudio and PipeWire with the same players on a null
//! device each. `docs/desktop.md` says what each row means.

mod change;
mod changes;
mod player;
mod rows;
mod spent;
pub mod system;

use anyhow::Result;

use crate::arguments::Arguments;
use crate::measure::desktop::rows::ROWS;
use crate::measure::desktop::system::{Desktop, Installed, Role};
use crate::proc;
use crate::programs::Programs;
use crate::report::{Report, Subject};
use crate::server::Candidate;
use crate::workplace::Workplace;

/// A system that was started for one row.
struct Scene<'a> {
    desktop: Desktop<'a>,
    row: &'static str,
    arguments: &'a Arguments,
    report: &'a mut Report,
}

impl Scene<'_> {
    /// Adds a figure of this round. `player` is a process of the program that plays, for the head
    /// of the table.
    fn figure(
        &mut self,
        player: Option<u32>,
        what: &str,
        unit: &'static str,
        target: &'static str,
        value: f64,
    ) -> Result<()> {
        let threads = |pid: Option<u32>| pid.map_or(Ok(String::from("–")), proc::scheduling);
        let subject = Subject {
            server: self.desktop.installed.system.name().into(),
            version: self.desktop.installed.version.clone(),
            command: self.desktop.command_line().into(),
            server_threads: threads(self.desktop.pids(Role::Server).first().copied())?,
            client_threads: threads(player)?,
        };
        let measure = format!("{}: {what}", self.row);
        self.report.round(&subject, &measure, unit, target, value);
        Ok(())
    }
}

/// Measures each row of each system, the systems of a row one right after the other.
///
/// # Errors
/// A system is not installed. What a system cannot do is noted in the report.
pub fn run(
    round: u32,
    candidates: &[Candidate],
    programs: &Programs,
    workplace: &Workplace,
    arguments: &Arguments,
    report: &mut Report,
) -> Result<()> {
    let systems = arguments.systems().into_iter();
    let systems: Vec<Installed> =
        systems.map(|system| Installed::find(system, candidates)).collect::<Result<_>>()?;
    for row in ROWS.iter().filter(|row| arguments.has_graph(row.name)) {
        for installed in systems.iter().filter(|installed| row.is_for(installed.system)) {
            let name = installed.system.name();
            eprintln!("round {round}: {} on {name}", row.name);
            let measured = Desktop::start(installed, programs, workplace, row.pipewires_most);
            let measured = measured.and_then(|desktop| {
                let mut scene = Scene { desktop, row: row.name, arguments, report };
                (row.measure)(&mut scene)?;
                scene.desktop.stop()
            });
            if let Err(error) = measured {
                report.fail(name, format!("{}: {error:#}", row.name));
            }
        }
    }
    Ok(())
}
