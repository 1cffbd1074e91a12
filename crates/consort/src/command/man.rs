//! `consort man`: writes the man pages, for packages and installation.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;

/// Write the man pages into a directory
#[derive(Debug, Args)]
#[command(
    hide = true,
    after_help = "Example:
  consort man /usr/local/share/man/man1"
)]
pub(crate) struct Man {
    /// The directory; created if it does not exist
    directory: PathBuf,
}

impl Man {
    pub(crate) fn run(self, definition: clap::Command) -> anyhow::Result<ExitCode> {
        write(&self.directory, definition)
            .with_context(|| format!("cannot write man pages into {}", self.directory.display()))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn write(directory: &Path, definition: clap::Command) -> std::io::Result<()> {
    fs::create_dir_all(directory)?;
    clap_mangen::generate_to(definition, directory)?;
    fs::write(directory.join("jackd.1"), jackd::man_page())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_visible_command_has_a_man_page_with_an_example() {
        let directory = std::env::temp_dir().join(format!("consort-man-{}", std::process::id()));
        write(&directory, crate::command()).expect("man pages");
        let main = fs::read_to_string(directory.join("consort.1")).expect("consort.1");
        assert!(main.contains("Exit codes") && !main.contains("Write the man pages"));
        for command in crate::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            let page =
                fs::read_to_string(directory.join(format!("consort-{}.1", command.get_name())));
            assert!(page.is_ok_and(|page| page.contains("Example")), "{}", command.get_name());
        }
        assert!(directory.join("jackd.1").exists());
        fs::remove_dir_all(&directory).expect("cleaned");
    }
}
