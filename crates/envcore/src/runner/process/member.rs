//! A worker process as its parent sees it: how it is started, read from and ended.

use std::collections::VecDeque;
use std::fmt;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};

use crate::error::{Error, Result};
use crate::runner::messages::Objects;

/// What the process runner needs from the language that the workers run.
pub trait Host: Objects + Send + Sync {
    /// Starts worker number `worker`: a process that calls
    /// [`serve`](super::serve) with the other end of `control`, and whose
    /// standard error is `stderr`.
    ///
    /// # Errors
    /// Whatever keeps the worker from starting.
    fn launch(&self, worker: usize, control: OwnedFd, stderr: OwnedFd) -> Result<Box<dyn Child>>;

    /// The bytes that tell a worker which envs it is to build for these slots.
    ///
    /// # Errors
    /// Where the envs cannot be described to another process.
    fn payload(&self, slots: std::ops::Range<usize>) -> Result<Vec<u8>>;

    /// What a worker builds, in the words of messages.
    fn what(&self) -> &str {
        "its envs"
    }

    /// How long a worker may take to build its envs; `None` for no limit.
    fn build_timeout(&self) -> Option<Duration> {
        None
    }

    /// How long a close waits for workers that are in a step.
    fn patience(&self) -> Duration {
        Duration::from_secs(2)
    }

    /// Called every now and then in waits that have no other end. An error ends the
    /// wait.
    ///
    /// # Errors
    /// The user's wish to stop.
    fn check_interrupt(&self) -> Result<()> {
        Ok(())
    }

    /// Whether [`check_interrupt`](Self::check_interrupt) would return an error that came up while objects
    /// were packed or unpacked. This is called often.
    fn is_stopped(&self) -> bool {
        false
    }
}

/// A worker process that was started.
pub trait Child: Send {
    /// The process id.
    fn pid(&self) -> u32;

    /// How the process ended, once it has. Unless it ended with exit code 0, all
    /// processes that it started are ended with it.
    fn ended(&mut self) -> Option<Ended>;

    /// Ends the process and all that it has started, at once.
    fn kill(&mut self);
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The process exited with this code.
    Code(i32),
    /// This signal ended the process.
    Signal(i32),
    /// The system cannot tell any more.
    Unknown,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Code(code) => write!(f, "exited with code {code}"),
            Ended::Signal(signal) => {
                let name = match signal {
                    4 => " (SIGILL)",
                    6 => " (SIGABRT)",
                    7 => " (SIGBUS)",
                    8 => " (SIGFPE)",
                    9 => " (SIGKILL)",
                    11 => " (SIGSEGV)",
                    15 => " (SIGTERM)",
                    24 => " (SIGXCPU)",
                    _ => "",
                };
                write!(f, "was killed by signal {signal}{name}")?;
                if *signal == 9 {
                    f.write_str(": by someone, or for want of memory")?;
                }
                Ok(())
            }
            Ended::Unknown => f.write_str("is gone"),
        }
    }
}

/// A child of this process and the process group that it leads, which also has what
/// the child started unless that has left the group.
struct Own {
    pid: Pid,
    over: Option<Ended>,
}

/// The worker `pid`, a child of this process that nobody else waits for. What the
/// worker starts ends with it only if the worker leads a process group of its own.
///
/// # Errors
/// [`Error::Argument`] where `pid` is no process id.
pub fn adopt(pid: u32) -> Result<Box<dyn Child>> {
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let pid = raw.ok_or_else(|| Error::Argument(format!("{pid} is no process id")))?;
    Ok(Box::new(Own { pid, over: None }))
}

impl Own {
    fn kill_all(&self) {
        let _ = kill_process_group(self.pid, Signal::KILL);
        // A child that was just forked may not lead its group yet.
        let _ = kill_process(self.pid, Signal::KILL);
    }
}

impl Child for Own {
    fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().cast_unsigned()
    }

    fn ended(&mut self) -> Option<Ended> {
        if self.over.is_some() {
            return self.over;
        }
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        match waitid(WaitId::Pid(self.pid), options | WaitIdOptions::NOWAIT) {
            Ok(None) | Err(Errno::INTR) => {}
            Ok(Some(status)) => {
                let ended = match (status.exit_status(), status.terminating_signal()) {
                    (Some(code), _) => Ended::Code(code),
                    (None, Some(signal)) => Ended::Signal(signal),
                    (None, None) => Ended::Unknown,
                };
                if ended != Ended::Code(0) {
                    // As long as nobody has waited for the child, no other process and no
                    // other group has its number.
                    self.kill_all();
                }
                let _ = waitid(WaitId::Pid(self.pid), options);
                self.over = Some(ended);
            }
            // Somebody else has waited for the child, or SIGCHLD is ignored and nobody has to.
            Err(_) => self.over = Some(Ended::Unknown),
        }
        self.over
    }

    fn kill(&mut self) {
        if self.ended().is_none() {
            self.kill_all();
        }
    }
}

/// Starts a worker by a command, which finds `control` as its standard input. The
/// worker is in a process group of its own, so the terminal's Ctrl-C reaches only the
/// parent.
///
/// # Errors
/// The system's errors.
pub fn spawn(command: &mut Command, control: OwnedFd, stderr: OwnedFd) -> Result<Box<dyn Child>> {
    use std::os::unix::process::CommandExt;
    command.stdin(Stdio::from(control)).stderr(Stdio::from(stderr)).process_group(0);
    let child = command.spawn().map_err(|error| {
        let program = command.get_program().to_string_lossy().into_owned();
        Error::env(format!("a worker process could not be started: {program}: {error}"))
    })?;
    adopt(child.id())
}

/// How many lines of a worker's standard error are remembered, and how many bytes.
const LINES: usize = 20;
const BYTES: usize = 4096;

#[derive(Default)]
struct StderrTail {
    lines: VecDeque<String>,
    /// The bytes after the end of the last complete line.
    rest: Vec<u8>,
}

impl StderrTail {
    fn push(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = BYTES.saturating_sub(self.rest.len());
            self.rest.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                let line = String::from_utf8_lossy(&self.rest).trim_end().to_string();
                self.rest.clear();
                self.lines.push_back(line);
                if self.lines.len() > LINES {
                    self.lines.pop_front();
                }
            }
        }
    }

    fn text(&self) -> String {
        let rest = String::from_utf8_lossy(&self.rest);
        let lines = self.lines.iter().map(String::as_str).chain([rest.trim_end()]);
        lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
    }
}

/// Reads a worker's standard error, remembers its end, and passes it on.
pub(super) struct StderrReader {
    tail: Arc<Mutex<StderrTail>>,
    /// A pipe; a byte written to it ends the thread.
    stop: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

impl StderrReader {
    /// The reader, and the pipe that becomes the worker's standard error.
    pub(super) fn new(worker: usize) -> Result<(Self, OwnedFd)> {
        let flags = rustix::pipe::PipeFlags::CLOEXEC;
        let system = |error| Error::from(std::io::Error::from(error));
        let (reader, writer) = rustix::pipe::pipe_with(flags).map_err(system)?;
        let (stopped, stop) = rustix::pipe::pipe_with(flags).map_err(system)?;
        let [reader, writer, stopped, stop] = [reader, writer, stopped, stop].map(super::aside);
        let (reader, writer, stopped, stop) = (reader?, writer?, stopped?, stop?);
        let tail = Arc::<Mutex<StderrTail>>::default();
        let thread_tail = tail.clone();
        let thread = std::thread::Builder::new()
            .name(format!("corral-ear-{worker}"))
            .spawn(move || read_stderr(reader, &stopped, &thread_tail))?;
        Ok((StderrReader { tail, stop, thread: Some(thread) }, writer))
    }

    /// The last lines that the worker wrote, once the worker has ended.
    pub(super) fn last_words(&mut self) -> String {
        // All of the lines are in the pipe, so a moment is enough to read them.
        let patience = Instant::now() + Duration::from_millis(200);
        while self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).text()
    }
}

impl Drop for StderrReader {
    fn drop(&mut self) {
        // To close the pipe would not end the thread, because forks have copies of it.
        let _ = rustix::io::write(&self.stop, &[0]);
        let Some(thread) = self.thread.take() else { return };
        // The thread may be stuck where others write to the same standard error and
        // nobody reads that. Then the thread ends once it is read.
        let patience = Instant::now() + Duration::from_secs(1);
        while !thread.is_finished() && Instant::now() < patience {
            std::thread::sleep(Duration::from_micros(100));
        }
        if thread.is_finished() {
            let _ = thread.join();
        }
    }
}

fn read_stderr(reader: OwnedFd, stopped: &OwnedFd, tail: &Mutex<StderrTail>) {
    let mut file = std::fs::File::from(reader);
    let mut piece = [0; 4096];
    loop {
        let mut fds = [PollFd::new(&file, PollFlags::IN), PollFd::new(stopped, PollFlags::IN)];
        if poll(&mut fds, None).is_err() {
            continue;
        }
        let (is_ready, ends) = (!fds[0].revents().is_empty(), !fds[1].revents().is_empty());
        if is_ready {
            let Ok(n @ 1..) = file.read(&mut piece) else { return };
            tail.lock().unwrap_or_else(PoisonError::into_inner).push(&piece[..n]);
            if !pass_on(&piece[..n], stopped) {
                return;
            }
        }
        if ends {
            return;
        }
    }
}

/// Writes `bytes` to this process's standard error, as slowly as that is read.
/// Returns whether all of them were written before `stopped`.
fn pass_on(mut bytes: &[u8], stopped: &OwnedFd) -> bool {
    let stderr = rustix::stdio::stderr();
    while !bytes.is_empty() {
        let mut fds = [PollFd::new(&stderr, PollFlags::OUT), PollFd::new(stopped, PollFlags::IN)];
        if poll(&mut fds, None).is_err() {
            continue;
        }
        if fds[0].revents().is_empty() {
            return false;
        }
        // A pipe that is ready takes at least this many bytes without blocking.
        match rustix::io::write(stderr, &bytes[..bytes.len().min(rustix::pipe::PIPE_BUF)]) {
            Ok(n) => bytes = &bytes[n..],
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(_) => return true,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_remembered_however_much_was_said() {
        let mut tail = StderrTail::default();
        for k in 0..1000 {
            tail.push(format!("line {k}\nand ").as_bytes());
        }
        tail.push(&[b'x'; 3 * BYTES]);
        let text = tail.text();
        assert!(text.starts_with("and line 980\n") && text.contains("and line 999\nand xxx"), "{text}");
        assert!(text.len() < 2 * BYTES);
    }

    #[test]
    fn an_end_says_how() {
        assert_eq!(Ended::Code(3).to_string(), "exited with code 3");
        assert_eq!(Ended::Signal(11).to_string(), "was killed by signal 11 (SIGSEGV)");
    }
}
