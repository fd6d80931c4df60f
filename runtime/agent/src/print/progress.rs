//! What the agent does before its answer, a line each: what it says, which tools it runs, and which of them failed.

use std::io::{self, Write};

use engine::RuntimeFrame;
use session_tree::{Entry, Json, Object, context::text_of};

use crate::handle::SessionUpdate;

/// Arguments that say what a call is about, the first that there is.
const ABOUT: [&str; 5] = ["path", "command", "pattern", "url", "action"];
/// Most letters of such an argument, or of an error.
const LETTERS: usize = 72;

/// Prints it to a stream.
pub(super) struct PrintProgress<'a> {
    out: &'a mut (dyn Write + Send),
    /// What the model said; it is the answer unless a call follows.
    said: Vec<String>,
    /// The calls of the last answer.
    calls: Vec<Object>,
    is_new: bool,
}

impl<'a> PrintProgress<'a> {
    pub(super) fn new(out: &'a mut (dyn Write + Send)) -> Self {
        Self { out, said: Vec::new(), calls: Vec::new(), is_new: true }
    }

    pub(super) fn print(&mut self, update: &SessionUpdate) -> io::Result<()> {
        let frame = match update {
            SessionUpdate::Frame(frame) => &**frame,
            SessionUpdate::Entry(entry) => return self.failed(entry),
        };
        if let RuntimeFrame::Block(block) = frame {
            return self.block(block);
        }
        if let RuntimeFrame::RequestEnded { .. } = frame {
            self.is_new = true;
        }
        if let RuntimeFrame::CallStarted { call, .. } = frame
            && let Some(call) = usize::try_from(call.index).ok().and_then(|at| self.calls.get(at))
        {
            writeln!(self.out, "· {}", about(call))?;
        }
        Ok(())
    }

    fn block(&mut self, block: &Object) -> io::Result<()> {
        if std::mem::take(&mut self.is_new) {
            self.said.clear();
            self.calls.clear();
        }
        match block.text("type") {
            Some("text") => self.said.push(block.text("text").unwrap_or_default().trim().to_owned()),
            Some("toolCall") => {
                self.calls.push(block.clone());
                for text in self.said.drain(..).filter(|text| !text.is_empty()) {
                    writeln!(self.out, "{text}")?;
                }
            }
            Some(_) | None => {}
        }
        Ok(())
    }

    fn failed(&mut self, entry: &Entry) -> io::Result<()> {
        let result = entry.message().filter(|message| message.text("role") == Some("toolResult"));
        let Some(result) = result.filter(|result| result.get("isError") == Some(&Json::Bool(true))) else {
            return Ok(());
        };
        let text = result.get("content").map(|content| text_of(content, " ")).unwrap_or_default();
        writeln!(self.out, "  {}: {}", result.text("toolName").unwrap_or_default(), first_line(&text))
    }
}

/// A call in one line.
fn about(call: &Object) -> String {
    let name = call.text("name").unwrap_or_default();
    let arguments = call.get("arguments").and_then(Json::as_object);
    let about = arguments.and_then(|arguments| ABOUT.iter().find_map(|key| arguments.text(key)));
    about.map_or_else(|| name.to_owned(), |about| format!("{name} {}", first_line(about)))
}

/// The beginning of the first line.
fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(LETTERS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None if line.len() < text.trim_end().len() => format!("{line} …"),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use engine::{CallId, RequestNumber};

    use super::*;

    fn object(text: &str) -> Object {
        Json::parse(text).unwrap().as_object().unwrap().clone()
    }

    #[test]
    fn what_is_said_before_a_call_is_told_and_the_answer_is_not() {
        let mut out = Vec::new();
        let mut progress = PrintProgress::new(&mut out);
        let mut tell = |update: SessionUpdate| progress.print(&update).unwrap();
        let block = |text: &str| SessionUpdate::Frame(Arc::new(RuntimeFrame::Block(object(text))));
        tell(block(r#"{"type":"text","text":"I look.\n"}"#));
        tell(block(r#"{"type":"toolCall","id":"1","name":"read","arguments":{"path":"a.rs"}}"#));
        tell(block(r#"{"type":"toolCall","id":"2","name":"bash","arguments":{"command":"one\ntwo"}}"#));
        for index in 0..2 {
            let call = CallId { request: RequestNumber(1), index };
            tell(SessionUpdate::Frame(Arc::new(RuntimeFrame::CallStarted { call, tool: "read".to_owned() })));
        }
        let failed = r#"{"type":"message","id":"e","parentId":null,"message":{"role":"toolResult","toolName":"bash",
            "content":[{"type":"text","text":"no such file"}],"isError":true}}"#;
        tell(SessionUpdate::Entry(Arc::new(Entry::read(object(failed)))));
        tell(block(r#"{"type":"text","text":"The answer."}"#));
        let told = "I look.\n· read a.rs\n· bash one …\n  bash: no such file\n";
        assert_eq!(String::from_utf8(out).unwrap(), told);
    }

    #[test]
    fn long_lines_are_cut_between_letters() {
        let long = "ä".repeat(LETTERS + 1);
        assert_eq!(first_line(&long), format!("{}…", "ä".repeat(LETTERS)));
        assert_eq!(first_line("short\n"), "short");
    }
}
