use super::*;
use std::sync::mpsc;

/// Maximum number of watches.
struct Full(usize);

impl Watcher for Full {
    fn new<F: notify::EventHandler>(_: F, _: notify::Config) -> notify::Result<Self> {
        Ok(Self(0))
    }
    fn watch(&mut self, _: &Path, _: RecursiveMode) -> notify::Result<()> {
        self.0 = self.0.checked_sub(1).ok_or_else(|| notify::Error::new(ErrorKind::MaxFilesWatch))?;
        Ok(())
    }
    fn unwatch(&mut self, _: &Path) -> notify::Result<()> {
        Ok(())
    }
    fn kind() -> notify::WatcherKind {
        notify::WatcherKind::NullWatcher
    }
}

/// T17: no watches left.
#[test]
fn tail_watch_gives_up_when_watches_run_out() {
    let mut watch = Watch::with(Box::new(Full(2)));
    assert!(watch.add(Path::new("/a")) && watch.add(Path::new("/b")));
    assert_eq!((watch.mode().to_string().as_str(), watch.directories()), ("watching", 2));
    assert!(!watch.add(Path::new("/c")));
    let expected = "polling: no inotify watches left (fs.inotify.max_user_watches)";
    assert_eq!((watch.mode().to_string().as_str(), watch.directories()), (expected, 0));
    assert!(!watch.add(Path::new("/d")));
}

fn hints(event: notify::Result<Event>) -> Vec<Hint> {
    let told = std::cell::RefCell::new(Vec::new());
    forward(event, &|hint| told.borrow_mut().push(hint));
    told.into_inner()
}

/// T16: the overflow of the queue is an event without a path.
#[test]
fn tail_watch_overflow_and_errors_request_a_full_scan() {
    let overflow = Event::new(EventKind::Other).set_flag(notify::event::Flag::Rescan);
    assert_eq!(hints(Ok(overflow)), [Hint::Everything]);
    assert_eq!(hints(Err(notify::Error::generic("x"))), [Hint::Everything]);
}

#[test]
fn tail_watch_reports_modifications_but_not_opens() {
    use notify::event::{AccessKind, AccessMode, DataChange, ModifyKind};
    let of = |kind| Event::new(kind).add_path("/f".into());
    assert_eq!(hints(Ok(of(EventKind::Access(AccessKind::Open(AccessMode::Any))))), []);
    assert_eq!(hints(Ok(of(EventKind::Modify(ModifyKind::Data(DataChange::Any))))), [Hint::Path("/f".into())]);
}

#[test]
fn tail_watch_reports_a_written_file() {
    let folder = tempfile::tempdir().unwrap();
    let (tell, told) = mpsc::channel();
    let mut watch = Watch::start(move |hint| drop(tell.send(hint)));
    if *watch.mode() != Mode::Watching {
        println!("skipped: {}", watch.mode());
        return;
    }
    assert!(watch.add(folder.path()));
    let path = folder.path().join("f");
    std::fs::write(&path, "x").unwrap();
    let hint = told.recv_timeout(std::time::Duration::from_secs(20)).unwrap();
    assert_eq!(hint, Hint::Path(path));
}
