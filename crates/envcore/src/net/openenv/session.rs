//! A session: one slot, as a client of OpenEnv sees it.
//!
//! The session knows whether an episode is under way, and answers what does not fit its stage
//! itself: a step before a reset, or after the end. So the client gets words that fit OpenEnv,
//! and the vec env only what it takes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::oneshot;

use super::Hub;
use super::actions::{self, Misfit, told};
use super::shown::put_text;
use super::stepper::{NoRow, SlotJob, SlotLease, SlotOrder, SlotRow};
use crate::begin::Begin;
use crate::space::{Options, Value};

/// The most characters of a name for an episode.
const LONGEST_ID: usize = 255;

/// What precedes an index in the name of an episode.
const INDEX: &str = "index:";

/// What the protocol calls an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ErrorCode {
    /// The message is no JSON.
    InvalidJson,
    /// There is no such message.
    UnknownType,
    /// The message has not the right form.
    Validation,
    /// The message is right, and cannot be obeyed.
    Execution,
    /// There are as many sessions as there may be.
    Capacity,
}

impl ErrorCode {
    fn name(self) -> &'static str {
        match self {
            ErrorCode::InvalidJson => "INVALID_JSON",
            ErrorCode::UnknownType => "UNKNOWN_TYPE",
            ErrorCode::Validation => "VALIDATION_ERROR",
            ErrorCode::Execution => "EXECUTION_ERROR",
            ErrorCode::Capacity => "CAPACITY_REACHED",
        }
    }
}

/// An error that a client is told.
#[derive(Debug)]
pub(super) struct ClientError {
    pub(super) code: ErrorCode,
    pub(super) message: String,
    /// The keys that lead to what has not the right form.
    pub(super) at: Vec<String>,
    /// How many sessions there are, where that is the reason.
    pub(super) sessions: Option<usize>,
}

impl ClientError {
    pub(super) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        ClientError { code, message: message.into(), at: Vec::new(), sessions: None }
    }

    /// What has not the right form, under `root`.
    fn misfit(root: &str, Misfit { mut at, why }: Misfit) -> Self {
        at.insert(0, root.into());
        let message = format!("{}: {why}", at.join("."));
        ClientError { code: ErrorCode::Validation, message, at, sessions: None }
    }

    /// A part of a message that has not the right form.
    fn field(root: &str, name: &str, why: impl Into<String>) -> Self {
        ClientError::misfit(root, Misfit { at: vec![name.into()], why: why.into() })
    }

    /// There are `most` sessions.
    pub(super) fn full(most: usize) -> Self {
        let message = format!("there are {most} sessions, which is as many as there may be: try again later");
        ClientError { sessions: Some(most), ..ClientError::new(ErrorCode::Capacity, message) }
    }

    /// The message of a WebSocket.
    pub(super) fn text(&self) -> String {
        let mut text = String::from("{\"type\":\"error\",\"data\":{\"message\":");
        put_text(&self.message, &mut text);
        text.push_str(",\"code\":");
        put_text(self.code.name(), &mut text);
        if let Some(most) = self.sessions {
            text.push_str(&format!(",\"active_sessions\":{most},\"max_sessions\":{most}"));
        }
        if self.code == ErrorCode::Validation {
            text.push_str(",\"errors\":");
            text.push_str(&self.details());
        }
        text.push_str("}}");
        text
    }

    /// What has not the right form, as a list of one error.
    pub(super) fn details(&self) -> String {
        let mut text = String::from("[{\"type\":\"value_error\",\"loc\":[");
        for (k, key) in self.at.iter().enumerate() {
            text.push_str(if k == 0 { "" } else { "," });
            put_text(key, &mut text);
        }
        text.push_str("],\"msg\":");
        put_text(&self.message, &mut text);
        text.push_str("}]");
        text
    }
}

/// Where a session is in an episode.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// No episode has begun.
    Fresh,
    /// An episode is under way.
    Playing,
    /// The episode has ended.
    Over,
    /// The env has failed.
    Failed,
}

pub(super) struct EnvSession {
    hub: Arc<Hub>,
    lease: Arc<SlotLease>,
    stage: Stage,
    /// What the client calls the episode.
    episode_id: Option<String>,
    /// How many steps of the episode were played.
    steps: u64,
}

impl EnvSession {
    /// A new session.
    ///
    /// # Errors
    /// [`ErrorCode::Capacity`].
    pub(super) fn begin(hub: &Arc<Hub>) -> Result<Self, ClientError> {
        let lease = hub.free.take().ok_or_else(|| ClientError::full(hub.num_slots))?;
        Ok(EnvSession { hub: hub.clone(), lease, stage: Stage::Fresh, episode_id: None, steps: 0 })
    }

    /// Begins the episode that `data` asks for. Returns its first observation; `root` is what
    /// the protocol calls the message's data.
    pub(super) async fn reset(&mut self, root: &str, data: &Options) -> Result<String, ClientError> {
        let (begin, episode_id, options) = asked(root, data)?;
        if options.is_some() && !self.hub.has_options {
            let why =
                "these envs take none, or keep them for whoever comes next: serve envs with the options";
            return Err(ClientError::field(root, "options", why));
        }
        let row = self.order(SlotOrder::Reset(begin, options)).await?;
        self.hub.tally.resets.fetch_add(1, Ordering::Relaxed);
        (self.episode_id, self.steps) = (episode_id, 0);
        Ok(self.show(&row))
    }

    /// Plays an action.
    pub(super) async fn step(&mut self, root: &str, data: &Options) -> Result<String, ClientError> {
        let why = match self.stage {
            Stage::Playing => None,
            Stage::Fresh => Some("no episode has begun in this session"),
            Stage::Over => Some("the episode has ended"),
            Stage::Failed => Some("the env has failed"),
        };
        if let Some(why) = why {
            let message = format!("{why}: send a reset before the next step");
            return Err(ClientError::new(ErrorCode::Execution, message));
        }
        let action =
            actions::read(&self.hub.action, data).map_err(|misfit| ClientError::misfit(root, misfit))?;
        let row = self.order(SlotOrder::Step(action)).await?;
        self.hub.tally.steps.fetch_add(1, Ordering::Relaxed);
        self.steps += 1;
        Ok(self.show(&row))
    }

    /// What the protocol calls the state.
    pub(super) fn state(&self) -> String {
        let mut text = String::from("{\"episode_id\":");
        match &self.episode_id {
            Some(id) => put_text(id, &mut text),
            None => text.push_str("null"),
        }
        text.push_str(&format!(",\"step_count\":{}}}", self.steps));
        text
    }

    async fn order(&mut self, order: SlotOrder) -> Result<SlotRow, ClientError> {
        let (reply, row) = oneshot::channel();
        let lost = || ClientError::new(ErrorCode::Execution, "the server's envs are gone: start it again");
        self.hub.jobs.send(SlotJob { lease: self.lease.clone(), order, reply }).map_err(|_| lost())?;
        match row.await {
            Ok(Ok(row)) => Ok(row),
            Ok(Err(NoRow::BadAction(why))) => Err(ClientError::new(ErrorCode::Validation, why)),
            Ok(Err(NoRow::Refused(why))) => Err(ClientError::new(ErrorCode::Execution, why)),
            Ok(Err(NoRow::Failed(why))) => {
                self.stage = Stage::Failed;
                Err(ClientError::new(ErrorCode::Execution, why))
            }
            Err(_) => Err(lost()),
        }
    }

    fn show(&mut self, row: &SlotRow) -> String {
        let (text, is_over) = self.hub.face.write(&row.batch, row.row);
        self.stage = if is_over { Stage::Over } else { Stage::Playing };
        text
    }
}

/// How the episode begins that a reset asks for, what the client calls it, and the env's options.
fn asked(root: &str, data: &Options) -> Result<(Begin, Option<String>, Option<Options>), ClientError> {
    let (mut seed, mut episode_id, mut options) = (None, None, None);
    for (name, value) in data.iter() {
        match (name, value) {
            ("seed" | "episode_id" | "options", Value::None) => {}
            ("seed", Value::Int(number)) if *number >= 0 => seed = Some(*number),
            ("seed", other) => {
                let why = format!("{} where a seed belongs, an integer from 0 on", told(other));
                return Err(ClientError::field(root, name, why));
            }
            ("episode_id", Value::Text(id)) if id.chars().count() <= LONGEST_ID => {
                episode_id = Some(id.to_string());
            }
            ("episode_id", other) => {
                let why = format!("{} where a text of at most {LONGEST_ID} characters belongs", told(other));
                return Err(ClientError::field(root, name, why));
            }
            ("options", Value::Map(given)) => options = Some(given.clone()),
            ("options", other) => {
                return Err(ClientError::field(
                    root,
                    name,
                    format!("{} where an object belongs", told(other)),
                ));
            }
            (other, _) => {
                let why = "there is no such field: a reset has seed, episode_id and options";
                return Err(ClientError::field(root, &crate::net::json::cut(other), why));
            }
        }
    }
    let index = episode_id.as_deref().and_then(|id| id.strip_prefix(INDEX));
    let begin = match (index, seed) {
        (None, None) => Begin::Own,
        (None, Some(seed)) => Begin::Seed(seed),
        (Some(index), None) => Begin::Index(index.parse().map_err(|_| {
            ClientError::field(
                root,
                "episode_id",
                format!("'{index}' where an index belongs, as in 'index:7'"),
            )
        })?),
        (Some(_), Some(_)) => {
            let why = "an index says how the episode begins, and so does a seed: give one of them";
            return Err(ClientError::field(root, "episode_id", why));
        }
    };
    Ok((begin, episode_id, options))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begins(data: Options) -> Result<(Begin, Option<String>), String> {
        asked("data", &data).map(|(begin, id, _)| (begin, id)).map_err(|error| error.message)
    }

    #[test]
    fn an_episode_begins_by_a_seed_an_index_or_on_its_own() {
        let id = |text: &str| Some(text.to_string());
        assert_eq!(begins(Options::new()), Ok((Begin::Own, None)));
        assert_eq!(begins(Options::new().with("seed", Value::None)), Ok((Begin::Own, None)));
        assert_eq!(begins(Options::new().with("seed", 3i64)), Ok((Begin::Seed(3), None)));
        assert_eq!(
            begins(Options::new().with("episode_id", "index:7")),
            Ok((Begin::Index(7), id("index:7")))
        );
        let named = Options::new().with("episode_id", "a").with("seed", 0i64);
        assert_eq!(begins(named), Ok((Begin::Seed(0), id("a"))));
        for (data, why) in [
            (Options::new().with("seed", -1i64), "data.seed: -1 where a seed belongs"),
            (Options::new().with("seed", true), "data.seed: true where a seed belongs"),
            (Options::new().with("seed", 1.0), "data.seed: 1.0 where a seed belongs"),
            (Options::new().with("sed", 1i64), "data.sed: there is no such field"),
            (Options::new().with("episode_id", 7i64), "data.episode_id: 7 where a text"),
            (Options::new().with("episode_id", "x".repeat(256)), "at most 255 characters"),
            (Options::new().with("episode_id", "index:-7"), "'-7' where an index belongs"),
            (Options::new().with("episode_id", "index:7").with("seed", 1i64), "give one of them"),
            (Options::new().with("options", 1i64), "data.options: 1 where an object belongs"),
        ] {
            let told = begins(data).unwrap_err();
            assert!(told.contains(why), "{told}");
        }
    }

    #[test]
    fn an_error_has_a_code_and_says_what_is_wrong() {
        let full: serde_json::Value = serde_json::from_str(&ClientError::full(3).text()).unwrap();
        assert_eq!(full["type"], "error");
        assert_eq!(full["data"]["code"], "CAPACITY_REACHED");
        assert_eq!((&full["data"]["active_sessions"], &full["data"]["max_sessions"]), (&3.into(), &3.into()));
        let wrong = ClientError::field("data", "a\"\n", "no").text();
        let wrong: serde_json::Value = serde_json::from_str(&wrong).unwrap();
        assert_eq!(wrong["data"]["message"], "data.a\"\n: no");
        assert_eq!(wrong["data"]["errors"][0]["loc"], serde_json::json!(["data", "a\"\n"]));
    }
}
