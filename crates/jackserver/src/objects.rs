//! The objects behind control.h's handles, by address.

use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::sync::{Arc, Mutex, PoisonError};

use crate::catalogue;
use crate::lists::List;
use crate::parameter::Parameter;
use crate::process::Process;

/// A handle: any address from a program; null is invalid. It is looked up and never dereferenced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Handle(usize);

impl Handle {
    /// The null handle.
    pub const NONE: Self = Self(0);

    /// Returns the handle as an element of a list.
    pub fn pointer(self) -> *mut c_void {
        std::ptr::without_provenance_mut(self.0)
    }
}

/// A driver or a plug-in.
#[derive(Debug)]
pub struct Part {
    /// Its name.
    pub name: CString,
    /// Its parameters.
    pub parameters: Vec<Arc<Parameter>>,
    /// Its parameters as a C list.
    pub list: List,
}

/// `bool (*)(const char *)`: returns whether a device may be used.
pub type OnAcquire = unsafe extern "C" fn(*const std::ffi::c_char) -> bool;
/// `void (*)(const char *)`: reports that a device is no longer used.
pub type OnRelease = unsafe extern "C" fn(*const std::ffi::c_char);

/// A server that a program controls.
#[derive(Debug)]
pub struct Server {
    /// Its parameters.
    pub parameters: Vec<Arc<Parameter>>,
    /// Its parameters as a C list.
    pub parameter_list: List,
    /// Its drivers.
    pub drivers: Vec<Arc<Part>>,
    /// Its drivers as a C list.
    pub driver_list: List,
    /// The plug-ins that it can load.
    pub internals: Vec<Arc<Part>>,
    /// Its plug-ins as a C list.
    pub internal_list: List,
    /// Called for permission to use a card.
    pub on_acquire: Option<OnAcquire>,
    /// Called when a card is no longer used.
    pub on_release: Option<OnRelease>,
    /// What changes while the server exists.
    pub state: Mutex<State>,
}

/// The changing state of a server.
#[derive(Debug, Default)]
pub struct State {
    /// Its driver, while it is open.
    pub driver: Option<Arc<Part>>,
    /// Its process, while it runs.
    pub process: Option<Process>,
    /// The device that was acquired.
    pub device: Option<CString>,
    /// Plug-ins that were loaded: their names and the server's handles.
    pub loaded: Vec<(CString, u64)>,
    /// Added slave drivers, oldest first; the server starts with them.
    pub slaves: Vec<Slave>,
}

/// A driver in addition to the one that drives the cycles.
#[derive(Debug)]
pub struct Slave {
    /// The driver.
    pub driver: Arc<Part>,
    /// The driver and its parameters as words of `jackd`'s command line, as of when it was added.
    pub words: Vec<String>,
    /// JACK's name of its card, if the parameters name one.
    pub device: Option<CString>,
    /// Its client's name, while the server runs.
    pub client: Option<String>,
}

impl Part {
    /// Returns whether this driver can only be added to a server.
    pub fn is_slave(&self) -> bool {
        self.name.to_bytes() == catalogue::SLAVE.as_bytes()
    }
}

/// The object behind a handle.
#[derive(Debug, Clone)]
pub enum Object {
    /// `jackctl_server_t`
    Server(Arc<Server>),
    /// `jackctl_driver_t`
    Driver(Arc<Part>),
    /// `jackctl_internal_t`
    Internal(Arc<Part>),
    /// `jackctl_parameter_t`
    Parameter(Arc<Parameter>),
}

static OBJECTS: Mutex<Option<HashMap<Handle, Object>>> = Mutex::new(None);

fn with_objects<R>(body: impl FnOnce(&mut HashMap<Handle, Object>) -> R) -> R {
    body(OBJECTS.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}

impl Object {
    /// Returns the object behind `handle`. Thread: any; not within a cycle.
    pub fn of(handle: Handle) -> Option<Self> {
        with_objects(|objects| objects.get(&handle).cloned())
    }

    fn handle(&self) -> Handle {
        Handle(match self {
            Self::Server(server) => Arc::as_ptr(server).addr(),
            Self::Driver(part) | Self::Internal(part) => Arc::as_ptr(part).addr(),
            Self::Parameter(parameter) => Arc::as_ptr(parameter).addr(),
        })
    }
}

/// The server of that address.
pub fn server(handle: Handle) -> Option<Arc<Server>> {
    match Object::of(handle) {
        Some(Object::Server(server)) => Some(server),
        _ => None,
    }
}

/// The driver of that address.
pub fn driver(handle: Handle) -> Option<Arc<Part>> {
    match Object::of(handle) {
        Some(Object::Driver(driver)) => Some(driver),
        _ => None,
    }
}

/// The plug-in of that address.
pub fn internal(handle: Handle) -> Option<Arc<Part>> {
    match Object::of(handle) {
        Some(Object::Internal(internal)) => Some(internal),
        _ => None,
    }
}

/// The parameter of that address.
pub fn parameter(handle: Handle) -> Option<Arc<Parameter>> {
    match Object::of(handle) {
        Some(Object::Parameter(parameter)) => Some(parameter),
        _ => None,
    }
}

fn register<T>(objects: Vec<T>, object: impl Fn(Arc<T>) -> Object) -> (Vec<Arc<T>>, List) {
    let objects: Vec<Arc<T>> = objects.into_iter().map(Arc::new).collect();
    let handles = objects.iter().map(|one| {
        let object = object(Arc::clone(one));
        let handle = object.handle();
        with_objects(|objects| objects.insert(handle, object));
        handle
    });
    let list = List::of(handles);
    (objects, list)
}

fn parts<const N: usize>(
    parts: [(&str, Vec<Parameter>); N],
    object: impl Fn(Arc<Part>) -> Object,
) -> (Vec<Arc<Part>>, List) {
    let parts = parts.map(|(name, parameters)| {
        let (parameters, list) = register(parameters, Object::Parameter);
        Part { name: CString::new(name).unwrap_or_default(), parameters, list }
    });
    register(parts.into(), object)
}

/// Makes a server that is not open, with all that belongs to it.
pub fn create(on_acquire: Option<OnAcquire>, on_release: Option<OnRelease>) -> Handle {
    let (parameters, parameter_list) = register(catalogue::server(), Object::Parameter);
    let (drivers, driver_list) = parts(catalogue::drivers(), Object::Driver);
    let (internals, internal_list) = parts(catalogue::internals(), Object::Internal);
    let server = Server {
        parameters,
        parameter_list,
        drivers,
        driver_list,
        internals,
        internal_list,
        on_acquire,
        on_release,
        state: Mutex::default(),
    };
    let object = Object::Server(Arc::new(server));
    let handle = object.handle();
    with_objects(|objects| objects.insert(handle, object));
    handle
}

/// Forgets a server and all that belongs to it: their addresses are no longer valid handles.
pub fn forget(server: &Arc<Server>) {
    let all = [&server.drivers, &server.internals];
    let parts = all.into_iter().flatten();
    let parameters = parts.clone().flat_map(|part| &part.parameters).chain(&server.parameters);
    let gone: Vec<Handle> = parts
        .clone()
        .map(|part| Handle(Arc::as_ptr(part).addr()))
        .chain(parameters.map(|parameter| Handle(Arc::as_ptr(parameter).addr())))
        .chain([Handle(Arc::as_ptr(server).addr())])
        .collect();
    with_objects(|objects| objects.retain(|handle, _| !gone.contains(handle)));
}
