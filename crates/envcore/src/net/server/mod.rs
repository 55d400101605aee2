//! The server: a vec env of its own for each connection, each in a thread of its own.
//!
//! Everything that a peer can use up is limited: connections, envs, the bytes of a message,
//! the time that a message takes. A peer that breaks a rule loses its connection, and the log
//! says why; netenv has no word to tell the peer.

mod extended;
mod player;
mod session;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use super::address::{Listener, ServerAddress};
use super::extension::{Asked, ToPlain};
use super::stream::{BrokenConnection, wait_for};
use super::tls::ServerTls;
use super::token::Token;
use crate::error::{Error, Result};
use crate::fork::ProcessMark;
use crate::space::{Options, Value};
use crate::vec_env::VecEnv;

/// How long the server waits before it looks whether it is to end.
const SLICE: Duration = Duration::from_millis(100);

/// How long what clients send is still answered when the server is to end: it may have been under
/// way before.
const LATE: Duration = Duration::from_secs(1);

/// How long the end waits for steps in flight.
const GRACE: Duration = Duration::from_secs(10);

/// What a server may be made to spend.
#[derive(Clone, Copy, Debug)]
pub struct ServerLimits {
    /// How many connections there may be.
    pub connections: usize,
    /// How many envs there may be, in all connections.
    pub envs: usize,
    /// How many bytes the actions or the step data of one connection may take.
    pub payload: usize,
    /// How long a client may be silent.
    pub idle: Duration,
}

impl Default for ServerLimits {
    /// 64 connections, 65,536 envs, 256 MiB, and netenv's own ten seconds.
    fn default() -> Self {
        ServerLimits { connections: 64, envs: 1 << 16, payload: 256 << 20, idle: Duration::from_secs(10) }
    }
}

/// Who may use a server, and how.
#[derive(Clone, Default)]
pub struct Access {
    /// The secret that clients must show, if there is one.
    pub token: Option<Token>,
    /// TLS over TCP. Without it, everything travels in the clear.
    pub tls: Option<ServerTls>,
}

/// What draws a vec env, by the arguments that a client names.
pub type Render = Box<dyn FnMut(&Options) -> Result<Value> + Send>;

/// The envs of one connection.
pub struct Served {
    /// The envs.
    pub envs: Box<dyn VecEnv>,
    /// What clients are told beside the spaces.
    pub metadata: Options,
    /// The smallest and the largest reward.
    pub reward_range: (f64, f64),
    /// Whether the envs were built from the seed that the client chose.
    pub seeded: bool,
    /// Makes values of objects, where the envs' language has objects.
    pub plain: Option<ToPlain>,
    /// Draws the envs; `None` for the envs' own pictures, if they have any.
    pub render: Option<Render>,
    /// What is to live as long as the envs, and is dropped after them.
    pub keep: Option<Box<dyn std::any::Any + Send>>,
}

/// Makes the envs of each connection.
pub trait EnvFactory: Send + Sync {
    /// `num_envs` envs with the options that a client sent, and with what else it asks for.
    ///
    /// # Errors
    /// Why there are no such envs. The client is told, if there is a word for it, and loses its
    /// connection. The log says why.
    fn make(&self, num_envs: usize, options: &Options, asked: &Asked) -> Result<Served>;
}

/// What a server has done so far.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) accepted: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) broken: AtomicU64,
    pub(super) resets: AtomicU64,
    pub(super) steps: AtomicU64,
}

impl Tally {
    /// The counts of a server that has so many connections and envs now.
    pub(super) fn metrics(&self, connections: usize, envs: usize) -> ServerMetrics {
        let Tally { accepted, refused, broken, resets, steps } = self;
        let [accepted, refused, broken, resets, steps] =
            [accepted, refused, broken, resets, steps].map(|count| count.load(Ordering::Relaxed));
        ServerMetrics { connections, envs, accepted, refused, broken, resets, steps }
    }
}

/// What a server has done so far, and has now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerMetrics {
    /// The connections that there are.
    pub connections: usize,
    /// The envs that there are, in all connections.
    pub envs: usize,
    /// How many connections were accepted.
    pub accepted: u64,
    /// How many connections were refused, because there were as many as there may be.
    pub refused: u64,
    /// How many connections were closed because of what their client did, or of its envs.
    pub broken: u64,
    /// How many resets of all envs of a connection were answered.
    pub resets: u64,
    /// How many steps of all envs of a connection were answered.
    pub steps: u64,
}

/// What all connections of a server share.
struct ServerState {
    factory: Box<dyn EnvFactory>,
    limits: ServerLimits,
    access: Access,
    /// Since when the server is to end.
    ending: OnceLock<Instant>,
    connections: Arc<AtomicUsize>,
    envs: Arc<AtomicUsize>,
    tally: Tally,
}

impl ServerState {
    fn is_ending(&self) -> bool {
        self.ending.get().is_some()
    }

    /// Ends a connection whose next command is not answered any more. When the server is to end,
    /// commands are answered for a moment, and in any case one, which `had_last` notes.
    fn check_next(&self, had_last: &mut bool) -> Result<(), BrokenConnection> {
        match self.ending.get() {
            Some(since) if since.elapsed() >= LATE && std::mem::replace(had_last, true) => {
                Err(BrokenConnection::Ending)
            }
            _ => Ok(()),
        }
    }
}

/// A number of things that were taken from a limit, and are given back at the end.
pub(super) struct Share {
    of: Arc<AtomicUsize>,
    count: usize,
}

impl Share {
    pub(super) fn take(of: &Arc<AtomicUsize>, count: usize, most: usize) -> Option<Self> {
        let more = |taken: usize| taken.checked_add(count).filter(|taken| *taken <= most);
        let taken = of.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more);
        taken.ok().map(|_| Share { of: of.clone(), count })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.of.fetch_sub(self.count, Ordering::SeqCst);
    }
}

/// A server that runs until it is closed.
pub struct Server {
    common: Arc<ServerState>,
    addresses: Vec<ServerAddress>,
    accepting: Option<JoinHandle<()>>,
    process_mark: ProcessMark,
}

impl Server {
    /// A server at `addresses`, which serves from here on.
    ///
    /// # Errors
    /// [`Error::Argument`] for addresses that cannot be bound.
    pub fn new(
        addresses: &[ServerAddress],
        factory: Box<dyn EnvFactory>,
        limits: ServerLimits,
        access: Access,
    ) -> Result<Self> {
        let bind = |address: &ServerAddress| {
            let unbound =
                |error: std::io::Error| Error::Argument(format!("cannot serve at {address}: {error}"));
            let listener = Listener::bind(address).map_err(unbound)?;
            let address = listener.address().map_err(unbound)?;
            Ok((listener, address))
        };
        let (listeners, addresses): (Vec<Listener>, Vec<ServerAddress>) =
            addresses.iter().map(bind).collect::<Result<Vec<_>>>()?.into_iter().unzip();
        let (ending, connections, envs, tally) = Default::default();
        let common = Arc::new(ServerState { factory, limits, access, ending, connections, envs, tally });
        let own = common.clone();
        let accepting = std::thread::Builder::new()
            .name("netenv-accept".into())
            .spawn(move || accept_all(&own, &listeners))
            .map_err(Error::env)?;
        Ok(Server { common, addresses, accepting: Some(accepting), process_mark: ProcessMark::here() })
    }

    /// Where the server listens, with the ports that the system chose.
    pub fn addresses(&self) -> &[ServerAddress] {
        &self.addresses
    }

    /// What the server has done so far, and has now.
    pub fn metrics(&self) -> ServerMetrics {
        let ServerState { connections, envs, tally, .. } = &*self.common;
        tally.metrics(connections.load(Ordering::SeqCst), envs.load(Ordering::SeqCst))
    }

    /// Asks the server to end: no connection is accepted any more, steps in flight are answered,
    /// and then each connection is closed.
    pub fn stop(&self) {
        let _ = self.common.ending.set(Instant::now());
    }

    /// Ends the server, and waits for steps in flight. In the child of a fork, which has none of
    /// the server's threads, nothing changes.
    pub fn close(&mut self) {
        let Some(accepting) = self.accepting.take() else { return };
        if !self.process_mark.is_before_fork() {
            self.stop();
            let _ = accepting.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.close();
    }
}

fn accept_all(common: &Arc<ServerState>, listeners: &[Listener]) {
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    while !common.is_ending() {
        let mut fds: Vec<PollFd<'_>> = listeners.iter().map(|one| PollFd::new(one, PollFlags::IN)).collect();
        if !matches!(wait_for(&mut fds, Instant::now() + SLICE), Ok(true)) {
            continue;
        }
        for listener in listeners {
            accept_one(common, listener, &mut threads);
        }
        threads.retain(|thread| !thread.is_finished());
    }
    listeners.iter().for_each(Listener::shut);
    // A step that never ends keeps nobody from ending the server.
    let until = Instant::now() + GRACE;
    for thread in threads {
        while !thread.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        if thread.is_finished() {
            let _ = thread.join();
        }
    }
}

fn accept_one(common: &Arc<ServerState>, listener: &Listener, threads: &mut Vec<JoinHandle<()>>) {
    let (stream, peer) = match listener.accept() {
        Ok(Some(accepted)) => accepted,
        Ok(None) => return,
        Err(error) => {
            tracing::warn!(%error, "a connection could not be accepted");
            // Too many open files, for instance; the connection still waits.
            std::thread::sleep(Duration::from_millis(10));
            return;
        }
    };
    let most = common.limits.connections;
    let Some(one) = Share::take(&common.connections, 1, most) else {
        common.tally.refused.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(%peer, most, "refused: there are as many connections as there may be");
        return;
    };
    common.tally.accepted.fetch_add(1, Ordering::Relaxed);
    let own = common.clone();
    let serve = move || session::serve(stream, &peer, one, &own);
    let spawned = std::thread::Builder::new().name("netenv".into()).spawn(serve);
    match spawned {
        Ok(thread) => threads.push(thread),
        Err(error) => tracing::warn!(%error, "no thread for a connection"),
    }
}
