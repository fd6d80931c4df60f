//! The visible activity of a program whose screen no rules read: whether it writes, and whether programs it started are
//! running.

use events::Timestamp;

/// Time without output after which a program counts as silent, and the interval between checks of a silent program, ms.
const SILENT_MS: i64 = 30_000;

/// The activity of such a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Activity {
    Writes,
    /// The program wrote nothing for a while, but programs that it started are running.
    RunsPrograms,
    Silent,
}

impl Activity {
    const fn words(self) -> &'static str {
        match self {
            Self::Writes => "writes output",
            Self::RunsPrograms => "no output for 30 s or more; programs it started are running",
            Self::Silent => "no output for 30 s or more",
        }
    }
}

/// The activity reported last.
#[derive(Debug, Default)]
pub(super) struct ProgramActivity {
    /// The activity and when it was checked; `None` while nothing is reported.
    reported: Option<(Activity, Timestamp)>,
}

impl ProgramActivity {
    /// Stops reporting because the program is known or rules read its screen. Returns whether anything was reported.
    pub(super) fn end(&mut self) -> bool {
        self.reported.take().is_some()
    }

    /// When to check again if the program writes nothing until then.
    pub(super) fn due(&self, written_at: Timestamp) -> Option<Timestamp> {
        let (activity, looked_at) = self.reported?;
        let since = if activity == Activity::Writes { written_at } else { looked_at };
        Some(since.plus_ms(SILENT_MS))
    }

    /// Checks the program; returns its activity in words if it changed. `written_at` is the time of its last output, if
    /// any.
    pub(super) fn look(
        &mut self,
        written_at: Option<Timestamp>,
        now: Timestamp,
        has_children: impl FnOnce() -> bool,
    ) -> Option<&'static str> {
        let writes = written_at.is_some_and(|at| now.since_ms(at) < SILENT_MS);
        let before = self.reported;
        // Do not inspect processes again before the interval is over.
        if !writes
            && let Some((Activity::RunsPrograms | Activity::Silent, looked_at)) = before
            && now.since_ms(looked_at) < SILENT_MS
        {
            return None;
        }
        let activity = match writes {
            true => Activity::Writes,
            false if has_children() => Activity::RunsPrograms,
            false => Activity::Silent,
        };
        self.reported = Some((activity, now));
        (before.map(|(before, _)| before) != Some(activity)).then(|| activity.words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millisecond(1_800_000_000_000 + 1000 * seconds)
    }

    #[test]
    fn running_child_programs_are_reported_for_a_silent_program() {
        let mut activity = ProgramActivity::default();
        assert_eq!(activity.due(at(0)), None);
        assert_eq!(activity.look(Some(at(0)), at(0), || false), Some("writes output"));
        assert_eq!(activity.look(Some(at(5)), at(5), || panic!("it writes")), None);
        assert_eq!(activity.due(at(5)), Some(at(35)));
        let runs = "no output for 30 s or more; programs it started are running";
        assert_eq!(activity.look(Some(at(5)), at(35), || true), Some(runs));
        assert_eq!(activity.look(Some(at(5)), at(40), || panic!("not yet")), None);
        assert_eq!(activity.due(at(5)), Some(at(65)));
        assert_eq!(activity.look(Some(at(5)), at(65), || true), None);
        assert_eq!(activity.look(Some(at(5)), at(95), || false), Some("no output for 30 s or more"));
        assert_eq!(activity.look(Some(at(96)), at(96), || false), Some("writes output"));
        assert!(activity.end() && !activity.end());
    }

    #[test]
    fn a_program_that_never_wrote_is_silent() {
        assert_eq!(ProgramActivity::default().look(None, at(0), || false), Some("no output for 30 s or more"));
    }
}
