//! What the control thread starts with.

use std::collections::BTreeMap;
use std::sync::Arc;

use round_robin::RoundRobin;
use rtrb::{Consumer, Producer};
use sys::clock::now_ns;
use sys::machine_sleep::MachineSleep;
use sys::poll::{Interest, Poller};
use sys::signals::TerminationSignals;

use super::clients::Clients;
use super::latencies::Latencies;
use super::listeners::Listeners;
use super::notifications::Notifications;
use super::peers::{Peers, SharedMemory};
use super::persistence::{Persistence, StatePersistence};
use super::placement::PlacementConfig;
use super::publisher::PlanPublisher;
use super::questions::Tokens;
use super::quotas::Quotas;
use super::returning::Returns;
use super::services::Services;
use super::streams::Streams;
use super::supervision::Supervisor;
use super::transition::CycleSettings;
use super::{Control, SIGNALS, SLEEP, WAKER};
use crate::config::Config;
use crate::cycle_thread::{CycleShared, Retired};
use crate::model::Model;
use crate::opening::{DriverFacts, HardwareMonitor, StartTrigger};
use crate::plan::PlanPool;
use crate::platform::Platform;
use crate::priority_broker::BrokeredPriorities;
use crate::realtime_limits::Locking;
use crate::registry::Mirror;
use crate::slab::Slab;
use crate::stream_budget::StreamLimits;
use crate::stream_part::{StreamOrder, StreamReturn};
use sys::disposal::Disposal;

/// What the control thread starts with.
pub struct Setup {
    /// How the server was started.
    pub config: Config,
    /// What the program that runs the server provides.
    pub platform: Platform,
    /// Where programs connect.
    pub listeners: Listeners,
    /// SIGTERM and the like.
    pub signals: TerminationSignals,
    /// Shared with the driver thread.
    pub shared: Arc<CycleShared>,
    /// Descriptors that programs receive.
    pub memory: SharedMemory,
    /// The registry.
    pub registry: Mirror,
    /// The model, with the driver's ports in it.
    pub model: Model,
    /// Slabs of the devices' output ports.
    pub device_slabs: BTreeMap<u32, Vec<Slab>>,
    /// Plans that come back from the driver thread.
    pub retired: Consumer<Retired>,
    /// The plans that are not in use.
    pub pool: PlanPool,
    /// About the driver.
    pub driver: DriverFacts,
    /// Where clients are placed; `None`: the kernel decides.
    pub placement: Option<PlacementConfig>,
    /// Starts a driver that waits until it has listeners, such as the file driver.
    pub start_trigger: StartTrigger,
    /// Tells the driver's card which inputs to monitor.
    pub hardware_monitor: HardwareMonitor,
    /// The previous server of this name crashed: its clients may return.
    pub after_crash: bool,
    /// Writes the state to a file.
    pub state: StatePersistence,
    /// Gives priorities to threads that cannot take them.
    pub kit: Option<BrokeredPriorities>,
    /// Orders to the driver thread about streams, and what comes back.
    pub streams: (Producer<StreamOrder>, Consumer<StreamReturn>),
    /// What of the memory that the driver touches is locked.
    pub locking: Locking,
}

impl Control {
    /// Creates a control thread that has not run yet.
    ///
    /// # Errors
    /// If the kernel has no descriptor left.
    pub fn new(setup: Setup) -> std::io::Result<Self> {
        let Setup {
            config,
            platform,
            listeners,
            signals,
            shared,
            memory,
            registry,
            model,
            device_slabs,
            retired,
            pool,
            driver,
            placement,
            start_trigger,
            hardware_monitor,
            after_crash,
            state,
            kit,
            streams,
            locking,
        } = setup;
        let poller = Poller::new()?;
        for (token, listener) in listeners.iter() {
            poller.add(listener, token, Interest::Readable)?;
        }
        poller.add(&shared.waker, WAKER, Interest::Readable)?;
        poller.add(&signals, SIGNALS, Interest::Readable)?;
        let sleep = MachineSleep::watch().ok();
        if let Some(sleep) = &sleep {
            poller.add(sleep, SLEEP, Interest::Readable)?;
        }
        // Tokens of an earlier server are not valid here.
        let tokens = Tokens::after(shared.engine.instance());
        let lockable = match locking {
            // Without a limit, or without a lock.
            Locking::Everything | Locking::Nothing => None,
            Locking::Segments => sys::process::memlock_limit(),
        };
        let limits = StreamLimits::within(lockable);
        let mut streams = Streams::new(streams, Arc::clone(&shared.device), limits);
        if let Some(file) = config.state.as_deref() {
            streams.keep_volumes(&file.state);
        }
        Ok(Self {
            quotas: Quotas::new(&config, locking),
            peers: Peers::new(listeners, Disposal::start()?, memory),
            clients: Clients::new(device_slabs, tokens, locking),
            publisher: PlanPublisher::new(pool, retired, placement),
            notifications: Notifications::default(),
            latencies: Latencies::default(),
            settings: CycleSettings::new(config.quantum, driver, start_trigger),
            supervisor: Supervisor::new(&shared.recording, config.trace_switches),
            persistence: Persistence { state, returns: Returns::expected(after_crash) },
            services: Services::new(kit, hardware_monitor),
            streams,
            config,
            platform,
            poller,
            signals,
            sleep,
            shared,
            model,
            registry,
            round_robin: RoundRobin::default(),
            packet: Vec::new(),
            polled_ns: 0,
            driver_called: false,
            last_event_ns: now_ns(),
            stopping: None,
        })
    }
}
