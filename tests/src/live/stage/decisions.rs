//! What a scenario does and knows of decisions: `capture approve` and `capture deny` run beside the
//! terminal, the approvals as capture lists them, its record of them, and what the agent really did.

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

/// What the agent calls as git is kept there, below the home: ms and words, one call a line.
pub(super) const GIT_CALLS: &str = "git-calls.txt";

/// How an approval ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// `state`
    pub state: &'static str,
    /// `by`, or nothing.
    pub by: &'static str,
    /// `via`, or nothing.
    pub via: &'static str,
    /// `outcome`, or nothing.
    pub outcome: &'static str,
}

impl Ends {
    fn is_end_of(&self, approval: &Value) -> bool {
        let is = |field: &str, wanted: &str| approval[field].as_str().unwrap_or_default() == wanted;
        is("state", self.state) && is("by", self.by) && is("via", self.via) && is("outcome", self.outcome)
    }
}

impl Stage<'_> {
    /// The approvals that a hook asked for, or all when there are no hooks, oldest first; and how many
    /// there are beside them.
    #[must_use]
    pub fn requests(&self) -> (Vec<Value>, usize) {
        let all = self.approvals();
        let count = all.len();
        // Without hooks a dialog is told as it is seen, and told better a little later; so is what an agent
        // without a screen asks for, whose registry is seen first.
        let seen = self.setting.hooks == Hooks::None || self.setting.owned;
        let told = |approval: &Value| match seen {
            true => approval["state"] != "withdrawn",
            false => !approval["delivery"].is_null(),
        };
        let requests: Vec<Value> = all.into_iter().filter(told).collect();
        let beside = if seen { 0 } else { count - requests.len() };
        (requests, beside)
    }

    /// The approvals, oldest first.
    #[must_use]
    pub fn approvals(&self) -> Vec<Value> {
        let all = self.server.client.json("/api/v1/approvals?limit=100");
        let mut all = all.and_then(|all| all["approvals"].as_array().cloned()).unwrap_or_default();
        all.reverse();
        all
    }

    /// Waits until one approval is pending and can be answered in this way, `hook` or `keys`.
    ///
    /// # Errors
    /// When it cannot.
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

    /// Runs capture with these words, as a person does at another terminal: its status and all it printed.
    ///
    /// # Errors
    /// When it does not start or end.
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

    /// Has a person decide: `capture VERB ID …`. When it was said, ms. That it is refused is wrong, and
    /// not the end: what the agent does shows whether it heard of it.
    ///
    /// # Errors
    /// When capture does not run.
    pub fn decides(&mut self, verb: &str, approval: &Value, more: &[&str]) -> Played<i64> {
        let id = approval["id"].as_str().unwrap_or_default();
        let at = now();
        let (status, printed) = self.capture(&[&[verb, id], more].concat())?;
        self.holds(status == Some(0), || format!("capture {verb} ends with {status:?}: {}", printed.trim()));
        Ok(at)
    }

    /// Notes how long a decision took: from the request, and from a person's word.
    pub fn took(&mut self, asked: i64, told: Option<i64>, arrived: i64) {
        self.times.asked.push(arrived - asked);
        self.times.told.extend(told.map(|told| arrived - told));
    }

    /// Says what is wrong, if it is.
    pub fn holds(&mut self, right: bool, otherwise: impl FnOnce() -> String) {
        if !right {
            self.wrong.push(otherwise());
        }
    }

    /// Waits until a file is in the project; when it was made, ms.
    ///
    /// # Errors
    /// When it is not made.
    pub fn is_made(&mut self, name: &str) -> Played<i64> {
        self.within(AGENT, |stage| stage.made(name)).ok_or_else(|| format!("no {name} is made; {}", self.picture()))
    }

    /// When a file in the project was made, ms.
    #[must_use]
    pub fn made(&self, name: &str) -> Option<i64> {
        let about = fs::metadata(self.machine.project().join(name)).ok()?;
        Some(about.mtime() * 1000 + about.mtime_nsec() / 1_000_000)
    }

    /// The calls of git since the start: when, ms, and the words.
    #[must_use]
    pub fn git_calls(&self) -> Vec<(i64, String)> {
        let text = fs::read_to_string(self.machine.home().join(GIT_CALLS)).unwrap_or_default();
        let call = |line: &str| line.split_once(' ').and_then(|(at, words)| Some((at.parse().ok()?, words.to_owned())));
        text.lines().filter_map(call).collect()
    }

    /// The result of this call of a lane, as the model got it, holds these words.
    pub fn model_was_told(&mut self, lane: &str, call: usize, words: &str) {
        let results = self.model.results(lane);
        let told = results.get(call);
        if !told.is_some_and(|told| told.contains(words)) {
            self.wrong.push(format!("of call {call} the model was not told {words:?} but {told:?}"));
        }
    }

    /// Waits until the model got the result of a call that needs no person. When a dialog stays for
    /// one all the same, it is answered, so that the others are seen too.
    ///
    /// # Errors
    /// When it is not told.
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

    /// No dialog was on the screen. Claude Code draws its own while the hook is at work.
    pub fn was_never_asked(&mut self) {
        if self.agent.provider() == Provider::Claude {
            self.blinks = true;
        } else if self.dialogs > 0 {
            self.wrong.push(format!("{} dialogs were on the screen", self.dialogs));
        }
    }

    /// Waits until none of capture's hooks runs; when that was so, ms.
    ///
    /// # Errors
    /// When one stays.
    pub fn hook_is_gone(&mut self) -> Played<i64> {
        let hooks = |stage: &Self| {
            let all = stage.user.processes().into_iter();
            all.filter(|p| p.command.contains(" --approver ") && !p.command.contains("sh -c")).collect::<Vec<_>>()
        };
        let gone = self.within(CAPTURE, |stage| hooks(stage).is_empty().then(now));
        gone.ok_or_else(|| format!("a hook waits on: {:?}", hooks(self)))
    }

    /// Waits for the outcome of each approval, oldest first, and looks through the record.
    ///
    /// # Errors
    /// When capture cannot be asked.
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

    /// What is recorded, in order: what, and whose approval.
    ///
    /// # Errors
    /// When capture does not say.
    pub fn recorded(&mut self) -> Played<Vec<String>> {
        let (_, printed) = self.capture(&["audit", "export"])?;
        let what = |line: &str| {
            let row: Value = serde_json::from_str(line).ok()?;
            row["row"]["what"].as_str().map(str::to_owned)
        };
        Ok(printed.lines().filter_map(what).collect())
    }

    /// Waits until the model was asked by the prompt that the agent was started with. What capture says of
    /// the session meanwhile is not judged: nobody sees when what is so.
    ///
    /// # Errors
    /// When it is not.
    pub fn is_driven(&mut self, lane: &str) -> Played {
        self.prompts += 1;
        self.blinks = true;
        // Gemini CLI begins one of its own before it is asked for one.
        self.expected += usize::from(self.agent.provider() == Provider::Gemini);
        self.model_did(lane, 0, AnswerProgress::Asked).map(drop)
    }

    /// Waits until the session is over.
    ///
    /// # Errors
    /// When it is not.
    pub fn is_over(&mut self) -> Played {
        let over = |stage: &mut Self| {
            let session = stage.session.as_ref()?;
            (session["status"]["state"] == "exited").then_some(())
        };
        self.within(AGENT, over).ok_or_else(|| format!("the agent does not end; {}", self.picture()))
    }

    /// Waits for the approval that a hook holds, where no dialog is; what is true follows from it.
    ///
    /// # Errors
    /// When there is none.
    pub fn is_held(&mut self, reason: Reason) -> Played<Value> {
        let approval = self.waits_for("hook")?;
        self.is_since(moment(&approval, "opened_at").unwrap_or_else(now), State::WaitingApproval, Some(reason));
        self.is_said()?;
        self.stays()?;
        Ok(approval)
    }

    /// Since when what is so is so, ms.
    #[must_use]
    pub fn last_began(&self) -> i64 {
        self.truth.last().map_or(0, |truth| truth.by)
    }

    /// When the model had said a step of a lane, ms.
    #[must_use]
    pub fn said_at(&self, lane: &str, step: usize) -> i64 {
        self.model.when(lane, step, AnswerProgress::Ended).map_or(0, Timestamp::as_millisecond)
    }

    /// Everything capture and the model say of decisions, for people.
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

/// A moment of an approval, ms.
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
