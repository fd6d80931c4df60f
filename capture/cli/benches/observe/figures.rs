//! Medians, percentiles, and the results of goals.

use std::time::Duration;

/// The verdicts of a run.
#[derive(Default)]
pub(crate) struct Report {
    rows: Vec<String>,
}

/// A goal and its result.
pub(crate) struct Goal<'a> {
    pub(crate) name: &'a str,
    /// A description of the measurement.
    pub(crate) what: &'a str,
    pub(crate) limit: String,
    pub(crate) figure: String,
    /// The value compared with `must` and `stretch`, and its unit.
    pub(crate) value: f64,
    pub(crate) unit: &'a str,
    pub(crate) must: Option<f64>,
    pub(crate) stretch: Option<f64>,
    pub(crate) better: Better,
}

/// Which way is better.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Better {
    More,
    Less,
}

impl Report {
    /// Prints a goal and adds it to the table.
    pub(crate) fn goal(&mut self, goal: Goal<'_>) {
        let Goal { name, what, limit, figure, value, unit, must, stretch, better } = goal;
        let judge = |bound: Option<f64>| match bound {
            None => "-".to_owned(),
            Some(bound) => {
                let met = if better == Better::More { value >= bound } else { value <= bound };
                format!("{bound}{unit} {}", if met { "met" } else { "NOT met" })
            }
        };
        let (must, stretch) = (judge(must), judge(stretch));
        let value = rounded(value);
        println!(
            "{name} {what}: limit {limit}; {figure}; {value}{unit} (must {must}, stretch {stretch}); load {}",
            load()
        );
        self.rows.push(format!(
            "| {name} | {what} | {limit} | {figure} | {value}{unit} | {must} | {stretch} | {} |",
            load()
        ));
    }

    /// Prints all goals of the run as a table.
    pub(crate) fn table(&self) {
        println!(
            "\n| goal | what | limit | figure | value | must | stretch | load |\n|---|---|---|---|---|---|---|---|"
        );
        self.rows.iter().for_each(|row| println!("{row}"));
    }
}

/// The machine's load average over the last minute.
pub(crate) fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("?").to_owned()
}

pub(crate) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

pub(crate) fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// Sorted latencies.
pub(crate) struct Latencies(Vec<Duration>);

impl Latencies {
    pub(crate) fn new(mut all: Vec<Duration>) -> Self {
        all.sort_unstable();
        Self(all)
    }

    /// The latency that this fraction of them does not exceed, milliseconds.
    pub(crate) fn at(&self, part: f64) -> f64 {
        let index = (self.0.len() as f64 * part).ceil() as usize;
        self.0.get(index.saturating_sub(1)).map_or(f64::NAN, |time| ms(*time))
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }
}

impl std::fmt::Display for Latencies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "p50 {} ms, p99 {} ms, worst {} ms",
            rounded(self.at(0.5)),
            rounded(self.at(0.99)),
            rounded(self.at(1.0))
        )
    }
}

/// Rounds to three significant digits.
pub(crate) fn rounded(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}
