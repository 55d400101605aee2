//! One connection of a server, from the first byte to the last.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use super::player::Player;
use super::{SLICE, ServerState, Share, extended};
use crate::guard::guard;
use crate::net::extension::Asked;
use crate::net::json;
use crate::net::patience::PeerPatience;
use crate::net::shared::SharedPayloads;
use crate::net::spaces::{self, step_leaves};
use crate::net::stream::{BrokenConnection, Stream, spin_time};
use crate::net::wire::{
    HELLO, INIT, MAX_REQUEST, MAX_RESPONSE, Payload, RENDER, RESET, Request, Response, STEP, length,
    shared_sizes, with_json,
};
use crate::space::{Options, Value};
use crate::{Phase, Spec};

/// Serves one client until it leaves or breaks a rule. `connection` counts among the connections.
pub(super) fn serve(stream: Stream, peer: &str, connection: Share, common: &ServerState) {
    tracing::info!(%peer, "connected");
    let served = guard(Phase::Step, || {
        let stream = match &common.access.tls {
            Some(tls) => stream.secured(tls, PeerPatience::new(common.limits.idle))?,
            None => stream,
        };
        Session { shares: vec![connection], stream, had_last: false, common }.run()
    });
    match served {
        Ok(Ok(())) | Ok(Err(BrokenConnection::Closed)) => tracing::info!(%peer, "left"),
        Ok(Err(BrokenConnection::Ending)) => tracing::info!(%peer, "closed: the server is ending"),
        Ok(Err(why)) => {
            common.tally.broken.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(%peer, %why, "connection closed");
        }
        Err(panic) => {
            common.tally.broken.fetch_add(1, Ordering::Relaxed);
            tracing::error!(%peer, %panic, "connection closed after a panic");
        }
    }
}

/// Why a client does not get as many envs as it asks for.
pub(super) fn no_room(num_envs: usize, common: &ServerState) -> String {
    format!("it asks for {num_envs} envs, and all clients may have {}", common.limits.envs)
}

struct Session<'a> {
    /// Dropped before the stream: a client that sees its connection closed may come again at once.
    shares: Vec<Share>,
    stream: Stream,
    /// Whether the last command was read that is answered when the server is to end.
    had_last: bool,
    common: &'a ServerState,
}

/// What a connection has once INIT was answered.
struct Playing {
    player: Player,
    actions: Payload,
    /// The command byte and the payload of the last answer, which the next one overwrites.
    answer: Vec<u8>,
    shared: Option<SharedPayloads>,
    /// Whether the command byte of a step's answer is sent before the envs are stepped, and the
    /// observations as they lie in the batch. Both sides then copy words from and to places that
    /// are aligned alike.
    answers_apart: bool,
}

impl Session<'_> {
    fn idle(&self) -> Duration {
        self.common.limits.idle
    }

    fn patience(&self) -> PeerPatience<'static> {
        PeerPatience::new(self.idle())
    }

    fn run(mut self) -> Result<(), BrokenConnection> {
        let mut hello = [0; HELLO.len()];
        self.stream.read_full(&mut hello, self.patience())?;
        if hello != HELLO {
            return Err(BrokenConnection::Garbage("it does not speak netenv_v1".into()));
        }
        self.stream.write_full(&HELLO, self.patience())?;
        match self.command()? {
            INIT => {}
            other => {
                return Err(BrokenConnection::Garbage(format!(
                    "its first command is {other}, and INIT is 0"
                )));
            }
        }
        // An original client waits for the byte before it sends the rest.
        self.stream.write_full(&[INIT], self.patience())?;
        let text = self.json()?;
        let request = Request::read(&text).map_err(BrokenConnection::Garbage)?;
        drop(text);
        if let Some(token) = &self.common.access.token
            && !token.is(request.token())
        {
            return Err(BrokenConnection::Garbage("its token is missing or wrong".into()));
        }
        let asked = Asked::read(request.extension.as_ref());
        let envs = Share::take(&self.common.envs, request.num_envs, self.common.limits.envs);
        if asked.is_extended {
            let asked = (&asked, envs.is_some());
            self.shares.extend(envs);
            return extended::serve(self.stream, self.shares, &request, asked, self.common);
        }
        let Some(envs) = envs else {
            return Err(BrokenConnection::Garbage(no_room(request.num_envs, self.common)));
        };
        self.shares.push(envs);
        let mut playing = self.init(&request)?;
        drop(request);
        let played = self.play(&mut playing);
        let _ = playing.player.close();
        played
    }

    /// The next command, once it comes. A server that ends says so between two commands.
    fn command(&mut self) -> Result<u8, BrokenConnection> {
        let (until, mut byte) = (Instant::now() + self.idle(), [0]);
        self.common.check_next(&mut self.had_last)?;
        // The client of each other connection may poll, too.
        let connections = self.common.connections.load(Ordering::Relaxed);
        self.stream.spin(spin_time(connections))?;
        loop {
            if self.stream.read_some(&mut byte)?.is_some() {
                return Ok(byte[0]);
            }
            if self.common.is_ending() {
                return Err(BrokenConnection::Ending);
            }
            let now = Instant::now();
            if now >= until {
                return Err(BrokenConnection::Silent(self.idle()));
            }
            self.stream.wait(PollFlags::IN, until.min(now + SLICE))?;
        }
    }

    /// A JSON text of the client.
    fn json(&mut self) -> Result<Vec<u8>, BrokenConnection> {
        let mut head = [0; 4];
        self.stream.read_full(&mut head, self.patience())?;
        let mut text = vec![0; length(head, MAX_REQUEST).map_err(BrokenConnection::Garbage)?];
        self.stream.read_full(&mut text, self.patience())?;
        Ok(text)
    }

    /// Makes the envs and answers INIT.
    fn init(&mut self, request: &Request) -> Result<Playing, BrokenConnection> {
        if request.use_shared_memory && self.stream.as_unix().is_none() {
            return Err(BrokenConnection::Garbage(
                "it asks for shared memory, which only Unix sockets have".into(),
            ));
        }
        let served = self
            .common
            .factory
            .make(request.num_envs, &request.env_options, &Asked::default())
            .map_err(BrokenConnection::Envs)?;
        let Spec { observation, action, num_slots, .. } = served.envs.spec();
        if *num_slots != request.num_envs {
            let why = format!("it asks for {} envs, and {num_slots} were made", request.num_envs);
            return Err(BrokenConnection::Garbage(why));
        }
        let refused =
            |why: String| BrokenConnection::Garbage(format!("netenv cannot carry these envs: {why}"));
        let response = Response {
            reward_range: served.reward_range,
            metadata: served.metadata.clone(),
            action: spaces::leaves_of("action space", action).map_err(refused)?,
            observation: spaces::leaves_of("observation space", observation).map_err(refused)?,
            extension: None,
        };
        let most = self.common.limits.payload;
        let payload =
            |leaves: &[spaces::NetLeaf]| Payload::of(leaves, request.num_envs, most).map_err(refused);
        let actions = payload(&response.action)?;
        let steps = payload(&step_leaves(&response.observation))?;
        let text = response.write().map_err(refused)?;
        if text.len() > MAX_RESPONSE {
            return Err(refused(format!("their spaces take {} bytes of JSON", text.len())));
        }
        let answer = vec![0; 1 + steps.bytes];
        let sizes = shared_sizes(actions.bytes, steps.bytes);
        let player = Player::new(served, &response, (&actions, steps)).map_err(BrokenConnection::Envs)?;
        self.write(&with_json(None, &text))?;
        let shared = match self.stream.as_unix() {
            Some(socket) if request.use_shared_memory => {
                let shared = SharedPayloads::new(sizes.0, sizes.1)?;
                shared.send(socket)?;
                Some(shared)
            }
            _ => None,
        };
        let answers_apart = shared.is_none() && player.is_direct() && !self.stream.is_encrypted();
        Ok(Playing { player, actions, answer, shared, answers_apart })
    }

    fn write(&mut self, message: &[u8]) -> Result<(), BrokenConnection> {
        self.stream.write_full(message, self.patience())
    }

    fn play(&mut self, playing: &mut Playing) -> Result<(), BrokenConnection> {
        let mut actions = vec![0; playing.actions.bytes];
        loop {
            let command = self.command()?;
            let answers_apart = command == STEP && playing.answers_apart;
            let direct = match command {
                RESET => {
                    playing.player.reset(&mut playing.answer[1..]).map_err(BrokenConnection::Envs)?;
                    None
                }
                STEP => {
                    match &playing.shared {
                        Some(shared) => shared.read_actions(&mut actions)?,
                        None => self.stream.read_full(&mut actions, self.patience())?,
                    }
                    if answers_apart {
                        self.write(&[STEP])?;
                    }
                    let may_give = playing.shared.is_some() || answers_apart;
                    let played = playing.player.step(&actions, &mut playing.answer[1..], may_give);
                    played.map_err(BrokenConnection::Envs)?
                }
                RENDER => {
                    self.render(&mut playing.player)?;
                    continue;
                }
                other => return Err(BrokenConnection::Garbage(format!("there is no command {other}"))),
            };
            let tally = &self.common.tally;
            let count = if command == STEP { &tally.steps } else { &tally.resets };
            count.fetch_add(1, Ordering::Relaxed);
            playing.answer[0] = command;
            let (whole, payload) = (&playing.answer[..], &playing.answer[1..]);
            let parts = match &direct {
                Some(batch) => playing.player.parts(batch, payload),
                None => vec![payload],
            };
            match &playing.shared {
                Some(shared) => {
                    shared.write_steps(&parts)?;
                    self.write(&[command])?;
                }
                None if answers_apart => self.stream.write_parts(&parts, self.patience())?,
                None => self.write(whole)?,
            }
        }
    }

    fn render(&mut self, player: &mut Player) -> Result<(), BrokenConnection> {
        let kwargs = match json::read(&self.json()?).map_err(BrokenConnection::Garbage)? {
            Value::Map(kwargs) => kwargs,
            _ => return Err(BrokenConnection::Garbage("RENDER's JSON is no object".into())),
        };
        let result = player.render(&kwargs).map_err(BrokenConnection::Envs)?;
        let answer = Options::new().with("result", result);
        let text = json::write(&answer.into())
            .map_err(|why| BrokenConnection::Garbage(format!("render gave {why}")))?;
        if text.len() > MAX_RESPONSE {
            return Err(BrokenConnection::Garbage(format!("a picture takes {} bytes of JSON", text.len())));
        }
        self.write(&with_json(Some(RENDER), &text))
    }
}
