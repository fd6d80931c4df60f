use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::schema;

fn database() -> Connection {
    let mut connection = Connection::open_in_memory().unwrap();
    schema::migrate(&mut connection).unwrap();
    connection
}

/// An identity, distributed like a hash.
fn identity(n: u16) -> u128 {
    let hash = blake3::hash(&n.to_be_bytes());
    u128::from_be_bytes(hash.as_bytes()[..16].try_into().unwrap())
}

#[derive(Debug, Clone)]
enum Step {
    /// Adds this number of identities, beginning with the first one.
    Add(u16, u16),
    Commit,
    RollBack,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..600_u16, 1..90_u16).prop_map(|(from, count)| Step::Add(from, count)),
        4 => Just(Step::Commit),
        1 => Just(Step::RollBack),
        1 => Just(Step::Reopen),
    ]
}

proptest! {
    #[test]
    fn a_record_is_new_once_and_keeps_its_session(steps in prop::collection::vec(step(), 1..40)) {
        let connection = database();
        let mut known = KnownRecords::load(&connection).unwrap();
        let (mut committed, mut model) = (HashMap::new(), HashMap::new());
        connection.execute_batch("BEGIN").unwrap();
        for (session, step) in steps.into_iter().enumerate() {
            let session = SessionRow::of(session as i64);
            match step {
                Step::Add(from, count) => {
                    for n in from..from + count {
                        let is_new = known.add(&connection, identity(n), session).unwrap();
                        prop_assert_eq!(is_new, !model.contains_key(&n));
                        model.entry(n).or_insert(session);
                    }
                }
                Step::Commit => {
                    known.write(&connection).unwrap();
                    connection.execute_batch("COMMIT; BEGIN").unwrap();
                    known.committed();
                    committed.clone_from(&model);
                }
                Step::RollBack => {
                    // As if the commit itself failed: a run may already exist.
                    known.write(&connection).unwrap();
                    connection.execute_batch("ROLLBACK; BEGIN").unwrap();
                    known.rolled_back();
                    model.clone_from(&committed);
                }
                Step::Reopen => {
                    connection.execute_batch("ROLLBACK; BEGIN").unwrap();
                    known = KnownRecords::load(&connection).unwrap();
                    model.clone_from(&committed);
                }
            }
            for n in (0..700).step_by(7) {
                prop_assert_eq!(known.find(&connection, identity(n)).unwrap(), model.get(&n).copied());
            }
        }
    }
}

#[test]
fn the_filter_has_fewer_than_one_percent_false_positives() {
    let mut filter = Filter::for_rows(1_000);
    (0..1_000).for_each(|n| filter.insert(identity(n)));
    assert!((0..1_000).all(|n| filter.may_hold(identity(n))));
    let in_vain = (1_000..21_000).filter(|n| filter.may_hold(identity(*n))).count();
    assert!(in_vain < 200, "{in_vain} of 20,000");
}

#[test]
fn a_damaged_filter_is_rebuilt_on_load() {
    let mut connection = Connection::open_in_memory().unwrap();
    schema::migrate(&mut connection).unwrap();
    let mut known = KnownRecords::load(&connection).unwrap();
    for n in 0..150 {
        assert!(known.add(&connection, identity(n), SessionRow::of(n.into())).unwrap());
        known.write(&connection).unwrap();
        known.committed();
    }
    connection.execute("UPDATE known_runs SET filter = x'00'", []).unwrap();
    // Twice: the second time with the filter rebuilt the first time.
    for _ in 0..2 {
        let known = KnownRecords::load(&connection).unwrap();
        for n in 0..150 {
            assert_eq!(known.find(&connection, identity(n)).unwrap(), Some(SessionRow::of(n.into())), "{n}");
        }
        assert_eq!(known.find(&connection, identity(501)).unwrap(), None);
    }
    let made: i64 =
        connection.query_row("SELECT count(*) FROM known_runs WHERE length(filter) > 1", [], |row| row.get(0)).unwrap();
    assert_eq!(made, 2);
}
