//! consort as `jackd`: does what a command line of JACK's server asks for.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::bail;
use cli::output;
use client::Observer;
use jackd::Request;

use crate::command::driver::with_absolute_paths;
use crate::companions::Companions;

/// Runs `jackd WORDS`.
pub(crate) fn run(words: &[OsString]) -> anyhow::Result<ExitCode> {
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    match jackd::parse(&words, std::env::var("JACK_DEFAULT_SERVER").ok())? {
        Request::Text(text) => output::print(&text)?,
        Request::NotBuilt { driver, instead } => {
            bail!("there is no driver '{driver}' in consort: {instead}")
        }
        Request::Switch { server, switch } => {
            Observer::open(Some(&server))?.switch_driver(with_absolute_paths(switch)?)?
        }
        Request::AddSlave { server, slave } => {
            // Checked before a process is started for nothing.
            let _there = Observer::open(Some(&server))?;
            slave.notices.iter().for_each(|notice| sys::report!("jackd: {notice}"));
            output::print(&format!("{}\n", device_bridge::add(&server, &slave.device)?.name))?;
        }
        Request::Run { config, while_stdin_is_open, notices, devices, startup } => {
            let told = notices.into_iter().filter(|_| config.verbose);
            let notices = told.map(|notice| format!("jackd: {notice}")).collect();
            let others = Companions::default();
            let companions =
                Companions { devices, startup, while_stdin_is_open, notices, ..others };
            return companions.run_server(*config);
        }
    }
    Ok(ExitCode::SUCCESS)
}
