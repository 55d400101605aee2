//! Workers for the process runner: this test program itself, started again.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::Arc;

use envcore::process::{Child, Host, Objects, Order, serve, spawn, take_stdin};
use envcore::{Error, Object, Options, Process, Result, VecConfig, VecEnv, start, state};

/// Set where the program is a worker.
const MARK: &str = "CORRAL_TEST_WORKER";

/// Objects are boxed `u8`s here.
struct Bytes;

impl Objects for Bytes {
    fn pack(&self, object: &Object) -> Result<Vec<u8>, String> {
        object.downcast_ref::<u8>().map(|byte| vec![*byte]).ok_or_else(|| "it is no u8".into())
    }

    fn unpack(&self, bytes: &[u8]) -> Result<Object, String> {
        bytes.first().map(|byte| Arc::new(*byte) as Object).ok_or_else(|| "no byte".into())
    }
}

/// Starts workers that host a built-in env.
pub struct Builtin {
    pub id: String,
    pub options: Options,
}

impl Objects for Builtin {
    fn pack(&self, object: &Object) -> Result<Vec<u8>, String> {
        Bytes.pack(object)
    }

    fn unpack(&self, bytes: &[u8]) -> Result<Object, String> {
        Bytes.unpack(bytes)
    }
}

impl Host for Builtin {
    fn launch(&self, _: usize, control: OwnedFd, stderr: OwnedFd) -> Result<Box<dyn Child>> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--exact", "common::process::worker", "--ignored", "--nocapture", "--test-threads=1"]);
        command.env(MARK, "1").stdout(Stdio::null());
        spawn(&mut command, control, stderr)
    }

    fn payload(&self, _: Range<usize>) -> Result<Vec<u8>> {
        state::to_bytes(&(&self.id, &self.options))
    }
}

/// Slots of a built-in env in `workers` processes.
pub fn process(id: &str, options: &Options, config: VecConfig, workers: usize) -> Result<Process> {
    let host = Builtin { id: id.into(), options: options.clone() };
    Process::new(Arc::new(host), config, Some(workers))
}

#[test]
#[ignore = "the program of worker processes, which tests start"]
fn worker() {
    if std::env::var_os(MARK).is_none() {
        return;
    }
    let control = take_stdin().unwrap();
    let build = |order: Order| {
        let (id, options): (String, Options) = state::from_bytes(&order.payload)?;
        let source: Arc<dyn envcore::Source> = envs::find(&id)?.source(&options)?.into();
        let envs: Box<dyn VecEnv> = start(source, order.config)?;
        Ok::<_, Error>((envs, b"about".to_vec()))
    };
    // SAFETY: `Builtin::launch` started this with the socket that it was given.
    #[allow(unsafe_code)]
    let served = unsafe { serve(control, &Bytes, build) };
    if let Err(error) = served {
        eprintln!("{error}");
        std::process::exit(70);
    }
    std::process::exit(0);
}
