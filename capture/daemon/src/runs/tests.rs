use api::runs::{Input as RunInput, InputSent};
use events::{Provider, Timestamp};
use host_protocol::frame::{Hello, HostMessage, ServerMessage};
use live_view::{HostConnection, Peer};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio_util::sync::CancellationToken;

use super::*;

const RUN: u128 = 7;
const SESSION: u128 = 9;

fn hosted(session: u128, merged: Option<u128>) -> HostedSession {
    let session = SessionId::from_bits(session);
    HostedSession { run: RunId::from_bits(RUN), session, merged: merged.map(SessionId::from_bits) }
}

/// A scripted host at the other end of a connection.
struct ScriptedHost {
    lines: BufReader<DuplexStream>,
    /// Keeps the channel to ingest open.
    _inputs: ingest::Inputs,
}

impl ScriptedHost {
    /// Creates runs with this host, which hosts [`SESSION`].
    async fn connect() -> (Runs, Self) {
        let (handle, inputs) = ingest::channel(16);
        let runs = Runs::new(handle, LiveView::new("test"));
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let connection = HostConnection(Box::new(theirs));
        let peer = Peer { uid: 0, pid: Some(42) };
        tokio::spawn(runs.clone().attend(connection, peer, CancellationToken::new()));
        let mut host = Self { lines: BufReader::new(ours), _inputs: inputs };
        let hello = Hello {
            run: RunId::from_bits(RUN),
            name: None,
            command: vec!["agent".into()],
            provider: Provider::Claude,
            version: None,
            cwd: "/".into(),
            pid: 43,
            start_ticks: 1,
            host_pid: 42,
            started_at: Timestamp::from_millisecond(1),
            terminal: true,
            size: None,
            socket: None,
            recording: None,
            answers: true,
            session: None,
            takes: Vec::new(),
            draws: true,
        };
        host.say(&HostMessage::Hello(Box::new(hello))).await;
        while runs.list().is_empty() {
            tokio::task::yield_now().await;
        }
        runs.hosts(hosted(SESSION, None));
        (runs, host)
    }

    async fn say(&mut self, message: &HostMessage) {
        let line = serde_json::to_string(message).unwrap() + "\n";
        self.lines.get_mut().write_all(line.as_bytes()).await.unwrap();
    }

    /// The next request and its number.
    async fn asked(&mut self) -> (u64, HostRequest) {
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).await.unwrap() > 0, "the server hung up");
            if let ServerMessage::Ask { id, ask } = serde_json::from_str(&line).unwrap() {
                return (id, ask);
            }
        }
    }

    async fn answer(&mut self, id: u64, answer: Result<Value, String>) {
        self.say(&HostMessage::Answer { id, answer }).await;
    }
}

/// Types a prompt while the host runs this script.
async fn outcome<F: Future<Output = ()>>(host: impl FnOnce(ScriptedHost) -> F) -> PromptOutcome {
    let (runs, scripted) = ScriptedHost::connect().await;
    let (outcome, ()) = tokio::join!(runs.prompt(SessionId::from_bits(SESSION), "go"), host(scripted));
    outcome
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_earlier_runs_are_awaited_once_and_briefly() {
    let (runs, _host) = ScriptedHost::connect().await;
    let began = tokio::time::Instant::now();
    runs.reconnected().await;
    assert_eq!(began.elapsed(), Duration::ZERO, "none are expected");
    runs.expect([RunId::from_bits(RUN)]);
    let (waited, ()) = tokio::join!(async { (runs.reconnected().await, began.elapsed()).1 }, async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        runs.hosts(hosted(SESSION, None));
    });
    assert!(waited < RECONNECT_WITHIN, "{waited:?}");
    runs.expect([RunId::from_bits(1)]);
    let began = tokio::time::Instant::now();
    runs.reconnected().await;
    runs.reconnected().await;
    assert_eq!(began.elapsed(), RECONNECT_WITHIN, "one that does not come back is not waited for again");
}

#[tokio::test(start_paused = true)]
async fn a_dialog_the_host_could_not_answer_is_refused_with_advice() {
    let (runs, mut host) = ScriptedHost::connect().await;
    let (refused, ()) = tokio::join!(runs.answer(RunId::from_bits(RUN), "m".into(), DialogAnswer::Deny), async move {
        let (id, _) = host.asked().await;
        host.answer(id, Err("its screen keeps changing (no key was pressed)".into())).await;
    });
    let run = RunId::from_bits(RUN);
    let wanted = format!(
        "not answered: its screen keeps changing (no key was pressed); try again, or answer in the terminal (`capture \
         attach {run}`)"
    );
    assert_eq!(refused, Err(Refusal::Conflict(wanted)));
}

fn typed() -> Value {
    json!({ "outcome": "typed" })
}

fn gate(gate: &str) -> Value {
    json!({ "gate": gate, "shows": "\"Trust this folder?\"" })
}

#[tokio::test(start_paused = true)]
async fn a_prompt_is_typed_and_submitted_with_one_request() {
    let outcome = outcome(|mut host| async move {
        let (id, ask) = host.asked().await;
        assert_eq!(ask, HostRequest::Prompt { text: "go".into(), submit: true });
        host.answer(id, Ok(typed())).await;
        assert!(timeout(Duration::from_secs(60), host.asked()).await.is_err(), "nothing more is asked");
    });
    assert_eq!(outcome.await, PromptOutcome::Typed);
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_may_have_been_typed_is_unknown_and_not_refused() {
    let refused = outcome(|mut host| async move {
        let (id, _) = host.asked().await;
        host.answer(id, Err("it contains control characters".into())).await;
    });
    assert_eq!(refused.await, PromptOutcome::Refused("it contains control characters".into()));
    for closed in ["choice", "busy"] {
        let refused = outcome(|mut host| async move {
            let (id, _) = host.asked().await;
            host.answer(id, Ok(json!({ "outcome": "refused", "gate": gate(closed) }))).await;
        });
        let refused = refused.await;
        assert!(matches!(&refused, PromptOutcome::Refused(why) if why.contains("Trust this folder?")), "{refused:?}");
    }
    // A paused host, or one that answers late: it may have typed.
    let late = outcome(|mut host| async move {
        let (id, _) = host.asked().await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        host.answer(id, Ok(typed())).await;
    });
    assert!(matches!(late.await, PromptOutcome::Unknown(why) if why.contains("may have been typed")));
    // A host that disconnects after the request.
    let gone = outcome(|mut host| async move { drop(host.asked().await) });
    assert!(matches!(gone.await, PromptOutcome::Unknown(_)));
    // A host that typed and then found something else on the screen.
    let changed = outcome(|mut host| async move {
        let (id, _) = host.asked().await;
        host.answer(id, Ok(json!({ "outcome": "not_submitted", "why": "the screen changed" }))).await;
    });
    assert!(matches!(changed.await, PromptOutcome::Unknown(why) if why.contains("not submitted: the screen changed")));
}

/// Sends a text that waits this long for a prompt, while the host runs this script.
async fn sent<F: Future<Output = ()>>(
    timeout_ms: u64,
    host: impl FnOnce(ScriptedHost) -> F,
) -> Result<InputSent, Refusal> {
    let (runs, scripted) = ScriptedHost::connect().await;
    let target = RunTarget::Run(RunId::from_bits(RUN).to_string());
    let input = RunInput { text: Some("go".into()), submit: true, timeout_ms: Some(timeout_ms), ..RunInput::default() };
    tokio::join!(runs.send_input(&target, input), host(scripted)).0
}

#[tokio::test(start_paused = true)]
async fn input_waits_until_the_prompt_is_open() {
    let sent = sent(30_000, |mut host| async move {
        for looks in ["busy", "busy", "open"] {
            let (id, ask) = host.asked().await;
            assert_eq!(ask, HostRequest::Gate);
            host.answer(id, Ok(gate(looks))).await;
        }
        let (id, ask) = host.asked().await;
        assert_eq!(ask, HostRequest::Prompt { text: "go".into(), submit: true });
        // The screen changed between the two requests.
        host.answer(id, Ok(json!({ "outcome": "refused", "gate": gate("busy") }))).await;
        let (id, _) = host.asked().await;
        host.answer(id, Ok(gate("open"))).await;
        let (id, _) = host.asked().await;
        host.answer(id, Ok(typed())).await;
    });
    assert!(sent.await.is_ok_and(|sent| sent.sent && !sent.forced));
}

#[tokio::test(start_paused = true)]
async fn input_is_refused_if_the_agent_is_not_at_its_prompt() {
    let busy = sent(5_000, |mut host| async move {
        let until = tokio::time::Instant::now() + Duration::from_secs(6);
        while let Ok((id, ask)) = tokio::time::timeout_at(until, host.asked()).await {
            assert_eq!(ask, HostRequest::Gate);
            host.answer(id, Ok(gate("busy"))).await;
        }
    });
    let refusal = busy.await.unwrap_err();
    assert!(matches!(&refusal, Refusal::TimedOut(why) if why.contains("5 s") && why.contains("Trust")), "{refusal:?}");
    let choice = sent(5_000, |mut host| async move {
        let (id, _) = host.asked().await;
        host.answer(id, Ok(gate("choice"))).await;
        assert!(timeout(Duration::from_secs(60), host.asked()).await.is_err(), "nothing is typed");
    });
    let refusal = choice.await.unwrap_err();
    assert!(
        matches!(&refusal, Refusal::Conflict(why) if why.contains("Trust") && why.contains("--force")),
        "{refusal:?}"
    );
    let unsubmitted = sent(5_000, |mut host| async move {
        let (id, _) = host.asked().await;
        host.answer(id, Ok(gate("open"))).await;
        let (id, _) = host.asked().await;
        host.answer(id, Ok(json!({ "outcome": "not_submitted", "why": "the screen changed" }))).await;
    });
    let refusal = unsubmitted.await.unwrap_err();
    assert!(
        matches!(&refusal, Refusal::Conflict(why) if why.contains("not submitted: the screen changed")),
        "{refusal:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn abandoned_input_is_not_typed_by_the_host() {
    let (runs, mut host) = ScriptedHost::connect().await;
    let target = RunTarget::Run(RunId::from_bits(RUN).to_string());
    let text = |text: &str, force| RunInput { text: Some(text.into()), force, ..RunInput::default() };
    // Given up before the run is at its prompt.
    let dropped = runs.send_input(&target, text("given up", false));
    let (_, ()) = tokio::join!(timeout(Duration::from_secs(1), dropped), async {
        while let Ok((id, ask)) = timeout(Duration::from_secs(2), host.asked()).await {
            assert_eq!(ask, HostRequest::Gate);
            host.answer(id, Ok(gate("busy"))).await;
        }
    });
    let (sent, ()) = tokio::join!(runs.send_input(&target, text("wanted", true)), async {
        let (id, ask) = host.asked().await;
        assert!(matches!(&ask, HostRequest::Type { text, .. } if text == "wanted"), "{ask:?}");
        host.answer(id, Ok(Value::Null)).await;
    });
    assert!(sent.unwrap().forced);
}

#[tokio::test(start_paused = true)]
async fn characters_from_a_view_are_typed_unless_a_dialog_is_open() {
    for (looks, force, is_typed) in
        [("open", false, true), ("busy", false, true), ("choice", false, false), ("choice", true, true)]
    {
        let (runs, mut host) = ScriptedHost::connect().await;
        let target = RunTarget::Run(RunId::from_bits(RUN).to_string());
        let (done, ()) = tokio::join!(runs.type_characters(&target, "y".into(), force), async {
            while let Ok((id, ask)) = timeout(Duration::from_secs(1), host.asked()).await {
                let answer = if ask == HostRequest::Gate { gate(looks) } else { Value::Null };
                assert!(is_typed || ask == HostRequest::Gate, "{looks}: {ask:?}");
                host.answer(id, Ok(answer)).await;
            }
        });
        assert_eq!(done.is_ok(), is_typed, "{looks}");
    }
}

#[tokio::test]
async fn a_run_is_found_by_both_session_ids_during_a_merge() {
    let (runs, _host) = ScriptedHost::connect().await;
    let run = RunId::from_bits(RUN);
    let found = |session: u128| runs.run_of(SessionId::from_bits(session));
    let shown = || runs.get(&RunTarget::Run(run.to_string())).unwrap().session_id;
    // Before the commit clients must not look up the new session in the store.
    runs.will_host(run, SessionId::from_bits(10));
    assert_eq!((found(SESSION), found(10), shown()), (Some(run), Some(run), Some(SessionId::from_bits(SESSION))));
    // A client that looked shortly before still has the old id.
    runs.hosts(hosted(10, Some(SESSION)));
    assert_eq!((found(SESSION), found(10), shown()), (Some(run), Some(run), Some(SessionId::from_bits(10))));
    // A session that the agent left no longer belongs to the run.
    runs.hosts(hosted(11, None));
    assert_eq!((found(SESSION), found(10), found(11)), (None, None, Some(run)));
}
