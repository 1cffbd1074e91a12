//! Starts a server if none is running, which programs expect from libjack.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sys::clock::{now_ns, sleep_until};
use sys::library::loaded_from;

use crate::Error;

const PATIENCE_NS: u64 = 5_000_000_000;
const RETRY_NS: u64 = 50_000_000;

/// Returns whether the user lets programs start servers.
pub(crate) fn is_allowed() -> bool {
    std::env::var_os("JACK_NO_START_SERVER").is_none()
}

/// Starts `server` and repeats `attempt` until the server accepts connections, for at most 5 s.
pub(crate) fn start<T>(server: &str, attempt: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
    let words = command(server);
    let not_started = |reason: String| Error::NotStarted { command: words.join(" "), reason };
    spawn_detached(&words).map_err(|error| not_started(error.to_string()))?;
    let deadline_ns = now_ns() + PATIENCE_NS;
    loop {
        sleep_until(now_ns() + RETRY_NS);
        match attempt() {
            Err(Error::NoServer { .. }) if now_ns() < deadline_ns => {}
            Err(Error::NoServer { .. }) => {
                return Err(not_started(
                    "it did not come up within 5 s; run it in a terminal to see why".into(),
                ));
            }
            decided => return decided,
        }
    }
}

/// Builds the command line of the server: the user's (`~/.jackdrc`, `/etc/jackdrc`) or the default
/// one, with the options that name the server and make it temporary.
fn command(server: &str) -> Vec<String> {
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".jackdrc"));
    let files = home.into_iter().chain([PathBuf::from("/etc/jackdrc")]);
    let configured = files
        .filter_map(|file| std::fs::read_to_string(file).ok())
        .map(|line| split_words(&line))
        .find(|words| !words.is_empty());
    for_server(configured.unwrap_or_else(|| vec![default_program()]), server)
}

fn for_server(mut words: Vec<String>, server: &str) -> Vec<String> {
    // Directly after the program: options behind a driver's name belong to the driver.
    words.splice(1..1, ["-T".to_owned(), format!("-n{server}")]);
    words
}

/// Returns the `jackd` of the installation that this library belongs to, or else `jackd` in `PATH`.
fn default_program() -> String {
    let installed = loaded_from(&["libjack.so", "libjackserver.so"])
        .and_then(|library| Some(library.parent()?.parent()?.join("bin/jackd")))
        .filter(|program| program.is_file());
    installed
        .and_then(|program| program.to_str().map(str::to_owned))
        .unwrap_or_else(|| "jackd".to_owned())
}

/// Splits at white space, except between quotation marks.
fn split_words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut quote) = (None::<String>, None);
    for character in line.chars() {
        match (character, quote) {
            (_, Some(mark)) if character == mark => quote = None,
            ('"' | '\'', None) => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (_, None) if character.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    words
}

/// Starts the program so that it is not a child of this process, which would have to wait for it,
/// and so that the terminal's interrupt key does not reach it.
fn spawn_detached(words: &[String]) -> std::io::Result<()> {
    // The shell ends at once, and init adopts the program.
    let status = Command::new("/bin/sh")
        .args(["-c", "command -v \"$1\" >/dev/null || exit 127; \"$@\" &", "sh"])
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .status()?;
    if status.success() { Ok(()) } else { Err(std::io::Error::from(std::io::ErrorKind::NotFound)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_split_into_its_words() {
        for (case, line, expected) in [
            ("words", "jackd -d alsa\n", &["jackd", "-d", "alsa"][..]),
            ("white space", "  jackd \t -R ", &["jackd", "-R"]),
            (
                "quotation marks",
                "\"/opt/my jack/jackd\" -n 'a \"b'",
                &["/opt/my jack/jackd", "-n", "a \"b"],
            ),
            ("inside a word", "--name=\"a b\"c", &["--name=a bc"]),
            ("an empty word", "jackd ''", &["jackd", ""]),
            ("nothing", " \n", &[]),
        ] {
            assert_eq!(split_words(line), expected, "{case}");
        }
    }

    #[test]
    fn a_started_server_is_temporary() {
        let words = ["jackd", "-d", "alsa"].map(str::to_owned).to_vec();
        assert_eq!(for_server(words, "studio"), ["jackd", "-T", "-nstudio", "-d", "alsa"]);
    }

    #[test]
    fn a_program_that_does_not_exist_is_not_started() {
        let words = ["/nonexistent/jackd".to_owned()];
        assert_eq!(spawn_detached(&words).unwrap_err().kind(), std::io::ErrorKind::NotFound);
    }
}
