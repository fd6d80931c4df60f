//! Plays the terminal of recorded sessions through the screen model, in virtual time, and compares its claims with the
//! truth.
//!
//! Only `out` (the agent's output) and `in` (typed input) are used. Each run of a recording has a separate screen and
//! counts as exited outside its time; with several runs the most pressing state counts. The figures correspond to what
//! a user would see: how long the status agrees, which approvals are seen, how late, and which are false.

use std::{path::Path, sync::Arc};

use events::{Provider, Reason, State, Timestamp};
use host_protocol::{
    claim::{HostEvent, ScreenClaim},
    screen::{Picture, Size},
};
use terminal::screen::{Observer, ScreenRules};

use crate::recording::folder::{Folder, FolderStep, Truth, ms};

/// Milliseconds from a claim of a screen until it is shown to a user.
pub const DELIVERY_MS: i64 = 120;

/// An event of a terminal.
#[derive(Debug, Clone)]
pub enum Op {
    /// The program started.
    Spawn,
    /// The program ended.
    Exit,
    /// The program wrote this.
    Out(String),
    /// The user typed this.
    In(String),
}

/// The status from a certain time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScreenStatus {
    /// The time, ms.
    pub at: i64,
    /// The state; `None` while there is no claim.
    pub state: Option<State>,
    /// The reason.
    pub reason: Option<Reason>,
}

impl ScreenStatus {
    /// The status in a line of the truth.
    #[must_use]
    pub fn of(truth: &Truth) -> Self {
        Self { at: ms(truth.at), state: Some(truth.state), reason: truth.reason }
    }
}

/// A recorded terminal.
#[derive(Debug, Clone)]
pub struct Terminal {
    /// `provider/scenario`.
    pub name: String,
    /// The agent.
    pub provider: Provider,
    /// Rows and columns.
    pub size: Size,
    /// The time, ms, the run and the event.
    pub ops: Vec<(i64, usize, Op)>,
    /// The true statuses.
    pub truth: Vec<ScreenStatus>,
}

impl Terminal {
    /// Reads the recording in a folder.
    #[must_use]
    pub fn load(dir: &Path) -> Self {
        let folder = Folder::read(dir).unwrap_or_else(|words| panic!("{words}"));
        let ops = folder.timeline.iter().filter_map(|line| {
            let (run, op) = match &line.what {
                FolderStep::Spawn { run } => (*run, Op::Spawn),
                FolderStep::Exit { run, .. } => (*run, Op::Exit),
                FolderStep::Out { run, data } => (*run, Op::Out(data.clone())),
                FolderStep::In { run, data } => (*run, Op::In(data.clone())),
                FolderStep::Append { .. }
                | FolderStep::Write { .. }
                | FolderStep::Remove { .. }
                | FolderStep::Hook { .. }
                | FolderStep::Otlp { .. }
                | FolderStep::Other => return None,
            };
            Some((ms(line.at), run, op))
        });
        Self {
            name: folder.name(),
            provider: folder.meta.provider,
            size: Size { rows: folder.meta.rows, columns: folder.meta.columns },
            ops: ops.collect(),
            truth: folder.truth.iter().map(ScreenStatus::of).collect(),
        }
    }

    /// Every recording below `dir/<provider>/`.
    #[must_use]
    pub fn load_all(dir: &Path) -> Vec<Self> {
        let all = Folder::all(dir).unwrap_or_else(|words| panic!("{words}"));
        all.iter().map(|recording| Self::load(recording)).collect()
    }
}

/// The results of playing a terminal.
#[derive(Debug, Clone, Default)]
pub struct PlayedTerminal {
    /// The shown statuses and their times.
    pub shown: Vec<ScreenStatus>,
    /// All reported events, in order: the time, ms, the run and the event.
    pub told: Vec<(i64, usize, HostEvent)>,
    /// The screen from which each claim was derived, with the version known at that time.
    pub pictures: Vec<(Picture, Option<String>)>,
    /// Claims that differ from the explained one at that time: ms, text.
    pub unexplained: Vec<(i64, String)>,
}

impl PlayedTerminal {
    /// Only the claims.
    pub fn claims(&self) -> impl Iterator<Item = (i64, &ScreenClaim)> {
        self.told.iter().filter_map(|(at, _, told)| match told {
            HostEvent::Claim(claim) => Some((*at, claim)),
            HostEvent::Withdrawn
            | HostEvent::Notification { .. }
            | HostEvent::Bell
            | HostEvent::Prompt { .. }
            | HostEvent::Text { .. }
            | HostEvent::Alive
            | HostEvent::Answered { .. }
            | HostEvent::Exited { .. }
            | HostEvent::Gap { .. }
            | HostEvent::ModeGranted { .. }
            | HostEvent::CallDecided(_)
            | HostEvent::ReadsAllowed { .. }
            | HostEvent::Unknown => None,
        })
    }
}

struct Run {
    observer: Observer,
    said: Option<ScreenStatus>,
}

/// Plays a terminal.
#[must_use]
pub fn play(terminal: &Terminal, rules: &Arc<ScreenRules>) -> PlayedTerminal {
    play_as(terminal, rules, &|bytes| vec![bytes.to_vec()])
}

/// Plays a terminal whose output is changed or split by `way`.
#[must_use]
pub fn play_as(terminal: &Terminal, rules: &Arc<ScreenRules>, way: &dyn Fn(&[u8]) -> Vec<Vec<u8>>) -> PlayedTerminal {
    let mut played = PlayedTerminal::default();
    let mut runs: Vec<Option<Run>> = Vec::new();
    for (at, run, op) in &terminal.ops {
        let now = Timestamp::from_millisecond(*at);
        pass_time(&mut runs, *at, &mut played);
        if runs.len() <= *run {
            runs.resize_with(run + 1, || None);
        }
        match (op, &mut runs[*run]) {
            (Op::Spawn, slot) => {
                let observer = Observer::new(terminal.size, terminal.provider, Arc::clone(rules), now);
                *slot = Some(Run { observer, said: None });
            }
            (Op::Exit, Some(r)) => r.said = Some(ScreenStatus { at: *at, state: Some(State::Exited), reason: None }),
            (Op::Out(data), Some(r)) => {
                for piece in way(data.as_bytes()) {
                    r.observer.output(&piece, now);
                }
            }
            (Op::In(data), Some(r)) => r.observer.input(data.as_bytes(), now),
            (Op::Exit | Op::Out(_) | Op::In(_), None) => {}
        }
        take(&mut runs, *at, &mut played);
    }
    let end = terminal.truth.last().map_or(0, |t| t.at) + 2000;
    pass_time(&mut runs, end, &mut played);
    played
}

/// Processes the deadlines of every run up to `until`.
fn pass_time(runs: &mut [Option<Run>], until: i64, played: &mut PlayedTerminal) {
    loop {
        let next = runs.iter().flatten().filter(|r| r.said.is_none_or(|s| s.state != Some(State::Exited)));
        let Some(due) = next.filter_map(|r| r.observer.next_deadline()).min().map(Timestamp::as_millisecond) else {
            return;
        };
        if due > until {
            return;
        }
        let now = Timestamp::from_millisecond(due);
        runs.iter_mut().flatten().for_each(|r| r.observer.advance(now));
        take(runs, due, played);
    }
}

fn take(runs: &mut [Option<Run>], at: i64, played: &mut PlayedTerminal) {
    for (run, slot) in runs.iter_mut().enumerate() {
        let Some(r) = slot else { continue };
        for (when, told) in r.observer.take_events() {
            let exited = r.said.is_some_and(|s| s.state == Some(State::Exited));
            match &told {
                HostEvent::Claim(claim) if !exited => {
                    let explained = r.observer.explain();
                    if explained.claim.as_ref() != Some(claim) {
                        played.unexplained.push((at, claim.words.clone()));
                    }
                    played.pictures.push((r.observer.picture(), r.observer.version().map(str::to_owned)));
                    r.said = Some(ScreenStatus {
                        at: when.as_millisecond(),
                        state: Some(claim.state),
                        reason: claim.reason,
                    });
                }
                HostEvent::Withdrawn if !exited => r.said = None,
                HostEvent::Claim(_)
                | HostEvent::Withdrawn
                | HostEvent::Notification { .. }
                | HostEvent::Bell
                | HostEvent::Prompt { .. }
                | HostEvent::Text { .. }
                | HostEvent::Alive
                | HostEvent::Answered { .. }
                | HostEvent::Exited { .. }
                | HostEvent::Gap { .. }
                | HostEvent::ModeGranted { .. }
                | HostEvent::CallDecided(_)
                | HostEvent::ReadsAllowed { .. }
                | HostEvent::Unknown => {}
            }
            played.told.push((when.as_millisecond(), run, told));
        }
    }
    let most = runs.iter().flatten().filter_map(|r| r.said).min_by_key(|s| rank(s.state));
    let shown = ScreenStatus { at, state: most.and_then(|s| s.state), reason: most.and_then(|s| s.reason) };
    if played.shown.last().is_none_or(|l| (l.state, l.reason) != (shown.state, shown.reason)) {
        played.shown.push(shown);
    }
}

/// The priority of a state; of several sessions the lowest value counts.
#[must_use]
pub fn rank(state: Option<State>) -> u8 {
    match state {
        Some(State::WaitingApproval) => 0,
        Some(State::Running) => 1,
        Some(State::Waiting) => 2,
        Some(State::Idle) => 3,
        Some(State::Unknown) => 4,
        Some(State::Exited) => 5,
        None => 6,
    }
}

/// The result of a comparison; times in ms.
#[derive(Debug, Clone, Default)]
pub struct Score {
    /// The time that counts (all but 1 s after each true change), and the part of it in agreement.
    pub time: (i64, i64),
    /// The same without leaving anything out.
    pub raw: (i64, i64),
    /// The number of approvals of 1 s or more, and of those that were seen for half their length.
    pub approvals: (usize, usize),
    /// The time from the dialog to its claim, for each approval seen; negative if it was claimed early.
    pub delays: Vec<i64>,
    /// The number of false approvals.
    pub false_approvals: usize,
    /// How long approvals were shown outside of true ones.
    pub stuck: i64,
    /// The time in agreement in which a reason matters, and the part of it with the right reason.
    pub reason: (i64, i64),
    /// The number of changes shown beyond the true ones.
    pub flaps: usize,
}

impl Score {
    /// Adds another score.
    pub fn add(&mut self, other: &Self) {
        let pair = |a: &mut (i64, i64), b: (i64, i64)| *a = (a.0 + b.0, a.1 + b.1);
        pair(&mut self.time, other.time);
        pair(&mut self.raw, other.raw);
        pair(&mut self.reason, other.reason);
        self.approvals.0 += other.approvals.0;
        self.approvals.1 += other.approvals.1;
        self.delays.extend(&other.delays);
        self.false_approvals += other.false_approvals;
        self.stuck += other.stuck;
        self.flaps += other.flaps;
    }

    /// Agreement in percent.
    #[must_use]
    pub fn agree(&self) -> f64 {
        percent(self.time)
    }

    /// The delay that this share of the approvals does not exceed.
    #[must_use]
    pub fn delay(&self, share: f64) -> i64 {
        let mut delays = self.delays.clone();
        delays.sort_unstable();
        let at = (share * delays.len() as f64) as usize;
        delays.get(at.min(delays.len().saturating_sub(1))).copied().unwrap_or(0)
    }
}

impl std::fmt::Display for Score {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "agree {:6.2} %  raw {:6.2} %  approvals {}/{}  delay p50 {} p90 {} ms  false {}  stuck {:.1} s  reason {:5.1} %  flaps {}",
            self.agree(),
            percent(self.raw),
            self.approvals.1,
            self.approvals.0,
            self.delay(0.5),
            self.delay(0.9),
            self.false_approvals,
            self.stuck as f64 / 1000.0,
            percent(self.reason),
            self.flaps,
        )
    }
}

fn percent((of, part): (i64, i64)) -> f64 {
    if of == 0 { 100.0 } else { 100.0 * part as f64 / of as f64 }
}

/// Compares the statuses, shown `delivery_ms` after their claim, with the truth.
#[must_use]
pub fn score(terminal: &Terminal, played: &PlayedTerminal, delivery_ms: i64) -> Score {
    score_where(terminal, played, delivery_ms, &|_, _| true)
}

/// The times that are not scored: from a later start to its ready prompt.
fn unscored(terminal: &Terminal) -> Vec<(i64, i64)> {
    let end = terminal.truth.last().map_or(0, |t| t.at);
    let starts = terminal.ops.iter().filter(|(_, _, op)| matches!(op, Op::Spawn)).map(|(at, ..)| *at).skip(1);
    starts.map(|s| (s, terminal.truth.iter().map(|t| t.at).filter(|at| *at > s).min().unwrap_or(end))).collect()
}

/// The true statuses with start and end; equal neighbours are merged.
fn spans(terminal: &Terminal) -> Vec<(i64, i64, ScreenStatus)> {
    let mut spans: Vec<(i64, i64, ScreenStatus)> = Vec::new();
    for pair in terminal.truth.windows(2) {
        match spans.last_mut() {
            Some((_, to, said)) if (said.state, said.reason) == (pair[0].state, pair[0].reason) => *to = pair[1].at,
            _ => spans.push((pair[0].at, pair[1].at, pair[0])),
        }
    }
    spans
}

/// The scored parts of a time span.
fn parts(unscored: &[(i64, i64)], from: i64, to: i64) -> Vec<(i64, i64)> {
    unscored.iter().fold(vec![(from, to)], |parts, (x, y)| {
        parts.into_iter().flat_map(|(c, d)| [(c, d.min(*x)), (c.max(*y), d)]).filter(|(c, d)| d > c).collect()
    })
}

/// The time spans that count, with their true status: 1 s after each true change is left out.
#[must_use]
pub fn judged(terminal: &Terminal) -> Vec<(i64, i64, ScreenStatus)> {
    let unscored = unscored(terminal);
    let long = spans(terminal).into_iter().filter(|(from, to, _)| to - from > 1000);
    long.flat_map(|(from, to, said)| parts(&unscored, from + 1000, to).into_iter().map(move |(c, d)| (c, d, said)))
        .collect()
}

/// Like [`score`], but only the approvals (from, to) for which `asked` returns true are expected to be seen.
#[must_use]
pub fn score_where(
    terminal: &Terminal,
    played: &PlayedTerminal,
    delivery_ms: i64,
    asked: &dyn Fn(i64, i64) -> bool,
) -> Score {
    let truth = &terminal.truth;
    let (begin, end) = (truth[0].at, truth[truth.len() - 1].at);
    let unscored = unscored(terminal);
    let spans = spans(terminal);
    let shown: Vec<ScreenStatus> = played.shown.iter().map(|s| ScreenStatus { at: s.at + delivery_ms, ..*s }).collect();
    let ends = shown.iter().skip(1).map(|s| s.at).chain([end + 5000]);
    let told: Vec<(i64, i64, ScreenStatus)> = shown.iter().zip(ends).map(|(s, to)| (s.at, to, *s)).collect();
    let cut = |from: i64, to: i64| parts(&unscored, from, to);
    let length = |from: i64, to: i64| cut(from, to).iter().map(|(c, d)| d - c).sum::<i64>();
    let overlap = |from: i64, to: i64, want: &dyn Fn(&ScreenStatus) -> bool| -> i64 {
        let part =
            |c: i64, d: i64| told.iter().filter(|t| want(&t.2)).map(|t| (d.min(t.1) - c.max(t.0)).max(0)).sum::<i64>();
        cut(from, to).iter().map(|(c, d)| part(*c, *d)).sum()
    };
    let asks = |s: &ScreenStatus| s.state == Some(State::WaitingApproval);
    let mut score = Score::default();
    for (from, to, is) in &spans {
        let same = |s: &ScreenStatus| s.state == is.state;
        score.raw.0 += length(*from, *to);
        score.raw.1 += overlap(*from, *to, &same);
        if to - from <= 1000 {
            continue;
        }
        score.time.0 += length(from + 1000, *to);
        score.time.1 += overlap(from + 1000, *to, &same);
        let wanted = match (is.reason, asks(is)) {
            (Some(reason), _) => vec![reason],
            (None, true) => vec![Reason::Tool, Reason::Edit, Reason::Mcp, Reason::Fetch],
            (None, false) => continue,
        };
        score.reason.0 += overlap(from + 1000, *to, &same);
        score.reason.1 += overlap(from + 1000, *to, &|s| same(s) && s.reason.is_some_and(|r| wanted.contains(&r)));
    }
    let windows: Vec<(i64, i64)> = spans.iter().filter(|s| asks(&s.2)).map(|s| (s.0, s.1)).collect();
    for (from, to) in windows.iter().filter(|(from, to)| to - from >= 1000 && asked(*from, *to)) {
        score.approvals.0 += 1;
        score.approvals.1 += usize::from(2 * overlap(*from, *to, &asks) >= to - from);
        let began = told.iter().filter(|t| asks(&t.2) && t.1 > *from && t.0 < *to).map(|t| t.0 - from);
        score.delays.extend(began.min());
    }
    let wide: Vec<(i64, i64)> = windows.iter().map(|(from, to)| (from - 500, to + 500)).collect();
    for (from, to, _) in told.iter().filter(|t| asks(&t.2) && t.0 < end) {
        let touches = wide.iter().any(|(c, d)| from < d && to > c);
        score.false_approvals += usize::from(to - from > 300 && !touches);
        let said = (*to).min(end) - (*from).max(begin);
        let inside: i64 = wide.iter().map(|(c, d)| ((*to).min(*d).min(end) - (*from).max(*c).max(begin)).max(0)).sum();
        score.stuck += (said - inside).max(0);
    }
    let states: Vec<Option<State>> =
        shown.iter().filter(|s| begin - 500 <= s.at && s.at <= end - 1500).map(|s| s.state).collect();
    let changes =
        |states: &[Option<State>]| (0..states.len()).filter(|i| *i == 0 || states[i - 1] != states[*i]).count();
    let true_states: Vec<Option<State>> = spans.iter().map(|s| s.2.state).collect();
    score.flaps = changes(&states).saturating_sub(changes(&true_states));
    score
}

/// The output of a program without some of its signals: `title` (OSC 0 and 2), `state` (OSC 7501), `colour` (SGR),
/// `sync` (mode 2026).
#[must_use]
pub fn without(bytes: &[u8], signs: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = bytes;
    while let Some(&first) = rest.first() {
        let length = match rest {
            [0x1b, b']', ..] => match rest.iter().position(|b| *b == 0x07) {
                Some(bell) if !rest[2..bell].contains(&0x1b) => bell + 1,
                _ => rest.windows(2).position(|w| w == b"\x1b\\").map_or(rest.len(), |at| at + 2),
            },
            [0x1b, b'[', body @ ..] => {
                body.iter().position(|b| (0x40..=0x7e).contains(b)).map_or(rest.len(), |at| at + 3)
            }
            _ => 1,
        };
        let (sequence, after) = rest.split_at(length);
        let sign = match sequence {
            [0x1b, b']', b'0' | b'2', b';', ..] => "title",
            [0x1b, b']', b'7', b'5', b'0', b'1', ..] => "state",
            [0x1b, b'[', .., b'm'] => "colour",
            b"\x1b[?2026h" | b"\x1b[?2026l" => "sync",
            _ => "",
        };
        if sign.is_empty() || !signs.contains(&sign) {
            out.extend_from_slice(if length == 1 { std::slice::from_ref(&first) } else { sequence });
        }
        rest = after;
    }
    out
}
