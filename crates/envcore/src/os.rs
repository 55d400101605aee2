//! What each operating system does in its own way, behind functions for the rest of the core.
//!
//! Every function exists for every system. `make lint` compiles the versions for an unknown
//! system with `cfg(portable)`.

#[cfg(all(target_os = "linux", not(portable)))]
pub(crate) use linux::*;
#[cfg(not(all(target_os = "linux", not(portable))))]
pub(crate) use not_linux::*;
#[cfg(not(all(unix, not(portable))))]
pub(crate) use not_unix::*;
#[cfg(all(unix, not(portable)))]
pub(crate) use unix::*;

#[cfg(all(unix, not(portable)))]
mod unix {
    #![allow(unsafe_code)]

    use std::fs::{File, OpenOptions};
    use std::io;
    use std::os::unix::fs::OpenOptionsExt;
    use std::path::Path;

    /// Opens a file for reading, without waiting for the other end of a FIFO.
    pub(crate) fn open_at_once(path: &Path) -> io::Result<File> {
        OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)
    }

    /// The limit of the system's that `error` tells of, and where the limit is set.
    pub(crate) fn limit_of(error: &io::Error) -> Option<&'static str> {
        match error.raw_os_error()? {
            libc::EMFILE => Some("this process may open no more; 'ulimit -n' shows how many it may"),
            libc::ENFILE => Some("the system has no more for all processes together"),
            libc::EAGAIN => {
                Some("no more threads or processes may be started; 'ulimit -u' shows how many there may be")
            }
            libc::EFBIG => Some("no larger file may be written; 'ulimit -f' shows how large"),
            _ => None,
        }
    }

    /// Calls `count` in every child that is forked later. Where the system has no memory for
    /// that, forks go unnoticed.
    pub(crate) fn on_fork(count: extern "C" fn()) {
        // SAFETY: `count` is a function of the program, whose author must only do in it what
        // is allowed between fork and exec.
        let _ = unsafe { libc::pthread_atfork(None, None, Some(count)) };
    }
}

#[cfg(not(all(unix, not(portable))))]
mod not_unix {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    pub(crate) fn open_at_once(path: &Path) -> io::Result<File> {
        File::open(path)
    }

    pub(crate) fn limit_of(_error: &io::Error) -> Option<&'static str> {
        None
    }

    /// Does nothing, because such systems have no forks.
    pub(crate) fn on_fork(_count: extern "C" fn()) {}
}

#[cfg(all(target_os = "linux", not(portable)))]
mod linux {
    #[cfg(feature = "load")]
    use std::fs::File;
    use std::io;
    use std::ptr::NonNull;

    use rustix::thread::CpuSet;

    /// The machine's memory in bytes, swap included.
    pub(crate) fn memory() -> u64 {
        let info = rustix::system::sysinfo();
        info.totalram.saturating_add(info.totalswap).saturating_mul(u64::from(info.mem_unit))
    }

    /// The memory in bytes that the machine can give at the moment, as `/proc/meminfo` says.
    pub(crate) fn available_memory() -> Option<u64> {
        available(&std::fs::read_to_string("/proc/meminfo").ok()?)
    }

    fn available(told: &str) -> Option<u64> {
        let rest = told.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        let kib: u64 = rest.trim().strip_suffix("kB")?.trim().parse().ok()?;
        kib.checked_mul(1024)
    }

    /// The cores that this process may run on.
    pub(crate) fn cores() -> io::Result<Vec<usize>> {
        let set = rustix::thread::sched_getaffinity(None)?;
        Ok((0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).collect())
    }

    /// Binds the calling thread to a core. Where the system refuses, the thread stays unbound.
    pub(crate) fn bind_to(core: usize) {
        let mut set = CpuSet::new();
        set.set(core);
        let _ = rustix::thread::sched_setaffinity(None, &set);
    }

    /// Moves the calling thread off these CPUs, if it may run on others. Afterwards it may run where it
    /// might before.
    #[cfg(feature = "processes")]
    pub(crate) fn leave_cpus(cpus: &[usize]) {
        let Ok(allowed) = rustix::thread::sched_getaffinity(None) else { return };
        let mut others = allowed;
        cpus.iter().filter(|&&cpu| cpu < CpuSet::MAX_CPU).for_each(|&cpu| others.unset(cpu));
        // The first call moves the thread at once.
        if others.count() > 0 && rustix::thread::sched_setaffinity(None, &others).is_ok() {
            let _ = rustix::thread::sched_setaffinity(None, &allowed);
        }
    }

    /// Asks for huge pages for the `bytes` bytes at `start`, which nobody has used yet. Without
    /// them the memory is as good, but slower.
    #[allow(unsafe_code)]
    pub(crate) fn prefer_huge_pages(start: NonNull<u8>, bytes: usize) {
        /// The smallest page of Linux.
        const PAGE: usize = 4096;
        let before = start.as_ptr().align_offset(PAGE);
        let Some(pages) = bytes.checked_sub(before) else { return };
        // SAFETY: the memory from the first page within it on belongs to the caller, and the
        // advice changes none of its bytes.
        let _ = unsafe {
            libc::madvise(start.as_ptr().add(before).cast(), pages / PAGE * PAGE, libc::MADV_HUGEPAGE)
        };
    }

    /// A file in memory with the content of `file`, and a path that opens it.
    #[cfg(feature = "load")]
    pub(crate) fn copy_in_memory(name: &str, mut file: &File) -> io::Result<std::path::PathBuf> {
        use std::io::Seek;
        use std::os::fd::IntoRawFd;

        let fd = rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC)?;
        let mut copy = File::from(fd);
        file.rewind()?;
        io::copy(&mut file, &mut copy)?;
        Ok(format!("/proc/self/fd/{}", copy.into_raw_fd()).into())
    }

    #[cfg(test)]
    mod tests {
        use super::available;

        #[test]
        #[cfg(feature = "processes")]
        fn a_thread_leaves_a_cpu_and_may_come_back() {
            let allowed = super::cores().unwrap();
            if allowed.len() == 1 {
                return;
            }
            for _ in 0..20 {
                super::leave_cpus(&allowed[1..]);
                let here = rustix::thread::sched_getcpu();
                super::leave_cpus(&allowed[..1]);
                // The scheduler may have moved the thread meanwhile, but not every time.
                if here == allowed[0] && rustix::thread::sched_getcpu() != allowed[0] {
                    assert_eq!(super::cores().unwrap(), allowed);
                    super::leave_cpus(&allowed);
                    super::leave_cpus(&[usize::MAX]);
                    assert_eq!(super::cores().unwrap(), allowed);
                    return;
                }
            }
            panic!("the thread stayed where it was");
        }

        #[test]
        fn the_available_memory_is_read_from_what_linux_tells() {
            let told = "MemTotal:       24624532 kB\nMemAvailable:   23 kB\nBuffers:  1 kB\n";
            assert_eq!(available(told), Some(23 * 1024));
            assert_eq!(available(""), None);
        }
    }
}

#[cfg(not(all(target_os = "linux", not(portable))))]
mod not_linux {
    use std::io;
    use std::ptr::NonNull;

    /// Does nothing, because the system chooses its pages.
    pub(crate) fn prefer_huge_pages(_start: NonNull<u8>, _bytes: usize) {}

    /// More than any request, because such a system itself refuses what it does not have.
    pub(crate) fn memory() -> u64 {
        u64::MAX
    }

    /// `None`, because the system does not tell.
    pub(crate) fn available_memory() -> Option<u64> {
        None
    }

    pub(crate) fn cores() -> io::Result<Vec<usize>> {
        Err(io::Error::other("threads are bound to cores on Linux only: leave it out"))
    }

    pub(crate) fn bind_to(_core: usize) {}

    #[cfg(feature = "load")]
    pub(crate) fn copy_in_memory(_name: &str, _file: &std::fs::File) -> io::Result<std::path::PathBuf> {
        Err(io::Error::other("it has changed since it was loaded: restart the program"))
    }
}
