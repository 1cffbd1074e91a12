//! LADSPA's C interface, version 1.1 (`ladspa.h`): the plug-ins of a library, and instances of one.

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use std::path::Path;
use std::ptr::NonNull;

use anyhow::{Context, bail, ensure};

/// Plug-ins of a library, at most: it says itself when there are no more.
const MAX_PLUGINS: c_ulong = 10_000;
/// Ports of a plug-in, at most.
const MAX_PORTS: usize = 1_024;

const INPUT: c_int = 1;
const OUTPUT: c_int = 2;
const CONTROL: c_int = 4;
const AUDIO: c_int = 8;

/// `LADSPA_PortRangeHint`: what a value of a port should be.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RangeHint {
    /// `LADSPA_PortRangeHintDescriptor`.
    pub(crate) kinds: c_int,
    pub(crate) lower: f32,
    pub(crate) upper: f32,
}

type Handle = *mut c_void;

/// `LADSPA_Descriptor`.
#[repr(C)]
struct Descriptor {
    unique_id: c_ulong,
    label: *const c_char,
    properties: c_int,
    name: *const c_char,
    maker: *const c_char,
    copyright: *const c_char,
    port_count: c_ulong,
    port_kinds: *const c_int,
    port_names: *const *const c_char,
    port_hints: *const RangeHint,
    implementation: *mut c_void,
    instantiate: Option<unsafe extern "C" fn(*const Descriptor, c_ulong) -> Handle>,
    connect_port: Option<unsafe extern "C" fn(Handle, c_ulong, *mut f32)>,
    activate: Option<unsafe extern "C" fn(Handle)>,
    run: Option<unsafe extern "C" fn(Handle, c_ulong)>,
    run_adding: Option<unsafe extern "C" fn(Handle, c_ulong)>,
    set_run_adding_gain: Option<unsafe extern "C" fn(Handle, f32)>,
    deactivate: Option<unsafe extern "C" fn(Handle)>,
    cleanup: Option<unsafe extern "C" fn(Handle)>,
}

/// `LADSPA_Descriptor_Function`.
type DescriptorFunction = unsafe extern "C" fn(c_ulong) -> *const Descriptor;

/// What passes through a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PortKind {
    AudioInput,
    AudioOutput,
    ControlInput,
    /// What the plug-in says about itself, such as a level.
    ControlOutput,
}

/// A port, as its plug-in describes it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Port {
    pub(crate) name: String,
    pub(crate) kind: PortKind,
    pub(crate) hint: RangeHint,
}

/// A plug-in of a library that stays loaded until the process ends.
#[derive(Clone, Copy)]
pub(crate) struct Plugin(&'static Descriptor);

impl Plugin {
    /// Loads a library, and finds the plug-in of this label.
    ///
    /// # Errors
    /// It cannot be loaded, is no library of plug-ins, or has no such one.
    pub(crate) fn load(file: &Path, label: &str) -> anyhow::Result<Self> {
        // SAFETY: its initialisers run, which is what the user asks for who names it: they can do
        // what this process can.
        let library = unsafe { libloading::Library::new(file) }
            .with_context(|| format!("cannot load {}", file.display()))?;
        // SAFETY: a symbol of this name has the signature of ladspa.h in every LADSPA library.
        let found = unsafe { library.get::<DescriptorFunction>(b"ladspa_descriptor\0") };
        let descriptors = *found.with_context(|| {
            format!("{} is not a LADSPA library: it has no ladspa_descriptor", file.display())
        })?;
        // What it leaves behind, such as threads, needs its code: it is never unloaded.
        std::mem::forget(library);
        let mut labels = Vec::new();
        for index in 0..MAX_PLUGINS {
            // SAFETY: any number may be asked for. It returns null, or a descriptor that lives and
            // stays the same as long as the library is loaded, which is until the process ends.
            let Some(descriptor) = (unsafe { descriptors(index).as_ref() }) else { break };
            let this = text(descriptor.label);
            if this == label {
                return Ok(Self(descriptor));
            }
            labels.push(this);
        }
        bail!(
            "{} has no plug-in with the label '{label}': it has {}",
            file.display(),
            labels.join(", ")
        )
    }

    /// Returns its ports.
    ///
    /// # Errors
    /// There are too many, or one carries neither sound nor a control.
    pub(crate) fn ports(&self) -> anyhow::Result<Vec<Port>> {
        let Descriptor { port_count, port_kinds, port_names, port_hints, .. } = self.0;
        let count = usize::try_from(*port_count)?;
        ensure!(count <= MAX_PORTS, "it has {count} ports: {MAX_PORTS} are the most");
        if count == 0 {
            return Ok(Vec::new());
        }
        let is_there = !port_kinds.is_null() && !port_names.is_null() && !port_hints.is_null();
        ensure!(is_there, "it does not describe its ports");
        // SAFETY: not null, and so arrays of `port_count` entries, which live as long as the
        // descriptor.
        let (kinds, names, hints) = unsafe {
            (
                std::slice::from_raw_parts(*port_kinds, count),
                std::slice::from_raw_parts(*port_names, count),
                std::slice::from_raw_parts(*port_hints, count),
            )
        };
        let port = |((kind, name), hint): ((&c_int, &*const c_char), &RangeHint)| {
            let name = text(*name);
            let kind = match kind & (INPUT | OUTPUT | CONTROL | AUDIO) {
                of if of == INPUT | AUDIO => PortKind::AudioInput,
                of if of == OUTPUT | AUDIO => PortKind::AudioOutput,
                of if of == INPUT | CONTROL => PortKind::ControlInput,
                of if of == OUTPUT | CONTROL => PortKind::ControlOutput,
                _ => bail!("its port '{name}' is neither of sound nor of control"),
            };
            Ok(Port { name, kind, hint: *hint })
        };
        kinds.iter().zip(names).zip(hints).map(port).collect()
    }
}

impl std::fmt::Debug for Plugin {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Plugin({})", text(self.0.label))
    }
}

/// Copies a plug-in's text.
fn text(from: *const c_char) -> String {
    if from.is_null() {
        return String::new();
    }
    // SAFETY: not null, and so a terminated string of the plug-in that lives as long as its
    // descriptor.
    unsafe { CStr::from_ptr(from) }.to_string_lossy().into_owned()
}

/// A plug-in at work, with a buffer for each of its ports.
pub(crate) struct Instance {
    descriptor: &'static Descriptor,
    handle: NonNull<c_void>,
    run: unsafe extern "C" fn(Handle, c_ulong),
    /// One port after the other, `frames` each. The plug-in has pointers into it.
    buffers: Box<[UnsafeCell<f32>]>,
    ports: usize,
    frames: usize,
}

// SAFETY: LADSPA lets any thread call the functions of an instance, one at a time; all of them take
// `&mut self` here. Nothing but the plug-in has pointers to the buffers, and it uses them within
// these calls.
unsafe impl Send for Instance {}

impl Instance {
    /// Makes an instance with buffers of `frames`, which are zero, and connects them.
    ///
    /// # Errors
    /// The plug-in refuses the rate, or lacks a function that each has.
    pub(crate) fn new(plugin: Plugin, rate_hz: u32, frames: usize) -> anyhow::Result<Self> {
        let Plugin(descriptor) = plugin;
        let functions = (descriptor.instantiate, descriptor.connect_port, descriptor.run);
        let (Some(instantiate), Some(connect), Some(run)) = functions else {
            bail!("it lacks a function that each plug-in has");
        };
        let ports = usize::try_from(descriptor.port_count)?.min(MAX_PORTS);
        // SAFETY: the descriptor is the plug-in's own. The handle is used for this instance alone.
        let handle = unsafe { instantiate(descriptor, c_ulong::from(rate_hz)) };
        let handle = NonNull::new(handle).with_context(|| format!("it refuses {rate_hz} Hz"))?;
        let buffers = (0..ports * frames).map(|_| UnsafeCell::new(0.0)).collect();
        let instance = Self { descriptor, handle, run, buffers, ports, frames };
        for port in 0..ports {
            let Some(buffer) = instance.buffer(port) else { continue };
            // SAFETY: the plug-in has this port. Its buffer has room for `frames`, more than which
            // it is never asked for, and lives until after its cleanup.
            unsafe { connect(handle.as_ptr(), port as c_ulong, buffer) };
        }
        if let Some(activate) = descriptor.activate {
            // SAFETY: once, with all ports connected.
            unsafe { activate(handle.as_ptr()) };
        }
        Ok(instance)
    }

    /// Returns where a port's buffer begins.
    fn buffer(&self, port: usize) -> Option<*mut f32> {
        let first = self.buffers.get(port * self.frames..)?.first()?;
        (port < self.ports).then(|| first.get())
    }

    /// Returns a port's buffer; of a control port, the first value counts.
    pub(crate) fn port(&mut self, port: usize) -> &mut [f32] {
        match self.buffer(port) {
            // SAFETY: the buffer has `frames` values, whose cells lie side by side. The plug-in
            // uses them only within `run`, which needs `&mut self`, too.
            Some(buffer) => unsafe { std::slice::from_raw_parts_mut(buffer, self.frames) },
            None => &mut [],
        }
    }

    /// Processes the first `frames` of the buffers, no more than they have.
    pub(crate) fn run(&mut self, frames: usize) {
        let frames = frames.min(self.frames);
        // SAFETY: it is activated, all ports are connected, and their buffers are as long.
        unsafe { (self.run)(self.handle.as_ptr(), frames as c_ulong) };
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let handle = self.handle.as_ptr();
        if let Some(deactivate) = self.descriptor.deactivate {
            // SAFETY: it was activated, and does not run.
            unsafe { deactivate(handle) };
        }
        if let Some(cleanup) = self.descriptor.cleanup {
            // SAFETY: the last call for this instance, before its buffers are freed.
            unsafe { cleanup(handle) };
        }
    }
}

impl std::fmt::Debug for Instance {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Instance of {}", text(self.descriptor.label))
    }
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use super::*;

    /// What a program prints that is compiled with `ladspa.h`, on x86-64.
    #[test]
    fn layouts_are_those_of_the_header() {
        assert_eq!((size_of::<Descriptor>(), size_of::<RangeHint>()), (152, 12));
        assert_eq!(offset_of!(Descriptor, port_count), 48);
        assert_eq!(offset_of!(Descriptor, port_hints), 72);
        assert_eq!(offset_of!(Descriptor, instantiate), 88);
        assert_eq!(offset_of!(Descriptor, cleanup), 144);
    }

    #[test]
    fn what_is_no_library_of_plug_ins_is_refused_with_a_reason() {
        for (file, reason) in [
            ("/nonexistent.so", "cannot load /nonexistent.so"),
            ("libm.so.6", "libm.so.6 is not a LADSPA library"),
        ] {
            let refused = Plugin::load(Path::new(file), "any").expect_err(file).to_string();
            assert!(refused.contains(reason), "{refused}");
        }
    }
}
