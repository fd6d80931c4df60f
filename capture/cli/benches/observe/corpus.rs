//! The observed history: a corpus directory, or a small generated one.

use std::{
    fs::{self, File},
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::{
    lines::{Claude, Codex},
    program::{ChildDirs, Program},
};

/// Number of sessions in a generated corpus.
const SESSIONS: u64 = 200;
/// Median size of a generated session, bytes.
const MEDIAN_BYTES: u64 = 130_000;

/// The counts the store must contain after reading everything, where they are known.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) sessions: u64,
    #[serde(default)]
    pub(crate) subagents_claude: u64,
    pub(crate) msg_user: u64,
    pub(crate) msg_assistant_blocks: u64,
    pub(crate) tool_calls: u64,
    pub(crate) tool_results: u64,
}

/// The observed machine, with space for data directories.
pub(crate) struct World {
    /// The home of the agents' user: links to the corpus files, and files the sections write.
    pub(crate) home: PathBuf,
    pub(crate) manifest: Option<Manifest>,
    needles: Vec<(String, u64)>,
    scratch: TempDir,
    /// A data directory with all history ingested.
    ingested: Option<PathBuf>,
    made: u32,
}

/// The files of the corpus.
pub(crate) struct Files {
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) bytes: u64,
}

impl World {
    /// Opens the corpus that `CORPUS` names, or generates one.
    pub(crate) fn open() -> Self {
        Self::of(std::env::var_os("CORPUS").map(PathBuf::from))
    }

    /// Opens this corpus, or generates one.
    pub(crate) fn of(corpus: Option<PathBuf>) -> Self {
        // Files are hard-linked, which works only within one file system.
        let scratch = match corpus.as_ref().and_then(|dir| dir.parent()) {
            Some(parent) => TempDir::with_prefix_in("capture-bench-", parent).unwrap(),
            None => TempDir::with_prefix("capture-bench-").unwrap(),
        };
        let home = scratch.path().join("home");
        match &corpus {
            Some(dir) => {
                for agent in [".claude", ".codex", ".gemini"] {
                    link_tree(&dir.join(agent), &home.join(agent));
                }
            }
            None => make(&home),
        }
        let manifest = fs::read(corpus.unwrap_or_else(|| home.clone()).join("corpus-manifest.json")).ok();
        let words: serde_json::Value =
            manifest.as_ref().map(|text| serde_json::from_slice(text).unwrap()).unwrap_or_default();
        let of_needle = |(key, count): (&String, &serde_json::Value)| {
            Some((key.strip_prefix("needle_")?.to_owned(), count.as_u64()?))
        };
        let needles = words.as_object().into_iter().flatten().filter_map(of_needle).collect();
        let manifest = manifest.map(|text| serde_json::from_slice(&text).unwrap());
        let world = Self { home, manifest, needles, scratch, ingested: None, made: 0 };
        let Files { paths, bytes } = world.files();
        if paths.is_empty() {
            eprintln!("CORPUS has no transcripts: name a directory with .claude, .codex or .gemini in it");
            std::process::exit(2);
        }
        println!(
            "corpus: {} files, {} MB; {} cores, load {}",
            paths.len(),
            bytes / 1_000_000,
            cores(),
            crate::figures::load()
        );
        world
    }

    /// The words planted in the corpus, each with the number of texts that contain it.
    pub(crate) fn needles(&self) -> Vec<(String, u64)> {
        self.needles.clone()
    }

    /// All session files of the agents.
    pub(crate) fn files(&self) -> Files {
        let mut files = Files { paths: Vec::new(), bytes: 0 };
        for below in [".claude/projects", ".codex/sessions", ".gemini/tmp"] {
            walk(&self.home.join(below), &mut files);
        }
        files
    }

    /// A new working directory.
    pub(crate) fn dir(&mut self) -> PathBuf {
        self.made += 1;
        let dir = self.scratch.path().join(format!("dir-{}", self.made));
        fs::create_dir(&dir).unwrap();
        dir
    }

    /// The directories of a child: this home and no configuration.
    pub(crate) fn place<'a>(&'a self, data: &'a Path) -> ChildDirs<'a> {
        ChildDirs { home: &self.home, data, config: self.scratch.path() }
    }

    /// A configuration directory that turns off search.
    pub(crate) fn without_search(&mut self) -> PathBuf {
        let config = self.dir();
        fs::create_dir(config.join("capture")).unwrap();
        fs::write(config.join("capture/config.toml"), "[search]\nenabled = false\n").unwrap();
        config
    }

    /// A fresh copy of a data directory with all history ingested.
    pub(crate) fn ingested(&mut self) -> PathBuf {
        if self.ingested.is_none() {
            let data = self.dir();
            let program = Program::start(&self.place(&data));
            program.searchable();
            program.stop();
            self.ingested = Some(data);
        }
        let copy = self.dir();
        copy_tree(self.ingested.as_ref().unwrap(), &copy);
        copy
    }

    /// The transcript path of a generated Claude session; its directory is created.
    pub(crate) fn transcript(&self, project: &str, session: &str) -> PathBuf {
        let dir = self.home.join(".claude/projects").join(format!("-bench-{project}"));
        fs::create_dir_all(&dir).unwrap();
        dir.join(format!("{session}.jsonl"))
    }

    /// Deletes the files a section wrote.
    pub(crate) fn forget(&self, project: &str) {
        fs::remove_dir_all(self.home.join(".claude/projects").join(format!("-bench-{project}"))).ok();
    }
}

/// The number of available cores.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn walk(dir: &Path, files: &mut Files) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            walk(&path, files);
        } else if path.extension().is_some_and(|e| e == "jsonl" || e == "json") {
            files.bytes += entry.metadata().unwrap().len();
            files.paths.push(path);
        }
    }
}

fn link_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).into_iter().flatten().flatten() {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            link_tree(&entry.path(), &target);
        } else {
            fs::hard_link(entry.path(), target).unwrap();
        }
    }
}

fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let (kind, target) = (entry.file_type().unwrap(), to.join(entry.file_name()));
        if kind.is_dir() {
            copy_tree(&entry.path(), &target);
        } else if kind.is_file() {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A random number generator with the same sequence in every run (splitmix64).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.roll() % end
    }

    /// A random number around `median`: many small ones and a few large ones.
    fn skewed(&mut self, median: u64) -> usize {
        let doublings = (0..6).map(|_| self.below(1000) as f64 / 1000.0 - 0.5).sum::<f64>() * 1.8;
        (median as f64 * doublings.exp2().powf(1.6)) as usize
    }
}

/// Text to cut samples from, including characters that JSON must escape.
pub(crate) fn pool(dice: &mut Dice) -> String {
    const WORDS: &[&str] = &[
        "error",
        "failed",
        "\"path\"",
        "src/main.rs:12:",
        "let value =",
        "compile",
        "\t",
        "the",
        "of",
        "offset",
        "café",
        "→",
        "buffer",
        "session",
        "\u{1b}[32mok\u{1b}[0m",
        "assert_eq!(a, \"b\");",
        "warning:",
        "unused",
        "\\n",
        "{",
        "}",
        "fn",
        "read",
        "stream",
        "0x7f3a",
        "2026-11-01T00:00:00Z",
        "GET",
        "200",
        "and",
        "then",
        "because",
    ];
    let mut text = String::with_capacity(2 << 20);
    while text.len() < 2 << 20 {
        text.push_str(WORDS[dice.below(WORDS.len() as u64) as usize]);
        text.push(if dice.below(9) == 0 { '\n' } else { ' ' });
    }
    text
}

/// A sample of about this length.
pub(crate) fn cut<'p>(pool: &'p str, dice: &mut Dice, length: usize) -> &'p str {
    let length = length.clamp(8, pool.len() / 2);
    let mut from = dice.below((pool.len() - length) as u64) as usize;
    let mut end = from + length;
    while !pool.is_char_boundary(from) {
        from -= 1;
    }
    while !pool.is_char_boundary(end) {
        end -= 1;
    }
    &pool[from..end]
}

/// Generates a corpus of Claude and Codex sessions, and its manifest.
fn make(home: &Path) {
    let mut dice = Dice(1);
    let pool = pool(&mut dice);
    let mut manifest = Manifest { sessions: SESSIONS, ..Manifest::default() };
    for n in 0..SESSIONS {
        let budget = dice.skewed(MEDIAN_BYTES).min(4_000_000) as u64;
        let codex = n % 4 == 3;
        let path = match codex {
            false => {
                home.join(format!(".claude/projects/-home-dev-project-{}/{}.jsonl", n / 8, Claude::new(n).session))
            }
            true => home.join(format!(
                ".codex/sessions/2026/10/{:02}/rollout-2026-10-01T00-00-00-{}.jsonl",
                n % 28 + 1,
                Codex::new(n).session
            )),
        };
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = BufWriter::new(File::create(&path).unwrap());
        match codex {
            false => claude(&mut file, n, budget, &pool, &mut dice, &mut manifest),
            true => self::codex(&mut file, n, budget, &pool, &mut dice, &mut manifest),
        }
        let file = file.into_inner().unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(86_400 + 3_600 * n)).unwrap();
    }
    fs::write(home.join("corpus-manifest.json"), serde_json::to_vec(&manifest).unwrap()).unwrap();
}

fn claude(file: &mut impl Write, salt: u64, budget: u64, pool: &str, dice: &mut Dice, manifest: &mut Manifest) {
    let (mut session, mut bytes, mut calls) = (Claude::new(salt), 0, 0);
    let mut put = |line: String| {
        file.write_all(line.as_bytes()).unwrap();
        line.len() as u64
    };
    while bytes < budget {
        let length = dice.skewed(180);
        bytes += put(session.prompt(cut(pool, dice, length)));
        for _ in 0..dice.below(12) {
            calls += 1;
            let (id, length) = (format!("toolu_{salt}_{calls}"), dice.skewed(1600));
            let output = cut(pool, dice, length);
            bytes += put(session.words(cut(pool, dice, 260), false));
            bytes += put(session.call(&id, cut(pool, dice, 60)));
            bytes += put(session.result(&id, output));
            if salt.is_multiple_of(2) {
                bytes += put(session.request_copy(output));
            }
            manifest.msg_assistant_blocks += 2;
            manifest.tool_calls += 1;
            manifest.tool_results += 1;
        }
        bytes += put(session.words(cut(pool, dice, 900), true));
        manifest.msg_user += 1;
        manifest.msg_assistant_blocks += 1;
    }
}

fn codex(file: &mut impl Write, salt: u64, budget: u64, pool: &str, dice: &mut Dice, manifest: &mut Manifest) {
    let mut session = Codex::new(salt);
    let mut put = |line: String| {
        file.write_all(line.as_bytes()).unwrap();
        line.len() as u64
    };
    let mut bytes = put(session.head(cut(pool, dice, 9000)));
    while bytes < budget {
        let length = dice.skewed(180);
        bytes += put(session.prompt(cut(pool, dice, length)));
        for _ in 0..dice.below(12) {
            let length = dice.skewed(1600);
            bytes += put(session.call(cut(pool, dice, 40), cut(pool, dice, length)));
            manifest.tool_calls += 1;
            manifest.tool_results += 1;
        }
        bytes += put(session.words(cut(pool, dice, 900)));
        manifest.msg_user += 1;
        manifest.msg_assistant_blocks += 1;
    }
}
