use super::*;

#[test]
fn time_keeps_advancing_when_the_wall_clock_is_set_back() {
    let mut clock = SteadyWall::new();
    let mut read = |wall: i64, steady: u64| {
        clock.read(Timestamp::from_millisecond(wall), Duration::from_millis(steady)).as_millisecond()
    };
    const HOUR: i64 = 3_600_000;
    assert_eq!(read(10 * HOUR, 0), 10 * HOUR);
    assert_eq!(read(10 * HOUR + 500, 500), 10 * HOUR + 500);
    // The clock is set back by an hour; 30 s remain 30 s.
    assert_eq!(read(9 * HOUR + 600, 600), 10 * HOUR + 600);
    assert_eq!(read(9 * HOUR + 30_600, 30_600), 10 * HOUR + 30_600);
    // A small step back is followed, but time does not go back.
    assert_eq!(read(10 * HOUR + 30_100, 30_700), 10 * HOUR + 30_600);
    assert_eq!(read(10 * HOUR + 30_700, 31_300), 10 * HOUR + 30_700);
    // A step forward, as after sleep.
    assert_eq!(read(14 * HOUR, 31_400), 14 * HOUR);
}
