//! Runs a program of the user without a shell: the message is JSON on standard input, and a few environment variables
//! are set.

use std::{
    io::{ErrorKind, Read, Write},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::process::CommandExt,
    },
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use events::Timestamp;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    process::{Pid, Signal, kill_process_group},
};

use super::wire;
use crate::{
    attempt::{AttemptFailure, Channel},
    context::{ChannelContext, Env},
    message::OutgoingMessage,
    text,
};

/// Maximum number of bytes kept from its standard error.
const STDERR_BYTES: usize = 4_096;
/// Maximum number of these characters shown in a receipt.
const STDERR_CHARS: usize = 200;
/// Environment variables that the command inherits.
const PASSED_ON: [&str; 12] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
];

/// Runs a program for each message.
pub(super) struct CommandChannel {
    argv: Vec<String>,
    timeout: Duration,
    env: Env,
}

impl CommandChannel {
    pub(super) fn new(argv: &[String], timeout: Duration, context: &ChannelContext) -> Self {
        Self { argv: argv.to_vec(), timeout, env: context.env.clone() }
    }

    fn start(&self, message: &OutgoingMessage) -> Result<Child, AttemptFailure> {
        let (program, arguments) =
            self.argv.split_first().ok_or_else(|| AttemptFailure::never("no program is configured"))?;
        let mut command = std::process::Command::new(program);
        command.args(arguments).env_clear().current_dir("/").process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.envs(PASSED_ON.iter().filter_map(|name| Some((*name, (self.env)(name)?))));
        let first = message.notices.first();
        let (form, _) = wire::form(message.form);
        let severity = first.and_then(|n| serde_json::to_value(n.severity).ok());
        let about = [
            ("CAPTURE_NOTICE_ID", message.id.as_str()),
            ("CAPTURE_NOTICE_FORM", form),
            ("CAPTURE_NOTICE_KIND", first.map_or("", |n| n.kind.as_str())),
            ("CAPTURE_NOTICE_SEVERITY", severity.as_ref().and_then(|s| s.as_str()).unwrap_or_default()),
            ("CAPTURE_NOTICE_SESSION", first.map_or("", |n| n.session.as_str())),
            ("CAPTURE_NOTICE_TITLE", &message.title),
            ("CAPTURE_NOTICE_URL", message.url().unwrap_or_default()),
        ];
        // A session's id is not display text, so it was not checked for NUL bytes.
        command.envs(about.map(|(name, value)| (name, text::line(value, text::BODY_CHARS))));
        command
            .spawn()
            .map_err(|error| AttemptFailure::never(format!("cannot start {}: {error}", text::line(program, 200))))
    }
}

impl Channel for CommandChannel {
    fn deliver(&mut self, message: &OutgoingMessage, _: Timestamp) -> Result<(), AttemptFailure> {
        let mut child = self.start(message)?;
        let ran = wait_with_input(&mut child, &wire::json(message), self.timeout);
        // Kills the remaining processes of its group. It was not waited for yet, so the group id is still its own.
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        if let Some(group) = group {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let status = child.wait().map_err(AttemptFailure::never)?;
        let (ended, stderr) = ran.map_err(AttemptFailure::never)?;
        if !ended {
            return Err(AttemptFailure::never(format!(
                "it ran longer than {} ms and was killed",
                self.timeout.as_millis()
            )));
        }
        if status.success() {
            return Ok(());
        }
        let said = text::line(&String::from_utf8_lossy(&stderr), STDERR_CHARS);
        Err(AttemptFailure::never(if said.is_empty() { status.to_string() } else { format!("{status}: {said}") }))
    }
}

/// Writes its input and reads its standard error until it ends or times out. Returns whether it ended, and the text
/// from standard error.
fn wait_with_input(child: &mut Child, input: &[u8], timeout: Duration) -> std::io::Result<(bool, Vec<u8>)> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(ErrorKind::InvalidData)?;
    let ended = crate::os::exit_descriptor(pid)?;
    let (mut stdin, mut stderr) = (child.stdin.take(), child.stderr.take());
    for fd in [stdin.as_ref().map(AsFd::as_fd), stderr.as_ref().map(AsFd::as_fd)].into_iter().flatten() {
        fcntl_setfl(fd, fcntl_getfl(fd)? | OFlags::NONBLOCK)?;
    }
    let (mut written, mut said) = (0, Vec::new());
    let deadline = Instant::now() + timeout;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok((false, said));
        }
        let gone = wait(ended.as_fd(), stdin.as_ref().map(AsFd::as_fd), stderr.as_ref().map(AsFd::as_fd), left)?;
        if let Some(pipe) = &mut stdin {
            match pipe.write(&input[written..]) {
                Ok(bytes) => written += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // The program closed its standard input.
                Err(_) => written = input.len(),
            }
            if written == input.len() {
                stdin = None;
            }
        }
        if let Some(pipe) = &mut stderr {
            let mut piece = [0; 1024];
            match pipe.read(&mut piece) {
                Ok(0) => stderr = None,
                // Excess output is read too; otherwise the program would block.
                Ok(bytes) => said.extend_from_slice(&piece[..bytes.min(STDERR_BYTES - said.len().min(STDERR_BYTES))]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => stderr = None,
            }
        }
        if gone {
            return Ok((true, said));
        }
    }
}

/// Waits for an event; returns whether the program ended.
fn wait(
    ended: BorrowedFd<'_>,
    stdin: Option<BorrowedFd<'_>>,
    stderr: Option<BorrowedFd<'_>>,
    left: Duration,
) -> std::io::Result<bool> {
    let mut fds = vec![PollFd::from_borrowed_fd(ended, PollFlags::IN)];
    fds.extend(stdin.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::OUT)));
    fds.extend(stderr.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
    let left =
        Timespec { tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX), tv_nsec: left.subsec_nanos().into() };
    match poll(&mut fds, Some(&left)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(!fds[0].revents().is_empty()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Loudness, MessageForm, plan::tests::notice};

    fn run(script: &str, timeout_ms: u64) -> Result<(), String> {
        let context = ChannelContext::new(
            Arc::new(|name| (name == "PATH").then(|| "/usr/bin:/bin".to_owned())),
            Arc::new(|| Timestamp::MIN),
        );
        let argv = ["/bin/sh", "-c", script].map(str::to_owned);
        let message = OutgoingMessage::new(
            "c",
            MessageForm::Single,
            Loudness::Loud,
            vec![notice("a", "approval")],
            Timestamp::MIN,
        );
        let mut command = CommandChannel::new(&argv, Duration::from_millis(timeout_ms), &context);
        command.deliver(&message, Timestamp::MIN).map_err(|f| f.error)
    }

    #[test]
    fn a_command_receives_the_message_on_stdin_and_a_limited_environment() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().display().to_string();
        run(&format!("cat >{path}/in; env >{path}/env"), 20_000).unwrap();
        let body: serde_json::Value = serde_json::from_slice(&std::fs::read(dir.path().join("in")).unwrap()).unwrap();
        assert_eq!(body["notices"][0]["cause"], "a");
        let env = std::fs::read_to_string(dir.path().join("env")).unwrap();
        assert!(env.contains("CAPTURE_NOTICE_KIND=approval\n"), "{env}");
        assert!(env.contains("CAPTURE_NOTICE_TITLE=api (shop): Bash asks for permission\n"), "{env}");
        assert!(!env.contains("CARGO"), "{env}");
    }

    #[test]
    fn the_error_output_of_a_command_is_truncated_and_escaped() {
        let error =
            run("printf '\\033[31mno' >&2; head -c 300000 /dev/zero | tr '\\0' x >&2; exit 3", 20_000).unwrap_err();
        assert!(error.starts_with("exit status: 3: \\u{1b}[31mnoxxx"), "{error}");
        assert!(error.chars().count() < 250, "{error}");
        assert!(run("exit 0", 20_000).is_ok());
    }

    #[test]
    fn a_command_that_times_out_is_killed_with_its_children() {
        let dir = tempfile::tempdir().unwrap();
        let pid = dir.path().join("pid");
        // On a busy machine the shell may be killed before it wrote; then it gets more time.
        let started = [300, 3_000, 20_000].into_iter().find_map(|timeout_ms| {
            let script = format!("sleep 1000 & echo $! >{}; exec sleep 1000", pid.display());
            let error = run(&script, timeout_ms).unwrap_err();
            assert!(error.contains("was killed"), "{error}");
            std::fs::read_to_string(&pid).unwrap_or_default().trim().parse::<i32>().ok()
        });
        let started = started.unwrap();
        let state = || std::fs::read_to_string(format!("/proc/{started}/stat")).ok();
        let over = (0..400).any(|_| {
            std::thread::park_timeout(Duration::from_millis(10));
            state().is_none_or(|s| s.contains(") Z "))
        });
        assert!(over, "{:?}", state());
    }

    #[test]
    fn a_missing_command_is_a_delivery_failure() {
        let context = ChannelContext::new(Arc::new(|_| None), Arc::new(|| Timestamp::MIN));
        let mut command = CommandChannel::new(&["/nonexistent/x".to_owned()], Duration::from_secs(1), &context);
        let error = command.deliver(&OutgoingMessage::test("c", Timestamp::MIN), Timestamp::MIN).unwrap_err().error;
        assert!(error.starts_with("cannot start /nonexistent/x"), "{error}");
    }
}
