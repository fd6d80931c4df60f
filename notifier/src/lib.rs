//! Notifies the user about what needs attention, once for each cause.
//!
//! A [`Notice`] is one cause: a pending approval, a stuck session, a turn that ended. The [`Planner`] decides which
//! notices become an [`OutgoingMessage`], when and on which channel; it is pure, with the time and the user's presence
//! as arguments. [`Delivery`] owns a thread and a bounded queue for each channel, sends, retries, and reports the
//! outcome of each message in a [`Receipt`]. [`run_planner`] is the loop between the two.
//!
//! This crate must not decide what needs the user (the caller's findings do), redact (notices are already redacted),
//! read a clock or the environment (both are passed in, see [`PlannerContext`] and [`ChannelContext`]), or connect to
//! anything but the channels of the [`NotifySettings`]. With the default settings, nothing leaves the machine.
//!
//! Read [`plan`] next for the rules, the crate `outbound` for the addresses that may be reached, and [`channel`] for
//! the messages of each channel.

#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, reason = "a test names the kinds it looks for"))]

mod attempt;
pub mod channel;
pub mod config;
mod context;
pub mod delivery;
pub mod http;
pub mod message;
pub mod notice;
mod os;
pub mod plan;
mod planner_loop;
pub mod secret;
pub mod text;

pub use attempt::{AttemptFailure, RetryHint, Stopper};
pub use channel::{ChannelContext, Clock, Env, PushPost, PushSink, SinkError, TerminalSink};
pub use config::{ConfigError, Loudness, NotifySettings};
pub use delivery::{ChannelCounts, Delivery, DeliveryOutcome, DropReason, Receipt, ReceiptSink, StartError, troubles};
pub use message::{MessageForm, OutgoingMessage};
pub use notice::{AnswerButtons, LocalTime, Notice, Presence, Severity};
pub use plan::{NoticeOutcome, Planner};
pub use planner_loop::{INBOX_CAPACITY, PlannerContext, PlannerInput, run_planner};
