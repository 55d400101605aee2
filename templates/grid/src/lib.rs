//! The environments of `my_env`. Each is a file of its own and a line below.

mod walk;

pub use walk::{Body, Observation, Picture, Told, Walk, WalkConfig};

// By id: what `about` says stands in `corral list`, `steps` is the usual time
// limit. Also: `solved_at: 0.5` (a mean return), `fps: 30` (for videos).
envcore::export_envs! {
    "Walk-v0" => Walk { about: "Gather the gems of a cave.", steps: 500, fps: 10 },
}
