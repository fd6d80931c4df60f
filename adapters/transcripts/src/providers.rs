//! The table of supported agents: which files in an agent's home belong to it, and their decoders. A new provider needs
//! an arm in `recognizer` and a module.

use std::{io::Read, path::Path, sync::Arc};

use events::Provider;

use crate::{
    claude::{self, FileKind, meta::MetaDecoder, registry::RegistryDecoder, transcript::TranscriptDecoder},
    codex::{self, CodexDecoder},
    gemini::{self, ChatFile, GeminiDecoder, GeminiLegacyDecoder},
    opencode::{self, OpencodeDecoder},
    pi::{self, PiDecoder},
    qwen::{self, QwenDecoder},
};
use agents::Homes;
use tailer::{
    collect::{Recognize, Root},
    decode::Decoder,
    tail::{FileFormat, FileSpec, MakeDecoder},
};

/// The roots to collect from in these homes.
#[must_use]
pub fn roots(homes: &Homes) -> Vec<Root> {
    let roots_of = |provider: &Provider| {
        let (provider, recognize) = (*provider, recognizer(*provider)?);
        let roots = homes.of(provider).iter().map(move |dir| Root {
            provider,
            dir: dir.clone(),
            recognize: Arc::clone(&recognize),
        });
        Some(roots)
    };
    Provider::ALL.iter().filter_map(roots_of).flatten().collect()
}

/// Whether a transcript that names no working directory belongs to a session in `directory`, judged by its path.
#[must_use]
pub fn is_of_directory(provider: Provider, path: &str, directory: &Path) -> bool {
    provider == Provider::Gemini && gemini::is_of_directory(Path::new(path), directory)
}

/// The recognizer of an agent's files and their decoders.
fn recognizer(provider: Provider) -> Option<Arc<dyn Recognize>> {
    Some(match provider {
        Provider::Claude => Arc::new(Claude),
        Provider::Codex => Arc::new(Codex),
        Provider::Gemini => Arc::new(Gemini),
        Provider::Pi => Arc::new(Pi(pi_lines)),
        Provider::Qwen => Arc::new(Qwen),
        Provider::Capture => Arc::new(Pi(own_lines)),
        Provider::Opencode => Arc::new(Opencode),
        // Files of these agents are not read.
        Provider::Aider | Provider::Crush | Provider::Goose | Provider::Amp | Provider::Unknown => return None,
    })
}

fn first(relative: &Path) -> Option<&str> {
    relative.components().next().and_then(|c| c.as_os_str().to_str())
}

fn lines(make: MakeDecoder) -> FileSpec {
    FileSpec { format: FileFormat::Lines, make, live: false }
}

struct Claude;

/// Directory levels of `projects/<folder>/<session>/subagents/workflows/<id>`, plus two.
const SUBAGENTS_DEPTH: usize = 8;

impl Recognize for Claude {
    fn file(&self, relative: &Path) -> Option<FileSpec> {
        Some(match claude::recognize(relative)? {
            FileKind::Transcript | FileKind::Subagent => {
                lines(|path, state| Box::new(TranscriptDecoder::new(&path.to_string_lossy(), state)))
            }
            FileKind::SubagentMeta => FileSpec {
                format: FileFormat::Whole,
                make: |path, _| Box::new(MetaDecoder::new(&path.to_string_lossy())),
                live: false,
            },
            FileKind::Registry => FileSpec {
                format: FileFormat::Whole,
                make: |_, state| Box::new(RegistryDecoder::new(state)),
                live: true,
            },
        })
    }

    fn enter(&self, relative: &Path) -> bool {
        let depth = relative.components().count();
        match first(relative) {
            None => true,
            Some("projects") => {
                let below = relative.components().nth(3);
                depth <= 3 || depth <= SUBAGENTS_DEPTH && below.is_some_and(|part| part.as_os_str() == "subagents")
            }
            Some("sessions") => depth == 1,
            Some(_) => false,
        }
    }
}

struct Codex;

impl Recognize for Codex {
    fn file(&self, relative: &Path) -> Option<FileSpec> {
        if !codex::recognize(relative) {
            return None;
        }
        let spec = lines(|path, state| Box::new(CodexDecoder::new(&path.to_string_lossy(), state)));
        let is_compressed = relative.to_str().is_some_and(codex::is_compressed);
        Some(if is_compressed { FileSpec { format: FileFormat::Compressed, ..spec } } else { spec })
    }

    fn enter(&self, relative: &Path) -> bool {
        matches!(first(relative), None | Some("sessions" | "archived_sessions")) && relative.components().count() <= 4
    }
}

struct Gemini;

impl Recognize for Gemini {
    fn file(&self, relative: &Path) -> Option<FileSpec> {
        Some(match gemini::recognize(relative)? {
            ChatFile::Session { .. } | ChatFile::Subagent { .. } => lines(gemini_lines),
            ChatFile::Legacy { .. } => FileSpec { format: FileFormat::Whole, make: gemini_legacy, live: false },
        })
    }

    fn enter(&self, relative: &Path) -> bool {
        let depth = relative.components().count();
        match first(relative) {
            None => true,
            Some("tmp") => {
                depth <= 2 || relative.components().nth(2).is_some_and(|c| c.as_os_str() == "chats") && depth <= 4
            }
            Some(_) => false,
        }
    }
}

/// pi, oh-my-pi, and our own agent: they share one layout and one format.
struct Pi(MakeDecoder);

impl Recognize for Pi {
    fn file(&self, relative: &Path) -> Option<FileSpec> {
        pi::recognize(relative).then(|| lines(self.0))
    }

    fn enter(&self, relative: &Path) -> bool {
        matches!(first(relative), None | Some("sessions")) && relative.components().count() <= 2
    }
}

struct Qwen;

impl Recognize for Qwen {
    fn file(&self, relative: &Path) -> Option<FileSpec> {
        qwen::recognize(relative)
            .then(|| lines(|path, state| Box::new(QwenDecoder::new(&path.to_string_lossy(), state))))
    }

    fn enter(&self, relative: &Path) -> bool {
        let depth = relative.components().count();
        match first(relative) {
            None => true,
            Some("projects") => depth <= 2 || depth == 3 && relative.ends_with("chats"),
            Some(_) => false,
        }
    }
}

struct Opencode;

impl Recognize for Opencode {
    fn file(&self, relative: &Path) -> Option<FileSpec> {
        opencode::recognize(relative).then_some(FileSpec {
            format: FileFormat::Rows(&opencode::EVENTS),
            make: |_, state| Box::new(OpencodeDecoder::new(state)),
            live: false,
        })
    }

    fn enter(&self, relative: &Path) -> bool {
        first(relative).is_none()
    }
}

fn pi_lines(path: &Path, state: Option<&str>) -> Box<dyn Decoder> {
    Box::new(PiDecoder::new(Provider::Pi, &path.to_string_lossy(), state))
}

fn own_lines(path: &Path, state: Option<&str>) -> Box<dyn Decoder> {
    Box::new(PiDecoder::new(Provider::Capture, &path.to_string_lossy(), state))
}

fn gemini_lines(path: &Path, state: Option<&str>) -> Box<dyn Decoder> {
    Box::new(GeminiDecoder::new(&path.to_string_lossy(), state).with_cwd(gemini_cwd(path)))
}

fn gemini_legacy(path: &Path, state: Option<&str>) -> Box<dyn Decoder> {
    if gemini::supersedes(path).is_some_and(|newer| newer.exists()) {
        return Box::new(Stale);
    }
    Box::new(GeminiLegacyDecoder::new(&path.to_string_lossy(), state).with_cwd(gemini_cwd(path)))
}

/// The working directory of a chat file according to its project's directory.
fn gemini_cwd(path: &Path) -> Option<String> {
    let chats = path.ancestors().find(|dir| dir.file_name().is_some_and(|name| name == "chats"))?;
    let note = chats.parent()?.join(".project_root");
    if !std::fs::symlink_metadata(&note).is_ok_and(|m| m.is_file()) {
        return None;
    }
    let mut content = String::new();
    std::fs::File::open(note).ok()?.take(8192).read_to_string(&mut content).ok()?;
    gemini::cwd_from_project_root(&content)
}

/// The decoder of a file that a newer one replaced.
struct Stale;

impl Decoder for Stale {
    fn record(
        &mut self,
        _: tailer::decode::Record<'_>,
        _: &mut tailer::decode::Decoded,
    ) -> Result<(), tailer::decode::Malformed> {
        Ok(())
    }

    fn session(&self) -> Option<&Arc<str>> {
        None
    }
}
