//! Decides whether a permission request of an agent is allowed, denied or left to the user.
//!
//! A [`PermissionRequest`] goes in, a [`Decision`] comes out. [`Policy`] contains the rules: a preset, the user's
//! rules, and rules of a repository, which can only be stricter. A command line is parsed to its syntax tree (`shell`),
//! each of its commands is compared with tables of read-only commands (`tools`), and git is rewritten so that no
//! configuration of a repository can run anything (`git`). A request that cannot be analysed completely is left to the
//! user.
//!
//! The crate does no I/O and reads no clock or environment: it looks up facts about the machine through [`Facts`].
//! `README.md` is the manual of the policy file and the tables.

#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, reason = "a test names the kinds it looks for"))]

mod credential;
mod danger;
mod develop;
mod facts;
mod git;
mod git_file;
mod listing;
mod names;
mod paths;
mod policy;
mod programs;
mod read_only;
mod request;
mod revision;
mod search;
mod shell;
mod toml_words;
mod tools;
mod values;

pub use facts::{Facts, FileContent, FileEntry, FileInspection, SecretsBelow, StubFacts};
pub use git_file::GitFile;
pub use names::{is_protected, is_secret, is_secret_directory, may_hold_secret, runs_later};
pub use policy::{
    DEFAULT_RULE, ExplainedPart, Explanation, Policy, PolicyError, Preset, RuleSource, RuleView, TriedRule, rule_for,
};
pub use request::{Decision, PermissionRequest, RequestKind, Shell, Verdict};
pub use search::{GrepFilter, NamedFiles, RipgrepOptions, SearchReader, SearchScope};
pub use shell::may_expand;
pub use toml_words::TomlFault;
