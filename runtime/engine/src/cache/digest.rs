//! The blocks of a request, by their hashes.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Where a block of a request comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockOrigin {
    /// Settings that count for the cache: the model, thinking.
    Settings,
    /// The tools.
    Tools,
    /// The system prompt.
    System,
    /// A message: the id of its entry.
    Entry(String),
    /// No block: the request ends there.
    End,
}

/// A block of a request: what a provider caches whole or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockDigest {
    /// A hash of the bytes that are sent, without marks for the cache.
    pub hash: [u8; 16],
    /// How many they are.
    pub bytes: u64,
    /// Where it comes from.
    pub origin: BlockOrigin,
    /// Whether it is marked for the cache.
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

/// The blocks of a request in the order in which a provider caches them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestDigest {
    /// The blocks.
    pub blocks: Vec<BlockDigest>,
}

impl RequestDigest {
    /// A hash of each prefix: of no block, of the first, of the first two. Two requests have the same hash at a place
    /// when they are the same up to it.
    #[must_use]
    pub fn chain(&self) -> Vec<u64> {
        let mut prefix = 0_u64;
        let mut chain = Vec::with_capacity(self.blocks.len() + 1);
        chain.push(prefix);
        for block in &self.blocks {
            // The hashes of blocks are cryptographic already; what is left is to make their order count.
            let (low, high) = block.hash.split_at(8);
            for half in [low, high] {
                let half = half.iter().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
                prefix = (prefix.rotate_left(29) ^ half).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            }
            chain.push(prefix);
        }
        chain
    }

    /// The bytes of each prefix.
    pub(super) fn bytes_until(&self) -> Vec<u64> {
        let mut sum = 0;
        let sums = self.blocks.iter().map(|block| {
            sum += block.bytes;
            sum
        });
        [0].into_iter().chain(sums).collect()
    }

    /// Number of blocks up to and with each that is marked.
    pub(super) fn marked(&self) -> impl Iterator<Item = usize> {
        self.blocks.iter().enumerate().filter(|(_, block)| block.is_marked).map(|(at, _)| at + 1)
    }

    /// The size of all blocks, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.blocks.iter().map(|block| block.bytes).sum()
    }

    /// The prefixes that are worth being written down: those that end with a mark, with the system prompt, and all.
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
    /// How many blocks it has.
    pub at: usize,
    /// The hash of the chain there, as 16 hexadecimal digits.
    #[serde(serialize_with = "as_hex", deserialize_with = "from_hex")]
    pub hash: u64,
    /// How many bytes it has.
    pub bytes: u64,
    /// Whether its last block is marked for the cache.
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
