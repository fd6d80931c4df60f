//! Events of every kind are read back exactly as they were stored.

use events::{Check, CheckClass, CheckVerdict, ClaimCheck, ClaimSubject, ClaimVerdict, Receipt, TestCounts};

use super::*;

/// A receipt with all fields set.
fn receipt() -> Receipt {
    let check = Check {
        class: CheckClass::Tests,
        command: "téxt".into(),
        verdict: CheckVerdict::Failed,
        exit_code: Some(-1),
        counts: Some(TestCounts { passed: 1, failed: 2, skipped: 3 }),
        event: EventId::from_bits(7),
        tries: 4,
        failures: 5,
        edits_after: 6,
        files_after: vec!["a".into()],
        opaque_after: true,
        other_passed: true,
    };
    let claim = ClaimCheck {
        about: ClaimSubject::Tests,
        said: "téxt".into(),
        verdict: ClaimVerdict::Stale,
        why: "téxt".into(),
        event: Some(EventId::from_bits(8)),
    };
    Receipt {
        checks: vec![check],
        failed_edits: vec!["b".into()],
        background: 8,
        todo_left: Some(9),
        edits: 10,
        opaque: true,
        unlisted: true,
        publishes: true,
        claims: vec![claim],
    }
}

/// Every kind, with all fields set.
fn payloads() -> Vec<Payload> {
    let text = || Some("téxt \u{0} 🚀".to_owned());
    vec![
        SessionStarted {
            how: StartKind::Subagent,
            cwd: text(),
            git_branch: text(),
            model: text(),
            cli_version: text(),
            parent_provider_session_id: text(),
            parent_session_id: Some(session_id("p")),
            agent_type: text(),
            headless: Some(true),
        }
        .into(),
        SessionExited { reason: Some(Reason::Killed), code: Some(-9) }.into(),
        TurnStarted { trigger: TurnTrigger::Wakeup, number: 7 }.into(),
        TurnCompleted { outcome: TurnOutcome::Denied, number: 7, duration_ms: u64::MAX, receipt: receipt() }.into(),
        UserPrompt { origin: PromptOrigin::Steering, stated: true, attachments: 2, provider_turn_id: text() }.into(),
        AssistantDelta { message_id: text(), block: Block::Thinking, stop: Some(Stop::EndTurn), blocks: 3 }.into(),
        AssistantMessage {
            message_id: text(),
            model: text(),
            stop: Some(Stop::ToolUse),
            blocks: 2,
            tool_calls: 1,
            thinking: text(),
        }
        .into(),
        ToolCall {
            call_id: "c".into(),
            name: "Bash".into(),
            tool: ToolKind::Execute,
            title: text(),
            files: vec!["a.rs".into(), "b.rs".into()],
            may_ask: true,
            background: true,
        }
        .into(),
        ToolResult {
            call_id: "c".into(),
            outcome: ToolOutcome::Blocked,
            exit_code: Some(2),
            duration_ms: Some(9),
            detail: true,
        }
        .into(),
        ApprovalRequested {
            approval_id: "a".into(),
            about: Some(ApprovalKind::Edit),
            call_id: text(),
            tool: text(),
            command: text(),
            paths: vec!["p".into()],
            url: text(),
            input: text(),
            cut: true,
            masked: true,
            excerpt: None,
            cwd: text(),
            dialog: Some(Box::default()),
            delivery: Some(DeliveryId::from_bits(7)),
            digest: text(),
            search_path: text(),
            key: text(),
            sandbox: text(),
        }
        .into(),
        ApprovalResolved {
            approval_id: "a".into(),
            allowed: Some(false),
            state: Some(ApprovalState::Denied),
            by: Some(DecidedBy::Person),
            via: Some(DecidedVia::Keys),
            device: text(),
            rule: text(),
            message: text(),
            rewrite: text(),
            outcome: Some(ToolOutcome::Denied),
        }
        .into(),
        StatusChanged {
            from: Some(State::Running),
            to: State::WaitingApproval,
            reason: Some(Reason::Edit),
            activity: text(),
            evidence: vec!["registry: waiting".into()],
        }
        .into(),
        ErrorReported { class: ErrorClass::Quota, code: text(), ends_turn: true, retrying: true }.into(),
        Heartbeat {}.into(),
        QuestionAsked { call_id: text(), options: vec!["a".into(), "b".into()] }.into(),
        QuestionAnswered { call_id: text() }.into(),
        UsageReported {
            message_id: text(),
            model: text(),
            input_tokens: 1,
            output_tokens: 2,
            cache_read_tokens: 3,
            cache_write_tokens: u64::MAX,
            cache_write_hour_tokens: 4,
            thinking_tokens: 5,
            cost_nano_usd: Some(6),
            quotas: vec![QuotaReported {
                name: "primary".into(),
                window_minutes: Some(300),
                used_permille: 915,
                resets_at: Some(Timestamp::from_millisecond(7)),
            }],
            account: Some(events::UsageAccount {
                scope: events::AccountScope::Call,
                began_at: Some(Timestamp::from_millisecond(7)),
                models: vec![events::AccountedModel {
                    model: "m".into(),
                    input_tokens: 1,
                    output_tokens: 2,
                    cache_read_tokens: 3,
                    cache_write_tokens: u64::MAX,
                    cache_write_hour_tokens: 4,
                    thinking_tokens: 5,
                    cost_nano_usd: Some(6),
                }],
            }),
        }
        .into(),
        ContextCompacted { trigger: Some(CompactTrigger::Auto), tokens_before: Some(9), tokens_after: Some(1) }.into(),
        SessionForked { from: "p".into(), at: text(), taken_back: Some(EventId::from_bits(7).into()), turns: Some(2) }
            .into(),
        Annotation { topic: Topic::Title, value: "t".into() }.into(),
        Signal {
            dialog: None,
            key: None,
            holds_from: None,
            claim: Claim::State { state: State::Waiting, reason: Some(Reason::Question) },
            strength: Confidence::Low,
            valid_until: Some(Timestamp::from_millisecond(7)),
            words: text(),
        }
        .into(),
        Signal::new(Claim::ProcessGone { pid: 1, clean: true }, Confidence::High, None).into(),
        Unrecognized { raw_kind: "x".into(), issue: text(), length: 5, hash: text() }.into(),
        finding().into(),
        Notification {
            message_id: "m".into(),
            channel: "c".into(),
            findings: vec!["f".into()],
            outcome: SendOutcome::Failed,
            error: text(),
            attempts: 3,
        }
        .into(),
        QueuedPrompt {
            prompt_id: PromptId::from_bits(7),
            state: QueuedState::Queued,
            by: QueuedBy::Person,
            why: text(),
        }
        .into(),
    ]
}

pub(super) fn finding() -> Finding {
    Finding {
        confidence: events::Confidence::Medium,
        id: "f1".into(),
        kind: FindingKind::Loop,
        severity: Severity::Warning,
        state: FindingState::Open,
        session_id: SessionId::from_bits(1),
        key: "k".into(),
        what: "w".into(),
        why: "y".into(),
        subject: Some("s".into()),
        approval_id: Some("a".into()),
        evidence: vec![EventId::from_bits(3)],
        first_at: Timestamp::from_millisecond(1),
        last_at: Timestamp::from_millisecond(2),
        count: 4,
        until: Some(Timestamp::from_millisecond(3)),
        acknowledged_at: Some(Timestamp::from_millisecond(4)),
        resolved_at: Some(Timestamp::from_millisecond(5)),
        resolution: Some("r".into()),
    }
}

fn any_event() -> impl Strategy<Value = Event> {
    let id = || prop_oneof![Just(None), any::<u128>().prop_map(Some)];
    let origin = prop_oneof![
        ("/[a-z]{1,3}", 1..9_u32, 0..1_u64 << 60, 0..1_u64 << 40).prop_map(|(path, generation, offset, length)| {
            Origin::File { path: Arc::from(path), generation, offset, length }
        }),
        ".{1,20}".prop_map(|id| Origin::Delivery { id: Arc::from(id) }),
        Just(Origin::Derived),
    ];
    let marks = (
        select(Confidence::ALL),
        prop_oneof![Just(None), select(Severity::ALL).prop_map(Some)],
        any::<bool>(),
        any::<bool>(),
    );
    let text = prop_oneof![Just(None), ".{0,40}".prop_map(Some)];
    (
        select(payloads()),
        select(Source::ALL),
        (any::<u128>(), id(), id()),
        prop_oneof![Just(None), "[a-z]{1,9}".prop_map(Some)],
        marks,
        text,
        origin,
        (0..1_i64 << 45, 0..1_i64 << 45),
    )
        .prop_map(
            |(
                payload,
                source,
                (id, turn, parent),
                agent,
                (confidence, severity, derived, history),
                text,
                origin,
                (created, observed),
            )| Event {
                id: EventId::from_bits(id),
                source,
                created_at: Timestamp::from_millisecond(created),
                observed_at: Timestamp::from_millisecond(observed),
                turn_id: turn.map(TurnId::from_bits),
                parent_id: parent.map(EventId::from_bits),
                agent_id: agent.map(Arc::from),
                confidence,
                severity,
                text,
                origin,
                derived,
                history,
                ..event(1, payload)
            },
        )
}

#[test]
fn every_event_kind_round_trips_through_the_store() {
    let mut store = Fresh::new();
    let mut kinds: Vec<Kind> = payloads().iter().map(Payload::kind).collect();
    kinds.dedup();
    assert_eq!(kinds, Kind::ALL, "every kind is here");
    let events: Vec<Event> =
        payloads().into_iter().enumerate().map(|(n, payload)| event(n as u64 + 1, payload)).collect();
    store.commit(|writer, row| events.iter().for_each(|event| writer.append(row, event, None).unwrap()));
    assert_eq!(store.log(), events);
    assert_eq!(store.writer.position().unwrap(), events.len() as u64);
    let store = store.reopened();
    assert_eq!(store.log(), events);
    assert_eq!(store.writer.position().unwrap(), events.len() as u64);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_event_round_trips_through_the_store(events in vec(any_event(), 1..20)) {
        let mut store = Fresh::new();
        let events: Vec<Event> = events.into_iter().enumerate().map(|(n, event)| Event { position: n as u64 * 3 + 1, sequence: n as u64 + 1, ..event }).collect();
        store.commit(|writer, row| events.iter().for_each(|event| writer.append(row, event, None).unwrap()));
        prop_assert_eq!(store.log(), events);
    }
}
