//! The library's messages, for a function of the program's choice or standard error.
//!
//! The two variables are part of the interface: programs read and write them. Not for the process
//! thread: a message is formatted and may be written to a terminal.
//!
//! A function is stored with Release and loaded with Acquire, so that on any thread it finds what
//! the program has prepared for it.

use std::ffi::{CStr, CString, c_char};
use std::fmt;
use std::io::Write;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Takes one message, without a newline, valid during the call.
pub type MessageFunction = unsafe extern "C" fn(*const c_char);

/// The C variable `void (*jack_error_callback)(const char *)`.
#[unsafe(no_mangle)]
pub static jack_error_callback: AtomicPtr<()> = AtomicPtr::new(print as *mut ());

/// The C variable `void (*jack_info_callback)(const char *)`.
#[unsafe(no_mangle)]
pub static jack_info_callback: AtomicPtr<()> = AtomicPtr::new(print as *mut ());

/// Sends error messages to `function`; null selects standard error.
#[unsafe(no_mangle)]
pub extern "C" fn jack_set_error_function(function: Option<MessageFunction>) {
    jack_error_callback.store(function.unwrap_or(print) as *mut (), Ordering::Release);
}

/// Sends informative messages to `function`; null selects standard error.
#[unsafe(no_mangle)]
pub extern "C" fn jack_set_info_function(function: Option<MessageFunction>) {
    jack_info_callback.store(function.unwrap_or(print) as *mut (), Ordering::Release);
}

/// Reports a failure to the program's error function.
pub fn error(message: fmt::Arguments<'_>) {
    send(&jack_error_callback, message);
}

/// Reports information to the program's info function.
pub fn info(message: fmt::Arguments<'_>) {
    send(&jack_info_callback, message);
}

fn send(variable: &AtomicPtr<()>, message: fmt::Arguments<'_>) {
    let mut bytes = message.to_string().into_bytes();
    bytes.retain(|&byte| byte != 0);
    let text = CString::new(bytes).unwrap_or_default();
    let function = variable.load(Ordering::Acquire);
    // SAFETY: null, or a function of this type: this module stores no other, and C code that writes
    // the variable has its type. `Option` of a function pointer represents null as `None`.
    let function = unsafe { std::mem::transmute::<*mut (), Option<MessageFunction>>(function) };
    // SAFETY: the text is valid until the call returns, which is all that such a function may rely
    // on.
    unsafe { function.unwrap_or(print)(text.as_ptr()) };
}

/// Prints a message to standard error. There is nowhere to report that this fails.
unsafe extern "C" fn print(message: *const c_char) {
    if ptr::eq(message, ptr::null()) {
        return;
    }
    // SAFETY: not null, and by the contract of MessageFunction a text that is valid during the
    // call.
    let text = unsafe { CStr::from_ptr(message) };
    let line = [text.to_bytes(), b"\n"].concat();
    let _ = std::io::stderr().write_all(&line);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    static HEARD: Mutex<Vec<String>> = Mutex::new(Vec::new());

    unsafe extern "C" fn hear(message: *const c_char) {
        // SAFETY: the contract of MessageFunction.
        let text = unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned();
        HEARD.lock().unwrap().push(text);
    }

    // One test for both variables, because they are the process's.
    #[test]
    fn messages_reach_only_the_function_that_is_set() {
        jack_set_error_function(Some(hear));
        error(format_args!("port {} is\0 gone", 3));
        info(format_args!("only printed"));
        jack_set_info_function(Some(hear));
        info(format_args!("a server"));
        for unset in [
            || jack_set_error_function(None),
            || jack_error_callback.store(ptr::null_mut(), Ordering::Release),
        ] {
            jack_set_error_function(Some(hear));
            unset();
            error(format_args!("printed"));
        }
        assert_eq!(*HEARD.lock().unwrap(), ["port 3 is gone", "a server"]);
        jack_set_info_function(None);
    }
}
