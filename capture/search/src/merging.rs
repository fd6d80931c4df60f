//! Decides which segments of the index are merged.

use tantivy::{
    SegmentMeta,
    merge_policy::{LogMergePolicy, MergeCandidate, MergePolicy},
};

/// Maximum number of texts in a merged segment. It limits a merge to a second or two, and limits the rewriting when a
/// session is removed to the segments that contain it.
const LARGEST: u32 = 50_000;

/// Merges segments of similar size, so that a stream of small commits neither piles up segments nor rewrites texts
/// repeatedly; no segment becomes large.
#[derive(Debug)]
pub(crate) struct SmallMerges(LogMergePolicy);

impl Default for SmallMerges {
    fn default() -> Self {
        let mut policy = LogMergePolicy::default();
        policy.set_min_num_segments(6);
        policy.set_min_layer_size(64);
        policy.set_level_log_size(2.0);
        policy.set_max_docs_before_merge(LARGEST as usize);
        // Limits how long deleted texts take up space.
        policy.set_del_docs_ratio_before_merge(0.2);
        Self(policy)
    }
}

impl MergePolicy for SmallMerges {
    fn compute_merge_candidates(&self, segments: &[SegmentMeta]) -> Vec<MergeCandidate> {
        let mut merges = Vec::new();
        for MergeCandidate(ids) in self.0.compute_merge_candidates(segments) {
            let mut parts: Vec<_> = segments.iter().filter(|segment| ids.contains(&segment.id())).collect();
            if let [alone] = parts.as_slice() {
                // Rewritten to drop its deleted texts.
                merges.push(MergeCandidate(vec![alone.id()]));
                continue;
            }
            parts.sort_by_key(|segment| segment.num_docs());
            let (mut group, mut texts) = (Vec::new(), 0);
            for segment in parts {
                texts += segment.num_docs();
                if texts > LARGEST {
                    merges.push(MergeCandidate(std::mem::take(&mut group)));
                    texts = segment.num_docs();
                }
                group.push(segment.id());
            }
            merges.push(MergeCandidate(group));
        }
        merges.retain(|MergeCandidate(ids)| {
            let has_deletes = |segment: &SegmentMeta| ids.contains(&segment.id()) && segment.has_deletes();
            ids.len() > 1 || segments.iter().any(has_deletes)
        });
        merges
    }
}

#[cfg(test)]
mod tests {
    use tantivy::{Index, index::SegmentId, schema::Schema};

    use super::*;

    /// The sizes of the segments in each merge.
    fn merges(sizes: &[u32]) -> Vec<Vec<u32>> {
        let index = Index::create_in_ram(Schema::builder().build());
        let segments: Vec<_> =
            sizes.iter().map(|size| index.new_segment_meta(SegmentId::generate_random(), *size)).collect();
        let size = |id: &SegmentId| segments.iter().find(|segment| segment.id() == *id).unwrap().num_docs();
        let merges = SmallMerges::default().compute_merge_candidates(&segments);
        merges.iter().map(|MergeCandidate(ids)| ids.iter().map(size).collect()).collect()
    }

    #[test]
    fn no_merge_creates_an_oversized_segment() {
        assert_eq!(merges(&[10; 6]), [[10; 6]]);
        assert!(merges(&[10; 5]).is_empty());
        assert_eq!(merges(&[20_000; 7]), [[20_000; 2]; 3]);
        assert!(merges(&[40_000; 8]).is_empty());
        assert!(merges(&[90_000; 8]).is_empty());
    }
}
