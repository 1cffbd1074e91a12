//! The plug-in `profiler`, which is a part of consort.

use anyhow::bail;
use client::{HostSocket, InternalFailure};

use profile::ports::{Profiler, ServerPorts};

/// Runs the profiler until the server asks it to finish.
pub(super) fn run(
    server: &str,
    name: &str,
    exact: bool,
    parameters: &str,
    line: &HostSocket,
) -> anyhow::Result<()> {
    let wanted = match wanted(parameters) {
        Ok(wanted) => wanted,
        Err(error) => {
            line.failed(InternalFailure::Start, &error.to_string());
            return Err(error);
        }
    };
    let mut profiler = match Profiler::start(server, name, exact, wanted) {
        Ok(profiler) => profiler,
        Err(error) => {
            let failure =
                error.downcast_ref().map_or(InternalFailure::Start, HostSocket::failure_of);
            line.failed(failure, &format!("{error:#}"));
            return Err(error);
        }
    };
    line.running(profiler.name());
    profiler.run_until(|| line.is_to_finish())
}

/// Reads the parameters, which are those of JACK2's profiler.
fn wanted(parameters: &str) -> anyhow::Result<ServerPorts> {
    let mut wanted = ServerPorts { cpu_load: false, driver_period: false, driver_end_time: false };
    for word in parameters.split_whitespace() {
        match word {
            "-c" | "--cpu-load" => wanted.cpu_load = true,
            "-p" | "--driver-period" => wanted.driver_period = true,
            "-e" | "--driver-end-time" => wanted.driver_end_time = true,
            _ => bail!("the profiler has no parameter '{word}', only -c, -p and -e"),
        }
    }
    Ok(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_known_letters_in_any_order() {
        let all = ServerPorts { cpu_load: true, driver_period: true, driver_end_time: true };
        assert_eq!(wanted(" -e -c  -p").expect("known"), all);
        assert_eq!(
            wanted("-p").expect("known"),
            ServerPorts { cpu_load: false, driver_end_time: false, ..all }
        );
        assert!(!wanted("").expect("known").cpu_load);
        assert!(wanted("-c -x").expect_err("unknown").to_string().contains("'-x'"));
    }
}
