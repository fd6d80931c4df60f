//! `capture fix-tty`: restores a terminal that a program left in a bad state.

use std::{
    io::Write,
    os::fd::{AsFd, BorrowedFd},
    process::ExitCode,
};

use client::failure::Failed;
use rustix::termios::{
    ControlModes, InputModes, LocalModes, OptionalActions, OutputModes, SpecialCodeIndex, Termios, isatty, tcgetattr,
    tcsetattr,
};

use crate::os;

/// Turns off the modes that a full-screen program may have turned on: synchronized output, the alternate screen, mouse
/// reports, focus reports, bracketed paste, application keys, keyboard protocols (kitty, modifyOtherKeys), a hidden
/// cursor, colours, a character set, a scroll region, no wrapping.
pub(super) const LEAVE: &str = "\x1b[?2026l\x1b7\x1b[r\x1b8\x1b[?1049l\x1b[?1000;1002;1003;1005;1006;1015l\x1b[?1004l\x1b[?2004l\
    \x1b[?1l\x1b>\x1b[<8u\x1b[=0u\x1b[>4;0m\x1b[?6l\x1b[4l\x1b[?7h\x1b[?25h\x1b[0 q\x1b(B\x0f\x1b[0m";

pub(super) fn run() -> anyhow::Result<ExitCode> {
    let (input, output, error) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    let all = [input.as_fd(), output.as_fd(), error.as_fd()];
    let Some(terminal) = all.into_iter().find(|fd| isatty(fd)) else {
        return Err(Failed::Other("cannot reset the terminal: this process has no terminal".into()).into());
    };
    reset(terminal)?;
    let mut terminal = std::fs::File::from(terminal.try_clone_to_owned()?);
    terminal.write_all(LEAVE.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn reset(terminal: BorrowedFd<'_>) -> anyhow::Result<()> {
    let mut settings = tcgetattr(terminal)?;
    sane(&mut settings);
    Ok(tcsetattr(terminal, OptionalActions::Now, &settings)?)
}

/// Applies the settings of `stty sane` (GNU coreutils).
fn sane(settings: &mut Termios) {
    settings.control_modes |= ControlModes::CREAD;
    settings.input_modes.remove(
        InputModes::IGNBRK
            | InputModes::INLCR
            | InputModes::IGNCR
            | InputModes::IXOFF
            | os::OLD_INPUT
            | InputModes::IXANY
            | InputModes::PARMRK
            | InputModes::INPCK
            | InputModes::ISTRIP,
    );
    settings.input_modes |= InputModes::BRKINT | InputModes::ICRNL | InputModes::IMAXBEL | InputModes::IXON;
    settings
        .output_modes
        .remove(os::OLD_OUTPUT | OutputModes::OCRNL | OutputModes::ONOCR | OutputModes::ONLRET | OutputModes::OFILL);
    settings.output_modes |= OutputModes::OPOST | OutputModes::ONLCR;
    settings.local_modes.remove(
        LocalModes::NOFLSH
            | LocalModes::ECHONL
            | LocalModes::ECHOPRT
            | LocalModes::TOSTOP
            | LocalModes::EXTPROC
            | os::OLD_LOCAL,
    );
    settings.local_modes |= LocalModes::ISIG
        | LocalModes::ICANON
        | LocalModes::IEXTEN
        | LocalModes::ECHO
        | LocalModes::ECHOE
        | LocalModes::ECHOK
        | LocalModes::ECHOCTL
        | LocalModes::ECHOKE;
    let codes = [
        (SpecialCodeIndex::VINTR, 0x03),
        (SpecialCodeIndex::VQUIT, 0x1c),
        (SpecialCodeIndex::VERASE, 0x7f),
        (SpecialCodeIndex::VKILL, 0x15),
        (SpecialCodeIndex::VEOF, 0x04),
        (SpecialCodeIndex::VEOL, 0),
        (SpecialCodeIndex::VSTART, 0x11),
        (SpecialCodeIndex::VSTOP, 0x13),
        (SpecialCodeIndex::VSUSP, 0x1a),
        (SpecialCodeIndex::VREPRINT, 0x12),
        (SpecialCodeIndex::VWERASE, 0x17),
        (SpecialCodeIndex::VLNEXT, 0x16),
        (SpecialCodeIndex::VMIN, 1),
        (SpecialCodeIndex::VTIME, 0),
    ];
    for (code, value) in codes {
        settings.special_codes[code] = value;
    }
}
