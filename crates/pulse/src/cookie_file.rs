//! The file with PulseAudio's cookie, as libpulse finds it.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions, hard_link, remove_file};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::front_end::{COOKIE_BYTES, Cookie};

/// Where a cookie may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CookieFile {
    /// The file, which is made if there is none.
    path: PathBuf,
    /// What PulseAudio once used, and still reads if that is all there is.
    former: Option<PathBuf>,
}

impl CookieFile {
    /// Names a file of the user's choice.
    pub fn at(path: PathBuf) -> Self {
        Self { path, former: None }
    }

    /// Returns the file where all programs of the user look, by `XDG_CONFIG_HOME` and `HOME`.
    ///
    /// # Errors
    /// Neither is set.
    pub fn of_user() -> anyhow::Result<Self> {
        Self::of(std::env::var_os("XDG_CONFIG_HOME"), std::env::var_os("HOME"))
    }

    fn of(configuration: Option<OsString>, home: Option<OsString>) -> anyhow::Result<Self> {
        let named =
            |name: Option<OsString>| name.filter(|name| !name.is_empty()).map(PathBuf::from);
        let home = named(home);
        let in_home = || home.as_deref().map(|home| home.join(".config"));
        let configuration = named(configuration).or_else(in_home);
        let configuration = configuration
            .context("neither XDG_CONFIG_HOME nor HOME is set: name the cookie's file")?;
        let former = home.map(|home| home.join(".pulse-cookie"));
        Ok(Self { path: configuration.join("pulse/cookie"), former })
    }

    /// Reads the cookie, if there is one.
    ///
    /// # Errors
    /// A sentence about the file: it cannot be read, or has something else.
    pub fn existing(&self) -> anyhow::Result<Option<Cookie>> {
        let former = self.former.as_deref();
        for path in [Some(self.path.as_path()), former].into_iter().flatten() {
            if let Some(cookie) = read(path)? {
                return Ok(Some(cookie));
            }
        }
        Ok(None)
    }

    /// Returns the file, for users.
    pub fn shown(&self) -> &Path {
        &self.path
    }

    /// Reads the cookie, and makes one if there is none.
    ///
    /// # Errors
    /// A sentence about the file: it cannot be read or made, or has something else.
    pub fn load(&self) -> anyhow::Result<(Cookie, &Path)> {
        let former = self.former.as_deref();
        for path in [Some(self.path.as_path()), former].into_iter().flatten() {
            if let Some(cookie) = read(path)? {
                return Ok((cookie, path));
            }
        }
        make(&self.path)?;
        let made = read(&self.path)?;
        let cookie =
            made.with_context(|| format!("{} is a link to nothing", self.path.display()))?;
        Ok((cookie, &self.path))
    }
}

/// Reads a cookie; `None` if there is no file. A file that is no cookie is left as it is: it may be
/// anything that the user has named by mistake.
fn read(path: &Path) -> anyhow::Result<Option<Cookie>> {
    let shown = path.display();
    let found = match path.metadata() {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read {shown}")),
    };
    // A pipe or a device has no length: neither is waited for.
    if found.len() != COOKIE_BYTES as u64 {
        bail!(
            "{shown} is not a cookie, which is a file of {COOKIE_BYTES} bytes: remove it to have \
             one made, or name another"
        );
    }
    let mut bytes = [0; COOKIE_BYTES];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut bytes));
    read.with_context(|| format!("cannot read {shown}"))?;
    Ok(Some(Cookie(bytes)))
}

/// Makes a cookie that only this user can read. If another program makes one meanwhile, that one
/// stays. No program sees a part of it.
fn make(path: &Path) -> anyhow::Result<()> {
    let context = || format!("cannot make the cookie {}", path.display());
    if let Some(directory) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        DirBuilder::new().mode(0o700).recursive(true).create(directory).with_context(context)?;
    }
    let mut bytes = [0; COOKIE_BYTES];
    let random = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    random.context("cannot read /dev/urandom")?;
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", std::process::id()));
    let unfinished = Path::new(&name);
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(unfinished);
    let mut file = file.with_context(context)?;
    let made = file.write_all(&bytes).and_then(|()| hard_link(unfinished, path));
    let _ = remove_file(unfinished);
    match made {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error).with_context(context),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use not_run::not_run;

    use super::*;

    /// A user's directory, with the names of both files.
    struct Home {
        directory: tempfile::TempDir,
        file: CookieFile,
    }

    impl Home {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let file = CookieFile::of(None, Some(directory.path().into())).unwrap();
            Self { directory, file }
        }

        fn path(&self) -> PathBuf {
            self.directory.path().join(".config/pulse/cookie")
        }

        fn former(&self) -> PathBuf {
            self.directory.path().join(".pulse-cookie")
        }

        /// Makes the directory of the cookie.
        fn prepare(&self) {
            std::fs::create_dir_all(self.path().parent().unwrap()).unwrap();
        }

        fn loaded(&self) -> Result<(Cookie, PathBuf), String> {
            let loaded = self.file.load().map(|(cookie, path)| (cookie, path.to_owned()));
            loaded.map_err(|error| format!("{error:#}"))
        }
    }

    fn cookie(byte: u8) -> Cookie {
        Cookie([byte; COOKIE_BYTES])
    }

    #[test]
    fn a_cookie_that_is_missing_is_made_for_this_user_alone_and_stays() {
        let home = Home::new();
        let (made, path) = home.loaded().unwrap();
        assert_eq!(path, home.path());
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        assert_eq!(home.loaded().unwrap().0, made);
        assert_ne!(Home::new().loaded().unwrap().0, made, "it is random");
        let beside = std::fs::read_dir(path.parent().unwrap()).unwrap().count();
        assert_eq!(beside, 1, "nothing else is left");
    }

    #[test]
    fn the_former_file_is_read_if_it_is_all_there_is() {
        let home = Home::new();
        std::fs::write(home.former(), [1; COOKIE_BYTES]).unwrap();
        assert_eq!(home.loaded(), Ok((cookie(1), home.former())));
        assert!(!home.path().exists());
        home.prepare();
        std::fs::write(home.path(), [2; COOKIE_BYTES]).unwrap();
        assert_eq!(home.loaded(), Ok((cookie(2), home.path())));
    }

    #[test]
    fn a_file_of_another_length_is_refused_and_left_alone() {
        for length in [0, COOKIE_BYTES - 1, COOKIE_BYTES + 1] {
            let home = Home::new();
            home.prepare();
            std::fs::write(home.path(), vec![1; length]).unwrap();
            let refused = home.loaded().unwrap_err();
            assert!(refused.contains("256 bytes"), "{length}: {refused}");
            assert_eq!(std::fs::read(home.path()).unwrap(), vec![1; length]);
        }
    }

    #[test]
    fn what_is_no_file_is_refused_without_waiting_for_it() {
        let home = Home::new();
        home.prepare();
        for path in ["/dev/zero".into(), home.directory.path().to_owned()] {
            let refused = CookieFile::at(path).load().map(drop).unwrap_err().to_string();
            assert!(refused.contains("not a cookie"), "{refused}");
        }
        let pipe = std::process::Command::new("mkfifo").arg(home.path()).status().unwrap();
        assert!(pipe.success());
        assert!(home.loaded().unwrap_err().contains("not a cookie"));
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let home = Home::new();
        home.prepare();
        // Its own content, for ever: not even root can follow it.
        symlink(home.path(), home.path()).unwrap();
        let refused = home.loaded().unwrap_err();
        assert!(refused.contains(&*home.path().to_string_lossy()), "{refused}");
        std::fs::remove_file(home.path()).unwrap();
        std::fs::write(home.path(), [1; COOKIE_BYTES]).unwrap();
        std::fs::set_permissions(home.path(), PermissionsExt::from_mode(0o000)).unwrap();
        // Root gives up, on a thread of its own, the right to read any file.
        let loaded = || {
            sys::process::drop_rights(false).unwrap();
            File::open(home.path()).is_err().then(|| home.loaded())
        };
        match std::thread::scope(|threads| threads.spawn(loaded).join().unwrap()) {
            Some(loaded) => assert!(loaded.unwrap_err().contains("cannot read")),
            None => not_run("this user may read any file"),
        }
    }

    #[test]
    fn a_link_is_followed_and_one_to_nothing_is_left_alone() {
        let home = Home::new();
        home.prepare();
        let elsewhere = home.directory.path().join("elsewhere");
        symlink(&elsewhere, home.path()).unwrap();
        assert!(home.loaded().is_err());
        assert!(home.path().is_symlink() && !elsewhere.exists());
        std::fs::write(&elsewhere, [3; COOKIE_BYTES]).unwrap();
        assert_eq!(home.loaded(), Ok((cookie(3), home.path())));
    }

    #[test]
    fn the_place_follows_the_environment_as_in_libpulse() {
        let of = |configuration: Option<&str>, home: Option<&str>| {
            CookieFile::of(configuration.map(Into::into), home.map(Into::into)).ok()
        };
        let file = |path: &str, former: Option<&str>| {
            Some(CookieFile { path: path.into(), former: former.map(Into::into) })
        };
        let former = Some("/home/one/.pulse-cookie");
        assert_eq!(of(Some("/c"), Some("/home/one")), file("/c/pulse/cookie", former));
        let in_home = file("/home/one/.config/pulse/cookie", former);
        assert_eq!(of(None, Some("/home/one")), in_home);
        assert_eq!(of(Some(""), Some("/home/one")), in_home);
        assert_eq!(of(Some("/c"), None), file("/c/pulse/cookie", None));
        assert_eq!(of(None, Some("")), None);
    }
}
