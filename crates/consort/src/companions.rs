//! What starts and ends with a server: the web page, PulseAudio's front end, further devices,
//! plug-ins.

use std::process::ExitCode;

use cli::{UsageError, end_with_stdin};
use device_bridge::{DeviceOptions, DeviceProcesses};
use engine::Config;
use jackd::StartupLoad;
use sys::signals::TerminationSignals;

use crate::front_end::{FrontEnd, FrontEndArguments};
use crate::own_program::OwnProgram;
use crate::page::{Page, PageArguments};
use crate::plug_ins::StartupLoader;

/// What is to start with a server.
#[derive(Debug, Default)]
pub(crate) struct Companions {
    pub(crate) page: PageArguments,
    pub(crate) front_end: FrontEndArguments,
    /// Devices in addition to the driver's own.
    pub(crate) devices: Vec<DeviceOptions>,
    pub(crate) startup: StartupLoad,
    /// The server ends with standard input.
    pub(crate) while_stdin_is_open: bool,
    /// Lines for the user.
    pub(crate) notices: Vec<String>,
}

/// What has started. Dropping it ends the processes.
struct Running {
    _page: Option<Page>,
    _front_end: Option<FrontEnd>,
    _devices: DeviceProcesses,
    _signals: Option<TerminationSignals>,
    loader: Option<StartupLoader>,
}

impl Companions {
    /// Runs a server with these until it is asked to stop.
    ///
    /// Their threads and processes start once the server has given up root's rights, which both
    /// would inherit.
    pub(crate) fn run_server(self, config: Config) -> anyhow::Result<ExitCode> {
        // MUTATION: run_server.page_past_policy
        if !config.policy.is_empty() && self.page.lets_any_program_in() {
            let message = "with a policy, the web page needs --web-token-file: it acts for every \
                           program of this user that asks it, with its own permissions";
            return Err(UsageError(message.into()).into());
        }
        // Its port may be one that only root can take.
        let page = self.page.listen()?;
        let name = config.name.clone();
        let start = || -> anyhow::Result<Running> {
            self.notices.iter().for_each(|notice| sys::report!("{notice}"));
            Ok(Running {
                _page: page.map(|page| page.start(&name)).transpose()?,
                _front_end: self.front_end.start(&name)?,
                _devices: DeviceProcesses::start(&name, &self.devices)?,
                _signals: self.while_stdin_is_open.then(end_with_stdin).transpose()?,
                loader: StartupLoader::start(&name, self.startup)?,
            })
        };
        let mut started = None;
        let outcome = engine::run(config, OwnProgram::platform(), || {
            started.insert(start()).as_ref().map(drop).map_err(|_| engine::CompanionError)
        });
        let running = started.transpose()?;
        outcome?;
        let loader = running.and_then(|running| running.loader);
        Ok(loader.map_or(ExitCode::SUCCESS, StartupLoader::finish))
    }
}
