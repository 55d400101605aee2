//! Connections, routes, and who may use them.
//!
//! A connection has one request. What is no WebSocket has no session either: each request has a
//! slot for itself, as the protocol has it, and gives it back with its answer.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{DefaultBodyLimit, Extension, Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, ORIGIN, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tower_service::Service;

use super::Hub;
use super::pages::no_tools;
use super::session::{ClientError, EnvSession, ErrorCode};
use super::shown::put_text;
use super::socket;
use crate::net::json;
use crate::net::server::Share;
use crate::net::tls::ServerTls;
use crate::net::token::Token;
use crate::space::{Options, Value};

/// How long TLS and the head of a request may take.
const GREETING: Duration = Duration::from_secs(10);

/// How many bytes the head of a request may have.
const HEAD: usize = 1 << 15;

/// How many bytes of a socket are read at once.
const PIECE: usize = 1 << 13;

/// A connection.
pub(super) struct Peer {
    /// Where the client is.
    pub(super) name: String,
    /// Counts among the connections.
    _share: Share,
}

/// Accepts connections until the server is to end.
pub(super) async fn accept_all(listener: TcpListener, hub: Arc<Hub>, tls: Option<ServerTls>) {
    let tls = tls.map(|tls| TlsAcceptor::from(tls.config()));
    let routes = routes(hub.clone());
    loop {
        let accepted = tokio::select! {
            biased;
            () = hub.ended() => return,
            accepted = listener.accept() => accepted,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                // Too many open files, for instance; the connection still waits.
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            }
        };
        let most = hub.limits.connections;
        let Some(share) = Share::take(&hub.connections, 1, most) else {
            hub.tally.refused.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(peer = %address, most, "refused: there are as many connections as there may be");
            continue;
        };
        hub.tally.accepted.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(connection(stream, address, share, tls.clone(), routes.clone(), hub.clone()));
    }
}

/// Serves the one request of a connection.
async fn connection(
    stream: TcpStream,
    address: SocketAddr,
    share: Share,
    tls: Option<TlsAcceptor>,
    routes: Router,
    hub: Arc<Hub>,
) {
    let peer = Arc::new(Peer { name: address.to_string(), _share: share });
    tracing::info!(peer = %peer.name, "connected");
    // Small answers are not held back.
    let _ = stream.set_nodelay(true);
    let broken = match tls {
        None => exchange(stream, &peer, routes, hub.limits.idle).await,
        Some(tls) => match timeout(GREETING, tls.accept(stream)).await {
            Ok(Ok(stream)) => exchange(stream, &peer, routes, hub.limits.idle).await,
            Ok(Err(error)) => Some(format!("no TLS: {error}")),
            Err(_) => Some("it was silent in TLS".into()),
        },
    };
    if let Some(why) = broken {
        hub.tally.broken.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(peer = %peer.name, %why, "connection closed");
    }
}

/// Reads a request and answers it. Returns what was wrong. A WebSocket goes on by itself.
async fn exchange<S>(stream: S, peer: &Arc<Peer>, routes: Router, most: Duration) -> Option<String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let routed = service_fn(|mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(peer.clone());
        routes.clone().call(request)
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(GREETING)
        .max_buf_size(HEAD)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), routed)
        .with_upgrades();
    match timeout(most, served).await {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some(format!("its request took more than {most:?}")),
    }
}

fn routes(hub: Arc<Hub>) -> Router {
    Router::new()
        .route("/health", get(async || json_of(StatusCode::OK, "{\"status\":\"healthy\"}")))
        .route(
            "/metadata",
            get(async |State(hub): State<Arc<Hub>>| json_of(StatusCode::OK, hub.pages.metadata.clone())),
        )
        .route(
            "/schema",
            get(async |State(hub): State<Arc<Hub>>| json_of(StatusCode::OK, hub.pages.schema.clone())),
        )
        .route(
            "/openapi.json",
            get(async |State(hub): State<Arc<Hub>>| json_of(StatusCode::OK, hub.pages.openapi.clone())),
        )
        .route("/state", get(state))
        .route("/reset", post(reset))
        .route("/step", post(step))
        .route("/mcp", post(tools))
        .route("/ws", get(upgrade))
        .fallback(async || refusal(StatusCode::NOT_FOUND, "there is nothing here: see /openapi.json"))
        .layer(DefaultBodyLimit::max(hub.limits.message))
        .layer(from_fn_with_state(hub.clone(), admit))
        .with_state(hub)
}

fn json_of(status: StatusCode, text: impl Into<String>) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], text.into()).into_response()
}

fn refusal(status: StatusCode, why: &str) -> Response {
    let mut text = String::from("{\"detail\":");
    put_text(why, &mut text);
    text.push('}');
    json_of(status, text)
}

/// Lets those in who may.
async fn admit(State(hub): State<Arc<Hub>>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    match &hub.token {
        // Whoever starts servers looks here whether one is up, and learns nothing else.
        _ if request.uri().path() == "/health" => {}
        Some(token) if shows(headers, token) => {}
        Some(_) => {
            hub.tally.broken.fetch_add(1, Ordering::Relaxed);
            tracing::warn!("a request without the token was refused");
            let why = "the token is missing or wrong: send it as 'Authorization: Bearer …'";
            let mut response = refusal(StatusCode::UNAUTHORIZED, why);
            response.headers_mut().insert(WWW_AUTHENTICATE, axum::http::HeaderValue::from_static("Bearer"));
            return response;
        }
        // A page of anybody's could play here otherwise, in the browser of this machine's user.
        None if headers.contains_key(ORIGIN) => {
            return refusal(StatusCode::FORBIDDEN, "without a token, web pages are not served");
        }
        None => {}
    }
    next.run(request).await
}

/// Whether a request has the token, as `Bearer` or as the password of `Basic`, which is how the
/// user and the password in a URL travel.
fn shows(headers: &HeaderMap, token: &Token) -> bool {
    let Some(shown) = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()) else { return false };
    match shown.split_once(' ') {
        Some((scheme, secret)) if scheme.eq_ignore_ascii_case("bearer") => token.is(secret.trim()),
        Some((scheme, pair)) if scheme.eq_ignore_ascii_case("basic") => {
            let pair = BASE64.decode(pair.trim()).ok().and_then(|pair| String::from_utf8(pair).ok());
            let password = pair.as_deref().and_then(|pair| pair.split_once(':'));
            password.is_some_and(|(_, password)| token.is(password))
        }
        _ => false,
    }
}

async fn upgrade(
    State(hub): State<Arc<Hub>>,
    Extension(peer): Extension<Arc<Peer>>,
    socket: WebSocketUpgrade,
) -> Response {
    let most = hub.limits.message;
    socket
        .max_message_size(most)
        .max_frame_size(most)
        .read_buffer_size(PIECE)
        .write_buffer_size(0)
        .on_upgrade(move |socket| socket::talk(socket, peer, hub))
}

async fn reset(State(hub): State<Arc<Hub>>, body: Bytes) -> Response {
    let empty = Options::new();
    respond(async {
        let data = if body.is_empty() { empty } else { object(&body)? };
        EnvSession::begin(&hub)?.reset("body", &data).await
    })
    .await
}

/// Plays the first step of an episode: a request has a slot of its own, where none has begun.
async fn step(State(hub): State<Arc<Hub>>, body: Bytes) -> Response {
    respond(async {
        let data = object(&body)?;
        let wrong = |why: &str| ClientError::new(ErrorCode::Validation, format!("body.action: {why}"));
        let action = match data.get("action") {
            Some(Value::Map(action)) => action,
            Some(_) => return Err(wrong("it is no object")),
            None => return Err(wrong("the field is missing")),
        };
        let mut session = EnvSession::begin(&hub)?;
        session.reset("body", &Options::new()).await?;
        session.step("body.action", action).await
    })
    .await
}

async fn state(State(hub): State<Arc<Hub>>) -> Response {
    respond(async { Ok(EnvSession::begin(&hub)?.state()) }).await
}

async fn tools(body: Bytes) -> Response {
    let request = object(&body).unwrap_or_default();
    json_of(StatusCode::OK, no_tools(request.get("id")))
}

fn object(body: &[u8]) -> Result<Options, ClientError> {
    match json::read(body) {
        Ok(Value::Map(data)) => Ok(data),
        Ok(_) => Err(ClientError::new(ErrorCode::Validation, "body: it is no object")),
        Err(why) => Err(ClientError::new(ErrorCode::InvalidJson, format!("body: no JSON: {why}"))),
    }
}

async fn respond(answer: impl Future<Output = Result<String, ClientError>>) -> Response {
    let error = match answer.await {
        Ok(text) => return json_of(StatusCode::OK, text),
        Err(error) => error,
    };
    match error.code {
        ErrorCode::InvalidJson | ErrorCode::UnknownType | ErrorCode::Validation => {
            let text = format!("{{\"detail\":{}}}", error.details());
            json_of(StatusCode::UNPROCESSABLE_ENTITY, text)
        }
        ErrorCode::Execution => refusal(StatusCode::INTERNAL_SERVER_ERROR, &error.message),
        ErrorCode::Capacity => refusal(StatusCode::SERVICE_UNAVAILABLE, &error.message),
    }
}
