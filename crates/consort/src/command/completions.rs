//! `consort completions`: what a shell needs to complete consort's command lines.

use std::process::ExitCode;

use clap::Args;
use clap_complete::Shell;
use cli::output;

/// Print the completion script of a shell
#[derive(Debug, Args)]
#[command(after_help = "Example:
  consort completions bash > ~/.local/share/bash-completion/completions/consort")]
pub(crate) struct Completions {
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self, mut definition: clap::Command) -> anyhow::Result<ExitCode> {
        output::print(&script(self.shell, &mut definition))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn script(shell: Shell, definition: &mut clap::Command) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, definition, "consort", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_completes_the_commands_and_their_options() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(shell, &mut crate::command());
            for word in ["disconnect", "quantum", "completions"] {
                assert!(script.contains(word), "{shell}: {word}");
            }
        }
    }
}
