//! Copies bytes from the program to the terminals, and from the terminals to the program.

use std::{
    io::{self, Read, Write},
    time::Instant,
};

use host_protocol::frame::Presence;

use super::{LOOK_EVERY, Relay, status_question::ANSWER};
use crate::host::{
    guest::{Guest, Role, Typed},
    observe::{RequestReply, ToScreen},
    press_answer::{Press, Pressed, TerminalFacts, may_press},
    type_prompt::{InputFacts, PromptKeys, PromptTyped, may_type},
};

/// The focus reported by a terminal (xterm, mode 1004), if the bytes contain nothing else.
fn focus(typed: &[u8]) -> Option<bool> {
    match typed {
        b"\x1b[I" => Some(true),
        b"\x1b[O" => Some(false),
        _ => None,
    }
}

impl Relay {
    /// Reads the program and writes to the terminals at once; then the screen thread and the recorder get a copy. While
    /// a terminal accepts less than it was sent, this reads only once: the rest stays in the terminal's queue, and the
    /// poll loop continues with whichever is ready first.
    pub(super) fn read_program(&mut self) {
        let mut buffer = std::mem::take(&mut self.state.buffer);
        let (mut filled, mut gone, mut asked) = (0, Vec::new(), 0);
        while filled < buffer.len() && self.may_read_program() {
            match self.pty.master.read(&mut buffer[filled..]) {
                Ok(0) => {
                    self.state.drained = true;
                    break;
                }
                Ok(read) => {
                    let bytes = &buffer[filled..filled + read];
                    filled += read;
                    let guests = &mut self.guests;
                    asked += self.state.status_questions.take_out(bytes, |piece| {
                        gone.extend(guests.iter_mut().filter_map(|g| g.write_output(piece).err().map(|_| g.id)));
                    });
                    if !gone.is_empty() || !self.guests.iter().all(Guest::is_flushed) {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // EIO: no process has the terminal open any more.
                Err(_) => {
                    self.state.drained = true;
                    break;
                }
            }
        }
        if filled > 0 {
            self.copy(&buffer[..filled]);
        }
        self.state.buffer = buffer;
        for _ in 0..asked {
            self.reply(ANSWER);
        }
        for id in gone {
            self.terminal_gone(id);
        }
    }

    /// Gives the screen thread and the recorder a copy of the bytes sent to the terminals.
    fn copy(&mut self, bytes: &[u8]) {
        let at = (self.clock)();
        self.state.passed += bytes.len() as u64;
        self.screen.output(bytes, at);
        if let Some(recorder) = &self.recorder {
            recorder.output(at, bytes);
        }
        let now = Instant::now();
        self.state.last_output = now;
        if self.state.look_at.is_none() {
            self.state.look_at = Some((self.state.looked + LOOK_EVERY).max(now));
        }
    }

    /// Reads typed bytes from a terminal.
    pub(super) fn read_terminal(&mut self, id: u64) {
        let room = self.state.keys.room().min(4096);
        let mut buffer = [0_u8; 4096];
        let Some(guest) = self.guests.iter_mut().find(|g| g.id == id) else { return };
        match guest.read(&mut buffer[..room]) {
            Typed::Nothing => {}
            Typed::Gone => self.terminal_gone(id),
            Typed::Bytes(read) => {
                let (role, detach) = (guest.role, guest.key.find(&buffer[..read]));
                let typed = &buffer[..detach.unwrap_or(read)];
                if role == Role::Writer {
                    self.update_presence(typed);
                    self.state.typed = Some(Instant::now());
                    self.type_bytes(typed);
                }
                if detach.is_some() {
                    self.detach(id);
                }
            }
        }
    }

    /// Records when the user last typed; a focus report of the terminal is not a key.
    fn update_presence(&mut self, typed: &[u8]) {
        if let Some(focused) = focus(typed) {
            self.state.focused = Some(focused);
        } else if !typed.is_empty() {
            self.state.pressed = Some(Instant::now());
        }
    }

    /// Whether the user is at the terminal.
    pub(super) fn presence(&self) -> Presence {
        let typed_ms = self.state.pressed.map(|at| u64::try_from(at.elapsed().as_millis()).unwrap_or(u64::MAX));
        let attached = self.guests.iter().any(|guest| guest.live && !guest.suspended && guest.role == Role::Writer);
        Presence { attached, focused: self.state.focused, typed_ms }
    }

    /// Types bytes into the program, and passes them to the screen thread unless they are a secret.
    pub(super) fn type_bytes(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let secret = self.pty.is_secret();
        self.state.keys.push(bytes);
        self.type_on();
        if !secret {
            self.screen.try_send(ToScreen::Input(bytes.to_vec(), (self.clock)()));
        }
    }

    /// Types a terminal's reply to a query of the program; drops it if the program does not read.
    pub(super) fn reply(&mut self, bytes: &[u8]) {
        if bytes.len() <= self.state.keys.room() {
            self.type_bytes(bytes);
        }
    }

    /// Types bytes requested by the server, and replies once they are typed.
    pub(super) fn type_for(&mut self, bytes: &[u8], reply: RequestReply) {
        if self.state.exited.is_some() {
            return reply(Err("the program has ended".into()));
        }
        if bytes.len() > self.state.keys.room() {
            return reply(Err("the input queue is full: the program is not reading".into()));
        }
        let upto = self.state.keys.queued + bytes.len() as u64;
        self.state.keys.replies.push_back((upto, bytes.len(), reply));
        if !bytes.is_empty() {
            self.state.typed = Some(Instant::now());
        }
        self.type_bytes(bytes);
        self.state.keys.wrote(0);
    }

    /// Types the text of a prompt, or the Enter after it, if nothing has changed since the screen was read.
    pub(super) fn type_prompt(&mut self, keys: &PromptKeys) {
        let readable = self.may_read_program();
        if readable {
            self.read_program();
        }
        let group = self.pty.foreground().map(|group| group.as_raw_nonzero().get());
        let facts = InputFacts {
            passed: self.state.passed,
            unread: !readable || self.pty.has_more(),
            waiting: !self.state.keys.waiting.is_empty(),
            runs: self.state.exited.is_none() && !self.state.stopped && !self.state.drained,
            typed: self.state.typed.map(|at| at.elapsed()),
            text: self.state.prompted.map(|(at, before)| (at.elapsed(), before == group)),
        };
        let typed = match may_type(keys, &facts) {
            Err(not) => not,
            Ok(()) if keys.bytes.len() > self.state.keys.room() => PromptTyped::No("the text is too long to be typed"),
            Ok(()) => {
                self.type_bytes(&keys.bytes);
                self.state.prompted = (!keys.after_text).then(|| (Instant::now(), group));
                PromptTyped::Yes
            }
        };
        // The screen thread waits for it, if it still exists.
        keys.typed.try_send(typed).ok();
    }

    /// Presses a key of an answer if nothing has changed since the screen was read. Only these lines run between the
    /// last read of the program's output and the key.
    pub(super) fn press(&mut self, press: &Press) {
        let readable = self.may_read_program();
        if readable {
            self.read_program();
        }
        let stood = self.state.stood.clone();
        let facts = TerminalFacts {
            stood: stood.as_ref().map(|(mark, group)| (mark.as_str(), *group)),
            group: self.pty.foreground().map(|group| group.as_raw_nonzero().get()),
            raw: self.pty.reads_keys(),
            typed: self.state.typed.map(|at| at.elapsed()),
            waiting: !self.state.keys.waiting.is_empty(),
            runs: self.state.exited.is_none() && !self.state.stopped && !self.state.drained,
            passed: self.state.passed,
            unread: !readable || self.pty.has_more(),
        };
        let pressed = match may_press(press, &facts) {
            Err(not) => not,
            Ok(()) => match self.pty.master.write(&press.bytes) {
                Ok(0) | Err(_) => Pressed::No("the program accepts no input"),
                Ok(written) => {
                    // So few bytes are written at once; any rest follows immediately.
                    self.state.keys.push(&press.bytes[written..]);
                    self.type_on();
                    self.screen.try_send(ToScreen::Input(press.bytes.clone(), (self.clock)()));
                    Pressed::Yes
                }
            },
        };
        // The screen thread waits for it, if it still exists.
        press.pressed.try_send(pressed).ok();
    }

    /// Writes the bytes waiting to be typed.
    pub(super) fn type_on(&mut self) {
        while !self.state.keys.waiting.is_empty() {
            let (first, _) = self.state.keys.waiting.as_slices();
            match self.pty.master.write(first) {
                Ok(0) => return,
                Ok(written) => self.state.keys.wrote(written),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The program does not accept input now, or has ended. If it has ended, the next read reports that.
                Err(_) => return,
            }
        }
    }
}
