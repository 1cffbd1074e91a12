//! A server's life: directory and lock, memory, driver, the two threads, and the end.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use device::{CardReservation, Channels};
use proto::driver::DriverChoice;
use proto::limits::{PORT_MAX, QUANTUM_FRAMES, REALTIME_PRIORITY};
use rt::shm::{CycleInfo, EngineSegment, Priorities, RegistryShape, ServerFlags};
use sd_notify::NotifyState;
use state::State;
use sys::lock::{LockError, LockFile};
use sys::memory::{Shared, SharedRegistry};
use sys::runtime_directory::{lock_path, make_group_directory, server_directory};
use sys::signals::TerminationSignals;
use sys::socket::Listener;
use sys::thread::CpuSet;

use crate::config::{Config, StateFile};
use crate::control::{
    Control, GroupListener, Listeners, PlacementConfig, Setup, SharedMemory, StatePersistence,
    stream_rings,
};
use crate::counters::Counters;
use crate::cycle_thread::{CycleGains, CycleShared, CycleThread};
use crate::device_thread::DeviceThread;
use crate::driver_swap::capture_slabs;
use crate::error::{CompanionError, ServerError, within};
use crate::model::{Limits, Model};
use crate::opening::{self, DriverFacts, NewDriver};
use crate::placement::calibrate;
use crate::plan::PlanPool;
use crate::platform::Platform;
use crate::priority_broker::BrokeredPriorities;
use crate::realtime_limits::{Locking, drop_unneeded, granted, lock_memory};
use crate::registry::Mirror;
use crate::state_writer::StateWriter;
use crate::stream_part::StreamPart;
use crate::transport::TransportEngine;

/// Distance from the driver's priority to its clients', as in JACK.
const CLIENT_PRIORITY_DISTANCE: u32 = 5;

/// Returns the priority of the threads of further devices, where the driver has `driver`: below all
/// clients of the graph.
pub(crate) fn device_priority(driver: u32) -> u32 {
    driver.saturating_sub(CLIENT_PRIORITY_DISTANCE + 1).max(1)
}

/// Runs a server in this thread until it is asked to stop. `platform` starts other programs for it;
/// `companions` starts, once, what runs along with it, when the server has given up the rights of
/// root's that it does not need and before it runs.
///
/// # Errors
/// [`ServerError`]: why it did not start.
pub fn run(
    config: Config,
    platform: Platform,
    companions: impl FnOnce() -> Result<(), CompanionError>,
) -> Result<(), ServerError> {
    let outcome = run_until_stopped(config, platform, companions);
    sys::log::flush(LAST_LINES);
    outcome
}

/// How long a server that ends waits until everything that it reported is written.
const LAST_LINES: Duration = Duration::from_secs(1);

fn run_until_stopped(
    config: Config,
    platform: Platform,
    companions: impl FnOnce() -> Result<(), CompanionError>,
) -> Result<(), ServerError> {
    check(&config)?;
    device::disable_library_locks();
    // Before any thread: all of them inherit the blocked signals.
    let signals = TerminationSignals::block()
        .map_err(|source| ServerError::Kernel { what: "signals", source })?;
    let place = Place::take(&config.name)?;
    let _ = sys::process::raise_file_limit();
    let socket_path = place.directory.join("control");
    let listener = Listener::adopt(&socket_path);
    let listener =
        listener.and_then(|adopted| adopted.map_or_else(|| Listener::bind(&socket_path), Ok));
    let listener = listener.map_err(|source| ServerError::Path { path: socket_path, source })?;
    let group =
        config.group.as_deref().map(|group| open_to_group(&config.name, group)).transpose()?;
    let (config, kit) = granted(config, &*platform.priorities);
    dsp::detect_processor();
    sys::cycle_guard::look_for_checker();
    let driver = open_driver(&config, &*platform.cards)?;
    drop_unneeded(&config);
    companions()?;
    let listeners = Listeners { own: listener, group };
    let reason = start(config, platform, kit, listeners, signals, &place, driver)?;
    sys::report!("consort: stopped: {reason}");
    Ok(())
}

/// Where a server is found by its name: no other server of that name can start.
struct Place {
    directory: PathBuf,
    lock: LockFile,
}

impl Place {
    fn take(server: &str) -> Result<Self, ServerError> {
        let directory = server_directory(server)?;
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory);
        made.map_err(|source| ServerError::Path { path: directory.clone(), source })?;
        let path = lock_path(&directory);
        let lock = LockFile::acquire(&path).map_err(|error| match error {
            LockError::AlreadyLocked { .. } => {
                ServerError::AlreadyRunning { name: server.to_owned() }
            }
            other => ServerError::Path { path, source: io::Error::other(other.to_string()) },
        })?;
        Ok(Self { directory, lock })
    }
}

/// A second socket, for the members of a group.
fn open_to_group(server: &str, name: &str) -> Result<GroupListener, ServerError> {
    let unusable = |source| ServerError::Path { path: format!("group '{name}'").into(), source };
    let known = sys::group::group_id(name).map_err(unusable)?;
    let group_id = known.ok_or_else(|| ServerError::UnknownGroup { name: name.to_owned() })?;
    let path = make_group_directory(server, group_id)?.join("control");
    let listener = Listener::bind_for_group(&path, group_id);
    let listener = listener.map_err(|source| ServerError::Path { path, source })?;
    Ok(GroupListener { listener, group_id })
}

fn check(config: &Config) -> Result<(), ServerError> {
    proto::names::check_server(&config.name)?;
    within("a quantum", Some(config.quantum), QUANTUM_FRAMES)?;
    within("a port limit", Some(config.port_max), PORT_MAX)?;
    within("a port limit of one client", Some(config.ports_of_client()), 1..=config.port_max)?;
    within("a priority", config.realtime_priority, REALTIME_PRIORITY)?;
    opening::check(&config.driver, config.port_max)
}

fn open_driver(config: &Config, cards: &dyn CardReservation) -> Result<NewDriver, ServerError> {
    let open = |choice: &DriverChoice| {
        opening::open(choice, config.quantum, cards).map_err(ServerError::Driver)
    };
    if let Some(opened) = open(&config.driver)? {
        return Ok(opened);
    }
    sys::report!("consort: no usable sound card: running on the timer driver");
    let stands_in = match &config.driver {
        DriverChoice::Alsa(options) => open(&opening::without_card(options))?,
        _ => None,
    };
    stands_in.ok_or_else(|| ServerError::Driver("no driver".into()))
}

fn start(
    config: Config,
    platform: Platform,
    kit: Option<BrokeredPriorities>,
    listeners: Listeners,
    signals: TerminationSignals,
    place: &Place,
    driver: NewDriver,
) -> Result<String, ServerError> {
    let NewDriver { mut driver, facts, start_trigger, hardware_monitor } = driver;
    let limits = config.limits();
    let shape = RegistryShape {
        ports: limits.ports,
        clients: limits.clients,
        connections: limits.connections,
    };
    let (registry, registry_segment) = SharedRegistry::create(shape)?;
    let (engine, engine_fd) = described_engine(&config, &facts, kit.is_some())?;
    let (recording, recording_fd) = Shared::for_readers("consort-recording")?;
    let (capture, driver_slabs) = capture_slabs(&[], facts.channels.slots())?;
    let (mut model, device) = model_of(limits, &facts.channels)?;
    let shared = CycleShared::new(engine, recording)
        .map(Arc::new)
        .map_err(|source| ServerError::Kernel { what: "an event descriptor", source })?;
    let (retired_in, retired) = rtrb::RingBuffer::new(16);
    let mut pool = PlanPool::new();
    let plan = pool.take().ok_or_else(|| ServerError::Driver("no plan".into()))?;
    plan.quantum = config.quantum;

    shared.is_called_by(&facts.rest_call);
    driver.start(config.quantum).map_err(ServerError::Driver)?;
    let (streams, (orders, returns)) = stream_rings();
    let cycles = CycleThread {
        driver,
        streams: StreamPart::new(orders, returns),
        gains: CycleGains::default(),
        shared: Arc::clone(&shared),
        plan,
        capture,
        retired: retired_in,
        sync: config.sync,
        realtime_priority: config.realtime_priority,
        suspend_ns: config.suspend_ns(),
        transport: TransportEngine::default(),
        resumed: 0,
        counters: Counters::of_environment(config.quantum, facts.sample_rate_hz),
    };
    let announcement = announcement(&config, &facts);
    let realtime = config.realtime_priority;
    let placement = placement(&config);
    let driver_cpu = placement.as_ref().and_then(|placement| placement.cpus.first().copied());
    let after_crash = listeners.own.has_replaced_another();
    let state = remember(&config, &place.directory, after_crash, &mut model, &shared)?;
    let locking = keep_in_memory(&shared, realtime.is_some());
    let mut control = Control::new(Setup {
        config,
        platform,
        listeners,
        signals,
        shared: Arc::clone(&shared),
        memory: SharedMemory {
            engine: engine_fd.into(),
            registry: registry_segment.into_fd().into(),
            recording: recording_fd.into(),
        },
        registry: Mirror::new(registry),
        model,
        device_slabs: [(device, driver_slabs)].into(),
        retired,
        pool,
        driver: facts,
        placement,
        start_trigger,
        hardware_monitor,
        after_crash,
        state,
        kit,
        streams,
        locking,
    })
    .map_err(|source| ServerError::Kernel { what: "a poll descriptor", source })?;
    let serving = place.lock.serve();
    let serving =
        serving.map_err(|source| ServerError::Kernel { what: "a lock of its file", source })?;
    let thread = spawn_driver_thread(cycles, realtime, driver_cpu)?;
    sys::report!("{announcement}");
    // For a service manager that waits for it. A server that cannot notify one runs all the same.
    let _ = sd_notify::notify(&[NotifyState::Ready]);
    control.favour_this_thread();
    let ended = control.run(serving);
    shared.end_cycles();
    let Ok(report) = thread.join() else {
        let reason = "its thread has ended in a panic: please report what it said";
        return Err(ServerError::Driver(reason.into()));
    };
    report.into_iter().for_each(|report| sys::report!("consort: {report}"));
    ended.map_err(|source| ServerError::Kernel { what: "to poll", source })
}

/// Populates the memory that real-time threads touch, and locks it if they have priority; returns
/// what is locked.
fn keep_in_memory(shared: &CycleShared, is_realtime: bool) -> Locking {
    // Before anything is locked: what started the server is not what it runs from here on.
    sys::memory::release_spare_memory();
    let locking = if is_realtime { lock_memory() } else { Locking::Nothing };
    locking.lock(|| shared.engine.lock_on_fault());
    locking.lock(|| shared.recording.lock_on_fault());
    let threads = [CycleThread::run as *const (), DeviceThread::spawn as *const ()];
    sys::memory::populate_program(&threads.map(|function| function as usize));
    locking
}

/// The engine segment, with what programs may read there before the first cycle.
fn described_engine(
    config: &Config,
    facts: &DriverFacts,
    gives_priorities: bool,
) -> Result<(Shared<EngineSegment>, OwnedFd), ServerError> {
    let (engine, fd) = Shared::<EngineSegment>::for_readers("consort-engine")?;
    let priorities = config.realtime_priority.map_or_else(Priorities::default, |driver| {
        Priorities { driver, clients: driver.saturating_sub(CLIENT_PRIORITY_DISTANCE).max(1) }
    });
    let realtime = config.realtime_priority.is_some();
    let flags = ServerFlags {
        realtime,
        sync: config.sync,
        gives_priorities,
        trusts_programs: config.trusts_programs,
        has_policy: !config.policy.is_empty(),
    };
    engine.describe(flags, priorities, sys::process::process_id());
    // The lock file prevents two servers of one name from starting at the same time.
    engine.identify(sys::clock::now_ns(), config.grace_ms);
    let (quantum, sample_rate_hz) = (config.quantum, facts.sample_rate_hz);
    engine.publish(CycleInfo { quantum, sample_rate_hz, ..CycleInfo::default() });
    Ok((engine, fd))
}

/// The name of the device that drives, as JACK programs know it.
pub(crate) const DRIVER_NAME: &str = "system";

/// A graph with only the driver's ports, and the id of the driver.
fn model_of(limits: Limits, channels: &Channels) -> Result<(Model, u32), ServerError> {
    let mut model = Model::new(limits);
    let driver = model.open_device(DRIVER_NAME);
    let driver = driver.and_then(|driver| model.set_channels(driver, channels).map(|()| driver));
    let driver = driver.map_err(|error| ServerError::Driver(error.to_string()))?;
    Ok((model, driver))
}

fn announcement(config: &Config, facts: &DriverFacts) -> String {
    let sync = if config.sync { ", sync" } else { "" };
    let (name, quantum) = (&config.name, config.quantum);
    let DriverFacts { description, sample_rate_hz, .. } = facts;
    format!(
        "consort: server '{name}' runs: {description} at {sample_rate_hz} Hz, {quantum} frames{sync}"
    )
}

/// What the previous server saved for clients that do not restore it by themselves.
const UNCARRIED_FILE: &str = "properties.json";
/// How long a new client may have been a client of the previous server.
const EXPECTED_NS: u64 = 10_000_000_000;

/// Loads the saved state into the model, and lets it be saved from now on.
fn remember(
    config: &Config,
    directory: &Path,
    after_crash: bool,
    model: &mut Model,
    shared: &CycleShared,
) -> Result<StatePersistence, ServerError> {
    let start = |path: PathBuf| {
        StateWriter::start(path).map_err(|source| ServerError::Kernel { what: "a thread", source })
    };
    if let Some(StateFile { path, state }) = config.state.as_deref() {
        // Written at once, so that the user sees an error if it cannot be saved there.
        state::write(path, state)?;
        model.keep_what_goes();
        model.expect(state);
        if let Some(place) = state.transport {
            // Refused only while another request moves it, and there is none yet.
            let _ = shared.transport.request_position(&place.position());
        }
        return Ok(StatePersistence::all(start(path.clone())?, state.transport));
    }
    let path = directory.join(UNCARRIED_FILE);
    if after_crash && let Ok(State { properties, .. }) = state::read(&path) {
        model.expect(&State { properties, ..State::default() });
    }
    // A model without a saved state has nothing to forget.
    Ok(StatePersistence::uncarried(start(path)?, sys::clock::now_ns() + EXPECTED_NS))
}

/// The CPUs to place clients on. Where nothing is real-time, a pinned thread would only wait behind
/// others.
fn placement(config: &Config) -> Option<PlacementConfig> {
    let named = config.cpus.as_deref();
    if !config.placement || config.realtime_priority.is_none() {
        if let Some(named) = named {
            sys::report!(
                "consort: no client is kept on the CPUs {named}: this needs --placement on and real-time priorities"
            );
        }
        return None;
    }
    let own = sys::thread::affinity().ok()?;
    let cpus = match named {
        None => sys::topology::undisturbed(&own),
        // The user has named them for a reason, and isolated CPUs are in no thread's mask.
        Some(named) => {
            let isolated = sys::topology::isolated();
            let usable = named.iter().filter(|cpu| own.contains(*cpu) || isolated.contains(*cpu));
            usable.filter_map(|cpu| u32::try_from(cpu).ok()).collect()
        }
    };
    if let Some(named) = named.filter(|named| cpus.len() < named.len()) {
        sys::report!(
            "consort: of the CPUs {named}, {} can be used: this process has the CPUs {own}",
            cpus.len()
        );
    }
    (!cpus.is_empty()).then(|| PlacementConfig { costs: calibrate(&cpus), cpus })
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
        device::discard_library_messages();
        sys::thread::flush_denormals_to_zero();
        sys::thread::prefault_stack(64 * 1024);
        cycles.run()
    };
    sys::thread::spawn_named("consort-driver", DRIVER_STACK_BYTES, body)
        .map_err(|source| ServerError::Kernel { what: "a thread", source })
}
