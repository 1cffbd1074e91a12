//! `consort completions`: what a shell needs to complete consort's command lines.

use std::process::ExitCode;

use clap::{Args, Command};
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
    pub(crate) fn run(self, definition: &Command) -> anyhow::Result<ExitCode> {
        output::print(&script(self.shell, definition))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn script(shell: Shell, definition: &Command) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut shown(definition), "consort", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// A command without what users do not see, which scripts would complete as well.
fn shown(command: &Command) -> Command {
    // A definition keeps names that live as long as the program, which ends soon.
    let name: &'static str = command.get_name().to_owned().leak();
    let arguments = command.get_arguments().filter(|argument| !argument.is_hide_set()).cloned();
    let commands = command.get_subcommands().filter(|command| !command.is_hide_set()).map(shown);
    let about = command.get_about().cloned().unwrap_or_default();
    let version = command.get_version().map(|version| &*version.to_owned().leak());
    let shown = Command::new(name).about(about).args(arguments).subcommands(commands);
    version.into_iter().fold(shown, Command::version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_completes_the_commands_and_options_that_users_see() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(shell, &crate::command());
            for word in ["disconnect", "quantum", "completions", "add-device"] {
                assert!(script.contains(word), "{shell}: {word}");
            }
            for word in ["realtime-kit", "as-part"] {
                assert!(!script.contains(word), "{shell}: {word}");
            }
        }
    }
}
