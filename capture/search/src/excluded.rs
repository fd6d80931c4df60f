//! A query whose matches are excluded from another query's.
//!
//! Tantivy may ask an excluded query about documents it has already passed, which phrase queries do not support; a
//! precomputed set of all matches does.

use tantivy::{
    BitSet, DocId, Result, Score, SegmentReader,
    query::{BitSetDocSet, ConstScorer, EnableScoring, Explanation, Query, Scorer, Weight},
};

/// The set of documents matched by another query.
#[derive(Debug)]
pub(crate) struct Excluded(pub(crate) Box<dyn Query>);

struct ExcludedWeight(Box<dyn Weight>);

impl Clone for Excluded {
    fn clone(&self) -> Self {
        Self(self.0.box_clone())
    }
}

impl Query for Excluded {
    fn weight(&self, scoring: EnableScoring<'_>) -> Result<Box<dyn Weight>> {
        Ok(Box::new(ExcludedWeight(self.0.weight(scoring)?)))
    }
}

impl Weight for ExcludedWeight {
    fn scorer(&self, segment: &SegmentReader, boost: Score) -> Result<Box<dyn Scorer>> {
        let mut documents = BitSet::with_max_value(segment.max_doc());
        self.0.for_each_no_score(segment, &mut |found| {
            for document in found {
                documents.insert(*document);
            }
        })?;
        Ok(Box::new(ConstScorer::new(BitSetDocSet::from(documents), boost)))
    }

    fn explain(&self, segment: &SegmentReader, document: DocId) -> Result<Explanation> {
        self.0.explain(segment, document)
    }
}
