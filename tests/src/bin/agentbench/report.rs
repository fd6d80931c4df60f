//! The measured figures as a table with limits and the load of the machine.

use std::fmt::Write as _;

/// A figure with its limits.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// The acceptance row, such as `A1`.
    id: &'static str,
    what: String,
    value: String,
    must: Option<Limit>,
    stretch: Option<Limit>,
    load: String,
}

/// A limit, and whether it is met.
#[derive(Debug, Clone)]
struct Limit {
    text: String,
    is_met: bool,
}

impl Row {
    /// A figure without limits.
    pub(crate) fn new(id: &'static str, what: impl Into<String>, value: impl Into<String>) -> Self {
        Self { id, what: what.into(), value: value.into(), must: None, stretch: None, load: load() }
    }

    /// With a mandatory limit.
    pub(crate) fn must(self, text: impl Into<String>, is_met: bool) -> Self {
        Self { must: Some(Limit { text: text.into(), is_met }), ..self }
    }

    /// With a stretch goal.
    pub(crate) fn stretch(self, text: impl Into<String>, is_met: bool) -> Self {
        Self { stretch: Some(Limit { text: text.into(), is_met }), ..self }
    }

    fn is_missed(&self) -> bool {
        self.must.as_ref().is_some_and(|limit| !limit.is_met)
    }
}

/// All measured figures.
#[derive(Debug, Default)]
pub(crate) struct Report {
    rows: Vec<Row>,
}

impl Report {
    pub(crate) fn add(&mut self, rows: impl IntoIterator<Item = Row>) {
        self.rows.extend(rows);
    }

    /// Whether a mandatory limit is missed.
    pub(crate) fn is_missed(&self) -> bool {
        self.rows.iter().any(Row::is_missed)
    }

    /// The table in Markdown.
    pub(crate) fn table(&self) -> String {
        let mut table = String::from("| row | what | value | must | stretch | load |\n|---|---|---|---|---|---|\n");
        let told = |limit: &Option<Limit>| match limit {
            None => "–".to_owned(),
            Some(Limit { text, is_met: true }) => format!("{text}: met"),
            Some(Limit { text, is_met: false }) => format!("{text}: **missed**"),
        };
        for row in &self.rows {
            let (must, stretch) = (told(&row.must), told(&row.stretch));
            let _ =
                writeln!(table, "| {} | {} | {} | {must} | {stretch} | {} |", row.id, row.what, row.value, row.load);
        }
        table
    }
}

/// The load average of the last minute.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}

/// A description of the machine, for the head of a table.
pub(crate) fn machine() -> String {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
    };
    let (processors, memory) = (read("/proc/cpuinfo"), read("/proc/meminfo"));
    let gib = field(&memory, "MemTotal").split(' ').next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) >> 20;
    let cores = processors.lines().filter(|line| line.starts_with("processor")).count();
    let kernel = read("/proc/sys/kernel/osrelease");
    format!("{}, {cores} CPUs, {gib} GiB, Linux {}", field(&processors, "model name"), kernel.trim())
}

/// The value at this share (0 to 1) of the sorted values; 0 if there are none.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a position in a list"
)]
pub(crate) fn at_share(values: &[f64], share: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let at = ((values.len() as f64 * share).ceil() as usize).clamp(1, values.len().max(1)) - 1;
    values.get(at).copied().unwrap_or_default()
}

/// The median.
pub(crate) fn median(values: &[f64]) -> f64 {
    at_share(values, 0.5)
}

/// A duration in milliseconds.
pub(crate) fn ms(time: std::time::Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
