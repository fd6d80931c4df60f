//! Decisions in a scenario: `capture approve` and `capture deny` run next to the terminal, the approvals as capture
//! lists them, the audit record, and what the agent really did.

use std::{
    fs,
    io::Read,
    os::unix::fs::MetadataExt,
    process::{Child, Stdio},
};

use events::{Provider, Reason, State, Timestamp};
use serde_json::Value;

use super::{AGENT, CAPTURE, Hooks, Key, Played, STAY, Stage, now, word};
use crate::models::AnswerProgress;

/// The agent's calls of git are recorded in this file below the home: ms and arguments, one call per line.
pub(super) const GIT_CALLS: &str = "git-calls.txt";

/// How an approval ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// `state`
    pub state: &'static str,
    /// `by`; empty if absent.
    pub by: &'static str,
    /// `via`; empty if absent.
    pub via: &'static str,
    /// `outcome`; empty if absent.
    pub outcome: &'static str,
}

impl Ends {
    fn is_end_of(&self, approval: &Value) -> bool {
        let is = |field: &str, wanted: &str| approval[field].as_str().unwrap_or_default() == wanted;
        is("state", self.state) && is("by", self.by) && is("via", self.via) && is("outcome", self.outcome)
    }
}

impl Stage<'_> {
    /// The approvals that a hook requested, or all without hooks, oldest first; and the number of the others.
    #[must_use]
    pub fn requests(&self) -> (Vec<Value>, usize) {
        let all = self.approvals();
        let count = all.len();
        // Without hooks an approval is reported when its dialog is first seen, and replaced by a better one a little
        // later; likewise for an agent without a screen, whose registry is read first.
        let seen = self.setting.hooks == Hooks::None || self.setting.owned;
        let told = |approval: &Value| match seen {
            true => approval["state"] != "withdrawn",
            false => !approval["delivery"].is_null(),
        };
        let requests: Vec<Value> = all.into_iter().filter(told).collect();
        let beside = if seen { 0 } else { count - requests.len() };
        (requests, beside)
    }

    /// All approvals, oldest first.
    #[must_use]
    pub fn approvals(&self) -> Vec<Value> {
        let all = self.server.client.json("/api/v1/approvals?limit=100");
        let mut all = all.and_then(|all| all["approvals"].as_array().cloned()).unwrap_or_default();
        all.reverse();
        all
    }

    /// Waits until an approval is pending and can be answered this way, `hook` or `keys`.
    ///
    /// # Errors
    /// If none can.
    pub fn waits_for(&mut self, way: &str) -> Played<Value> {
        let pending = |stage: &mut Self| {
            let mut pending = stage.approvals();
            pending.retain(|approval| approval["state"] == "pending");
            (pending.len() == 1 && pending[0]["answer"] == way).then(|| pending.remove(0))
        };
        self.within(CAPTURE, pending).ok_or_else(|| {
            let why = self.approvals().last().and_then(|a| Some(format!("capture {} says: ", a["id"].as_str()?)));
            format!(
                "no approval can be answered by {way}: {}{:?}; {}",
                why.unwrap_or_default(),
                self.approvals(),
                self.picture()
            )
        })
    }

    /// Runs capture with these arguments, like a user at another terminal; returns its status and output.
    ///
    /// # Errors
    /// If it does not start or end.
    pub fn capture(&mut self, words: &[&str]) -> Played<(Option<i32>, String)> {
        let mut command = self.machine.command(words);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| format!("capture {words:?}: {error}"))?;
        let ended = self.within(AGENT, |_| child.try_wait().ok().flatten());
        if ended.is_none() {
            child.kill().ok();
        }
        let printed = printed(&mut child);
        let status = ended.ok_or_else(|| format!("capture {words:?} does not end: {printed}"))?;
        Ok((status.code(), printed))
    }

    /// Decides as the user: `capture VERB ID …`; returns the time, ms. A refusal is recorded as wrong but does not end
    /// the scenario: the agent's actions show whether the decision arrived.
    ///
    /// # Errors
    /// If capture does not run.
    pub fn decides(&mut self, verb: &str, approval: &Value, more: &[&str]) -> Played<i64> {
        let id = approval["id"].as_str().unwrap_or_default();
        let at = now();
        let (status, printed) = self.capture(&[&[verb, id], more].concat())?;
        self.holds(status == Some(0), || format!("capture {verb} ends with {status:?}: {}", printed.trim()));
        Ok(at)
    }

    /// Records the duration of a decision: from the request, and from the user's decision.
    pub fn took(&mut self, asked: i64, told: Option<i64>, arrived: i64) {
        self.times.asked.push(arrived - asked);
        self.times.told.extend(told.map(|told| arrived - told));
    }

    /// Records a deviation if the condition is false.
    pub fn holds(&mut self, right: bool, otherwise: impl FnOnce() -> String) {
        if !right {
            self.wrong.push(otherwise());
        }
    }

    /// Waits until a file exists in the project; returns when it was created, ms.
    ///
    /// # Errors
    /// If it is not created.
    pub fn is_made(&mut self, name: &str) -> Played<i64> {
        self.within(AGENT, |stage| stage.made(name)).ok_or_else(|| format!("no {name} is made; {}", self.picture()))
    }

    /// When a file in the project was created, ms.
    #[must_use]
    pub fn made(&self, name: &str) -> Option<i64> {
        let about = fs::metadata(self.machine.project().join(name)).ok()?;
        Some(about.mtime() * 1000 + about.mtime_nsec() / 1_000_000)
    }

    /// The calls of git since the start: the time, ms, and the arguments.
    #[must_use]
    pub fn git_calls(&self) -> Vec<(i64, String)> {
        let text = fs::read_to_string(self.machine.home().join(GIT_CALLS)).unwrap_or_default();
        let call = |line: &str| line.split_once(' ').and_then(|(at, words)| Some((at.parse().ok()?, words.to_owned())));
        text.lines().filter_map(call).collect()
    }

    /// Checks that the result of this call in a lane, as the model received it, contains these words.
    pub fn model_was_told(&mut self, lane: &str, call: usize, words: &str) {
        let results = self.model.results(lane);
        let told = results.get(call);
        if !told.is_some_and(|told| told.contains(words)) {
            self.wrong.push(format!("of call {call} the model was not told {words:?} but {told:?}"));
        }
    }

    /// Waits until the model receives the result of a call that needs no decision of the user. If a dialog appears
    /// nevertheless, it is answered, so that the following calls are tested too.
    ///
    /// # Errors
    /// If the model does not receive it.
    pub fn goes_on_by_itself(&mut self, lane: &str, step: usize) -> Played {
        let asked = |stage: &mut Self| stage.model.when(lane, step, AnswerProgress::Asked).map(|_| ());
        if self.within(STAY, asked).is_some() {
            return Ok(());
        }
        if self.has_dialog {
            self.wrong.push(format!("a dialog stays before step {step}"));
            self.user.types(self.agent.key(Key::Approve));
        }
        self.model_did(lane, step, AnswerProgress::Asked).map(drop)
    }

    /// Checks that no dialog was on the screen. Claude Code draws its own while the hook runs.
    pub fn was_never_asked(&mut self) {
        if self.agent.provider() == Provider::Claude {
            self.blinks = true;
        } else if self.dialogs > 0 {
            self.wrong.push(format!("{} dialogs were on the screen", self.dialogs));
        }
    }

    /// Waits until none of capture's hooks is running; returns the time, ms.
    ///
    /// # Errors
    /// If one remains.
    pub fn hook_is_gone(&mut self) -> Played<i64> {
        let hooks = |stage: &Self| {
            let all = stage.user.processes().into_iter();
            all.filter(|p| p.command.contains(" --approver ") && !p.command.contains("sh -c")).collect::<Vec<_>>()
        };
        let gone = self.within(CAPTURE, |stage| hooks(stage).is_empty().then(now));
        gone.ok_or_else(|| format!("a hook waits on: {:?}", hooks(self)))
    }

    /// Waits for the outcome of each approval, oldest first, and checks the audit record.
    ///
    /// # Errors
    /// If capture cannot be queried.
    pub fn approvals_end(&mut self, wanted: &[Ends]) -> Played {
        let all_are = |(all, beside): (Vec<Value>, usize)| {
            let right = all.iter().zip(wanted).all(|(approval, ends)| ends.is_end_of(approval));
            right && all.len() == wanted.len() && beside == 0
        };
        if self.within(STAY, |stage| all_are(stage.requests()).then_some(())).is_none() {
            let (all, beside) = self.requests();
            let asked = wanted.len();
            self.holds(all.len() == asked, || format!("{} requests are told, there were {asked}", all.len()));
            let ended: Vec<_> = all.iter().zip(wanted).filter(|(approval, ends)| !ends.is_end_of(approval)).collect();
            if let Some((first, ends)) = ended.first() {
                let (count, words) = (ended.len(), words_of(first));
                self.wrong.push(format!(
                    "{count} of {asked} approvals ended otherwise, the first as {words}, and not as {ends:?}"
                ));
            }
            self.holds(beside == 0, || format!("{beside} approvals are told that nobody asked for, beside {asked}"));
        }
        let (status, printed) = self.capture(&["audit", "verify"])?;
        self.holds(status == Some(0), || format!("capture audit verify: {status:?} {printed}"));
        Ok(())
    }

    /// The rows of the audit record, in order: the event and the approval it belongs to.
    ///
    /// # Errors
    /// If capture cannot be queried.
    pub fn recorded(&mut self) -> Played<Vec<String>> {
        let (_, printed) = self.capture(&["audit", "export"])?;
        let what = |line: &str| {
            let row: Value = serde_json::from_str(line).ok()?;
            row["row"]["what"].as_str().map(str::to_owned)
        };
        Ok(printed.lines().filter_map(what).collect())
    }

    /// Waits until the model receives the prompt with which the agent was started. The status during this time is not
    /// judged, because the truth is not observable.
    ///
    /// # Errors
    /// If the model does not receive it.
    pub fn is_driven(&mut self, lane: &str) -> Played {
        self.prompts += 1;
        self.blinks = true;
        // Gemini CLI starts an additional session before the requested one.
        self.expected += usize::from(self.agent.provider() == Provider::Gemini);
        self.model_did(lane, 0, AnswerProgress::Asked).map(drop)
    }

    /// Waits until the session has ended.
    ///
    /// # Errors
    /// If it does not end.
    pub fn is_over(&mut self) -> Played {
        let over = |stage: &mut Self| {
            let session = stage.session.as_ref()?;
            (session["status"]["state"] == "exited").then_some(())
        };
        self.within(AGENT, over).ok_or_else(|| format!("the agent does not end; {}", self.picture()))
    }

    /// Waits for an approval for which a hook waits without a dialog, and sets the truth accordingly.
    ///
    /// # Errors
    /// If there is none.
    pub fn is_held(&mut self, reason: Reason) -> Played<Value> {
        let approval = self.waits_for("hook")?;
        self.is_since(moment(&approval, "opened_at").unwrap_or_else(now), State::WaitingApproval, Some(reason));
        self.is_said()?;
        self.stays()?;
        Ok(approval)
    }

    /// When the current truth began, ms.
    #[must_use]
    pub fn last_began(&self) -> i64 {
        self.truth.last().map_or(0, |truth| truth.by)
    }

    /// When the model had finished a step of a lane, ms.
    #[must_use]
    pub fn said_at(&self, lane: &str, step: usize) -> i64 {
        self.model.when(lane, step, AnswerProgress::Ended).map_or(0, Timestamp::as_millisecond)
    }

    /// Everything capture and the model report about decisions, for debugging.
    pub(super) fn decided(&self) -> String {
        let mut text = format!("dialogs on the screen: {}\napprovals:\n", self.dialogs);
        self.approvals().iter().for_each(|approval| text += &format!("  {approval}\n"));
        let lanes: std::collections::BTreeSet<String> = self.model.notes().into_iter().map(|n| n.lane).collect();
        for lane in lanes {
            self.model.results(&lane).iter().for_each(|told| text += &format!("  told in {lane:?}: {told:?}\n"));
        }
        if let Ok(shown) = self.machine.command(&["audit", "show"]).output() {
            text += &format!("recorded:\n{}", String::from_utf8_lossy(&shown.stdout));
        }
        for session in super::sessions(&self.server.client).unwrap_or_default() {
            text += &format!("session {} {}\n", session["id"], session["provider_session_id"]);
        }
        self.user.processes().iter().for_each(|p| text += &format!("process {} {}\n", p.pid, p.command));
        text += &format!("  asked {:?} told {:?}\n", self.times.asked, self.times.told);
        text
    }
}

/// A time in an approval, ms.
#[must_use]
pub fn moment(approval: &Value, field: &str) -> Option<i64> {
    word::<Timestamp>(&approval[field]).map(Timestamp::as_millisecond)
}

fn words_of(approval: &Value) -> String {
    ["state", "by", "via", "outcome", "allowed", "rule", "message"].map(|f| format!("{f}={}", approval[f])).join(" ")
}

fn printed(child: &mut Child) -> String {
    let mut text = String::new();
    if let Some(mut out) = child.stdout.take() {
        out.read_to_string(&mut text).ok();
    }
    if let Some(mut err) = child.stderr.take() {
        err.read_to_string(&mut text).ok();
    }
    text
}
