//! Notifies a person about what needs them, once each.
//!
//! A [`Notice`] is one cause: an approval that waits, a session that is stuck, a turn that ended. The [`Planner`]
//! decides which notices become a [`OutgoingMessage`], when and for which channel; it is pure, the time and where the
//! user is are given to it. [`Delivery`] owns a thread and a bounded queue for each channel, sends, tries again, and
//! reports the outcome of each message in a [`Receipt`]. [`drive`] is the loop between the two.
//!
//! What this crate must not do: decide what needs a person (the caller's findings say so), redact
//! (notices come redacted), read a clock or the environment (both are given, see [`PlannerContext`] and
//! [`ChannelContext`]), connect to anything but the channels of the [`NotifySettings`], of which the
//! default leaves the machine by none.
//!
//! Read [`plan`] next for the rules, the crate `outbound` for what an outgoing connection may
//! reach, [`channel`] for what each channel sends.

#![cfg_attr(test, allow(clippy::wildcard_enum_match_arm, reason = "a test names the kinds it looks for"))]

mod attempt;
pub mod channel;
pub mod config;
mod context;
pub mod delivery;
mod drive;
#[cfg(feature = "http")]
pub mod http;
pub mod message;
pub mod notice;
pub mod plan;
pub mod secret;
pub mod text;

pub use attempt::{AttemptFailure, RetryHint, Stopper};
pub use channel::{ChannelContext, Clock, Env, PushPost, PushSink, SinkError, TerminalSink};
pub use config::{ConfigError, Loudness, NotifySettings};
pub use delivery::{ChannelCounts, Delivery, DeliveryOutcome, DropReason, Receipt, ReceiptSink, StartError, troubles};
pub use drive::{INBOX_CAPACITY, PlannerContext, PlannerInput, drive};
pub use message::{MessageForm, OutgoingMessage};
pub use notice::{AnswerButtons, LocalTime, Notice, Presence, Severity};
pub use plan::{NoticeOutcome, Planner};
