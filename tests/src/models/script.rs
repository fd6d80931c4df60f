//! What a scripted model says: lanes, of which a conversation is in the one whose word its latest
//! prompt holds, and their steps, of which it is at the one that follows what it has answers to.

use std::time::Duration;

use serde_json::Value;

use super::fault::Fault;

/// All that a model says.
#[derive(Debug, Clone, Default)]
pub struct Script {
    lanes: Vec<Lane>,
}

#[derive(Debug, Clone)]
struct Lane {
    word: String,
    steps: Vec<Step>,
}

/// One answer of the model.
#[derive(Debug, Clone)]
pub enum Step {
    /// A message. With calls in it the agent comes back with their results, and the next step is due.
    Answer(Vec<Part>),
    /// An error. The next step is due when it was sent this many times.
    Fail {
        /// The HTTP status.
        status: u16,
        /// When to come back, as a header says it; in whole seconds.
        retry_after: Option<Duration>,
        /// How many times.
        times: u32,
    },
    /// An answer that goes wrong. The next step is due when it went wrong this many times.
    Faulty {
        /// How.
        fault: Fault,
        /// How many times.
        times: u32,
    },
}

/// A piece of a message.
#[derive(Debug, Clone)]
pub enum Part {
    /// Thinking that the model shows, at once, with a signature where the vendor has one.
    Think(String),
    /// Text, at once.
    Say(String),
    /// Text, with a pause after each word.
    Slowly {
        /// What.
        text: String,
        /// How long.
        pause: Duration,
    },
    /// Nothing until the model is told this word ([`super::Model::tell`]).
    Until(String),
    /// A call of a tool.
    Call(Call),
}

/// A call of a tool.
#[derive(Debug, Clone)]
pub struct Call {
    /// Its name.
    pub name: String,
    /// What it is given: an object, or a text for those tools of Responses that take one.
    pub input: Value,
    /// What the name belongs to, of tools of Responses that have a namespace.
    pub namespace: Option<String>,
    /// Its id, when it is not to be a new one.
    pub id: Option<String>,
}

impl Call {
    /// A call of this tool with this input.
    #[must_use]
    pub fn new(name: &str, input: Value) -> Self {
        Self { name: name.to_owned(), input, namespace: None, id: None }
    }

    /// The same in a namespace.
    #[must_use]
    pub fn within(self, namespace: &str) -> Self {
        Self { namespace: Some(namespace.to_owned()), ..self }
    }
}

/// A message of one text.
#[must_use]
pub fn say(text: &str) -> Step {
    Step::Answer(vec![Part::Say(text.to_owned())])
}

/// A message of one call.
#[must_use]
pub fn call(call: Call) -> Step {
    Step::Answer(vec![Part::Call(call)])
}

/// A message that begins with a text and goes on with another when the model is told a word.
#[must_use]
pub fn hold(text: &str, word: &str, then: &str) -> Step {
    Step::Answer(vec![Part::Say(text.to_owned()), Part::Until(word.to_owned()), Part::Say(then.to_owned())])
}

/// What a conversation holds, as far as it matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConversationPart {
    /// Somebody's words to the model: a person's, or those it was started with as a sub-agent.
    Prompt(String),
    /// What a tool gave back, as the model is told.
    Result(String),
}

/// What is due.
#[derive(Debug)]
pub(super) enum Chosen<'s> {
    Answer { lane: &'s str, step: usize, parts: &'s [Part] },
    Fail { lane: &'s str, step: usize, status: u16, retry_after: Option<Duration> },
    Faulty { lane: &'s str, step: usize, fault: &'s Fault },
    Unscripted,
}

impl Script {
    /// With a further lane: what is said in conversations whose latest prompt holds this word. Of
    /// several lanes whose word it holds it is the first.
    #[must_use]
    pub fn lane(mut self, word: &str, steps: impl IntoIterator<Item = Step>) -> Self {
        self.lanes.push(Lane { word: word.to_owned(), steps: steps.into_iter().collect() });
        self
    }

    /// What is due in a conversation. `fails` is asked whether a step that fails does so once more,
    /// given lane, step and how many times it is to.
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
