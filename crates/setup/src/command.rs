//! The command line of `consort setup`.

use std::env;
use std::io;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use cli::UsageError;

use crate::account::{Account, has_group};
use crate::part::Part;
use crate::plan::{self, CardChoice, GROUP, Purpose};
use crate::questions::ask;

/// Set up a server for a user: which card, how long its cycles are, and the right to real-time
/// priorities
///
/// Asks what the options do not say. Root sets up any user; all others themselves, without the
/// right to priorities. What was there before is kept, and brought back by --undo.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sudo consort setup
  consort setup --card hw:USB --for studio
  consort setup --dry-run --yes
  sudo consort setup --undo --user ann")]
pub struct Setup {
    /// Whose server it is [default: the user who runs this, or sudo]
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// The card: a name of ALSA such as hw:USB, "auto" for the most sensible one at each start,
    /// or "none" for the timer
    #[arg(long, value_name = "CARD", conflicts_with = "undo")]
    card: Option<String>,
    /// What the machine is for
    #[arg(long = "for", value_enum, conflicts_with = "undo")]
    purpose: Option<Purpose>,
    /// Say what would be changed, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Ask nothing: take the default for what the options do not say
    #[arg(short, long)]
    yes: bool,
    /// Bring back what was there before
    #[arg(long)]
    undo: bool,
    /// Print what is changed and nothing else: root runs this for another user's files
    #[arg(long, hide = true)]
    as_part: bool,
}

impl Setup {
    /// Sets up, or undoes it.
    ///
    /// # Errors
    /// If answers are missing or make no sense, files cannot be written, or somebody has changed
    /// them since the last setup.
    pub fn run(mut self) -> Result<ExitCode> {
        let own = Account::own()?;
        let user = self.whose(&own)?;
        let mut lines = Vec::new();
        if self.undo {
            lines.extend(self.undo(&own, &user)?);
        } else {
            let (card, purpose) = (self.which_card()?, self.what_for()?);
            if own.number == 0 {
                let changes = plan::of_machine(&user.name, has_group(GROUP)?);
                lines.extend(Part::of_machine(&user.name).set_up(changes, !self.dry_run)?);
            }
            lines.extend(self.set_up_user(&own, &user, &card, purpose)?);
        }
        if !self.as_part {
            lines = self.with_advice(lines, &own, &user);
        }
        cli::output::print(&lines.iter().map(|line| format!("{line}\n")).collect::<String>())?;
        Ok(ExitCode::SUCCESS)
    }

    /// The changes, and what to do next.
    fn with_advice(&self, mut lines: Vec<String>, own: &Account, user: &Account) -> Vec<String> {
        if lines.is_empty() {
            let what = if self.undo { "undone" } else { "changed" };
            return vec![format!("nothing has to be {what} for {}", user.name)];
        }
        if self.dry_run {
            lines.push("nothing was changed: --dry-run".into());
            return lines;
        }
        if own.number == 0 && user.number != 0 {
            lines.push(format!("next     {} logs in again, which changes rights", user.name));
        } else if own.number != 0 && !self.undo && sys::process::rtprio_limit() == 0 {
            let name = &user.name;
            lines.push(format!("next     real-time priorities: sudo consort setup --user {name}"));
        }
        lines
            .push("next     consort stop, if a server runs: the next one has these options".into());
        lines
    }

    /// The user, who may be another only for root.
    fn whose(&mut self, own: &Account) -> Result<Account> {
        let is_root = own.number == 0;
        let Some(name) = self.user.take() else {
            // Root's default is who asked sudo.
            let asked = env::var("SUDO_USER").ok().filter(|_| is_root);
            let default = asked.unwrap_or_else(|| own.name.clone());
            if !is_root || self.yes || self.undo {
                return Account::of_name(&default);
            }
            return put("Whose machine is it?", &default, Account::of_name);
        };
        let user = Account::of_name(&name)?;
        if !is_root && user != *own {
            let message =
                format!("only root sets up another user: sudo consort setup --user {name}");
            return Err(UsageError(message).into());
        }
        Ok(user)
    }

    fn which_card(&self) -> Result<CardChoice> {
        match &self.card {
            Some(card) => parse_card(card),
            None if self.yes => Ok(CardChoice::Auto),
            None => {
                let mut list = String::new();
                for card in alsa::cards() {
                    if let Some(name) = playback_name(&card) {
                        list.push_str(&format!("  {name}  {}\n", card.name));
                    }
                }
                eprint!(
                    "Cards:\n{list}  auto  the most sensible one, whenever the server starts\n  \
                     none  no card but a timer: nothing is heard\n"
                );
                put("Which card?", "auto", parse_card)
            }
        }
    }

    fn what_for(&self) -> Result<Purpose> {
        match self.purpose {
            Some(purpose) => Ok(purpose),
            None if self.yes => Ok(Purpose::Desktop),
            None => put("What is it for, desktop or studio?", "desktop", |answer| {
                Purpose::from_str(answer, true).map_err(|error| UsageError(error).into())
            }),
        }
    }

    /// The user's part. Root does not write where another user may have laid links: this program
    /// does, as that user.
    fn set_up_user(
        &self,
        own: &Account,
        user: &Account,
        card: &CardChoice,
        purpose: Purpose,
    ) -> Result<Vec<String>> {
        if user.number == own.number {
            let changes = plan::of_user(&base("XDG_CONFIG_HOME", ".config", user), card, purpose);
            return Part::of_user(&base("XDG_STATE_HOME", ".local/state", user))
                .set_up(changes, !self.dry_run);
        }
        let card = match card {
            CardChoice::Auto => "auto",
            CardChoice::None => "none",
            CardChoice::Device(device) => device,
        };
        let purpose = purpose.to_possible_value().context("a value with a name")?;
        self.as_user(user, &["--yes", "--card", card, "--for", purpose.get_name()])
    }

    fn undo(&self, own: &Account, user: &Account) -> Result<Vec<String>> {
        let is_real = !self.dry_run;
        let mut lines = Vec::new();
        if user.number == own.number {
            let part = Part::of_user(&base("XDG_STATE_HOME", ".local/state", user));
            lines.extend(part.undo(is_real)?.into_iter().flatten());
        } else {
            lines.extend(self.as_user(user, &["--undo"])?);
        }
        if own.number == 0 {
            let part = Part::of_machine(&user.name);
            lines.extend(part.undo(is_real)?.into_iter().flatten());
        }
        Ok(lines)
    }

    /// Runs this program as another user, for that user's part; returns the lines that it prints.
    fn as_user(&self, user: &Account, arguments: &[&str]) -> Result<Vec<String>> {
        let itself = cli::own_file().context("cannot find own file")?;
        let mut command = Command::new("runuser");
        command.args(["--user", &user.name, "--"]).arg(itself).arg("setup").args(arguments);
        command.env_clear().env("HOME", &user.home).env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command.arg("--as-part").current_dir("/");
        if self.dry_run {
            command.arg("--dry-run");
        }
        let output = command.output().context("cannot run runuser")?;
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        ensure!(output.status.success(), "as {}: {said}", user.name);
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(printed.lines().map(str::to_owned).collect())
    }
}

/// Asks on the terminal.
fn put<T>(question: &str, default: &str, parse: impl FnMut(&str) -> Result<T>) -> Result<T> {
    ask(&mut io::stdin().lock(), &mut io::stderr(), question, default, parse)
}

/// A card as users write it. It need not be plugged in.
fn parse_card(text: &str) -> Result<CardChoice> {
    let known = || alsa::cards().into_iter().find(|card| card.id == text);
    match text {
        "auto" => Ok(CardChoice::Auto),
        "none" => Ok(CardChoice::None),
        // It becomes a word of a line that systemd splits.
        _ if text.contains(|c: char| !c.is_ascii_alphanumeric() && !":=,_-.".contains(c)) => {
            Err(UsageError(format!("'{text}' cannot be the name of a card")).into())
        }
        _ if text.starts_with("hw:") => Ok(CardChoice::Device(text.into())),
        _ => match known().as_ref().and_then(playback_name) {
            Some(device) => Ok(CardChoice::Device(device)),
            None => Err(UsageError(format!(
                "there is no card '{text}': write auto, none, or a name such as hw:USB; \
                 'consort device list' shows them"
            ))
            .into()),
        },
    }
}

/// The name of a card's first device that plays.
fn playback_name(card: &alsa::Card) -> Option<String> {
    let device = card.devices.iter().find(|device| device.plays)?;
    Some(card.device_name(device.index, None))
}

/// A directory of the user, as the XDG base directory specification has it.
fn base(variable: &str, default: &str, user: &Account) -> PathBuf {
    let set = env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    set.unwrap_or_else(|| {
        let home = env::var_os("HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        home.unwrap_or_else(|| user.home.clone()).join(default)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_one_word_of_options() {
        assert_eq!(parse_card("auto").expect("valid"), CardChoice::Auto);
        assert_eq!(parse_card("none").expect("valid"), CardChoice::None);
        let device = CardChoice::Device("hw:CARD=USB,DEV=0".into());
        assert_eq!(parse_card("hw:CARD=USB,DEV=0").expect("valid"), device);
        for text in ["hw:USB --policy /x", "hw:\"", "hw:$HOME", "hw:a\nb", "no such card"] {
            assert!(parse_card(text).is_err(), "{text}");
        }
    }
}
