//! OpenEnv: sessions over WebSocket and HTTP, each of which is a slot of one vec env.
//!
//! The protocol is that of `openenv-core`. `http` has the routes and who may use them, `socket`
//! the talk over a WebSocket, and `session` an episode as a client sees it. `stepper` is the
//! one thread that has the vec env: it steps the slots together whose sessions wait. `actions`
//! reads actions from JSON, `shown` writes observations as JSON, and `pages` describes both.
//!
//! Everything that a client can use up is limited: sessions, connections, the bytes of a
//! message, the time of a request and of silence. What a client does wrong is answered by the
//! protocol's error, and its session goes on.

mod actions;
mod http;
mod pages;
mod session;
mod shown;
mod socket;
mod stepper;

use std::net::{SocketAddr, TcpListener as StdTcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use self::pages::Pages;
use self::shown::Face;
use self::stepper::{FreeSlots, SlotJob, Stepper};
use super::address::ServerAddress;
use super::extension::ToPlain;
use super::server::{Access, ServerMetrics, Tally};
use super::token::Token;
use crate::caps::Caps;
use crate::error::{Error, Result};
use crate::fork::ProcessMark;
use crate::space::{LeafKind, Space};
use crate::vec_config::AutoresetMode;
use crate::vec_env::{Spec, VecEnv};

/// How many threads read and write what clients send and get.
const THREADS: usize = 2;

/// How long the end waits for steps in flight.
const GRACE: Duration = Duration::from_secs(10);

/// The field of an action or an observation whose space is no dict.
const ACTION: &str = "action";
const OBSERVATION: &str = "observation";

/// The field of actions and observations that is the protocol's own.
const METADATA: &str = "metadata";

/// What an OpenEnv server may be made to spend. There are as many sessions as slots.
#[derive(Clone, Copy, Debug)]
pub struct OpenEnvLimits {
    /// How many connections there may be, those without a session included.
    pub connections: usize,
    /// How many bytes a message of a client may have.
    pub message: usize,
    /// How long a client may give no sign of life.
    pub idle: Duration,
}

/// What an OpenEnv server serves.
pub struct OpenEnvServed {
    /// The envs, in [`AutoresetMode::Disabled`]; each session has one.
    pub envs: Box<dyn VecEnv>,
    /// What the envs are, for people.
    pub description: String,
    /// The version that clients are told.
    pub version: String,
    /// Makes values of objects, where the envs' language has objects.
    pub plain: Option<ToPlain>,
    /// What is to live as long as the envs, and is dropped after them.
    pub keep: Option<Box<dyn std::any::Any + Send>>,
}

/// What all connections of a server share.
struct Hub {
    limits: OpenEnvLimits,
    token: Option<Token>,
    action: Space,
    face: Face,
    pages: Pages,
    num_slots: usize,
    /// Whether a reset may have options, which count for that reset alone.
    has_options: bool,
    free: Arc<FreeSlots>,
    jobs: mpsc::Sender<SlotJob>,
    connections: Arc<AtomicUsize>,
    tally: Tally,
    ending: watch::Receiver<bool>,
}

impl Hub {
    fn metrics(&self) -> ServerMetrics {
        let sessions = self.num_slots - self.free.count();
        self.tally.metrics(self.connections.load(Ordering::SeqCst), sessions)
    }

    fn is_ending(&self) -> bool {
        *self.ending.borrow()
    }

    /// Waits until the server is to end.
    async fn ended(&self) {
        // An error is the end, too: the server is gone.
        let _ = self.ending.clone().wait_for(|ending| *ending).await;
    }
}

/// A server of OpenEnv that runs until it is closed.
pub struct OpenEnvServer {
    addresses: Vec<ServerAddress>,
    listeners: Vec<StdTcpListener>,
    ending: watch::Sender<bool>,
    running: Option<RunningServer>,
    process_mark: ProcessMark,
}

/// What a server has while it runs.
struct RunningServer {
    hub: Arc<Hub>,
    runtime: Runtime,
    stepping: JoinHandle<()>,
}

impl OpenEnvServer {
    /// A server at `addresses`, which serves from here on.
    ///
    /// # Errors
    /// [`Error::Argument`] for addresses that cannot be bound, [`Error::Unsupported`] for envs
    /// that cannot be sessions.
    pub fn new(
        addresses: &[ServerAddress],
        served: OpenEnvServed,
        limits: OpenEnvLimits,
        access: Access,
    ) -> Result<Self> {
        let spec = served.envs.spec();
        check(spec)?;
        let bound: Vec<_> = addresses.iter().map(bind).collect::<Result<_>>()?;
        let (addresses, listeners): (Vec<_>, Vec<_>) = bound.into_iter().unzip();
        let (ending, is_ending) = watch::channel(false);
        let (jobs, orders) = mpsc::channel();
        let hub = Arc::new(Hub {
            limits,
            token: access.token,
            action: spec.action.clone(),
            pages: Pages::of(spec, &served.description, &served.version),
            num_slots: spec.num_slots,
            has_options: spec.caps.contains(Caps::OPTIONS | Caps::OPTIONS_ONCE),
            free: FreeSlots::of(spec.num_slots),
            face: Face::of(spec, served.plain),
            jobs,
            connections: Arc::default(),
            tally: Tally::default(),
            ending: is_ending,
        });
        let stepper = Stepper::new(served.envs, orders, served.keep);
        let stepping = std::thread::Builder::new()
            .name("openenv-step".into())
            .spawn(move || stepper.run())
            .map_err(Error::env)?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("openenv")
            .enable_io()
            .enable_time()
            .build()
            .map_err(Error::env)?;
        for listener in &listeners {
            let _context = runtime.enter();
            let listener = TcpListener::from_std(listener.try_clone()?)?;
            runtime.spawn(http::accept_all(listener, hub.clone(), access.tls.clone()));
        }
        let running = Some(RunningServer { hub, runtime, stepping });
        Ok(OpenEnvServer { addresses, listeners, ending, running, process_mark: ProcessMark::here() })
    }

    /// Where the server listens, with the ports that the system chose.
    pub fn addresses(&self) -> &[ServerAddress] {
        &self.addresses
    }

    /// What the server has done so far, and has now; its envs are its sessions.
    pub fn metrics(&self) -> Option<ServerMetrics> {
        self.running.as_ref().map(|running| running.hub.metrics())
    }

    /// Ends the server: no connection is accepted any more, steps in flight are answered, and
    /// then each connection is closed. In the child of a fork, which has none of the server's
    /// threads, nothing changes.
    pub fn close(&mut self) {
        let Some(RunningServer { hub, runtime, stepping }) = self.running.take() else { return };
        if self.process_mark.is_before_fork() {
            // To end it would be to wait for its threads.
            std::mem::forget((hub, runtime, stepping));
            return;
        }
        self.ending.send_replace(true);
        // Whoever else has the sockets: the child of a fork, for instance.
        for listener in &self.listeners {
            let _ = rustix::net::shutdown(listener, rustix::net::Shutdown::Both);
        }
        // A step that never ends keeps nobody from ending the server.
        let until = Instant::now() + GRACE;
        wait(until, || hub.connections.load(Ordering::SeqCst) == 0);
        runtime.shutdown_timeout(Duration::from_secs(1));
        drop(hub);
        if wait(until, || stepping.is_finished()) {
            let _ = stepping.join();
        }
    }
}

impl Drop for OpenEnvServer {
    fn drop(&mut self) {
        self.close();
    }
}

/// Waits until `holds`, at most until `until`. Returns whether it holds.
fn wait(until: Instant, holds: impl Fn() -> bool) -> bool {
    while !holds() {
        if Instant::now() >= until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

fn bind(address: &ServerAddress) -> Result<(ServerAddress, StdTcpListener)> {
    let ServerAddress::Tcp(host, port) = address else {
        return Err(Error::Argument(format!(
            "addr is '{address}': OpenEnv's clients take URLs, which Unix sockets have none of: give 'host:port'"
        )));
    };
    let unbound = |error: std::io::Error| Error::Argument(format!("cannot serve at {address}: {error}"));
    let listener = StdTcpListener::bind((host.as_str(), *port)).map_err(unbound)?;
    listener.set_nonblocking(true).map_err(unbound)?;
    let at: SocketAddr = listener.local_addr().map_err(unbound)?;
    Ok((ServerAddress::Tcp(at.ip().to_string(), at.port()), listener))
}

/// Errors for envs that cannot be sessions.
fn check(spec: &Spec) -> Result<()> {
    let id = &spec.id;
    if spec.autoreset != AutoresetMode::Disabled {
        return Err(Error::Unsupported(format!(
            "{id}: OpenEnv's clients reset their envs themselves: give envs of autoreset_mode='disabled', not \
             '{}'",
            spec.autoreset
        )));
    }
    if !spec.caps.contains(Caps::SUBSET | Caps::RESET) {
        return Err(Error::Unsupported(format!(
            "{id}: each of OpenEnv's sessions steps and resets its own env, and these envs can only move \
             together: give envs that step one by one"
        )));
    }
    for (what, space) in [(ACTION, &spec.action), (OBSERVATION, &spec.observation)] {
        if space.has_key(METADATA) {
            return Err(Error::Unsupported(format!(
                "{id}: OpenEnv has a field 'metadata' of its own in each {what}: give that part of the \
                 {what} space another name"
            )));
        }
        if let Some(leaf) = space.leaves().iter().find(|leaf| matches!(leaf.kind, LeafKind::Object)) {
            return Err(Error::Unsupported(format!(
                "{id}: {what} '{}' is an object, which JSON has no form for",
                leaf.name
            )));
        }
    }
    Ok(())
}
