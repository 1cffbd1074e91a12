//! Measures any server behind `libjack.so.0`: the same plain JACK clients run against each of them
//! in turn, and bare futexes in between show what the machine allows. `docs/bench.md` says how to
//! read the figures. And what the sound of a desktop costs: `docs/desktop.md`.

#![forbid(unsafe_code)]

mod arguments;
mod child;
mod client;
mod leashed;
mod machine;
mod markdown;
mod measure;
mod plot;
mod proc;
mod programs;
mod recording;
mod report;
mod server;
mod statistics;
mod switches;
mod workplace;

use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Parser;

use arguments::Arguments;
use machine::Machine;
use measure::Part;
use programs::Programs;
use report::Report;
use workplace::Workplace;

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let parts = arguments.parts();
    let workplace = Workplace::new()?;
    let candidates = arguments.candidates(&workplace)?;
    ensure!(
        !candidates.is_empty(),
        "no server to measure: build consort (cargo build --release -p consort -p consort-libjack), \
         install jackd2, or name one with --server"
    );
    let library = candidates[0].library_directory.as_deref();
    let programs = Programs::compile(&workplace, library, parts.contains(&Part::Desktop))?;
    let mut report = Report::new(Machine::here()?);

    for round in 1..=arguments.rounds {
        for part in &parts {
            measure::run(
                *part,
                round,
                &candidates,
                &programs,
                &workplace,
                &arguments,
                &mut report,
            )?;
        }
    }

    print!("{report}");
    if let Some(file) = &arguments.json {
        let text = serde_json::to_string_pretty(&report.to_json())?;
        std::fs::write(file, text + "\n")
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    if let Some(file) = &arguments.plot {
        plot::write(&report.bars(), file)?;
    }
    Ok(if report.failures().is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
