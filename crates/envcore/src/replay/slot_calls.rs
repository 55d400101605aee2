//! The calls of one slot, as read from the log's events, and as JSON.

use serde_json::{Value as Json, json};

use crate::begin::Begin;
use crate::error::Phase;
use crate::replay::log::{LoggedLeaf, SlotEvent};
use crate::replay::text::{action_to_json, options_from_json, options_to_json};
use crate::space::{Options, Space};
use crate::vec_config::AutoresetMode;
use crate::vec_env::Spec;

/// A call of a slot.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum SlotCall {
    Reset(Begin, Option<Options>),
    /// What the next autoreset plays.
    Next(Begin),
    /// A step with an action; `None` where the action is ignored, because the episode is
    /// over.
    Step(Option<Json>),
    Render,
}

/// The calls of a slot, and the one of them that began the failing episode.
pub(super) struct SlotCalls {
    pub(super) calls: Vec<SlotCall>,
    pub(super) begin_call: Option<usize>,
    /// Why the calls are not complete.
    pub(super) gap: Option<&'static str>,
}

impl SlotCalls {
    /// The calls that `events` tell of, from a state or from a newly built env up to the
    /// call that failed in `phase`.
    pub(super) fn new(spec: &Spec, events: Vec<SlotEvent>, phase: Phase, from_state: bool) -> Self {
        let mut slot_calls = SlotCalls { calls: Vec::new(), begin_call: None, gap: None };
        let resetting = matches!(phase, Phase::Build | Phase::Reset);
        let (mut given, mut next) = (Options::new(), Begin::Own);
        let mut events = events.into_iter().peekable();
        while let Some(event) = events.next() {
            let failed = resetting && events.peek().is_none();
            match event {
                SlotEvent::Reset { begin, options } => {
                    let options = options.filter(|_| begin != Begin::Keep);
                    if options.as_ref().is_some_and(|options| options_to_json(options).is_err()) {
                        slot_calls.gap =
                            Some("an option of a reset is an object that cannot be written to a file");
                    }
                    options.iter().for_each(|options| given.merge(options));
                    if begin != Begin::Keep {
                        next = Begin::Own;
                        // The reset that failed began no episode.
                        if !failed {
                            slot_calls.begin_call = Some(slot_calls.calls.len());
                        }
                    }
                    slot_calls.calls.push(SlotCall::Reset(begin, options));
                }
                SlotEvent::Next(begin) => {
                    next = begin;
                    slot_calls.calls.push(SlotCall::Next(begin));
                }
                SlotEvent::Step(cells) => {
                    slot_calls.step(&spec.action, &cells);
                    if failed {
                        slot_calls.autoreset(spec, next, &given, from_state);
                    }
                }
                // After a reset the event tells nothing new.
                SlotEvent::Began => {
                    if matches!(slot_calls.calls.last(), Some(SlotCall::Step(_))) {
                        slot_calls.autoreset(spec, std::mem::take(&mut next), &given, from_state);
                        slot_calls.begin_call = Some(slot_calls.calls.len() - 1);
                    }
                }
            }
        }
        if phase == Phase::Render {
            slot_calls.calls.push(SlotCall::Render);
        }
        slot_calls
    }

    /// Notes that the last step began an episode as `next` says, or failed to begin it.
    fn autoreset(&mut self, spec: &Spec, next: Begin, given: &Options, from_state: bool) {
        if let (Begin::Seed(_), false) = (next, from_state) {
            // The env has the new seed in place of the one that it was built from, so of all
            // earlier calls only the options matter.
            self.calls.clear();
            self.calls.push(SlotCall::Reset(next, Some(given.clone())));
        } else if let (AutoresetMode::NextStep, Some(SlotCall::Step(action))) =
            (spec.autoreset, self.calls.last_mut())
        {
            *action = None;
        }
    }

    fn step(&mut self, space: &Space, cells: &[LoggedLeaf]) {
        let action = action_to_json(space, cells);
        if action.is_err() {
            self.gap = Some("an action holds an object that cannot be written to a file");
        }
        self.calls.push(SlotCall::Step(Some(action.unwrap_or_default())));
    }

    /// How many actions were played after the episode's begin, or the first call, and
    /// before the failing call.
    pub(super) fn steps(&self) -> u64 {
        let last = self.calls.len().saturating_sub(1);
        let from = self.begin_call.map_or(0, |begin| begin + 1);
        let played = |call: &&SlotCall| matches!(call, SlotCall::Step(Some(_)));
        self.calls.get(from..last).unwrap_or_default().iter().filter(played).count() as u64
    }
}

impl SlotCall {
    pub(super) fn to_json(&self) -> Json {
        match self {
            SlotCall::Reset(begin, None) => json!({ "reset": begin_to_json(*begin) }),
            SlotCall::Reset(begin, Some(options)) => {
                json!({ "reset": begin_to_json(*begin), "options": options_to_json(options).unwrap_or_default() })
            }
            SlotCall::Next(begin) => json!({ "next": begin_to_json(*begin) }),
            SlotCall::Step(action) => json!({ "step": action }),
            SlotCall::Render => json!({ "render": null }),
        }
    }

    pub(super) fn from_json(json: &Json) -> Option<Self> {
        let map = json.as_object()?;
        if let Some(begin) = map.get("reset") {
            let options = match map.get("options") {
                None => None,
                Some(options) => Some(options_from_json(options)?),
            };
            return Some(SlotCall::Reset(begin_from_json(begin)?, options));
        }
        if let Some(begin) = map.get("next") {
            return Some(SlotCall::Next(begin_from_json(begin)?));
        }
        if map.contains_key("render") {
            return Some(SlotCall::Render);
        }
        Some(SlotCall::Step(Some(map.get("step")?.clone()).filter(|action| !action.is_null())))
    }
}

pub(super) fn begin_to_json(begin: Begin) -> Json {
    match begin {
        Begin::Own => "own".into(),
        Begin::Keep => "keep".into(),
        Begin::Seed(seed) => json!({ "seed": seed }),
        Begin::Index(index) => json!({ "index": index }),
    }
}

fn begin_from_json(json: &Json) -> Option<Begin> {
    match json.as_str() {
        Some("own") => return Some(Begin::Own),
        Some("keep") => return Some(Begin::Keep),
        _ => {}
    }
    let seed = json.get("seed").and_then(Json::as_i64).map(Begin::Seed);
    seed.or_else(|| json.get("index").and_then(Json::as_u64).map(Begin::Index))
}
