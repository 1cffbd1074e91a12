//! The file that keeps parameters beyond the service's end: a line for each that differs from its
//! default.

use std::fs::{DirBuilder, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::parameters::Parameters;

/// The file, below the directory of the user's settings.
const FILE: &str = "consort/dbus.conf";
/// Limit of the file, far above what the service writes.
const MAX_BYTES: u64 = 64 * 1024;
const HEAD: &str = "# What the next server is started with, as set over D-Bus (jack_control, QjackCtl).\n\
                    # Written whenever a parameter is set; 'consort dbus' reads it when it starts.\n";

/// The file and its content.
#[derive(Debug)]
pub(crate) struct Settings {
    /// `None`: parameters are lost when the service ends.
    path: Option<PathBuf>,
    text: String,
}

fn warn(what: impl std::fmt::Display) {
    eprintln!("consort: {what}");
}

impl Settings {
    /// Reads this user's settings into the parameters. A line that makes no sense is reported and
    /// ignored.
    pub(crate) fn read(parameters: &mut Parameters) -> Self {
        let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
        match path(variable("XDG_CONFIG_HOME"), variable("HOME")) {
            Some(path) => Self::of(&path, parameters),
            None => {
                warn("parameters are not kept: neither XDG_CONFIG_HOME nor HOME names a directory");
                Self { path: None, text: String::new() }
            }
        }
    }

    fn of(path: &Path, parameters: &mut Parameters) -> Self {
        let text = match read(path) {
            Ok(text) => text,
            Err(error) => {
                warn(format_args!(
                    "{}: {error}: the file is left alone, and parameters are not kept",
                    path.display()
                ));
                return Self { path: None, text: String::new() };
            }
        };
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
            if let Err(reason) = parameters.set_line(line) {
                warn(format_args!("{}, line {}: {reason}", path.display(), number + 1));
            }
        }
        Self { path: Some(path.into()), text }
    }

    /// Writes the parameters that are set, if they have changed. If that fails, reports it; the
    /// parameters then last until the service ends.
    pub(crate) fn write(&mut self, parameters: &Parameters) {
        let Some(path) = &self.path else { return };
        let text =
            parameters.lines().into_iter().fold(HEAD.to_owned(), |text, line| text + &line + "\n");
        if text == self.text {
            return;
        }
        match replace(path, &text) {
            Ok(()) => self.text = text,
            Err(error) => {
                warn(format_args!("{}: {error}: parameters are not kept", path.display()))
            }
        }
    }
}

/// Returns the path of the file. Relative directories are ignored, as freedesktop.org's
/// specification says.
fn path(settings: Option<PathBuf>, home: Option<PathBuf>) -> Option<PathBuf> {
    let whole = |directory: &PathBuf| directory.is_absolute();
    let directory =
        settings.filter(whole).or_else(|| home.filter(whole).map(|home| home.join(".config")));
    directory.map(|directory| directory.join(FILE))
}

/// Reads the file; an empty text if there is none.
fn read(path: &Path) -> io::Result<String> {
    let about = match path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        about => about?,
    };
    check(&about).map_err(io::Error::other)?;
    let mut text = String::new();
    File::open(path)?.take(MAX_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

fn check(about: &Metadata) -> Result<(), &'static str> {
    if !about.is_file() {
        return Err("it is not a regular file");
    }
    if about.len() >= MAX_BYTES {
        return Err("it is too large for settings");
    }
    if about.uid() != sys::process::real_user_id() {
        return Err("it belongs to another user");
    }
    Ok(())
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    state::replace(path, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::jackd::tests::TwoSlaveDrivers;

    fn parameters_of(path: &Path) -> (Settings, Parameters) {
        let mut parameters = Parameters::new("default", Arc::new(TwoSlaveDrivers));
        let settings = Settings::of(path, &mut parameters);
        (settings, parameters)
    }

    #[test]
    fn parameters_are_read_back_as_they_were_set() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("made").join("dbus.conf");
        let (mut settings, mut parameters) = parameters_of(&path);
        settings.write(&parameters);
        for line in [
            "engine driver = alsa",
            "drivers alsa device = hw:CARD=USB,DEV=0 ",
            "engine self-connect-mode =  ",
            "engine self-connect-mode = e",
            "drivers dummy period = 1024",
        ] {
            parameters.set_line(line).unwrap_or_else(|reason| panic!("{line}: {reason}"));
        }
        settings.write(&parameters);
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let kept = [
            "engine driver = alsa",
            "engine self-connect-mode = e",
            "drivers alsa device = hw:CARD=USB,DEV=0 ",
        ];
        assert_eq!(lines, kept);
        assert_eq!(parameters_of(&path).1.lines(), kept);

        let nonsense = "nonsense\n\nengine = 3\nengine driver = oss\ndrivers dummy period = 64\nengine sync = yes\n\
                        engine client-timeout = 1e3\n= \ndrivers alsa device = -d\n";
        std::fs::write(&path, nonsense).unwrap();
        assert_eq!(parameters_of(&path).1.lines(), ["drivers dummy period = 64"]);
    }

    #[test]
    fn a_file_that_is_not_settings_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("dbus.conf");
        let large = "#".repeat(usize::try_from(MAX_BYTES).unwrap());
        for bytes in [&b"\xff\xfe"[..], large.as_bytes()] {
            std::fs::write(&path, bytes).unwrap();
            let (mut settings, mut parameters) = parameters_of(&path);
            parameters.set_line("engine sync = true").unwrap();
            settings.write(&parameters);
            assert_eq!(std::fs::read(&path).unwrap(), bytes);
        }
        let (mut settings, parameters) = parameters_of(directory.path());
        settings.write(&parameters);
        assert!(directory.path().is_dir());
    }

    #[test]
    fn settings_are_in_the_users_configuration_directory() {
        let found = |settings: Option<&str>, home: Option<&str>| {
            path(settings.map(PathBuf::from), home.map(PathBuf::from))
        };
        let expected = |path: &str| Some(PathBuf::from(path));
        assert_eq!(
            found(Some("/etc/own"), Some("/home/me")),
            expected("/etc/own/consort/dbus.conf")
        );
        for relative in [None, Some(""), Some("own")] {
            assert_eq!(
                found(relative, Some("/home/me")),
                expected("/home/me/.config/consort/dbus.conf")
            );
            assert_eq!(found(relative, None), None);
        }
    }
}
