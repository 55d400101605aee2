//! The client: a vec env whose slots are in a server.
//!
//! A server that speaks the extension gives an [`ExtendedClient`], whose slots do all that slots in this
//! process do. Any other server gives a [`PlainClient`].

mod extended;
mod plain;

use std::sync::Arc;
use std::time::{Duration, Instant};

use self::extended::ExtendedClient;
use self::plain::PlainClient;
use super::address::ServerAddress;
use super::extension::{Asked, BuildResult, BuiltTail, HEADER, Header, Kind, PlainObjects, is_granted, open};
use super::stream::{BrokenConnection, PeerPatience, Stream, WaitPause};
use super::tls::ClientTls;
use super::token::Token;
use super::wire::{HELLO, INIT, MAX_RESPONSE, Request, Response, TOKEN, length, with_json};
use crate::error::{Error, Result};
use crate::runner::base::seeds;
use crate::runner::check;
use crate::space::{Options, Value};
use crate::vec_config::{AutoresetMode, VecConfig};
use crate::vec_env::VecEnv;

/// The most bytes that the actions or the step data of a client take. A server that names
/// larger spaces is refused.
const MAX_PAYLOAD: usize = 1 << 32;

/// The setting that says how the first episodes begin.
const SEED: &str = "seed";

/// What a client asks a server for.
#[derive(Clone)]
pub struct ClientConfig {
    /// Where the server is.
    pub address: ServerAddress,
    /// The options of the envs.
    pub env_options: Options,
    /// What is asked for beyond netenv.
    pub asked: Asked,
    /// TLS over TCP; `None` for a server without it.
    pub tls: Option<ClientTls>,
    /// The secret to show to the server.
    pub token: Option<Token>,
    /// Whether payloads travel in memory that both sides share, which takes a Unix socket.
    pub shared_memory: bool,
    /// How long a connection may take to be made. A server that is not there yet is waited for.
    pub connect_timeout: Duration,
    /// Called now and then while a connection is made or a picture is waited for, which an error
    /// ends: Ctrl-C, for instance.
    pub pause: Arc<WaitPause>,
}

/// `config.num_slots` envs in the server at `client.address`.
///
/// # Errors
/// [`Error::Env`] where the server cannot be reached or does not make the envs;
/// [`Error::Unsupported`] for what it cannot do; [`Error::Argument`].
pub fn connect(mut client: ClientConfig, config: &VecConfig) -> Result<Box<dyn VecEnv>> {
    let chosen = client.asked.settings.clone();
    let seed = match chosen.get(SEED) {
        Some(Value::Int(seed)) => Some(*seed),
        _ => None,
    };
    let config = &VecConfig { seed, ..config.clone() };
    let seeds = seeds(config)?;
    check(config)?;
    if client.shared_memory && !matches!(client.address, ServerAddress::Unix(_)) {
        let why = format!("{} cannot share memory: give a Unix socket, 'unix:path'", client.address);
        return Err(Error::Argument(why));
    }
    client.asked.settings.set(SEED, seeds[0]);
    let dialled = dial(&client, config.num_slots)?;
    if let Some(built) = dialled.built {
        if seed.is_some() && !built.seeded {
            let at = &client.address;
            return Err(Error::Unsupported(format!(
                "the envs of {at} are made by a function that takes no seed: give seeds to reset"
            )));
        }
        return Ok(Box::new(ExtendedClient::new(client, config, seeds, (dialled.stream, built))?));
    }
    check_plain(&client, &chosen)?;
    client.asked = Asked::default();
    Ok(Box::new(PlainClient::new(client, config, &seeds, (dialled.stream, dialled.told))?))
}

/// Errors for what a server that speaks netenv alone has no word for.
fn check_plain(client: &ClientConfig, chosen: &Options) -> Result<()> {
    let at = &client.address;
    let refused = |what: &str| {
        Err(Error::Unsupported(format!("{at} speaks netenv and not Corral's extension: it takes no {what}")))
    };
    if client.asked.id.is_some() {
        return refused("id");
    }
    for (name, value) in chosen.iter() {
        let is_its_own = matches!(value, Value::Text(mode) if **mode == AutoresetMode::SameStep.to_string());
        match name {
            "autoreset_mode" if is_its_own => {}
            "autoreset_mode" => {
                return refused(
                    "autoreset_mode but 'same_step', in which a step that ends an episode begins one",
                );
            }
            name => return refused(name),
        }
    }
    Ok(())
}

/// A connection on which INIT was answered.
struct Dialled {
    stream: Stream,
    told: Response,
    /// What the server made, where it speaks the extension.
    built: Option<BuiltTail>,
}

/// A connection with `num_envs` envs. A server that is not there yet is waited for.
fn dial(config: &ClientConfig, num_envs: usize) -> Result<Dialled> {
    let until = Instant::now() + config.connect_timeout;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let error = match dial_once(config, num_envs, left) {
            Ok(made) => return Ok(made),
            Err(error) => error,
        };
        if let BrokenConnection::Envs(error) = error {
            return Err(error);
        }
        // A server that has only just been started, or started again, is not there yet.
        let is_absent = matches!(&error, BrokenConnection::Io(error) if matches!(
            error.kind(),
            std::io::ErrorKind::ConnectionRefused | std::io::ErrorKind::NotFound
        ));
        if !is_absent || Instant::now() >= until {
            let at = &config.address;
            let hint = match error {
                BrokenConnection::Closed => {
                    ": its log says why (an unknown option, or more envs than it gives)"
                }
                _ => "",
            };
            return Err(Error::env(format!("no envs from the netenv server at {at}: {error}{hint}")));
        }
        (config.pause)()?;
        std::thread::sleep(Duration::from_millis(20).min(left));
    }
}

fn dial_once(config: &ClientConfig, num_envs: usize, time: Duration) -> Result<Dialled, BrokenConnection> {
    let until = Instant::now() + time;
    let pause = &*config.pause;
    let left = || PeerPatience::pausing(until.saturating_duration_since(Instant::now()), pause);
    let mut stream = Stream::connect(&config.address, left())?;
    if let (Some(tls), ServerAddress::Tcp(host, _)) = (&config.tls, &config.address) {
        stream = stream.secured_to(tls, host, left())?;
    }
    let mut keys = Options::new();
    if let Some(token) = &config.token {
        keys.set(TOKEN, token.as_str());
    }
    config.asked.write(&mut keys);
    let request = Request {
        num_envs,
        use_shared_memory: config.shared_memory,
        env_options: config.env_options.clone(),
        extension: Some(keys).filter(|keys| !keys.is_empty()),
    };
    let text = request.write().map_err(BrokenConnection::Envs)?;
    stream.write_full(&HELLO, left())?;
    let mut hello = [0; HELLO.len()];
    stream.read_full(&mut hello, left())?;
    if hello != HELLO {
        return Err(BrokenConnection::Garbage("it does not speak netenv_v1".into()));
    }
    stream.write_full(&with_json(Some(INIT), &text), left())?;
    // The server makes its envs between the command and the length, or before the message below.
    let text = answer_of(&mut stream, INIT, pause, until)?;
    let told = Response::read(&text).map_err(BrokenConnection::Garbage)?;
    let mut built = None;
    if config.asked.is_extended && is_granted(told.extension.as_ref()).map_err(BrokenConnection::Garbage)? {
        built = Some(read_built(&mut stream, pause, until)?);
    }
    Ok(Dialled { stream, told, built })
}

/// The first message of a server that speaks the extension. Nothing after it is read: shared
/// memory may follow.
fn read_built(stream: &mut Stream, pause: &WaitPause, until: Instant) -> Result<BuiltTail, BrokenConnection> {
    let mut head = [0; HEADER];
    let left = until.saturating_duration_since(Instant::now());
    stream.read_full(&mut head, PeerPatience::pausing(left, pause))?;
    let header = Header::read(head).map_err(BrokenConnection::Garbage)?;
    if header.kind != Kind::Built {
        return Err(BrokenConnection::Garbage(format!("its first message is {:?}", header.kind)));
    }
    let length = header.tail(Some(0), MAX_RESPONSE).map_err(BrokenConnection::Garbage)?;
    let bytes = read_growing(stream, length, pause, until)?;
    let built: BuildResult = open(header.kind, &bytes).map_err(BrokenConnection::Garbage)?;
    built.map_err(|error| BrokenConnection::Envs(error.open(0, &PlainObjects(None))))
}

/// So many bytes, until `until`. Memory is taken as they arrive.
fn read_growing(
    stream: &mut Stream,
    length: usize,
    pause: &WaitPause,
    until: Instant,
) -> Result<Vec<u8>, BrokenConnection> {
    let mut bytes = Vec::new();
    while bytes.len() < length {
        let from = bytes.len();
        bytes.resize(length.min(from + (1 << 20)), 0);
        let left = until.saturating_duration_since(Instant::now());
        stream.read_full(&mut bytes[from..], PeerPatience::pausing(left, pause))?;
    }
    Ok(bytes)
}

/// The JSON with which the server answers `command`, until `until`.
fn answer_of(
    stream: &mut Stream,
    command: u8,
    pause: &WaitPause,
    until: Instant,
) -> Result<Vec<u8>, BrokenConnection> {
    let left = || PeerPatience::pausing(until.saturating_duration_since(Instant::now()), pause);
    let mut head = [0; 5];
    stream.read_full(&mut head[..1], left())?;
    stream.read_full(&mut head[1..], left())?;
    let [answered, length_bytes @ ..] = head;
    if answered != command {
        return Err(BrokenConnection::Garbage(format!("it answered {command} with {answered}")));
    }
    let length = length(length_bytes, MAX_RESPONSE).map_err(BrokenConnection::Garbage)?;
    read_growing(stream, length, pause, until)
}
