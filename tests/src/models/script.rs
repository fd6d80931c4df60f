//! The script of a model: lanes, selected by the word that the latest prompt of a conversation contains, and their
//! steps, of which the next one follows from the number of results in the conversation.

use std::time::Duration;

use serde_json::Value;

use super::fault::Fault;

/// All answers of a model.
#[derive(Debug, Clone, Default)]
pub struct Script {
    lanes: Vec<Lane>,
}

#[derive(Debug, Clone)]
struct Lane {
    word: String,
    steps: Vec<Step>,
}

/// A step of a lane.
#[derive(Debug, Clone)]
pub enum Step {
    /// A message. If it contains calls, the agent returns their results, and the next step follows.
    Answer(Vec<Part>),
    /// An error. The next step follows after it was sent this many times.
    Fail {
        /// The HTTP status.
        status: u16,
        /// The value of the header `retry-after`, in whole seconds.
        retry_after: Option<Duration>,
        /// How often the error is sent.
        times: u32,
    },
    /// A faulty answer. The next step follows after it was sent this many times.
    Faulty {
        /// The fault.
        fault: Fault,
        /// How often the fault occurs.
        times: u32,
    },
}

/// A piece of a message.
#[derive(Debug, Clone)]
pub enum Part {
    /// Thinking that is shown at once, with a signature if the vendor has signatures.
    Think(String),
    /// Text sent at once.
    Say(String),
    /// Text with a pause after each word.
    Slowly {
        /// The text.
        text: String,
        /// The pause.
        pause: Duration,
    },
    /// A wait until the model is told this word ([`super::Model::tell`]).
    Until(String),
    /// A call of a tool.
    Call(Call),
}

/// A call of a tool.
#[derive(Debug, Clone)]
pub struct Call {
    /// The name of the tool.
    pub name: String,
    /// The input: an object, or text for those tools of Responses that accept text.
    pub input: Value,
    /// The namespace, for tools of Responses that have one.
    pub namespace: Option<String>,
    /// The id; `None` generates one.
    pub id: Option<String>,
}

impl Call {
    /// A call of this tool with this input.
    #[must_use]
    pub fn new(name: &str, input: Value) -> Self {
        Self { name: name.to_owned(), input, namespace: None, id: None }
    }

    /// The same call in a namespace.
    #[must_use]
    pub fn within(self, namespace: &str) -> Self {
        Self { namespace: Some(namespace.to_owned()), ..self }
    }
}

/// A message with one text.
#[must_use]
pub fn say(text: &str) -> Step {
    Step::Answer(vec![Part::Say(text.to_owned())])
}

/// A message with one call.
#[must_use]
pub fn call(call: Call) -> Step {
    Step::Answer(vec![Part::Call(call)])
}

/// A message that begins with a text and continues with another once the model is told a word.
#[must_use]
pub fn hold(text: &str, word: &str, then: &str) -> Step {
    Step::Answer(vec![Part::Say(text.to_owned()), Part::Until(word.to_owned()), Part::Say(then.to_owned())])
}

/// A part of a conversation that affects the script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConversationPart {
    /// A message to the model: from the user, or the task of a sub-agent.
    Prompt(String),
    /// The result of a tool, as the model receives it.
    Result(String),
}

/// The next step.
#[derive(Debug)]
pub(super) enum Chosen<'s> {
    Answer { lane: &'s str, step: usize, parts: &'s [Part] },
    Fail { lane: &'s str, step: usize, status: u16, retry_after: Option<Duration> },
    Faulty { lane: &'s str, step: usize, fault: &'s Fault },
    Unscripted,
}

impl Script {
    /// Adds a lane for conversations whose latest prompt contains this word. If several words match, the first lane
    /// applies.
    #[must_use]
    pub fn lane(mut self, word: &str, steps: impl IntoIterator<Item = Step>) -> Self {
        self.lanes.push(Lane { word: word.to_owned(), steps: steps.into_iter().collect() });
        self
    }

    /// The next step of a conversation. `fails` returns whether a failing step fails again, given lane, step and the
    /// intended number of failures.
    pub(super) fn choose(
        &self,
        heard: &[ConversationPart],
        mut fails: impl FnMut(usize, usize, u32) -> bool,
    ) -> Chosen<'_> {
        let mut now = None;
        for heard in heard {
            match heard {
                ConversationPart::Prompt(text) => {
                    let lane = self.lanes.iter().position(|lane| text.contains(&lane.word));
                    now = lane.map(|lane| (lane, 0)).or(now);
                }
                ConversationPart::Result(_) => now = now.map(|(lane, results)| (lane, results + 1)),
            }
        }
        let Some((lane_at, mut results)) = now else { return Chosen::Unscripted };
        let lane = &self.lanes[lane_at];
        for (step, what) in lane.steps.iter().enumerate() {
            match what {
                Step::Answer(parts) => {
                    let calls = parts.iter().filter(|part| matches!(part, Part::Call(_))).count();
                    if calls == 0 || results < calls {
                        return Chosen::Answer { lane: &lane.word, step, parts };
                    }
                    results -= calls;
                }
                Step::Fail { status, retry_after, times } => {
                    if fails(lane_at, step, *times) {
                        let (status, retry_after) = (*status, *retry_after);
                        return Chosen::Fail { lane: &lane.word, step, status, retry_after };
                    }
                }
                Step::Faulty { fault, times } => {
                    if fails(lane_at, step, *times) {
                        return Chosen::Faulty { lane: &lane.word, step, fault };
                    }
                }
            }
        }
        Chosen::Unscripted
    }
}
