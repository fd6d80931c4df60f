//! Exports files for other programs and for people.
//!
//! [`conversation`] writes conversations as Markdown, [`conversation_html`] as pages, [`otlp`] as OpenTelemetry traces,
//! and [`dataset`] as records for evaluation. [`report`] writes notes about the work of sessions. [`asciicast`] records
//! the output of a terminal and converts recordings. [`tree_html`] writes a session tree as a page. The crate reads no
//! clock (the caller passes the time) and sends nothing: the output is a text, a file or a writer of the caller.

#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, reason = "a test names the kinds it looks for"))]

pub mod asciicast;
#[cfg(test)]
mod browser;
pub mod conversation;
pub mod conversation_html;
pub mod dataset;
mod edits;
pub mod otlp;
pub mod report;
pub mod tree_html;
mod unseen;
