//! Hashes of the blocks of a request.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Where a block of a request comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockOrigin {
    /// Settings that are part of the cache key: the model, thinking.
    Settings,
    /// The tools.
    Tools,
    /// The system prompt.
    System,
    /// A message, by the id of its entry.
    Entry(String),
    /// Not a block: the end of the request.
    End,
}

/// A block of a request: the unit that a provider caches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockDigest {
    /// A hash of the block's bytes as sent, without cache marks.
    pub hash: [u8; 16],
    /// The number of bytes.
    pub bytes: u64,
    /// The origin of the block.
    pub origin: BlockOrigin,
    /// Whether it has a cache mark.
    pub is_marked: bool,
    /// Whether its mark asks for the long time to live.
    pub is_long: bool,
}

impl BlockDigest {
    /// The digest of the bytes of a block.
    #[must_use]
    pub fn of(bytes: &[u8], origin: BlockOrigin) -> Self {
        let mut hash = [0; 16];
        hash.copy_from_slice(&blake3::hash(bytes).as_bytes()[..16]);
        Self { hash, bytes: bytes.len() as u64, origin, is_marked: false, is_long: false }
    }
}

/// The blocks of a request, in the order in which the provider caches them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestDigest {
    /// The blocks.
    pub blocks: Vec<BlockDigest>,
}

impl RequestDigest {
    /// A hash of each prefix: of zero blocks, of one, of two and so on. Two requests with the same hash at an index are
    /// equal up to it.
    #[must_use]
    pub fn chain(&self) -> Vec<u64> {
        let mut prefix = 0_u64;
        let mut chain = Vec::with_capacity(self.blocks.len() + 1);
        chain.push(prefix);
        for block in &self.blocks {
            // The hashes of blocks are already cryptographic; this only has to make their order count.
            let (low, high) = block.hash.split_at(8);
            for half in [low, high] {
                let half = half.iter().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
                prefix = (prefix.rotate_left(29) ^ half).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            }
            chain.push(prefix);
        }
        chain
    }

    /// The number of bytes in each prefix.
    pub(super) fn bytes_until(&self) -> Vec<u64> {
        let mut sum = 0;
        let sums = self.blocks.iter().map(|block| {
            sum += block.bytes;
            sum
        });
        [0].into_iter().chain(sums).collect()
    }

    /// For each marked block, the number of blocks up to and including it.
    pub(super) fn marked(&self) -> impl Iterator<Item = usize> {
        self.blocks.iter().enumerate().filter(|(_, block)| block.is_marked).map(|(at, _)| at + 1)
    }

    /// The total size of the blocks, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.blocks.iter().map(|block| block.bytes).sum()
    }

    /// The prefixes to record: those ending with a mark, the one ending with the system prompt, and the whole request.
    #[must_use]
    pub fn points(&self) -> Vec<ChainPoint> {
        let (chain, bytes) = (self.chain(), self.bytes_until());
        let fixed = |block: &BlockDigest| {
            matches!(block.origin, BlockOrigin::Settings | BlockOrigin::Tools | BlockOrigin::System)
        };
        let prefix = self.blocks.iter().take_while(|block| fixed(block)).count();
        let is_point = |at: usize| at > 0 && (at == prefix || at == self.blocks.len() || self.blocks[at - 1].is_marked);
        let point = |at: usize| ChainPoint {
            at,
            hash: chain[at],
            bytes: bytes[at],
            is_marked: self.blocks[at - 1].is_marked,
            is_long: self.blocks[at - 1].is_long,
        };
        (1..=self.blocks.len()).filter(|at| is_point(*at)).map(point).collect()
    }
}

/// A prefix of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainPoint {
    /// Its number of blocks.
    pub at: usize,
    /// The hash of the prefix, as 16 hexadecimal digits.
    #[serde(serialize_with = "as_hex", deserialize_with = "from_hex")]
    pub hash: u64,
    /// Its number of bytes.
    pub bytes: u64,
    /// Whether its last block has a cache mark.
    #[serde(default, rename = "marked", skip_serializing_if = "is_false")]
    pub is_marked: bool,
    /// Whether the mark asks for the long time to live.
    #[serde(default, rename = "long", skip_serializing_if = "is_false")]
    pub is_long: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_false(yes: &bool) -> bool {
    !yes
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn as_hex<S: Serializer>(hash: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{hash:016x}"))
}

fn from_hex<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    u64::from_str_radix(&String::deserialize(deserializer)?, 16).map_err(serde::de::Error::custom)
}
