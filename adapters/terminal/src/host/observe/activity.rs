//! What can be seen of a program whose screen no rule reads: whether it writes, and whether programs it started run.

use events::Timestamp;

/// Time without output after which a program counts as silent, and between two looks at it then, ms.
const SILENT_MS: i64 = 30_000;

/// What such a program does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Activity {
    Writes,
    /// Nothing was written for a while, and programs that it started run.
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

/// What was reported of such a program last.
#[derive(Debug, Default)]
pub(super) struct ProgramActivity {
    /// With when it was looked at; nothing was reported while absent.
    reported: Option<(Activity, Timestamp)>,
}

impl ProgramActivity {
    /// Ends the reports: the program is known, or a rule reads its screen. Whether there were any.
    pub(super) fn end(&mut self) -> bool {
        self.reported.take().is_some()
    }

    /// When to look again, if the program writes nothing until then.
    pub(super) fn due(&self, written_at: Timestamp) -> Option<Timestamp> {
        let (activity, looked_at) = self.reported?;
        let since = if activity == Activity::Writes { written_at } else { looked_at };
        Some(since.plus_ms(SILENT_MS))
    }

    /// Looks at the program; gives what it does in words when that changed. `written_at` is when it wrote last, if it
    /// did.
    pub(super) fn look(
        &mut self,
        written_at: Option<Timestamp>,
        now: Timestamp,
        has_children: impl FnOnce() -> bool,
    ) -> Option<&'static str> {
        let writes = written_at.is_some_and(|at| now.since_ms(at) < SILENT_MS);
        let before = self.reported;
        // Processes are not looked at each time that something else happens.
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
    fn programs_that_it_started_are_activity_of_a_silent_program() {
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
