//! Prints the model's texts at a terminal while they arrive.

use std::{
    collections::VecDeque,
    io::{self, Write},
};

use engine::{EngineActivity, RuntimeFrame};

use crate::handle::SessionUpdate;

/// The texts of the current answer, as far as they have been printed.
#[derive(Debug, Default)]
pub(super) struct StreamedText {
    /// The printed texts, as received.
    printed: String,
    /// Whether the last printed character is not the end of a line.
    is_open: bool,
    /// Whether the answer has ended, so that the next text belongs to another one.
    has_ended: bool,
    /// Whether a part of the answer was not printed.
    has_gap: bool,
    /// Earlier answers that were printed whole and not taken yet, oldest first.
    answers: VecDeque<String>,
}

impl StreamedText {
    /// Prints the text of an update, or ends the line of the text before it. Returns whether nothing is left to print
    /// of the update.
    ///
    /// # Errors
    /// `out` cannot be written to.
    pub(super) fn print(
        &mut self,
        update: &SessionUpdate,
        is_held: bool,
        out: &mut (dyn Write + Send),
    ) -> io::Result<bool> {
        let frame = match update {
            SessionUpdate::Frame(frame) => &**frame,
            SessionUpdate::Entry(_) => return Ok(false),
        };
        match frame {
            RuntimeFrame::Text(text) => {
                self.begin();
                self.text(text, is_held, out)?;
                Ok(true)
            }
            RuntimeFrame::Thinking(_) => Ok(true),
            // Streaming begins with the first part of the answer, which may be printed already.
            RuntimeFrame::Activity(EngineActivity::Streaming) => Ok(false),
            RuntimeFrame::Block(block) if block.text("type") == Some("text") => {
                self.end_line(out)?;
                Ok(!self.has_gap)
            }
            RuntimeFrame::RequestEnded { .. } => {
                self.end_line(out)?;
                self.begin();
                self.has_ended = true;
                Ok(false)
            }
            RuntimeFrame::Activity(_)
            | RuntimeFrame::TurnStarted
            | RuntimeFrame::TurnEnded { .. }
            | RuntimeFrame::CallOpened { .. }
            | RuntimeFrame::Block(_)
            | RuntimeFrame::CallDecided { .. }
            | RuntimeFrame::CallStarted { .. }
            | RuntimeFrame::CallEnded { .. }
            | RuntimeFrame::ContextFills { .. }
            | RuntimeFrame::SecretsMasked { .. }
            | RuntimeFrame::CompactionStarted { .. }
            | RuntimeFrame::Compacted { .. }
            | RuntimeFrame::CompactionFailed { .. }
            | RuntimeFrame::Message { .. }
            | RuntimeFrame::Refused { .. }
            | RuntimeFrame::DiskTrouble { .. }
            | RuntimeFrame::FileLost { .. } => {
                self.end_line(out)?;
                Ok(false)
            }
        }
    }

    /// Records that updates were lost, so that the answer is printed whole at its end.
    pub(super) fn miss(&mut self) {
        self.begin();
        self.has_gap = true;
    }

    /// Whether this text is that of an answer that has been printed. An answer counts for one text.
    pub(super) fn take_printed(&mut self, text: &str) -> bool {
        let is_same = |answer: &String| answer.trim() == text.trim();
        if let Some(at) = self.answers.iter().position(is_same) {
            self.answers.drain(..=at);
            return true;
        }
        // The answer of a turn that was stopped may have no end.
        let is_current = !self.has_gap && is_same(&self.printed);
        if is_current {
            self.printed.clear();
        }
        is_current
    }

    /// Begins the next answer if one has ended.
    fn begin(&mut self) {
        if std::mem::take(&mut self.has_ended) {
            let printed = std::mem::take(&mut self.printed);
            if !std::mem::take(&mut self.has_gap) && !printed.trim().is_empty() {
                self.answers.push_back(printed);
            }
        }
    }

    fn text(&mut self, text: &str, is_held: bool, out: &mut (dyn Write + Send)) -> io::Result<()> {
        if is_held {
            self.has_gap = true;
            return Ok(());
        }
        // Some models begin an answer with empty lines.
        let shown = if self.is_open { text } else { text.trim_start_matches(['\n', '\r']) };
        self.printed.push_str(text);
        if !shown.is_empty() {
            out.write_all(shown.as_bytes())?;
            out.flush()?;
            self.is_open = !shown.ends_with('\n');
        }
        Ok(())
    }

    /// Ends the line of a text that has not ended it.
    ///
    /// # Errors
    /// `out` cannot be written to.
    pub(super) fn end_line(&mut self, out: &mut (dyn Write + Send)) -> io::Result<()> {
        if std::mem::take(&mut self.is_open) {
            out.write_all(b"\n")?;
            out.flush()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use engine::{RequestNumber, cache::CachePrediction};
    use session_tree::Json;

    use super::*;

    fn frames(frames: Vec<(RuntimeFrame, bool)>) -> (String, StreamedText) {
        let (mut out, mut streamed) = (Vec::new(), StreamedText::default());
        for (frame, is_held) in frames {
            streamed.print(&SessionUpdate::Frame(Arc::new(frame)), is_held, &mut out).unwrap();
        }
        (String::from_utf8(out).unwrap(), streamed)
    }

    fn text(text: &str) -> (RuntimeFrame, bool) {
        (RuntimeFrame::Text(text.to_owned()), false)
    }

    fn block(text: &str) -> (RuntimeFrame, bool) {
        let block = Json::parse(&format!(r#"{{"type":"text","text":"{text}"}}"#)).unwrap();
        (RuntimeFrame::Block(block.as_object().unwrap().clone()), false)
    }

    fn ended() -> (RuntimeFrame, bool) {
        let ended = RuntimeFrame::RequestEnded {
            request: RequestNumber(1),
            usage: None,
            predicted: CachePrediction::default(),
            cause: None,
            failure: None,
            error: None,
        };
        (ended, false)
    }

    #[test]
    fn each_text_ends_with_its_line_and_an_answer_counts_as_printed_once() {
        let answer = || vec![text("\n\nI lo"), text("ok."), block("I look."), text("More.\n"), block("More."), ended()];
        let (out, mut streamed) = frames(answer());
        assert_eq!(out, "I look.\nMore.\n");
        assert!(streamed.take_printed("I look.More.\n"));
        assert!(!streamed.take_printed("I look.More."));
        // The answers of two turns, printed before the end of the first turn is reported.
        let (_, mut streamed) = frames([answer(), vec![text("Then this."), block("Then this.")]].concat());
        assert!(streamed.take_printed("I look.More."));
        assert!(streamed.take_printed("Then this."));
        assert!(!streamed.take_printed("Then this."));
    }

    #[test]
    fn an_answer_with_a_gap_is_printed_at_the_end() {
        let held = (RuntimeFrame::Text("ok.".to_owned()), true);
        let (out, mut streamed) = frames(vec![text("I lo"), held, block("I look."), ended()]);
        assert_eq!(out, "I lo\n");
        assert!(!streamed.take_printed("I look."));
        // Updates lost between two answers belong to the next one.
        streamed.miss();
        let mut out = Vec::new();
        for (frame, is_held) in [text("look."), block("I look."), ended()] {
            streamed.print(&SessionUpdate::Frame(Arc::new(frame)), is_held, &mut out).unwrap();
        }
        assert!(!streamed.take_printed("I look.") && !streamed.take_printed("look."));
    }

    #[test]
    fn a_notice_of_streaming_does_not_break_the_line() {
        let streaming = (RuntimeFrame::Activity(EngineActivity::Streaming), false);
        assert_eq!(frames(vec![text("I "), streaming, text("look."), block("I look.")]).0, "I look.\n");
    }
}
