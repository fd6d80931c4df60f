use super::*;
use crate::codec::tests::{APIS, assistant, object, prefix, target, user};

#[test]
fn sync_keeps_what_is_the_same_and_encodes_the_rest() {
    for api in APIS {
        let texts = ["a", "b", "c", "d"].map(user);
        let keyed = |keys: &[(&'static str, usize)]| -> Vec<(Option<&'static str>, &Object)> {
            keys.iter().map(|(key, text)| (Some(*key), &texts[*text])).collect()
        };
        let mut transcript = Transcript::new(target(api), &prefix()).unwrap();
        let fresh = |keys: &[(&'static str, usize)]| {
            let mut fresh = Transcript::new(target(api), &prefix()).unwrap();
            keys.iter().for_each(|(_, text)| {
                fresh.push(&texts[*text]);
            });
            fresh.request(None, &[]).unwrap().body.to_vec().unwrap()
        };
        for keys in [
            &[("1", 0), ("2", 1)][..],
            &[("1", 0), ("2", 1), ("3", 2)],
            // Another branch, and a shorter one.
            &[("1", 0), ("4", 3), ("3", 2)],
            &[("1", 0)],
            &[],
        ] {
            transcript.sync(keyed(keys));
            assert_eq!(transcript.entries(), keys.len());
            assert_eq!(transcript.request(None, &[]).unwrap().body.to_vec().unwrap(), fresh(keys));
        }
        // Messages with a known key are not read again, others are.
        transcript.sync([(Some("1"), &texts[0]), (None, &texts[1])]);
        transcript.sync([(Some("1"), &texts[2]), (None, &texts[3])]);
        let mut expected = Transcript::new(target(api), &prefix()).unwrap();
        expected.push(&texts[0]);
        expected.push(&texts[3]);
        let bytes = |transcript: &Transcript| transcript.request(None, &[]).unwrap().body.to_vec().unwrap();
        assert_eq!(bytes(&transcript), bytes(&expected));
    }
}

#[test]
fn the_chain_lists_the_kind_and_entry_of_each_block() {
    let mut transcript = Transcript::new(target(Api::Anthropic), &prefix()).unwrap();
    transcript.push(&user("a"));
    transcript.push(&object(r#"{"role":"system","content":"x"}"#));
    let blocks = vec![object(r#"{"type":"text","text":"b"}"#), object(r#"{"type":"text","text":"c"}"#)];
    transcript.push(&assistant(&target(Api::Anthropic), blocks));
    let chain: Vec<_> = transcript.chain().map(|block| (block.kind, block.entry)).collect();
    use BlockKind::{Message, Settings, System, Tools};
    assert_eq!(
        chain,
        [(Settings, None), (Tools, None), (System, None), (Message, Some(0)), (Message, Some(2)), (Message, Some(2))]
    );
    assert_eq!([0, 1, 2, 3].map(|entry| transcript.blocks_of(entry)), [1, 0, 2, 0]);
}

#[test]
fn the_hash_of_a_block_depends_on_all_before_it() {
    let chain = |target: Target, texts: &[&str]| {
        let mut transcript = Transcript::new(target, &prefix()).unwrap();
        texts.iter().for_each(|text| {
            transcript.push(&user(text));
        });
        transcript.chain().map(|block| block.hash).collect::<Vec<_>>()
    };
    let target = target(Api::Chat);
    let one = chain(target.clone(), &["a", "b", "c"]);
    let other = chain(target.clone(), &["a", "x", "c"]);
    assert_eq!(one[..4], other[..4]);
    assert!(one[4..].iter().zip(&other[4..]).all(|(a, b)| a != b));
    let elsewhere = chain(Target { model: "gpt-5.6".to_owned(), ..target }, &["a", "b", "c"]);
    assert!(one.iter().zip(&elsewhere).all(|(a, b)| a != b));
}
