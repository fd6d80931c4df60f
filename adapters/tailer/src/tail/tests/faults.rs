//! A disk that fails on demand.

use std::{
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use rustix::io::Errno;

use crate::tail::disk::{Disk, OpenError, RootedPath, Source, Stat, System};

/// The fault to inject.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    None,
    /// No read returns more bytes than this.
    Short(usize),
    /// The n-th call fails, once.
    Fail {
        nth: u64,
        errno: Errno,
    },
    /// Nothing can be opened while this is set.
    Down {
        errno: Errno,
        down: Arc<AtomicBool>,
    },
    /// The file begins with a line of this length, bytes.
    Giant(u64),
    /// Just before the n-th read the content of the file is replaced.
    RewriteBeforeRead {
        nth: u64,
        content: String,
        path: PathBuf,
    },
}

/// The recorded calls.
#[derive(Debug, Default)]
pub(crate) struct Log {
    calls: AtomicU64,
    reads: AtomicU64,
    bytes: AtomicU64,
    failed: AtomicBool,
}

impl Log {
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    fn call(&self, fault: &Fault) -> io::Result<()> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        if let Fault::Fail { nth, errno } = fault
            && *nth == call
        {
            self.failed.store(true, Ordering::Relaxed);
            return Err((*errno).into());
        }
        Ok(())
    }
}

pub(crate) struct Faulty {
    fault: Fault,
    log: Arc<Log>,
}

impl Faulty {
    pub(crate) fn new(fault: Fault) -> (Self, Arc<Log>) {
        let log = Arc::new(Log::default());
        (Self { fault, log: Arc::clone(&log) }, log)
    }
}

impl Disk for Faulty {
    fn stat(&self, place: &RootedPath) -> io::Result<Option<Stat>> {
        self.log.call(&self.fault)?;
        System.stat(place)
    }

    fn open(&self, place: &RootedPath) -> Result<Box<dyn Source>, OpenError> {
        self.log.call(&self.fault).map_err(OpenError::Io)?;
        if let Fault::Down { errno, down } = &self.fault
            && down.load(Ordering::Relaxed)
        {
            return Err(OpenError::Io((*errno).into()));
        }
        let inner = System.open(place)?;
        Ok(Box::new(FaultySource { inner, fault: self.fault.clone(), log: Arc::clone(&self.log) }))
    }
}

struct FaultySource {
    inner: Box<dyn Source>,
    fault: Fault,
    log: Arc<Log>,
}

impl Source for FaultySource {
    fn stat(&self) -> io::Result<Stat> {
        self.log.call(&self.fault)?;
        let mut stat = self.inner.stat()?;
        if let Fault::Giant(length) = self.fault {
            stat.size += length + 1;
        }
        Ok(stat)
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.log.call(&self.fault)?;
        let read = self.log.reads.fetch_add(1, Ordering::Relaxed);
        let n = match &self.fault {
            Fault::Short(size) => {
                let room = into.len().min(*size);
                self.inner.read_at(&mut into[..room], offset)?
            }
            Fault::Giant(length) if offset < *length => {
                let n = into.len().min((*length - offset) as usize);
                into[..n].fill(b'x');
                n
            }
            Fault::Giant(length) if offset == *length => {
                into[0] = b'\n';
                1
            }
            Fault::Giant(length) => self.inner.read_at(into, offset - length - 1)?,
            Fault::RewriteBeforeRead { nth, content, path } if *nth == read => {
                std::fs::write(path, content)?;
                self.inner.read_at(into, offset)?
            }
            Fault::None | Fault::Fail { .. } | Fault::Down { .. } | Fault::RewriteBeforeRead { .. } => {
                self.inner.read_at(into, offset)?
            }
        };
        self.log.bytes.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}
