//! What ingest tells of hooks and of the turns they should tell of.

use hooks::delivery::Delivery;
use serde_json::value::RawValue;

use super::*;

fn delivery(seconds: f64, payload: &str) -> IngestInput {
    let delivery = Delivery {
        id: DeliveryId::mint(at(seconds), [seconds as u8; 10]),
        provider: Provider::Claude,
        source: Source::Hook,
        at: at(seconds),
        agent: None,
        run: None,
        search_path: None,
        redacted_from: None,
        payload: RawValue::from_string(payload.into()).unwrap(),
    };
    IngestInput::Delivery(Box::new(HookInput::new(delivery, at(seconds), Box::new(|_| ()))))
}

#[test]
fn turns_without_a_call_are_noticed_and_a_call_ends_it() {
    let mut world = World::new();
    let silent = |world: &World, seconds| world.gauges.heard.of(Provider::Claude).silent_since(None, at(seconds));
    world.file(&path_of("old"), vec![prompt("old", "p0", 0.0)], true, false);
    world.until(1.0);
    assert_eq!(silent(&world, 200.0), None, "history is not a sign of life");
    world.until(2.0);
    world.live("s", vec![prompt("s", "p1", 2.0)]);
    world.until(3.0);
    assert_eq!(silent(&world, 200.0), Some(at(2.0)));

    world.take(delivery(150.0, "\"nobody understands this\""));
    world.until(151.0);
    assert_eq!(silent(&world, 200.0), None, "what arrives arrives, understood or not");
    let heard = world.gauges.heard.of(Provider::Claude);
    assert_eq!((heard.deliveries, heard.last_delivery), (1, Some(at(150.0))));
}
