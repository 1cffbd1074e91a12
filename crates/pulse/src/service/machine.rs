//! What programs see of this machine.

use std::ffi::CString;

use sys::clock::now_ns;

use crate::front_end::Machine;

/// Returns user, host and a number for this process, with the port at which it listens.
pub(super) fn about(tcp_port: Option<u16>) -> Machine {
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME"));
    let user = user.unwrap_or_else(|_| sys::process::real_user_id().to_string());
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let number = now_ns() ^ u64::from(std::process::id()) << 32;
    let socket = super::listener::default_path().ok();
    let runtime_directory = socket.and_then(|socket| Some(socket.parent()?.to_owned()));
    Machine {
        user: CString::new(user).unwrap_or_default(),
        host: CString::new(host.trim_end()).unwrap_or_default(),
        runtime_directory: runtime_directory.unwrap_or_default(),
        cookie: (number ^ number >> 32) as u32,
        tcp_port,
    }
}
