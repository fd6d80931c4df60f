//! Observations of a recorded agent other than its files: calls of its hooks, and telemetry. They are passed to the
//! ingest of a [`World`] at the times at which they were recorded.

use std::path::Path;

use events::{DeliveryId, Provider, Source};
use hooks::delivery::{Agent, Delivery};
use ingest::{HookInput, IngestInput, TelemetryInput};
use protocols::telemetry::{self, Encoding, Signal};
use serde_json::value::RawValue;

use crate::{
    recording::{
        Names, Recording,
        folder::{Folder, FolderStep, ms},
    },
    world::World,
};

/// An observation of an agent other than its files.
#[derive(Debug, Clone)]
pub enum Observation {
    /// The agent of this run called a hook.
    Hook {
        /// The agent.
        provider: Provider,
        /// The run, from 0.
        run: usize,
        /// The number of earlier calls.
        number: u64,
        /// The payload, JSON.
        payload: String,
    },
    /// Log records, JSON.
    Logs(String),
}

/// Plays the folder of a recording with its observations.
pub fn play(world: &mut World, dir: &Path) {
    let folder = Folder::read(dir).unwrap_or_else(|words| panic!("{words}"));
    let observed = observations(&folder);
    let recording = Recording::of(&folder.name(), folder);
    let names = Names::new(&recording.about, &world.home(), &world.project());
    world.play_with(&recording, &observed, |world, observation| feed(world, observation, &names));
}

/// All observations of a recording other than its files, in order: the time (ms since second 0) and the observation. A
/// hook that `capture hooks install` would not install is left out.
#[must_use]
pub fn observations(folder: &Folder) -> Vec<(i64, Observation)> {
    let provider = folder.meta.provider;
    let mut run = 0;
    let mut number = 0;
    let mut observed = Vec::new();
    for line in &folder.timeline {
        match &line.what {
            FolderStep::Spawn { run: begins } => run = *begins,
            FolderStep::Hook { event, payload } if hooks::catalogue(provider).contains(&event.as_str()) => {
                number += 1;
                observed.push((ms(line.at), Observation::Hook { provider, run, number, payload: payload.to_string() }));
            }
            FolderStep::Exit { .. }
            | FolderStep::Out { .. }
            | FolderStep::In { .. }
            | FolderStep::Append { .. }
            | FolderStep::Write { .. }
            | FolderStep::Remove { .. }
            | FolderStep::Hook { .. }
            | FolderStep::Otlp { .. }
            | FolderStep::Other => {}
        }
    }
    for line in &folder.telemetry {
        if let FolderStep::Otlp { path, payload } = &line.what
            && path == "/v1/logs"
        {
            observed.push((ms(line.at), Observation::Logs(payload.to_string())));
        }
    }
    observed.sort_by_key(|(at, _)| *at);
    observed
}

fn feed(world: &mut World, observation: &Observation, names: &Names) {
    let now = world.wall();
    match observation {
        Observation::Hook { provider, run, number, payload } => {
            let payload = RawValue::from_string(names.rewrite(payload)).unwrap();
            let mut random = [0; 10];
            random[..8].copy_from_slice(&number.to_be_bytes());
            let agent = Agent { pid: World::pid(*run), start_ticks: World::start_ticks(*run), shared: false };
            let delivery = Delivery {
                source: Source::Hook,
                id: DeliveryId::mint(now, random),
                provider: *provider,
                at: now,
                agent: Some(agent),
                run: None,
                search_path: None,
                redacted_from: None,
                payload,
            };
            world.ingest.apply(IngestInput::Delivery(Box::new(HookInput::new(delivery, now, Box::new(|_| ())))));
        }
        Observation::Logs(payload) => {
            let body = names.rewrite(payload);
            let received = telemetry::receive(Signal::Logs, Encoding::Json, body.as_bytes(), now).unwrap();
            let stored = Box::new(|_| ());
            world.ingest.apply(IngestInput::Telemetry(TelemetryInput { events: received.events, stored }));
        }
    }
}
