//! `cargo xtask`: what building consort needs beyond cargo itself.
#![forbid(unsafe_code)]

mod bill;
mod command;
mod compare;
mod deb;
mod demo;
mod deny;
mod fuzz;
mod install;
mod links;
mod mutate;
mod narrow;
mod notices;
mod release;
mod sanitize;
mod soak;
mod tarball;
mod targets;
mod test;
mod times;
mod width;

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};

const HELP: &str = "\
Usage: cargo xtask TASK

Tasks:
  bill [--out FILE]        list every crate that is linked, with its licence (CycloneDX)
  deb [--out DIR] [--compare]
                           build the Debian packages, with the libraries of 32 bits where the
                           target i686 is installed; all of them twice, and the bytes must be the
                           same
  demo                     play a recording through a chain of programs, and show what came out
  deny                     check licences, advisories and duplicates of all dependencies
  fuzz [--seconds N | --short] [TARGET...]
                           give every decoder random bytes, for 30 seconds each
  install --prefix DIR [--libraries-for TARGET]
                           build consort and lay it out under DIR, to be used or packaged; or its
                           libraries alone, for another kind of processor
  links                    check that what the documents point at is there
  mutate [--short | --only NAME]
                           break the real-time core in known places: the models must notice
  mutate --defences [--short | --only NAME...]
                           take a defence away: the test that is there for it must notice
  notices [--libraries] [--out FILE]
                           print the licences of all that is linked, or into the libraries alone
  release --dry-run [--compare] [--without-devices]
                           rehearse the release of the version that Cargo.toml names, or leave out
                           the virtual machines with sound cards
  sanitize                 run the lock-free parts under ThreadSanitizer
  setup                    install the Debian packages that building and testing need (as root)
  soak [--minutes N] [--seed S] [--quantum FRAMES] [--sync]
                           a stream that must not lose a sample, next to clients that come, fault and go
  soak --faults            each fault and each restart in all modes of the server
  tarball [--out DIR]      pack consort with an install script, for systems without packages
  targets                  check that the libraries compile for i686 and aarch64, where the compiler
                           has these targets
  width                    check that comments and documents are wrapped
  test [NAME]              run every check
  test-devices             everything on real sound cards, in virtual machines: many minutes
";

/// Whether the help names a task of this name.
fn has_task(name: &str) -> bool {
    let lines = HELP.lines().filter_map(|line| line.strip_prefix("  "));
    lines.filter(|line| !line.starts_with(' ')).any(|line| line.split(' ').next() == Some(name))
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    run(&words).unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::FAILURE
    })
}

fn run(words: &[String]) -> Result<ExitCode> {
    match words.split_first().map(|(task, arguments)| (task.as_str(), arguments)) {
        Some(("demo", [])) => demo::run()?,
        Some(("bill", arguments)) => bill::run(arguments)?,
        Some(("deb", arguments)) => deb::run(arguments)?,
        Some(("deny", [])) => deny::run()?,
        Some(("fuzz", arguments)) => fuzz::run(arguments)?,
        Some(("install", arguments)) => install::run(arguments)?,
        Some(("links", [])) => links::run()?,
        Some(("mutate", arguments)) => return Ok(mutate::run(arguments)?),
        Some(("notices", arguments)) => notices::run(arguments)?,
        Some(("release", arguments)) => release::run(arguments)?,
        Some(("sanitize", [])) => sanitize::run()?,
        Some(("setup", [])) => {
            succeed(Command::new("sh").arg(command::root().join("xtask/setup/debian.sh")))?
        }
        Some(("soak", arguments)) => soak::run(arguments)?,
        Some(("tarball", arguments)) => tarball::run(arguments)?,
        Some(("targets", [])) => targets::run()?,
        Some(("test", arguments)) => test::run(arguments)?,
        Some(("test-devices", [])) => test::devices()?,
        Some(("width", [])) => width::run()?,
        Some(("help" | "--help" | "-h", [])) => print!("{HELP}"),
        Some((task, _)) => {
            bail!("there is no task '{task}', or not with these arguments\n\n{HELP}")
        }
        None => bail!("which task?\n\n{HELP}"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs `command`, and fails if it does.
fn succeed(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = command.status().with_context(|| format!("cannot run {program}"))?;
    ensure!(status.success(), "{program} failed: {status}");
    Ok(())
}
