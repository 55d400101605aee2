//! The talk of a session over a WebSocket.
//!
//! A client sends a message and waits for its answer. While an answer is made, the socket is
//! still read, so that pings are answered and a client that leaves is noticed. One further
//! message is taken meanwhile; the rest waits in the client's own buffers.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use tokio::time::timeout;

use super::Hub;
use super::http::Peer;
use super::pages::no_tools;
use super::session::{ClientError, EnvSession, ErrorCode};
use crate::net::json::{self, cut};
use crate::space::{Options, Value};

/// How long a client may take to answer that a connection is closed.
const FAREWELL: Duration = Duration::from_secs(2);

/// How long a client without a session may take until it sends its first message.
const REFUSAL: Duration = Duration::from_secs(10);

/// Why a talk ends.
enum Farewell {
    /// The client asked for it, or has left.
    Left,
    /// There is no session for it.
    Full,
    /// The server is ending.
    Ending,
    /// What the client did, or did not do. The code is WebSocket's.
    Broken(u16, String),
}

/// Talks with a client until it leaves or breaks a rule of WebSockets.
pub(super) async fn talk(socket: WebSocket, peer: Arc<Peer>, hub: Arc<Hub>) {
    let mut talk = Talk { socket, heard: Instant::now(), next: None, idle: hub.limits.idle };
    let farewell = match EnvSession::begin(&hub) {
        Ok(mut session) => talk.serve(&mut session, &hub).await,
        Err(full) => {
            hub.tally.refused.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(peer = %peer.name, most = hub.num_slots, "refused: there are as many sessions as there may be");
            talk.refuse(&full, &hub).await
        }
    };
    // The slot is free again before the client learns that the connection is closed.
    let close = match farewell {
        Farewell::Left => None,
        Farewell::Full => Some((close_code::AGAIN, "no session is free".into())),
        Farewell::Ending => {
            tracing::info!(peer = %peer.name, "closed: the server is ending");
            Some((close_code::AWAY, "the server is ending".into()))
        }
        Farewell::Broken(code, why) => {
            hub.tally.broken.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(peer = %peer.name, %why, "connection closed");
            Some((code, why))
        }
    };
    talk.close(close).await;
    tracing::info!(peer = %peer.name, "left");
}

struct Talk {
    socket: WebSocket,
    /// When the client last gave a sign of life.
    heard: Instant,
    /// A message that came before the answer to the one before it.
    next: Option<Message>,
    idle: Duration,
}

impl Talk {
    async fn serve(&mut self, session: &mut EnvSession, hub: &Hub) -> Farewell {
        loop {
            let message = match self.receive(hub).await {
                Ok(message) => message,
                Err(farewell) => return farewell,
            };
            let Message::Text(text) = &message else {
                let error = ClientError::new(
                    ErrorCode::InvalidJson,
                    "Invalid JSON: a binary frame, where messages are JSON in text frames",
                );
                if let Err(farewell) = self.send(Message::Text(error.text().into())).await {
                    return farewell;
                }
                continue;
            };
            let answer = match self.meanwhile(answer(session, text), hub).await {
                Ok(ControlFlow::Continue(answer)) => answer,
                Ok(ControlFlow::Break(())) => return Farewell::Left,
                Err(farewell) => return farewell,
            };
            if let Err(farewell) = self.send(Message::Text(answer.into())).await {
                return farewell;
            }
        }
    }

    /// Tells a client that there is no session for it. A client that finds its connection closed
    /// when it sends its first message would not read why, so that message is waited for.
    async fn refuse(&mut self, full: &ClientError, hub: &Hub) -> Farewell {
        if let Err(farewell) = self.send(Message::Text(full.text().into())).await {
            return farewell;
        }
        tokio::select! {
            () = hub.ended() => {}
            _ = timeout(REFUSAL, self.socket.recv()) => {}
        }
        Farewell::Full
    }

    /// The next message. A silent client is asked for a sign of life.
    async fn receive(&mut self, hub: &Hub) -> Result<Message, Farewell> {
        if let Some(message) = self.next.take() {
            return Ok(message);
        }
        loop {
            let received = tokio::select! {
                biased;
                () = hub.ended() => return Err(Farewell::Ending),
                received = timeout(self.idle / 2, self.socket.recv()) => received,
            };
            match received {
                Ok(received) => {
                    if let Some(message) = self.message_of(received).await? {
                        return Ok(message);
                    }
                }
                Err(_) if self.heard.elapsed() >= self.idle => {
                    let why = format!("it gave no sign of life for {:?}", self.idle);
                    return Err(Farewell::Broken(close_code::POLICY, why));
                }
                Err(_) => self.send(Message::Ping(Bytes::new())).await?,
            }
        }
    }

    /// What `work` gives. The socket is read meanwhile, unless the server is ending.
    async fn meanwhile<R>(&mut self, work: impl Future<Output = R>, hub: &Hub) -> Result<R, Farewell> {
        let mut work = std::pin::pin!(work);
        loop {
            let received = tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                received = self.socket.recv(), if self.next.is_none() && !hub.is_ending() => received,
            };
            self.next = self.message_of(received).await?;
        }
    }

    /// The message that was received, if it is one for the session.
    async fn message_of(
        &mut self,
        received: Option<Result<Message, axum::Error>>,
    ) -> Result<Option<Message>, Farewell> {
        self.heard = Instant::now();
        match received {
            None | Some(Ok(Message::Close(_))) => Err(Farewell::Left),
            // A pong is sent by itself.
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => Ok(None),
            Some(Ok(message)) => Ok(Some(message)),
            Some(Err(error)) => {
                let why = error.to_string();
                let told = ClientError::new(ErrorCode::InvalidJson, format!("Invalid message: {why}"));
                self.send(Message::Text(told.text().into())).await.map_err(|_| Farewell::Left)?;
                Err(Farewell::Broken(close_code::PROTOCOL, why))
            }
        }
    }

    async fn send(&mut self, message: Message) -> Result<(), Farewell> {
        match timeout(self.idle, self.socket.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(Farewell::Left),
            Err(_) => {
                let why = format!("it read nothing for {:?}", self.idle);
                Err(Farewell::Broken(close_code::POLICY, why))
            }
        }
    }

    /// Says that the connection is closed, and waits a moment until the client knows.
    async fn close(mut self, why: Option<(u16, String)>) {
        let frame = why.map(|(code, why)| {
            // A reason has at most 123 bytes.
            let reason: String = why.chars().take(30).collect();
            CloseFrame { code, reason: reason.into() }
        });
        let farewell = async {
            if self.socket.send(Message::Close(frame)).await.is_ok() {
                while let Some(Ok(_)) = self.socket.recv().await {}
            }
        };
        let _ = timeout(FAREWELL, farewell).await;
    }
}

/// The answer to a message; `Break` where it asks for the end.
async fn answer(session: &mut EnvSession, text: &str) -> ControlFlow<(), String> {
    match answered(session, text).await {
        Ok(Some(answer)) => ControlFlow::Continue(answer),
        Ok(None) => ControlFlow::Break(()),
        Err(error) => ControlFlow::Continue(error.text()),
    }
}

async fn answered(session: &mut EnvSession, text: &str) -> Result<Option<String>, ClientError> {
    let invalid = |why: String| ClientError::new(ErrorCode::Validation, format!("Invalid message: {why}"));
    let read = json::read(text.as_bytes())
        .map_err(|why| ClientError::new(ErrorCode::InvalidJson, format!("Invalid JSON: {why}")))?;
    let Value::Map(message) = read else { return Err(invalid("it is no object".into())) };
    let kind = match message.get("type") {
        Some(Value::Text(kind)) => kind.as_str(),
        Some(_) => return Err(invalid("its type is no text".into())),
        None => "",
    };
    let has_data = matches!(kind, "reset" | "step" | "mcp");
    if !has_data && !matches!(kind, "state" | "close") {
        let message = format!("Unknown message type: {}", cut(kind));
        return Err(ClientError::new(ErrorCode::UnknownType, message));
    }
    if let Some((key, _)) = message.iter().find(|(key, _)| *key != "type" && !(has_data && *key == "data")) {
        return Err(invalid(format!("{kind} has no field '{}'", cut(key))));
    }
    let empty = Options::new();
    let data = match message.get("data") {
        Some(Value::Map(data)) => data,
        Some(_) => return Err(invalid("its data is no object".into())),
        None if kind == "step" => return Err(invalid("a step without data".into())),
        None => &empty,
    };
    let (kind, data) = match kind {
        "reset" => ("observation", session.reset("data", data).await?),
        "step" => ("observation", session.step("data", data).await?),
        "state" => ("state", session.state()),
        "mcp" => ("mcp", no_tools(data.get("id"))),
        _ => return Ok(None),
    };
    Ok(Some(format!("{{\"type\":\"{kind}\",\"data\":{data}}}")))
}
