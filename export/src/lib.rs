//! Exports files for other programs and for people.
//!
//! [`conversation`] writes conversations as Markdown, [`conversation_html`] as pages, [`otlp`] as OpenTelemetry traces,
//! [`dataset`] as records for evaluation. [`report`] makes notes for people of what sessions did. [`asciicast`] records the output of a terminal and
//! converts recordings. [`tree_html`] makes a page of a session tree. No clock is read here, the caller passes the time
//! in, and nothing is sent anywhere: what is written is a text, a file or a writer the caller gave.

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
