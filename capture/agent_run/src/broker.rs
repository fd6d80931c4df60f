//! The broker of a session without the server: what needs nobody is decided in process, the rest by the person at the
//! own terminal, or by nobody.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use agent::{BoxFuture, PermissionBroker, SessionTools};
use engine::{AskedPermission, CallClass, CallDecision, CallVerdict};
use printing::safe_lines;
use session_tree::Json;

use crate::{
    permission::{InProcess, decision},
    person::Person,
};

/// Decides about the calls of a session.
#[derive(Debug)]
pub struct LocalBroker {
    in_process: InProcess,
    person: Option<Arc<Person>>,
    tools: Arc<SessionTools>,
    wait: Duration,
}

impl LocalBroker {
    pub(crate) fn new(
        in_process: InProcess,
        person: Option<Arc<Person>>,
        tools: Arc<SessionTools>,
        wait: Duration,
    ) -> Self {
        Self { in_process, person, tools, wait }
    }
}

impl PermissionBroker for LocalBroker {
    fn decide(&self, asked: AskedPermission) -> BoxFuture<'static, CallDecision> {
        if let Some(decision) = self.in_process.decide(&asked) {
            return Box::pin(std::future::ready(decision));
        }
        let Some(person) = self.person.clone() else {
            return Box::pin(std::future::ready(unanswered()));
        };
        let (question, wait) = (question(&asked, self.tools.diff(asked.call.call).as_deref()), self.wait);
        Box::pin(async move {
            let Some(line) = person.ask(question, wait).await else { return unanswered() };
            if asked.facts.kind == CallClass::Question {
                return answered(&asked, &line);
            }
            match line.as_str() {
                "y" | "Y" | "yes" => decision(CallVerdict::Allow, "terminal", None, None),
                _ => decision(CallVerdict::Deny, "terminal", None, Some("denied by the user".to_owned())),
            }
        })
    }
}

fn unanswered() -> CallDecision {
    decision(CallVerdict::Unanswered, "nobody", None, None)
}

/// The answer to a question: an option by its number, or what was typed. An empty line is none.
fn answered(asked: &AskedPermission, line: &str) -> CallDecision {
    if line.is_empty() {
        return unanswered();
    }
    let options = asked.call.arguments.get("options").and_then(Json::as_array).unwrap_or_default();
    let chosen = line.parse::<usize>().ok().and_then(|n| options.get(n.checked_sub(1)?)?.as_str());
    let mut decision = decision(CallVerdict::Allow, "terminal", None, None);
    decision.answer = Some(chosen.unwrap_or(line).to_owned());
    decision
}

/// What is shown: all that would happen, and nothing that moves a cursor.
fn question(asked: &AskedPermission, diff: Option<&str>) -> String {
    let (call, facts) = (&asked.call, &asked.facts);
    let mut text = String::from("\n");
    if facts.kind == CallClass::Question {
        text.push_str(&safe_lines(&format!("The agent asks: {}", call.arguments.text("question").unwrap_or_default())));
        let options = call.arguments.get("options").and_then(Json::as_array).unwrap_or_default();
        for (at, option) in options.iter().enumerate() {
            text.push_str(&safe_lines(&format!("  {}. {}", at + 1, option.as_str().unwrap_or_default())));
        }
        text.push_str("Answer: ");
        return text;
    }
    let what = match facts.kind {
        CallClass::Read | CallClass::ReadOutside => "read",
        CallClass::Edit => "edit",
        CallClass::Write => "write",
        CallClass::Command => "run a command",
        CallClass::Fetch => "fetch",
        CallClass::Question | CallClass::Note | CallClass::Other => "call a tool",
    };
    text.push_str(&safe_lines(&format!("The agent wants to {what} ({})", call.tool)));
    text.push_str(&safe_lines(&format!("  in {}", facts.cwd)));
    for path in &facts.paths {
        text.push_str(&safe_lines(&format!("  file {path}")));
    }
    if let Some(url) = &facts.url {
        text.push_str(&safe_lines(&format!("  address {url}")));
    }
    if let Some(diff) = diff {
        text.push_str(&safe_lines(diff));
    } else {
        for (name, value) in call.arguments.iter() {
            let _ = write!(text, "  {}: ", printing::safe(name));
            text.push_str(&safe_lines(&value.as_str().map_or_else(|| value.to_text(), str::to_owned)));
        }
    }
    text.push_str("Allow it once? [y/N] ");
    text
}
