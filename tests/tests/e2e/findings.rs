use std::{collections::HashMap, path::Path};

use events::{Event, Finding, Timestamp};
use monitor::{Monitor, Rules};
use projections::SessionState;
use tests::{recording::folder::Folder, told, world::{Kept, World}};

fn found(kept: &[Kept], until: Timestamp) -> Vec<Finding> {
    let mut events: Vec<&Event> = kept.iter().flat_map(|kept| &kept.events).collect();
    events.sort_by_key(|event| event.position);
    let mut states = HashMap::new();
    let mut monitor = Monitor::new(Rules::default());
    let mut found = Vec::new();
    for event in events {
        found.extend(monitor.advance(event.observed_at));
        found.extend(monitor.take(event));
        let state = states.entry(event.session_id).or_insert_with(|| {
            let id = Some(event.provider_session_id.clone());
            SessionState::new(event.session_id, event.provider, id, event.created_at, projections::Rules::default())
        });
        state.fold(event);
        found.extend(monitor.look(state.view(), event.observed_at));
    }
    found.extend(monitor.advance(until));
    found
}

#[test]
fn dump() {
    let Ok(dirs) = std::env::var("DUMP") else { return };
    let mut all = Vec::new();
    for root in dirs.split(',') { all.extend(Folder::all(Path::new(root)).unwrap()); }
    for dir in all {
        let folder = Folder::read(&dir).unwrap();
        if folder.meta.started_at.is_none() { println!("=== {} skipped", dir.display()); continue }
        let mut world = World::new(folder.meta.started_at.unwrap());
        told::play(&mut world, &dir);
        world.run_to(((folder.truth.last().unwrap().at + 3.0) * 1000.0) as i64);
        let now = world.wall();
        let kept = world.end().1;
        println!("=== {}", dir.strip_prefix("/work").unwrap().display());
        for f in found(&kept, now) {
            println!("  {} {} {} {} | {} | {} | {} | {:?}", &f.first_at.to_string()[11..], &f.last_at.to_string()[11..], f.state, f.kind, f.key, f.what, f.why, f.resolution);
        }
    }
}
