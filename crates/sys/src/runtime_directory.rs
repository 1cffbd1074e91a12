//! The directories of servers' sockets and lock files.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Why there is no directory that is safe to use.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeDirectoryError {
    /// It could be neither found nor created.
    #[error("cannot use {} for sockets: {source}; set XDG_RUNTIME_DIR to a directory of your own", path.display())]
    Unusable {
        /// The last candidate.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// Another user created it first, or it is accessible to others, who could replace the sockets
    /// in it.
    #[error(
        "{} is not a directory that only user {user_id} can use; remove it, or set XDG_RUNTIME_DIR to a directory \
         of your own",
        path.display()
    )]
    NotPrivate {
        /// The last candidate.
        path: PathBuf,
        /// The required owner.
        user_id: u32,
    },
    /// The group that a program asks for does not exist.
    #[error(
        "there is no group '{name}': set JACK_PROMISCUOUS_SERVER to the group that the server was started for"
    )]
    UnknownGroup {
        /// Its name.
        name: String,
    },
    /// There is no directory for the members of a group.
    #[error(
        "cannot make {} for group {group_id}: {source}; this needs a group that you are a member of, and a folder that \
         you may write to",
        path.display()
    )]
    UnusableForGroup {
        /// The directory.
        path: PathBuf,
        /// The group.
        group_id: u32,
        /// The kernel's error.
        source: io::Error,
    },
    /// It is not a directory that a server creates for a group, so any user could have created it.
    #[error("{} is not a directory that only group {group_id} can use", path.display())]
    NotOfGroup {
        /// The directory.
        path: PathBuf,
        /// The group.
        group_id: u32,
    },
}

/// Returns `$XDG_RUNTIME_DIR` if it is a directory of this user, else `/run/user/UID` likewise,
/// else `consort-UID` in the temporary folder, which is created if necessary.
///
/// # Errors
/// [`RuntimeDirectoryError`] if the last of them is not this user's alone.
pub fn runtime_directory() -> Result<PathBuf, RuntimeDirectoryError> {
    Candidates::of_environment().choose()
}

/// Returns where the server `server` keeps its sockets and its lock: `consort/SERVER` in the
/// [`runtime_directory`]. Does not create it. `server` is a checked name, which cannot leave the
/// directory.
///
/// # Errors
/// See [`runtime_directory`].
pub fn server_directory(server: &str) -> Result<PathBuf, RuntimeDirectoryError> {
    Ok(directory_in(runtime_directory()?, server))
}

/// Returns the [lock file](crate::lock) of the server whose directory this is.
#[must_use]
pub fn lock_path(server_directory: &Path) -> PathBuf {
    server_directory.join("lock")
}

fn directory_in(runtime_directory: PathBuf, server: &str) -> PathBuf {
    runtime_directory.join("consort").join(server)
}

/// Where the control sockets of servers are: this user's servers, or, if `JACK_PROMISCUOUS_SERVER`
/// names a group, those that users have started for that group.
///
/// The environment is read once, by [`of_environment`](Self::of_environment): a thread of a library
/// that looks for a server again must not read it while the program changes it.
#[derive(Debug, Clone)]
pub struct ControlSockets {
    candidates: Candidates,
    /// The group, and the directory in which its servers' directories are.
    group: Option<(u32, PathBuf)>,
}

impl ControlSockets {
    /// Reads the environment, and the system's list of groups if it names one.
    ///
    /// # Errors
    /// [`RuntimeDirectoryError::UnknownGroup`].
    pub fn of_environment() -> Result<Self, RuntimeDirectoryError> {
        let named = std::env::var("JACK_PROMISCUOUS_SERVER").ok().filter(|name| !name.is_empty());
        let group = named.map(|name| {
            let group_id = crate::group::group_id(&name).ok().flatten();
            let group_id = group_id.ok_or(RuntimeDirectoryError::UnknownGroup { name })?;
            Ok((group_id, group_base()))
        });
        Ok(Self { candidates: Candidates::of_environment(), group: group.transpose()? })
    }

    /// Returns whether they are those of servers for a group.
    #[must_use]
    pub fn are_of_group(&self) -> bool {
        self.group.is_some()
    }

    /// Returns the control socket of the server `server`.
    ///
    /// # Errors
    /// See [`runtime_directory`]; [`NotOfGroup`](RuntimeDirectoryError::NotOfGroup).
    pub fn of(&self, server: &str) -> Result<PathBuf, RuntimeDirectoryError> {
        let Some((group_id, base)) = &self.group else {
            return Ok(directory_in(self.candidates.choose()?, server).join("control"));
        };
        let (path, group_id) = (group_directory(base, server, *group_id), *group_id);
        match path.symlink_metadata() {
            // Only a member of the group can have given it to the group.
            Ok(found) if is_of_group(&found, group_id) => Ok(path.join("control")),
            Ok(_) => Err(RuntimeDirectoryError::NotOfGroup { path, group_id }),
            // There is no such server: connecting reports that.
            Err(_) => Ok(path.join("control")),
        }
    }
}

/// Returns where any user's servers have their sockets for the members of groups: in the folder for
/// temporary files, or in the directory that `CONSORT_GROUP_DIRECTORY` names.
fn group_base() -> PathBuf {
    std::env::var_os("CONSORT_GROUP_DIRECTORY").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from)
}

fn group_directory(base: &Path, server: &str, group_id: u32) -> PathBuf {
    base.join(format!("consort-group-{group_id}-{server}"))
}

fn is_of_group(found: &Metadata, group_id: u32) -> bool {
    found.is_dir() && found.gid() == group_id && found.mode() & 0o027 == 0
}

/// Creates the directory for the socket of `server` that the members of a group can reach, or
/// returns the one that this user has created before.
///
/// # Errors
/// [`RuntimeDirectoryError::UnusableForGroup`] if it cannot be created or given to the group,
/// [`NotOfGroup`](RuntimeDirectoryError::NotOfGroup) if it is another user's.
pub fn make_group_directory(server: &str, group_id: u32) -> Result<PathBuf, RuntimeDirectoryError> {
    let path = group_directory(&group_base(), server, group_id);
    let made = match DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        // Not followed if it is a symbolic link: others may write to the temporary folder.
        _ => path.symlink_metadata(),
    };
    let given = made.and_then(|found| {
        let is_ours = found.is_dir() && found.uid() == crate::process::real_user_id();
        if is_ours {
            std::os::unix::fs::lchown(&path, None, Some(group_id))?;
            fs::set_permissions(&path, Permissions::from_mode(0o750))?;
        }
        Ok(is_ours)
    });
    match given {
        Ok(true) => Ok(path),
        Ok(false) => Err(RuntimeDirectoryError::NotOfGroup { path, group_id }),
        Err(source) => Err(RuntimeDirectoryError::UnusableForGroup { path, group_id, source }),
    }
}

#[derive(Debug, Clone)]
struct Candidates {
    user_id: u32,
    xdg_runtime_dir: Option<OsString>,
    run_user: PathBuf,
    temporary: PathBuf,
}

impl Candidates {
    fn of_environment() -> Self {
        Self {
            user_id: crate::process::real_user_id(),
            xdg_runtime_dir: std::env::var_os("XDG_RUNTIME_DIR"),
            run_user: PathBuf::from("/run/user"),
            temporary: std::env::temp_dir(),
        }
    }

    fn choose(&self) -> Result<PathBuf, RuntimeDirectoryError> {
        let xdg = self.xdg_runtime_dir.clone().map(PathBuf::from);
        let xdg = xdg.filter(|path| path.is_absolute());
        let run_user = self.run_user.join(self.user_id.to_string());
        if let Some(path) =
            xdg.into_iter().chain([run_user]).find(|path| is_ours(path, self.user_id))
        {
            return Ok(path);
        }
        make_private(self.temporary.join(format!("consort-{}", self.user_id)), self.user_id)
    }
}

/// Returns whether no other user can create something in the folder of a server's directory:
/// `XDG_RUNTIME_DIR=/tmp` belongs to root as well.
fn is_ours(path: &Path, user_id: u32) -> bool {
    const WRITTEN_BY_OTHERS: u32 = 0o022;
    path.metadata().is_ok_and(|found| {
        found.is_dir() && found.uid() == user_id && found.mode() & WRITTEN_BY_OTHERS == 0
    })
}

/// Creates `path`, or accepts it as it is if no other user can have put something into it.
fn make_private(path: PathBuf, user_id: u32) -> Result<PathBuf, RuntimeDirectoryError> {
    const RIGHTS_OF_OTHERS: u32 = 0o077;
    let made = match DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        // Not followed if it is a symbolic link: others may write to the temporary folder.
        _ => path.symlink_metadata(),
    };
    match made {
        Ok(found)
            // MUTATION: runtime_directory.open_to_others
            if found.is_dir() && found.uid() == user_id && found.mode() & RIGHTS_OF_OTHERS == 0 =>
        {
            Ok(path)
        }
        Ok(_) => Err(RuntimeDirectoryError::NotPrivate { path, user_id }),
        Err(source) => Err(RuntimeDirectoryError::Unusable { path, source }),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct Root(PathBuf);

    impl Root {
        fn new(name: &str) -> Self {
            let root =
                std::env::temp_dir().join(format!("consort-runtime-{name}-{}", std::process::id()));
            for folder in ["xdg", "run", "tmp"] {
                fs::create_dir_all(root.join(folder)).unwrap();
            }
            Self(root)
        }

        fn candidates(&self, xdg: Option<&str>) -> Candidates {
            Candidates {
                user_id: crate::process::real_user_id(),
                xdg_runtime_dir: xdg.map(OsString::from),
                run_user: self.0.join("run"),
                temporary: self.0.join("tmp"),
            }
        }

        fn private(&self) -> PathBuf {
            self.0.join("tmp").join(format!("consort-{}", crate::process::real_user_id()))
        }
    }

    impl Drop for Root {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn xdg_runtime_dir_comes_first_then_run_user() {
        let root = Root::new("order");
        let run_user = root.0.join("run").join(crate::process::real_user_id().to_string());
        fs::create_dir(&run_user).unwrap();
        let xdg = root.0.join("xdg");
        let missing = root.0.join("missing");
        assert_eq!(root.candidates(xdg.to_str()).choose().unwrap(), xdg);
        for (case, value) in [
            ("unset", None),
            ("empty", Some("")),
            ("relative", Some("xdg")),
            ("missing", missing.to_str()),
        ] {
            assert_eq!(root.candidates(value).choose().unwrap(), run_user, "{case}");
        }
    }

    #[test]
    fn a_directory_that_others_may_write_to_is_passed_over() {
        let root = Root::new("shared");
        let xdg = root.0.join("xdg");
        for (mode, is_taken) in [(0o1777, false), (0o770, false), (0o755, true), (0o700, true)] {
            fs::set_permissions(&xdg, Permissions::from_mode(mode)).unwrap();
            assert_eq!(
                root.candidates(xdg.to_str()).choose().unwrap() == xdg,
                is_taken,
                "{mode:o}"
            );
        }
    }

    #[test]
    fn a_private_directory_is_the_fallback() {
        let root = Root::new("private");
        for _ in 0..2 {
            assert_eq!(root.candidates(None).choose().unwrap(), root.private());
        }
        assert_eq!(fs::metadata(root.private()).unwrap().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_directory_of_another_user_is_never_used() {
        let root = Root::new("foreign");
        let mut candidates = root.candidates(root.0.join("xdg").to_str());
        candidates.user_id += 1;
        let path = root.0.join("tmp").join(format!("consort-{}", candidates.user_id));
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        assert!(matches!(candidates.choose(), Err(RuntimeDirectoryError::NotPrivate { .. })));
    }

    #[test]
    fn a_private_directory_that_others_can_reach_is_refused() {
        let root = Root::new("open");
        let path = root.private();
        fs::create_dir(&path).unwrap();
        for mode in [0o701, 0o710, 0o755, 0o777] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let refused = root.candidates(None).choose();
            assert!(matches!(refused, Err(RuntimeDirectoryError::NotPrivate { .. })), "{mode:o}");
        }
    }

    #[test]
    fn a_symbolic_link_or_a_file_in_its_place_is_refused() {
        let root = Root::new("link");
        symlink(root.0.join("xdg"), root.private()).unwrap();
        assert!(matches!(
            root.candidates(None).choose(),
            Err(RuntimeDirectoryError::NotPrivate { .. })
        ));
        fs::remove_file(root.private()).unwrap();
        fs::write(root.private(), b"").unwrap();
        assert!(matches!(
            root.candidates(None).choose(),
            Err(RuntimeDirectoryError::NotPrivate { .. })
        ));
    }

    #[test]
    fn a_temporary_folder_that_does_not_exist_is_an_error() {
        let root = Root::new("nowhere");
        let mut candidates = root.candidates(None);
        candidates.temporary = root.0.join("missing");
        assert!(matches!(candidates.choose(), Err(RuntimeDirectoryError::Unusable { .. })));
    }
}
