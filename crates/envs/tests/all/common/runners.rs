//! Every runner of a source.

use std::sync::Arc;
use std::time::Duration;

use envcore::{Background, Serial, Source, Threaded, VecConfig, VecEnv, start};

pub const RUNNERS: [&str; 5] = ["serial", "threaded 2", "threaded 3", "background 2", "with a timeout"];

/// The runner of this name.
pub fn runner(name: &str, source: &Arc<dyn Source>, config: &VecConfig) -> Box<dyn VecEnv> {
    let on = |num_threads| VecConfig { num_threads: Some(num_threads), ..config.clone() };
    match name {
        "serial" => Box::new(Serial::new(&**source, config.clone()).unwrap()),
        "threaded 2" => Box::new(Threaded::new(&**source, on(2)).unwrap()),
        "threaded 3" => Box::new(Threaded::new(&**source, on(3)).unwrap()),
        "background 2" => Box::new(Background::new(source.clone(), on(2)).unwrap()),
        "with a timeout" => {
            let timeout = config.timeout.or(Some(Duration::from_secs(60)));
            start(source.clone(), VecConfig { timeout, ..on(2) }).unwrap()
        }
        other => panic!("no runner '{other}'"),
    }
}
