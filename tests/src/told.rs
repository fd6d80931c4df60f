//! What a recorded agent told besides its files: calls of its hooks, and telemetry. Handed to the ingest of a
//! [`World`] at the moments it was told.

use std::path::Path;

use daemon::ingest::{HookInput, IngestInput, TelemetryInput};
use events::{DeliveryId, Provider, Source};
use hooks::delivery::{Agent, Delivery};
use protocols::telemetry::{self, Encoding, Signal};
use serde_json::value::RawValue;

use crate::{
    recording::{
        Names, Recording,
        folder::{Folder, What, ms},
    },
    world::World,
};

/// One thing that was told.
#[derive(Debug, Clone)]
pub enum Told {
    /// A hook was called with this payload, JSON, by the agent of this run.
    Hook {
        /// Whose.
        provider: Provider,
        /// The run, from 0.
        run: usize,
        /// How many were called before.
        number: u64,
        /// What it was called with.
        payload: String,
    },
    /// Log records, JSON.
    Logs(String),
}

/// Plays a folder of a recording, with all that was told.
pub fn play(world: &mut World, dir: &Path) {
    let folder = Folder::read(dir).unwrap_or_else(|words| panic!("{words}"));
    let told = told(&folder);
    let recording = Recording::of(&folder.name(), folder);
    let names = Names::new(&recording.about, &world.home(), &world.project());
    world.play_with(&recording, &told, |world, told| tell(world, told, &names));
}

/// All that a recording tells besides its files, in order: when (ms since second 0), and what. A hook that
/// `capture hooks install` would not have installed is not called.
#[must_use]
pub fn told(folder: &Folder) -> Vec<(i64, Told)> {
    let provider = folder.meta.provider;
    let mut run = 0;
    let mut number = 0;
    let mut told = Vec::new();
    for line in &folder.timeline {
        match &line.what {
            What::Spawn { run: begins } => run = *begins,
            What::Hook { event, payload } if hooks::catalogue(provider).contains(&event.as_str()) => {
                number += 1;
                told.push((ms(line.at), Told::Hook { provider, run, number, payload: payload.to_string() }));
            }
            What::Exit { .. }
            | What::Out { .. }
            | What::In { .. }
            | What::Append { .. }
            | What::Write { .. }
            | What::Remove { .. }
            | What::Hook { .. }
            | What::Otlp { .. }
            | What::Other => {}
        }
    }
    for line in &folder.telemetry {
        if let What::Otlp { path, payload } = &line.what
            && path == "/v1/logs"
        {
            told.push((ms(line.at), Told::Logs(payload.to_string())));
        }
    }
    told.sort_by_key(|(at, _)| *at);
    told
}

fn tell(world: &mut World, told: &Told, names: &Names) {
    let now = world.wall();
    match told {
        Told::Hook { provider, run, number, payload } => {
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
        Told::Logs(payload) => {
            let body = names.rewrite(payload);
            let received = telemetry::receive(Signal::Logs, Encoding::Json, body.as_bytes(), now).unwrap();
            let stored = Box::new(|_| ());
            world.ingest.apply(IngestInput::Telemetry(TelemetryInput { events: received.events, stored }));
        }
    }
}
