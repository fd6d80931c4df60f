//! The benchmark of our own agent: each subcommand measures one row of the acceptance criteria from outside, with the
//! program given by `--binary`, with models on loopback and on machines with temporary home directories.
//!
//! The table shows each figure with its limits and the load of the machine. The exit code is 1 if a mandatory limit is
//! missed, and 2 if a row could not be measured.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people at a terminal")]

mod abort;
mod approvals;
mod cache;
mod canned;
mod decisions;
mod faults;
mod growth;
mod kill;
mod memory;
mod overhead;
mod peers;
mod pi;
mod place;
mod report;
mod rpc;
mod start;
mod turns;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use clap::{Parser, Subcommand};
use tests::models::Api;

use self::report::{Report, Row};

/// A measurement, or why it failed.
type Outcome<T> = Result<T, String>;

/// Measures our own agent.
#[derive(Debug, Parser)]
#[command(name = "agentbench")]
struct Options {
    /// The program `capture`; the one that was built with this program when none is named.
    #[arg(long, global = true, value_name = "PROGRAM")]
    binary: Option<PathBuf>,
    /// How many processes to run at once in rows that measure no time.
    #[arg(long, global = true, default_value_t = 2)]
    jobs: usize,
    /// Copy every session that is made into this directory.
    #[arg(long, global = true, value_name = "DIR")]
    keep: Option<PathBuf>,
    #[command(subcommand)]
    row: Measured,
}

#[derive(Debug, Subcommand)]
enum Measured {
    /// A1: many answers in all four APIs before a server that refuses what the vendor refuses.
    Turns(turns::Turns),
    /// A2 to A4: what is read from the vendor's cache, and how misses are explained. Without options everything.
    Cache(cache::Cache),
    /// A5: SIGKILL at every line that is written, at every request, and at random.
    Kill(kill::Kill),
    /// A6: servers that answer wrongly, slowly or not at all.
    Faults(faults::Faults),
    /// A7: what is decided about each tool, by whom, and that nothing else runs.
    Approvals(approvals::Approvals),
    /// A8: what is added to a turn, beside a client that only posts and reads.
    Overhead(overhead::Overhead),
    /// A9: how long a decision takes that needs no person.
    Decisions(decisions::Decisions),
    /// A10: from the start of the program to its first request, beside other agents.
    Start(start::Start),
    /// A11: memory after a long turn, and of further sessions, beside other agents.
    Memory(memory::Memory),
    /// A12: how memory grows over many turns.
    Growth(growth::Growth),
    /// A13: interrupts at random moments.
    Abort(abort::Abort),
    /// A14: pi reads and takes up what is written here.
    Pi(pi::Pi),
}

/// The options common to all rows.
#[derive(Debug, Clone)]
struct Bench {
    binary: PathBuf,
    jobs: usize,
    /// Directory for copies of sessions.
    keep: Option<PathBuf>,
    /// Temporary directory for the files of a run.
    scratch: Arc<tempfile::TempDir>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let mut report = Report::default();
    let measured = Bench::new(&options).and_then(|bench| bench.measure(&options.row));
    let code = match measured {
        Ok(rows) => {
            report.add(rows);
            u8::from(report.is_missed())
        }
        Err(problem) => {
            eprintln!("agentbench: {problem}");
            2
        }
    };
    println!("{}\n\n{}", report::machine(), report.table());
    ExitCode::from(code)
}

impl Bench {
    fn new(options: &Options) -> Outcome<Self> {
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let binary = options.binary.as_deref().map_or_else(|| own.with_file_name("capture-e2e"), Path::to_owned);
        let binary = binary.canonicalize().map_err(|error| format!("{}: {error}", binary.display()))?;
        let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
        let bench = Self { binary, jobs: options.jobs.max(1), keep: None, scratch: Arc::new(scratch) };
        options.keep.as_ref().map_or(Ok(bench.clone()), |keep| bench.keeping(keep))
    }

    /// The same options, with copies of sessions saved in this directory.
    fn keeping(&self, directory: &Path) -> Outcome<Self> {
        std::fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        Ok(Self { keep: Some(directory.to_owned()), ..self.clone() })
    }

    fn measure(&self, row: &Measured) -> Outcome<Vec<Row>> {
        match row {
            Measured::Turns(asked) => turns::turns(self, asked),
            Measured::Cache(asked) => cache::cache(self, asked),
            Measured::Kill(asked) => kill::kill(self, asked),
            Measured::Faults(asked) => faults::faults(self, asked),
            Measured::Approvals(asked) => approvals::approvals(self, asked),
            Measured::Overhead(asked) => overhead::overhead(self, asked),
            Measured::Decisions(asked) => decisions::decisions(self, asked),
            Measured::Start(asked) => start::start(self, asked),
            Measured::Memory(asked) => memory::memory(self, asked),
            Measured::Growth(asked) => growth::growth(self, asked),
            Measured::Abort(asked) => abort::abort(self, asked),
            Measured::Pi(asked) => pi::pi(self, asked),
        }
    }

    /// A copy of the program that differs like a later version would: in the built-in system prompt.
    fn another_version(&self) -> Outcome<PathBuf> {
        let copy = self.scratch.path().join("capture-other");
        let mut bytes = std::fs::read(&self.binary).map_err(|error| error.to_string())?;
        let (old, new) = (b"You are a coding agent. ", b"You are A Coding Agent. ");
        let at = bytes.windows(old.len()).position(|window| window == old);
        let at = at.ok_or("the program does not hold its system prompt")?;
        bytes[at..at + new.len()].copy_from_slice(new);
        std::fs::write(&copy, bytes).map_err(|error| error.to_string())?;
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&copy, mode).map_err(|error| error.to_string())?;
        Ok(copy)
    }

    /// Calls `work` for each item, several at once, and returns the results in order.
    fn each<T: Sync, R: Send>(&self, jobs: usize, of: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
        let next = std::sync::atomic::AtomicUsize::new(0);
        let mut results: Vec<(usize, R)> = std::thread::scope(|scope| {
            let worker = || {
                let mut mine = Vec::new();
                loop {
                    let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    let Some(one) = of.get(at) else { return mine };
                    mine.push((at, work(one)));
                }
            };
            let workers: Vec<_> = (0..jobs.clamp(1, of.len().max(1))).map(|_| scope.spawn(worker)).collect();
            workers
                .into_iter()
                .flat_map(|worker| worker.join().unwrap_or_else(|e| std::panic::resume_unwind(e)))
                .collect()
        });
        results.sort_by_key(|(at, _)| *at);
        results.into_iter().map(|(_, result)| result).collect()
    }
}

fn api(text: &str) -> Result<Api, String> {
    let known = place::APIS.into_iter().find(|api| place::api_name(*api) == text);
    known.ok_or_else(|| "expected anthropic, responses, chat or gemini".to_owned())
}
