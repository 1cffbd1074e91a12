//! The process that runs a plug-in for the server: how it begins, how it hands itself over to the library, how it
//! ends.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::os::fd::{IntoRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::process::Signal;

use crate::library::loader_words;
use crate::signals::TerminationSignals;
use crate::socket::Connection;

/// What the library runs a plug-in by; its declaration is in the crate `consort-jackserver`.
type Entry = unsafe extern "C" fn(c_int, *const c_char, c_int, *const c_char, *const c_char) -> c_int;
const ENTRY: &CStr = c"consort_host";

/// What the library is to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlugIn<'a> {
    /// The name of its client.
    pub name: &'a str,
    /// Fail rather than change the name when it is taken.
    pub exact: bool,
    /// The shared object.
    pub object: &'a Path,
    /// For the plug-in.
    pub parameters: &'a str,
}

/// Makes this process, which a server has started, one of its own: it ends with the server, takes signals again and
/// has no privilege of the server's control thread. Gives the socket to the server, which was its standard input;
/// that is empty from here on. To be called once, by the main thread, before there are others.
///
/// # Errors
/// If standard input is closed, or there is no descriptor left.
pub fn enter() -> io::Result<Connection> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    TerminationSignals::unblock()?;
    // It is always permitted to be less favoured.
    let _ = rustix::process::setpriority_process(None, 0);
    let socket = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let nothing = rustix::fs::open(c"/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&nothing)?;
    Ok(Connection::from(socket))
}

/// Loads `server_library` and `client_library`, which all plug-ins of this process are linked with from then on, and has
/// the first run one until the server, at the other end of `socket`, says that it is to finish. The process ends with
/// that; this comes back, with the loader's words and the socket, only if a library cannot be loaded.
pub fn run(
    server_library: &Path,
    client_library: &Path,
    socket: Connection,
    plug_in: &PlugIn<'_>,
) -> (String, Connection) {
    let text = |text: &str| CString::new(text).unwrap_or_default();
    let (name, parameters) = (text(plug_in.name), text(plug_in.parameters));
    let object = text(&plug_in.object.to_string_lossy());
    let entry = match load(server_library, client_library) {
        Ok(entry) => entry,
        Err(reason) => return (reason, socket),
    };
    let socket = OwnedFd::from(socket).into_raw_fd();
    // SAFETY: an open socket that nobody else uses, and terminated strings.
    let status = unsafe {
        entry(socket, name.as_ptr(), c_int::from(plug_in.exact), object.as_ptr(), parameters.as_ptr())
    };
    end(status)
}

fn load(server_library: &Path, client_library: &Path) -> Result<Entry, String> {
    let open = |library: &Path, flags| {
        let path = CString::new(library.to_string_lossy().as_bytes()).unwrap_or_default();
        // SAFETY: a terminated string. The library's initialisers run: it is our own.
        let handle = unsafe { libc::dlopen(path.as_ptr(), flags) };
        if handle.is_null() { Err(loader_words()) } else { Ok(handle) }
    };
    // Symbols are looked for there first, whichever of the two a plug-in was linked with; the other one is loaded
    // so that the loader does not look for it elsewhere.
    let handle = open(server_library, libc::RTLD_NOW | libc::RTLD_GLOBAL)?;
    open(client_library, libc::RTLD_NOW | libc::RTLD_LOCAL)?;
    // SAFETY: an open handle and a terminated string.
    let found = unsafe { libc::dlsym(handle, ENTRY.as_ptr()) };
    if found.is_null() {
        return Err(loader_words());
    }
    // SAFETY: the library is our own and has this one function of this name, of this type.
    Ok(unsafe { std::mem::transmute::<*mut c_void, Entry>(found) })
}

/// Ends this process at once, whatever its threads are at, and without a word of what was loaded into it.
pub fn end(status: i32) -> ! {
    // SAFETY: has no conditions.
    unsafe { libc::_exit(status) }
}
