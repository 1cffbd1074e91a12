//! A server's life: directory and lock, memory, driver, the two threads, and the end.

use std::io;
use std::ops::RangeInclusive;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proto::limits::{PORT_MAX, QUANTUM_FRAMES, REALTIME_PRIORITY};
use proto::names::NameError;
use rt::shm::{CycleInfo, EngineSegment, Priorities, RegistryShape, SLOTS_PER_SLAB, ServerFlags};
use rt::sync::Ordering;
use sd_notify::NotifyState;
use state::{State, StateError};
use sys::lock::{LockError, LockFile};
use sys::memory::{SegmentError, Shared, SharedRegistry};
use sys::runtime_directory::{RuntimeDirectoryError, make_group_directory, server_directory};
use sys::signals::TerminationSignals;
use sys::socket::Listener;
use sys::thread::CpuSet;

use crate::config::{Config, Hosting, KeptState};
use crate::control::{Control, Doors, Ground, GroupDoor, Keeping, Parts, SharedMemory};
use crate::cycle_thread::{CycleShared, CycleThread};
use crate::driver::{Channels, DriverChoice};
use crate::handed::capture_slabs;
use crate::keeper::Keeper;
use crate::model::{Limits, Model};
use crate::opening::{self, DriverFacts, Opened};
use crate::placement::calibrate;
use crate::plan::PlanPool;
use crate::realtime_kit::RealtimeKit;
use crate::registry::Mirror;
use crate::rights::{drop_unneeded, granted, lock_memory};
use crate::transport::Machine;

/// Why a server did not start, or ended badly.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// Another server has this name.
    #[error(
        "a server named '{name}' runs already: stop it with 'consort stop -n {name}', or start this one under another name with -n"
    )]
    AlreadyRunning {
        /// The name.
        name: String,
    },
    /// A parameter cannot be.
    #[error("{what} of {value} is out of range: {least} to {most}")]
    OutOfRange {
        /// The parameter.
        what: &'static str,
        /// Its value.
        value: u32,
        /// Smallest.
        least: u32,
        /// Largest.
        most: u32,
    },
    /// A name that cannot be a server's.
    #[error("server name: {0}")]
    Name(#[from] NameError),
    /// There is no place for the socket.
    #[error(transparent)]
    Directory(#[from] RuntimeDirectoryError),
    /// A server for the members of a group that is none.
    #[error("there is no group '{name}': name one of those that 'getent group' lists")]
    UnknownGroup {
        /// Its name.
        name: String,
    },
    /// The socket's directory cannot be used.
    #[error("cannot use {path}: {source}")]
    Path {
        /// The file or directory.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// No memory to share.
    #[error("no memory to share with programs: {0}")]
    Memory(#[from] SegmentError),
    /// The state cannot be kept where it was asked to be.
    #[error("{0}")]
    State(#[from] StateError),
    /// The driver's device, files or parameters.
    #[error("{0}")]
    Driver(String),
    /// A thread, a descriptor.
    #[error("the kernel refused {what}: {source}")]
    Kernel {
        /// What was asked for.
        what: &'static str,
        /// What it said.
        source: io::Error,
    },
}

/// Distance from the driver's priority to its clients', as in JACK.
const CLIENT_PRIORITY_DISTANCE: u32 = 5;

/// Runs a server in this thread until it is told to stop. `hosting` says how it runs plug-ins.
///
/// # Errors
/// [`ServerError`]: why it did not start.
pub fn run(config: Config, hosting: Hosting) -> Result<(), ServerError> {
    check(&config)?;
    pcm::be_single_threaded_in_the_library();
    // Before any thread: all of them inherit the blocked signals.
    let signals =
        TerminationSignals::block().map_err(|source| ServerError::Kernel { what: "signals", source })?;
    let directory = server_directory(&config.name)?;
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory);
    made.map_err(|source| ServerError::Path { path: directory.clone(), source })?;
    let lock_path = directory.join("lock");
    let lock = LockFile::acquire(&lock_path).map_err(|error| match error {
        LockError::AlreadyLocked { .. } => ServerError::AlreadyRunning { name: config.name.clone() },
        other => ServerError::Path { path: lock_path, source: io::Error::other(other.to_string()) },
    })?;
    let _ = sys::process::raise_file_limit();
    let socket_path = directory.join("control");
    let listener = Listener::adopt(&socket_path);
    let listener = listener.and_then(|adopted| adopted.map_or_else(|| Listener::bind(&socket_path), Ok));
    let listener = listener.map_err(|source| ServerError::Path { path: socket_path, source })?;
    let door = config.group.as_deref().map(|group| open_to_group(&config.name, group)).transpose()?;
    let (config, kit) = granted(config, &hosting.program);
    let reason = start(config, hosting, kit, Doors { own: listener, group: door }, signals, &directory)?;
    eprintln!("consort: stopped: {reason}");
    drop(lock);
    Ok(())
}

/// A second socket, for the members of a group.
fn open_to_group(server: &str, name: &str) -> Result<GroupDoor, ServerError> {
    let unusable = |source| ServerError::Path { path: format!("group '{name}'").into(), source };
    let known = sys::group::group_id(name).map_err(unusable)?;
    let group_id = known.ok_or_else(|| ServerError::UnknownGroup { name: name.to_owned() })?;
    let path = make_group_directory(server, group_id)?.join("control");
    let listener = Listener::bind_for_group(&path, group_id);
    let listener = listener.map_err(|source| ServerError::Path { path, source })?;
    Ok(GroupDoor { listener, group_id })
}

fn check(config: &Config) -> Result<(), ServerError> {
    proto::names::check_server(&config.name)?;
    within("a quantum", Some(config.quantum), QUANTUM_FRAMES)?;
    within("a port limit", Some(config.port_max), PORT_MAX)?;
    within("a port limit of one client", Some(config.ports_of_client()), 1..=config.port_max)?;
    within("a priority", config.realtime_priority, REALTIME_PRIORITY)?;
    opening::check(&config.driver, config.port_max)
}

/// # Errors
/// `value`, which is said to be `what`, is given and out of range.
pub(crate) fn within(
    what: &'static str,
    value: Option<u32>,
    range: RangeInclusive<u32>,
) -> Result<(), ServerError> {
    match value {
        Some(value) if !range.contains(&value) => {
            Err(ServerError::OutOfRange { what, value, least: *range.start(), most: *range.end() })
        }
        _ => Ok(()),
    }
}

fn open_driver(config: &Config, program: &Path) -> Result<Opened, ServerError> {
    let open =
        |choice: &DriverChoice| opening::open(choice, config.quantum, program).map_err(ServerError::Driver);
    if let Some(opened) = open(&config.driver)? {
        return Ok(opened);
    }
    eprintln!("consort: this machine has no sound card that can be heard: a timer starts the cycles");
    let stands_in = match &config.driver {
        DriverChoice::Alsa(options) => open(&opening::without_card(options))?,
        _ => None,
    };
    stands_in.ok_or_else(|| ServerError::Driver("no driver".into()))
}

fn start(
    config: Config,
    hosting: Hosting,
    kit: Option<RealtimeKit>,
    doors: Doors,
    signals: TerminationSignals,
    directory: &Path,
) -> Result<String, ServerError> {
    dsp::detect_processor();
    sys::cycle_guard::look_for_checker();
    let Opened { mut driver, facts, gate, monitoring } = open_driver(&config, &hosting.program)?;
    drop_unneeded(&config);
    let limits =
        Limits { clients: config.port_max, ports: config.port_max, connections: config.port_max * 16 };
    let shape =
        RegistryShape { ports: limits.ports, clients: limits.clients, connections: limits.connections };
    let (registry, registry_segment) = SharedRegistry::create(shape)?;
    let (engine, engine_fd) = described_engine(&config, &facts, kit.is_some())?;
    let (recording, recording_fd) = Shared::for_readers("consort-recording")?;
    let (capture, system_slabs) =
        capture_slabs(facts.channels.outputs().div_ceil(SLOTS_PER_SLAB), config.quantum)?;
    let mut model = model_of(limits, &facts.channels)?;
    let shared = CycleShared::new(engine, recording)
        .map(Arc::new)
        .map_err(|source| ServerError::Kernel { what: "an event descriptor", source })?;
    let (retired_in, retired) = rtrb::RingBuffer::new(16);
    let mut pool = PlanPool::new();
    let plan = pool.take().ok_or_else(|| ServerError::Driver("no plan".into()))?;
    plan.quantum = config.quantum;

    driver.start(config.quantum).map_err(ServerError::Driver)?;
    let cycles = CycleThread {
        driver,
        shared: Arc::clone(&shared),
        plan,
        capture,
        retired: retired_in,
        sync: config.sync,
        realtime_priority: config.realtime_priority,
        transport: Machine::default(),
        resumed: 0,
    };
    let announcement = announcement(&config, &facts);
    let realtime = config.realtime_priority;
    let ground = ground(&config);
    let driver_cpu = ground.as_ref().and_then(|ground| ground.cpus.first().copied());
    let after_crash = doors.own.has_replaced_another();
    let keeping = remember(&config, directory, after_crash, &mut model, &shared)?;
    let mut control = Control::new(Parts {
        config,
        hosting,
        doors,
        signals,
        shared: Arc::clone(&shared),
        memory: SharedMemory {
            engine: engine_fd,
            registry: registry_segment.into_fd(),
            recording: recording_fd,
        },
        mirror: Mirror::new(registry),
        model,
        system_slabs,
        retired,
        pool,
        driver: facts,
        ground,
        on_audience: gate,
        monitoring,
        after_crash,
        keeping,
        kit,
    })
    .map_err(|source| ServerError::Kernel { what: "a poll descriptor", source })?;
    if realtime.is_some() {
        lock_memory();
    }
    let thread = spawn_driver_thread(cycles, realtime, driver_cpu)?;
    eprintln!("{announcement}");
    // Where a service manager waits for it; a server that cannot tell it runs all the same.
    let _ = sd_notify::notify(&[NotifyState::Ready]);
    sys::thread::favour();
    // It lives until the driver thread has ended, which calls its rousers.
    let ended = control.run();
    // Release: as the driver thread's own, which it may have stored by itself.
    shared.stop.store(1, Ordering::Release);
    match thread.join() {
        Ok(report) => report.into_iter().for_each(|report| eprintln!("consort: {report}")),
        Err(_) => {
            return Err(ServerError::Driver(
                "its thread has ended in a panic: please report what it said".into(),
            ));
        }
    }
    ended.map_err(|source| ServerError::Kernel { what: "to poll", source })
}

/// The engine segment, with what programs may ask of it before the first cycle.
fn described_engine(
    config: &Config,
    facts: &DriverFacts,
    gives_priorities: bool,
) -> Result<(Shared<EngineSegment>, OwnedFd), ServerError> {
    let (engine, fd) = Shared::<EngineSegment>::for_readers("consort-engine")?;
    let priorities = config.realtime_priority.map_or_else(Priorities::default, |driver| Priorities {
        driver,
        clients: driver.saturating_sub(CLIENT_PRIORITY_DISTANCE).max(1),
    });
    let realtime = config.realtime_priority.is_some();
    let flags = ServerFlags { realtime, sync: config.sync, gives_priorities };
    engine.describe(flags, priorities, sys::process::process_id());
    // Two servers of one name never start at the same time: the lock's file sees to that.
    engine.identify(sys::clock::now_ns(), config.grace_ms);
    let (quantum, sample_rate_hz) = (config.quantum, facts.sample_rate_hz);
    engine.publish(CycleInfo { quantum, sample_rate_hz, ..CycleInfo::default() });
    Ok((engine, fd))
}

/// A graph of nothing but the device's ports.
fn model_of(limits: Limits, channels: &Channels) -> Result<Model, ServerError> {
    let mut model = Model::new(limits);
    let system = model.open_client("system", true);
    let system = system.and_then(|system| model.set_channels(system, channels).map(|()| system));
    let system = system.map_err(|error| ServerError::Driver(error.to_string()))?;
    model.set_active(system, true);
    Ok(model)
}

fn announcement(config: &Config, facts: &DriverFacts) -> String {
    let sync = if config.sync { ", sync" } else { "" };
    let (name, quantum) = (&config.name, config.quantum);
    let DriverFacts { description, sample_rate_hz, .. } = facts;
    format!("consort: server '{name}' runs: {description} at {sample_rate_hz} Hz, {quantum} frames{sync}")
}

/// What clients of the server before leave to this one without carrying it themselves.
const UNCARRIED_FILE: &str = "properties.json";
/// For how long whoever comes may have been one of them.
const EXPECTED_NS: u64 = 10_000_000_000;

/// Has the model know what was kept, and what there is kept from now on.
fn remember(
    config: &Config,
    directory: &Path,
    after_crash: bool,
    model: &mut Model,
    shared: &CycleShared,
) -> Result<Keeping, ServerError> {
    let start = |path: PathBuf| {
        Keeper::start(path).map_err(|source| ServerError::Kernel { what: "a thread", source })
    };
    if let Some(KeptState { path, state }) = config.state.as_deref() {
        // Now rather than later, so that whoever starts the server is told if it cannot be kept there.
        state::write(path, state)?;
        model.keep_what_goes();
        model.expect(state);
        if let Some(place) = state.transport {
            // Refused only while somebody else moves it, who is not there yet.
            let _ = shared.transport.ask_position(&place.position());
        }
        return Ok(Keeping::all(start(path.clone())?, state.transport));
    }
    let path = directory.join(UNCARRIED_FILE);
    if after_crash && let Ok(State { properties, .. }) = state::read(&path) {
        model.expect(&State { properties, ..State::default() });
    }
    // A model that is told nothing has nothing to forget.
    Ok(Keeping::uncarried(start(path)?, sys::clock::now_ns() + EXPECTED_NS))
}

/// The CPUs to place clients on. Where nothing is real-time, a pinned thread would only wait behind others.
fn ground(config: &Config) -> Option<Ground> {
    let named = config.cpus.as_deref();
    if !config.placement || config.realtime_priority.is_none() {
        if let Some(named) = named {
            eprintln!(
                "consort: nobody is kept on the CPUs {named}: that takes --placement on, and real-time priorities"
            );
        }
        return None;
    }
    let own = sys::thread::affinity().ok()?;
    let cpus = match named {
        None => sys::topology::undisturbed(&own),
        // Whoever names them knows why, and isolated ones are in nobody's mask.
        Some(named) => {
            let isolated = sys::topology::isolated();
            let usable = named.iter().filter(|cpu| own.contains(*cpu) || isolated.contains(*cpu));
            usable.filter_map(|cpu| u32::try_from(cpu).ok()).collect()
        }
    };
    if let Some(named) = named.filter(|named| cpus.len() < named.len()) {
        eprintln!(
            "consort: of the CPUs {named}, {} can be used: this process has the CPUs {own}",
            cpus.len()
        );
    }
    (!cpus.is_empty()).then(|| Ground { costs: calibrate(&cpus), cpus })
}

const DRIVER_STACK_BYTES: usize = 512 * 1024;

fn spawn_driver_thread(
    cycles: CycleThread,
    realtime: Option<u32>,
    cpu: Option<u32>,
) -> Result<std::thread::JoinHandle<Option<String>>, ServerError> {
    let body = move || {
        if let Some(priority) = realtime {
            // Refused only if the right was taken away since the server started.
            let _ = sys::thread::set_fifo(0, priority);
        }
        if let Some(cpu) = cpu {
            let mut only = CpuSet::new();
            // Without the right to pin itself, the driver runs where the kernel likes.
            let _ = only.insert(cpu as usize) && sys::thread::set_affinity(&only).is_ok();
        }
        sys::thread::flush_denormals_to_zero();
        sys::thread::prefault_stack(64 * 1024);
        cycles.run()
    };
    sys::thread::spawn_named("consort-driver", DRIVER_STACK_BYTES, body)
        .map_err(|source| ServerError::Kernel { what: "a thread", source })
}
