//! States of sessions and waiting times of permission requests, as OpenTelemetry metrics.

use std::collections::BTreeMap;

use events::{ApprovalState, Provider, State, Timestamp};
use opentelemetry_proto::tonic::{
    common::v1::KeyValue,
    metrics::v1::{
        AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, MetricsData, NumberDataPoint,
        ResourceMetrics, ScopeMetrics, Sum, metric::Data, number_data_point,
    },
};
use prost::Message;

use super::{SCHEMA_URL, nanos, resource, scope, text};

/// Upper bounds of the waiting times, seconds.
const BOUNDS_S: [f64; 11] = [1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3_600.0, 14_400.0];

/// Waiting times of permission requests since a time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ApprovalWaits(BTreeMap<(Provider, ApprovalState), Waits>);

#[derive(Debug, Clone, Default, PartialEq)]
struct Waits {
    counts: [u64; BOUNDS_S.len() + 1],
    sum_s: f64,
}

impl ApprovalWaits {
    /// Counts a request that was closed in this state after this time, ms.
    pub fn add(&mut self, provider: Provider, state: ApprovalState, wait_ms: i64) {
        let waits = self.0.entry((provider, state)).or_default();
        // The waiting times need not be exact to the millisecond.
        let seconds = wait_ms.max(0) as f64 / 1_000.0;
        // A value equal to a bound is counted below it.
        let bucket = BOUNDS_S.iter().position(|bound| seconds <= *bound).unwrap_or(BOUNDS_S.len());
        if let Some(count) = waits.counts.get_mut(bucket) {
            *count += 1;
        }
        waits.sum_s += seconds;
    }
}

/// The data that is sent at a time.
#[derive(Debug, Clone, Copy)]
pub struct MetricsSnapshot<'a> {
    /// The time since which waits and losses are counted.
    pub since: Timestamp,
    /// The time.
    pub at: Timestamp,
    /// Sessions by agent and state.
    pub sessions: &'a [(Provider, State, u64)],
    /// Waiting times of requests.
    pub waits: &'a ApprovalWaits,
    /// Spans that did not reach the collector, by reason.
    pub dropped: &'a [(&'static str, u64)],
    /// capture's version.
    pub version: &'a str,
}

/// A request to a collector, as protobuf (`ExportMetricsServiceRequest`, which is the same on the wire).
#[must_use]
pub fn encode_request(snapshot: MetricsSnapshot<'_>) -> Vec<u8> {
    let scope_metrics = vec![ScopeMetrics {
        scope: Some(scope(snapshot.version)),
        metrics: vec![sessions(snapshot), waits(snapshot), dropped(snapshot)],
        schema_url: SCHEMA_URL.into(),
    }];
    let resource = Some(resource(snapshot.version));
    let resource_metrics = vec![ResourceMetrics { resource, scope_metrics, schema_url: SCHEMA_URL.into() }];
    MetricsData { resource_metrics }.encode_to_vec()
}

fn sessions(snapshot: MetricsSnapshot<'_>) -> Metric {
    let point = |(provider, state, count): &(Provider, State, u64)| {
        let attributes = vec![agent(*provider), text("capture.session.state", state.as_str())];
        NumberDataPoint { start_time_unix_nano: 0, ..number(snapshot, attributes, *count) }
    };
    let data_points = snapshot.sessions.iter().map(point).collect();
    metric("capture.sessions", "{session}", "Sessions by agent and state.", Data::Gauge(Gauge { data_points }))
}

fn waits(snapshot: MetricsSnapshot<'_>) -> Metric {
    let point = |((provider, state), waits): (&(Provider, ApprovalState), &Waits)| HistogramDataPoint {
        attributes: vec![agent(*provider), text("capture.approval.state", state.as_str())],
        start_time_unix_nano: nanos(snapshot.since),
        time_unix_nano: nanos(snapshot.at),
        count: waits.counts.iter().sum(),
        sum: Some(waits.sum_s),
        bucket_counts: waits.counts.to_vec(),
        explicit_bounds: BOUNDS_S.to_vec(),
        ..HistogramDataPoint::default()
    };
    let histogram = Histogram {
        data_points: snapshot.waits.0.iter().map(point).collect(),
        aggregation_temporality: AggregationTemporality::Cumulative.into(),
    };
    let about = "How long permission requests waited until they were closed, by outcome.";
    metric("capture.approval.wait", "s", about, Data::Histogram(histogram))
}

fn dropped(snapshot: MetricsSnapshot<'_>) -> Metric {
    let point = |(reason, count): &(&str, u64)| number(snapshot, vec![text("error.type", reason)], *count);
    let sum = Sum {
        data_points: snapshot.dropped.iter().map(point).collect(),
        aggregation_temporality: AggregationTemporality::Cumulative.into(),
        is_monotonic: true,
    };
    metric("capture.otlp.spans.dropped", "{span}", "Spans that did not reach the collector.", Data::Sum(sum))
}

fn agent(provider: Provider) -> KeyValue {
    text("gen_ai.agent.name", provider.as_str())
}

fn number(snapshot: MetricsSnapshot<'_>, attributes: Vec<KeyValue>, count: u64) -> NumberDataPoint {
    NumberDataPoint {
        attributes,
        start_time_unix_nano: nanos(snapshot.since),
        time_unix_nano: nanos(snapshot.at),
        value: Some(number_data_point::Value::AsInt(i64::try_from(count).unwrap_or(i64::MAX))),
        ..NumberDataPoint::default()
    }
}

fn metric(name: &str, unit: &str, about: &str, data: Data) -> Metric {
    Metric {
        name: name.to_owned(),
        description: about.to_owned(),
        unit: unit.to_owned(),
        data: Some(data),
        ..Metric::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_encode_session_states_approval_waits_and_dropped_counts() {
        let at = Timestamp::from_millisecond;
        let mut waits = ApprovalWaits::default();
        for wait_ms in [500, 1_000, 1_001, 20_000, 90_000_000, -5] {
            waits.add(Provider::Claude, ApprovalState::Allowed, wait_ms);
        }
        let request = encode_request(MetricsSnapshot {
            since: at(1_000),
            at: at(61_000),
            sessions: &[(Provider::Claude, State::Running, 2), (Provider::Codex, State::Idle, 1)],
            waits: &waits,
            dropped: &[("expired", 3)],
            version: "1.2.3",
        });
        let data = MetricsData::decode(request.as_slice()).unwrap();
        let [resource] = data.resource_metrics.try_into().unwrap();
        let [scope] = resource.scope_metrics.try_into().unwrap();
        let [sessions, waits, dropped] = scope.metrics.try_into().unwrap();
        let Some(Data::Gauge(gauge)) = sessions.data else { panic!("{sessions:?}") };
        assert_eq!((sessions.name.as_str(), gauge.data_points.len()), ("capture.sessions", 2));
        assert_eq!(gauge.data_points[0].value, Some(number_data_point::Value::AsInt(2)));
        let Some(Data::Histogram(histogram)) = waits.data else { panic!("{waits:?}") };
        let [point] = histogram.data_points.try_into().unwrap();
        assert_eq!(point.bucket_counts, [3, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1], "500, 1000 and what a clock put back");
        assert_eq!((point.count, point.explicit_bounds.len()), (6, point.bucket_counts.len() - 1));
        assert_eq!((point.start_time_unix_nano, point.time_unix_nano), (1_000_000_000, 61_000_000_000));
        let Some(Data::Sum(sum)) = dropped.data else { panic!("{dropped:?}") };
        assert!(sum.is_monotonic && sum.data_points[0].value == Some(number_data_point::Value::AsInt(3)));
    }
}
