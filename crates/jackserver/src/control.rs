//! control.h's functions for servers, drivers and plug-ins. Each returns false or null for an
//! invalid handle.

use std::ffi::{CStr, CString, c_char, c_int};
use std::path::Path;
use std::ptr::null;
use std::sync::{Arc, MutexGuard, PoisonError};

use client::{Observer, PlugIn, Requester};
use jack::messages;
use jack_parameters::Value;

use crate::lists::Element;
use crate::objects::{self, Handle, OnAcquire, OnRelease, Part, Server, State};
use crate::process::Process;
use crate::slaves;
use crate::words;

/// `JackMaster` and `JackSlave`
const MASTER: u32 = 1;
const SLAVE: u32 = 2;

fn state(server: &Server) -> MutexGuard<'_, State> {
    server.state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns false, with a message.
fn refuse(why: &str) -> bool {
    messages::error(format_args!("{why}"));
    false
}

/// Returns true, or false with a message.
fn done(result: Result<(), String>) -> bool {
    result.map_or_else(|why| refuse(&why), |()| true)
}

/// See [`jackctl_server_create2`].
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_server_create(
    on_acquire: Option<OnAcquire>,
    on_release: Option<OnRelease>,
) -> Handle {
    objects::create(on_acquire, on_release)
}

/// Creates a server that is not open. `on_acquire` is called for permission before a card ("Audio0"
/// and so on) is opened, `on_release` when it is no longer used. The loop of reservations is never
/// called.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_server_create2(
    on_acquire: Option<OnAcquire>,
    on_release: Option<OnRelease>,
    _on_loop: Option<unsafe extern "C" fn()>,
) -> Handle {
    objects::create(on_acquire, on_release)
}

/// Closes a server and destroys it with all that belongs to it.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_server_destroy(server: Handle) {
    if let Some(server) = objects::server(server) {
        objects::forget(&server);
        close(&server);
    }
}

/// Starts the server's process with a driver and waits until it accepts clients; its cycles then
/// run.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_server_open(server: Handle, driver: Handle) -> bool {
    let (Some(server), Some(driver)) = (objects::server(server), objects::driver(driver)) else {
        return false;
    };
    let mut state = state(&server);
    if state.driver.is_some() {
        return refuse("the server is open");
    }
    done(begin(&server, &mut state, &driver))
}

/// Starts an open server: a no-op unless it was stopped.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_server_start(server: Handle) -> bool {
    let Some(server) = objects::server(server) else { return false };
    let mut state = state(&server);
    if state.process.as_mut().is_some_and(Process::is_running) {
        return true;
    }
    let Some(driver) = state.driver.clone() else { return refuse("the server is not open") };
    done(begin(&server, &mut state, &driver))
}

/// Stops a server, which notifies its clients. It can be started again.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_server_stop(server: Handle) -> bool {
    let Some(server) = objects::server(server) else { return false };
    let mut state = state(&server);
    state.loaded.clear();
    slaves::leave(&server, &mut state);
    state.process.take().is_some()
}

/// Stops a server if it runs, and releases its driver.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_server_close(server: Handle) -> bool {
    objects::server(server).is_some_and(|server| close(&server))
}

fn close(server: &Server) -> bool {
    let mut state = state(server);
    state.loaded.clear();
    slaves::leave(server, &mut state);
    state.slaves.clear();
    state.process = None;
    release(server, &mut state);
    state.driver.take().is_some()
}

/// Starts the process of a server that does not run, with `driver` as its driver.
fn begin(server: &Server, state: &mut State, driver: &Arc<Part>) -> Result<(), String> {
    check_master(server, driver)?;
    slaves::leave(server, state);
    state.process = None;
    acquire(server, state, driver)?;
    let started = Process::start(&name(server), &words::command_line(server, driver))
        .and_then(|process| slaves::join(server, state, &process).map(|()| process));
    match started {
        Ok(process) => {
            state.process = Some(process);
            state.driver = Some(Arc::clone(driver));
            Ok(())
        }
        Err(reason) => {
            slaves::leave(server, state);
            release(server, state);
            Err(reason)
        }
    }
}

/// Fails if a driver cannot drive this server's cycles.
fn check_master(server: &Server, driver: &Arc<Part>) -> Result<(), String> {
    check_own(server, driver)?;
    if driver.is_slave() {
        Err("this driver starts no cycles: it is a slave driver".into())
    } else {
        Ok(())
    }
}

fn check_own(server: &Server, driver: &Arc<Part>) -> Result<(), String> {
    let is_own = server.drivers.iter().any(|known| Arc::ptr_eq(known, driver));
    if is_own { Ok(()) } else { Err("the driver belongs to another server".into()) }
}

/// Returns the server's name: the one that was set, else the environment's, else `default`.
fn name(server: &Server) -> String {
    let named = server.parameters.iter().find(|parameter| parameter.letter() == 'n');
    let set = named.and_then(|parameter| match parameter.value() {
        Value::Text(name) if !name.is_empty() => Some(name.into_owned()),
        _ => None,
    });
    let default = || std::env::var("JACK_DEFAULT_SERVER").ok().filter(|name| !name.is_empty());
    set.or_else(default).unwrap_or_else(|| "default".into())
}

/// Asks for permission to use a card.
pub(crate) fn ask_for(server: &Server, device: &CStr) -> Result<(), String> {
    let Some(on_acquire) = server.on_acquire else { return Ok(()) };
    // SAFETY: the program's callback, called as control.h promises, with a text that lives during
    // the call.
    if unsafe { on_acquire(device.as_ptr()) } {
        return Ok(());
    }
    Err(format!("the device {} must not be used", device.to_string_lossy()))
}

/// Reports that a card is no longer used.
pub(crate) fn give_up(server: &Server, device: &CStr) {
    if let Some(on_release) = server.on_release {
        // SAFETY: the program's callback, called as control.h promises, with a text that lives
        // during the call.
        unsafe { on_release(device.as_ptr()) };
    }
}

fn acquire(server: &Server, state: &mut State, driver: &Part) -> Result<(), String> {
    release(server, state);
    let Some(device) = device(driver) else { return Ok(()) };
    ask_for(server, &device)?;
    state.device = Some(device);
    Ok(())
}

fn release(server: &Server, state: &mut State) {
    if let Some(device) = state.device.take() {
        give_up(server, &device);
    }
}

/// Returns JACK's name of the card that a driver uses, if its parameters name one: `Audio` and its
/// number.
pub(crate) fn device(driver: &Part) -> Option<CString> {
    let device =
        driver.parameters.iter().find(|parameter| parameter.name.as_c_str() == c"device")?;
    let Value::Text(device) = device.value() else { return None };
    let card = device.split_once(':')?.1.split(',').next()?;
    let card = card.strip_prefix("CARD=").unwrap_or(card);
    let number = card.parse::<u32>().ok().or_else(|| {
        let link = std::fs::read_link(format!("/proc/asound/{card}")).ok()?;
        link.to_str()?.strip_prefix("card")?.parse().ok()
    });
    CString::new(format!("Audio{}", number?)).ok()
}

/// Returns the drivers. Valid as long as the server.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_server_get_drivers_list(server: Handle) -> *const Element {
    objects::server(server).map_or(null(), |server| server.driver_list.first())
}

/// Returns a server's parameters. Valid as long as the server.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_server_get_parameters(server: Handle) -> *const Element {
    objects::server(server).map_or(null(), |server| server.parameter_list.first())
}

/// Returns the plug-ins that a server can load. Valid as long as the server.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_server_get_internals_list(server: Handle) -> *const Element {
    objects::server(server).map_or(null(), |server| server.internal_list.first())
}

/// Loads a plug-in into a running server, with the parameters that were set.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_server_load_internal(server: Handle, internal: Handle) -> bool {
    let (Some(server), Some(internal)) = (objects::server(server), objects::internal(internal))
    else {
        return false;
    };
    let mut state = state(&server);
    let (name, parameters) = (internal.name.to_string_lossy(), words::parameters_of(&internal));
    done(observer(&state).and_then(|observer| {
        let (name, object) = (name.clone().into_owned(), name.into_owned());
        let plug_in = PlugIn { name, exact: false, object, parameters };
        let loaded = observer.load_internal(plug_in).map_err(|error| error.to_string())?;
        state.loaded.push((internal.name.clone(), loaded.handle));
        Ok(())
    }))
}

/// Unloads a plug-in that was loaded with [`jackctl_server_load_internal`].
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_server_unload_internal(server: Handle, internal: Handle) -> bool {
    let (Some(server), Some(internal)) = (objects::server(server), objects::internal(internal))
    else {
        return false;
    };
    let mut state = state(&server);
    let Some(index) = state.loaded.iter().rposition(|(name, _)| *name == internal.name) else {
        return refuse("this plug-in is not loaded");
    };
    let (_, handle) = state.loaded.remove(index);
    let unloaded = observer(&state)
        .and_then(|observer| observer.unload_internal(handle).map_err(|error| error.to_string()));
    done(unloaded)
}

fn observer(state: &State) -> Result<Observer, String> {
    let process = state.process.as_ref().ok_or("the server does not run")?;
    Observer::open(Some(&process.name)).map_err(|error| error.to_string())
}

/// Loads the plug-ins and makes the connections that a file lists. Returns false at the first
/// failure.
///
/// # Safety
/// `file` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jackctl_server_load_session_file(
    server: Handle,
    file: *const c_char,
) -> bool {
    // SAFETY: the caller's promise.
    let file = unsafe { jack::convert::text(file) };
    let (Some(server), Some(file)) = (objects::server(server), file) else { return false };
    let state = state(&server);
    done(observer(&state).and_then(|observer| observer.load_internal_session(Path::new(file))))
}

/// Adds the device of a driver, with its current parameters, to the server's own: a card, which is
/// resampled, or MIDI. A running server has it at once; otherwise it is added at the start. Returns
/// false if the driver has no such device or the running server cannot use it.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_server_add_slave(server: Handle, driver: Handle) -> bool {
    let (Some(server), Some(driver)) = (objects::server(server), objects::driver(driver)) else {
        return false;
    };
    done(
        check_own(&server, &driver)
            .and_then(|()| slaves::add(&server, &mut state(&server), &driver)),
    )
}

/// Removes a device added with [`jackctl_server_add_slave`]: the oldest one of this driver.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_server_remove_slave(server: Handle, driver: Handle) -> bool {
    let (Some(server), Some(driver)) = (objects::server(server), objects::driver(driver)) else {
        return false;
    };
    done(slaves::remove(&server, &mut state(&server), &driver))
}

/// Switches a running server to another driver, or to the same one with its current parameters.
/// Clients, connections and plug-ins stay. Returns false, and the previous driver continues, if the
/// driver cannot be opened or has another sample rate.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_server_switch_master(server: Handle, driver: Handle) -> bool {
    let (Some(server), Some(driver)) = (objects::server(server), objects::driver(driver)) else {
        return false;
    };
    let mut state = state(&server);
    done(switch(&server, &mut state, &driver))
}

fn switch(server: &Server, state: &mut State, driver: &Arc<Part>) -> Result<(), String> {
    check_master(server, driver)?;
    let process = state.process.as_mut().ok_or("the server does not run")?;
    if !process.is_running() {
        return Err("the server no longer runs".into());
    }
    let wanted = device(driver);
    let asked = wanted.as_deref().filter(|_| wanted != state.device);
    asked.map_or(Ok(()), |device| ask_for(server, device))?;
    if let Err(reason) = process.switch(&words::command_line(server, driver)) {
        asked.into_iter().for_each(|device| give_up(server, device));
        return Err(reason);
    }
    if state.device != wanted {
        release(server, state);
    }
    (state.device, state.driver) = (wanted, Some(Arc::clone(driver)));
    Ok(())
}

/// Returns a driver's name. Valid as long as the server.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_driver_get_name(driver: Handle) -> *const c_char {
    objects::driver(driver).map_or(null(), |driver| driver.name.as_ptr())
}

/// Returns `JackMaster`, or `JackSlave` for a driver that can only be added to a server; 0 for an
/// invalid handle.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_driver_get_type(driver: Handle) -> u32 {
    objects::driver(driver).map_or(0, |driver| if driver.is_slave() { SLAVE } else { MASTER })
}

/// Returns a driver's parameters. Valid as long as the server.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_driver_get_parameters(driver: Handle) -> *const Element {
    objects::driver(driver).map_or(null(), |driver| driver.list.first())
}

/// Sets a driver's parameters from command-line words. Returns 0, or 1 at the first invalid word.
/// The first word is the driver's name and is ignored.
///
/// # Safety
/// `arguments` is null or has `count` C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn jackctl_driver_params_parse(
    driver: Handle,
    count: c_int,
    arguments: *const *const c_char,
) -> c_int {
    let Some(driver) = objects::driver(driver) else { return 1 };
    let count = if arguments.is_null() { 0 } else { usize::try_from(count).unwrap_or(0) };
    let words = (1..count).map(|index| {
        // SAFETY: the caller's promise.
        let word = unsafe { CStr::from_ptr(*arguments.add(index)) };
        word.to_string_lossy().into_owned()
    });
    let words: Vec<String> = words.collect();
    if words::parse(&driver, &words) { 0 } else { 1 }
}

/// Returns a plug-in's name. Valid as long as the server.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_internal_get_name(internal: Handle) -> *const c_char {
    objects::internal(internal).map_or(null(), |internal| internal.name.as_ptr())
}

/// Returns a plug-in's parameters. Valid as long as the server.
#[unsafe(no_mangle)]
pub extern "C" fn jackctl_internal_get_parameters(internal: Handle) -> *const Element {
    objects::internal(internal).map_or(null(), |internal| internal.list.first())
}
