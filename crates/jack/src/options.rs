//! The options of `jack_client_open` and `jack_internal_client_load`, and the arguments that some
//! of them announce.
//!
//! Both functions are variadic in C. Stable Rust cannot define such a function, and a C shim that
//! could is not exported from a shared object that rustc links. So they are defined with as many
//! fixed pointer arguments as there can be variadic ones, and an argument is read only if its
//! option announces it. That is sound where the platform passes a variadic pointer like a fixed
//! one. Each platform below does, and no other is accepted: the System V ABI of x86-64 (six integer
//! registers, exactly what the longer of the two functions needs), AAPCS64 on Linux and the RISC-V
//! calling convention (eight), and that of i386, where they are on the stack and copied first
//! (`variadic_i386`).

use std::ffi::{CStr, c_char};

#[cfg(not(all(
    target_os = "linux",
    any(
        target_arch = "x86_64",
        target_arch = "x86",
        target_arch = "aarch64",
        target_arch = "riscv64"
    )
)))]
compile_error!(
    "it is not known that this platform passes variadic pointers as it passes fixed ones"
);

/// `enum JackOptions`.
pub mod option {
    /// Fail rather than start a server.
    pub const NO_START_SERVER: u32 = 0x01;
    /// Fail rather than change the name when it is taken.
    pub const USE_EXACT_NAME: u32 = 0x02;
    /// Announces the server's name.
    pub const SERVER_NAME: u32 = 0x04;
    /// Announces an internal client's shared object.
    pub const LOAD_NAME: u32 = 0x08;
    /// Announces an internal client's parameters.
    pub const LOAD_INIT: u32 = 0x10;
    /// Announces the uuid that a session has reserved.
    pub const SESSION_ID: u32 = 0x20;

    /// The options of `jack_client_open` (`JackOpenOptions`).
    pub const OPEN: u32 = NO_START_SERVER | USE_EXACT_NAME | SERVER_NAME | SESSION_ID;
    /// The options of `jack_internal_client_load` (`JackLoadOptions`).
    pub const LOAD: u32 = USE_EXACT_NAME | LOAD_NAME | LOAD_INIT;
}

/// An argument that can be announced, as the caller passed it.
pub type Argument = *const c_char;

/// Options that the function does not accept (`JackFailure | JackInvalidOption`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidOption;

/// The parsed options of `jack_client_open`. A text that was announced but null is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenOptions<'a> {
    /// Whether a server may be started.
    pub may_start_server: bool,
    /// Whether a name that is taken may be replaced by a similar one.
    pub may_change_name: bool,
    /// The server's name; `None`: the default.
    pub server_name: Option<&'a CStr>,
    /// The uuid that a session has reserved.
    pub session_id: Option<&'a CStr>,
}

/// The parsed options of `jack_internal_client_load`. A text that was announced but null is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadOptions<'a> {
    /// Whether a name that is taken may be replaced by a similar one.
    pub may_change_name: bool,
    /// The shared object; `None`: named like the client.
    pub load_name: Option<&'a CStr>,
    /// The parameters for the internal client.
    pub load_init: Option<&'a CStr>,
}

impl<'a> OpenOptions<'a> {
    /// Reads the arguments that `options` announces.
    ///
    /// # Safety
    /// The arguments that `options` announces, from the first on, are null or C strings that live
    /// for `'a`. The others may be anything.
    pub unsafe fn read(options: u32, arguments: [Argument; 2]) -> Result<Self, InvalidOption> {
        if options & !option::OPEN != 0 {
            return Err(InvalidOption);
        }
        let mut arguments = AnnouncedArguments { options, rest: arguments.into_iter() };
        // SAFETY: the caller's promise; in the order in which the headers list the arguments.
        let (server_name, session_id) =
            unsafe { (arguments.take(option::SERVER_NAME), arguments.take(option::SESSION_ID)) };
        Ok(Self {
            may_start_server: options & option::NO_START_SERVER == 0,
            may_change_name: options & option::USE_EXACT_NAME == 0,
            server_name,
            session_id,
        })
    }
}

impl<'a> LoadOptions<'a> {
    /// Reads the arguments that `options` announces.
    ///
    /// # Safety
    /// See [`OpenOptions::read`].
    pub unsafe fn read(options: u32, arguments: [Argument; 2]) -> Result<Self, InvalidOption> {
        if options & !option::LOAD != 0 {
            return Err(InvalidOption);
        }
        let mut arguments = AnnouncedArguments { options, rest: arguments.into_iter() };
        // SAFETY: the caller's promise; in the order in which the headers list the arguments.
        let (load_name, load_init) =
            unsafe { (arguments.take(option::LOAD_NAME), arguments.take(option::LOAD_INIT)) };
        Ok(Self { may_change_name: options & option::USE_EXACT_NAME == 0, load_name, load_init })
    }
}

/// The arguments that have not been taken yet.
struct AnnouncedArguments {
    options: u32,
    rest: std::array::IntoIter<Argument, 2>,
}

impl AnnouncedArguments {
    /// Takes the next argument if `bit` announces one. Arguments that are not announced are not
    /// even compared with null.
    ///
    /// # Safety
    /// If `bit` is among the options, the next argument is null or a C string that lives for `'a`.
    unsafe fn take<'a>(&mut self, bit: u32) -> Option<&'a CStr> {
        if self.options & bit == 0 {
            return None;
        }
        let argument = self.rest.next().filter(|argument| !argument.is_null())?;
        // SAFETY: announced and not null, so the caller has promised a C string.
        Some(unsafe { CStr::from_ptr(argument) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::transmute;
    use std::ptr;

    const GARBAGE: Argument = ptr::without_provenance(1);

    /// Shaped like `jack_client_open`, for a caller that passes variadic arguments.
    unsafe extern "C" fn open(
        _name: Argument,
        options: u32,
        result: *mut Result<OpenOptions<'static>, InvalidOption>,
        first: Argument,
        second: Argument,
    ) {
        // SAFETY: this module's tests pass constants where the options announce arguments, and
        // their own variable.
        unsafe { result.write(OpenOptions::read(options, [first, second])) };
    }

    type VariadicOpen =
        unsafe extern "C" fn(Argument, u32, *mut Result<OpenOptions<'static>, InvalidOption>, ...);

    /// Shaped like `jack_internal_client_load`: the variadic arguments come in the last two of six
    /// registers.
    unsafe extern "C" fn load(
        _client: Argument,
        _name: Argument,
        options: u32,
        result: *mut Result<LoadOptions<'static>, InvalidOption>,
        first: Argument,
        second: Argument,
    ) {
        // SAFETY: as `open`.
        unsafe { result.write(LoadOptions::read(options, [first, second])) };
    }

    type VariadicLoad = unsafe extern "C" fn(
        Argument,
        Argument,
        u32,
        *mut Result<LoadOptions<'static>, InvalidOption>,
        ...
    );

    #[test]
    fn variadic_arguments_of_open_are_read_as_the_options_announce_them() {
        // SAFETY: what the module's documentation says of the platforms it accepts; this is what
        // the test is about.
        let open = unsafe { transmute::<*const (), VariadicOpen>(open as *const ()) };
        let (server, session) = (c"studio", c"8589934593");
        let expected = |server_name, session_id| {
            Ok(OpenOptions {
                may_start_server: true,
                may_change_name: true,
                server_name,
                session_id,
            })
        };
        let mut got = Err(InvalidOption);
        // SAFETY: each call passes the arguments that its options announce.
        unsafe {
            open(ptr::null(), 0, &raw mut got);
            assert_eq!(got, expected(None, None), "no options");
            open(ptr::null(), option::SERVER_NAME, &raw mut got, server.as_ptr());
            assert_eq!(got, expected(Some(server), None), "a server");
            open(ptr::null(), option::SESSION_ID, &raw mut got, session.as_ptr());
            assert_eq!(got, expected(None, Some(session)), "a session");
            let both = option::SERVER_NAME | option::SESSION_ID;
            open(ptr::null(), both, &raw mut got, server.as_ptr(), session.as_ptr());
            assert_eq!(got, expected(Some(server), Some(session)), "both");
            open(ptr::null(), both, &raw mut got, ptr::null::<c_char>(), session.as_ptr());
            assert_eq!(got, expected(None, Some(session)), "a null server");
        }
    }

    #[test]
    fn variadic_arguments_of_load_are_read_as_the_options_announce_them() {
        // SAFETY: as in the test above.
        let load = unsafe { transmute::<*const (), VariadicLoad>(load as *const ()) };
        let (name, init) = (c"netmanager", c"-p 3");
        let mut got = Err(InvalidOption);
        // SAFETY: each call passes the arguments that its options announce.
        unsafe {
            load(ptr::null(), ptr::null(), option::LOAD_INIT, &raw mut got, init.as_ptr());
            let expected =
                LoadOptions { may_change_name: true, load_name: None, load_init: Some(init) };
            assert_eq!(got, Ok(expected), "parameters");
            load(
                ptr::null(),
                ptr::null(),
                option::LOAD,
                &raw mut got,
                name.as_ptr(),
                init.as_ptr(),
            );
            let expected = LoadOptions {
                may_change_name: false,
                load_name: Some(name),
                load_init: Some(init),
            };
            assert_eq!(got, Ok(expected), "both");
        }
    }

    #[test]
    fn an_argument_that_is_not_announced_is_never_looked_at() {
        // SAFETY: nothing is announced, so the arguments may be anything.
        let (open, load) = unsafe {
            (
                OpenOptions::read(option::NO_START_SERVER, [GARBAGE, GARBAGE]),
                LoadOptions::read(option::USE_EXACT_NAME, [GARBAGE, GARBAGE]),
            )
        };
        let expected = OpenOptions {
            may_start_server: false,
            may_change_name: true,
            server_name: None,
            session_id: None,
        };
        assert_eq!(open, Ok(expected));
        assert_eq!(
            load,
            Ok(LoadOptions { may_change_name: false, load_name: None, load_init: None })
        );
    }

    #[test]
    fn unsupported_options_are_refused() {
        for bit in (0..32).map(|shift| 1 << shift) {
            let texts = [c"a".as_ptr(), c"b".as_ptr()];
            // SAFETY: C strings that live forever.
            let (open, load) =
                unsafe { (OpenOptions::read(bit, texts), LoadOptions::read(bit, texts)) };
            assert_eq!(open.is_ok(), [0x01, 0x02, 0x04, 0x20].contains(&bit), "open with {bit:#x}");
            assert_eq!(load.is_ok(), [0x02, 0x08, 0x10].contains(&bit), "load with {bit:#x}");
        }
    }
}
