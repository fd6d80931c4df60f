//! Finds texts that contain some words in sequence.
//!
//! Word positions are read only for texts that may be shown, and for others while matches are counted. Tantivy's own
//! query reads them for every text that contains the words.

use std::{cmp::Reverse, collections::BinaryHeap};

use tantivy::{
    DocAddress, DocId, DocSet, Score, Searcher, SegmentOrdinal, SegmentReader, TERMINATED, TantivyError, Term,
    columnar::Column,
    fieldnorm::FieldNormReader,
    postings::{Postings as _, SegmentPostings},
    query::{Bm25Weight, EnableScoring, Query, Scorer},
    schema::{Field, IndexRecordOption},
};

use crate::fields::TIME;

/// Matches are counted up to this number.
pub(crate) const COUNTED: u64 = 1_000;

/// A search for words in sequence.
pub(crate) struct PhraseSearch<'a> {
    pub(crate) field: Field,
    /// The words.
    pub(crate) parts: &'a [String],
    /// The same words spelled as one word, and the factor for its score.
    pub(crate) whole: Option<(&'a str, Score)>,
    /// Further required conditions; they do not affect the score.
    pub(crate) filter: Option<Box<dyn Query>>,
    /// Orders by time, newest first, instead of by score.
    pub(crate) by_time: bool,
}

/// The first texts and the number of matches.
#[derive(Debug, Default)]
pub(crate) struct FoundPhrases {
    /// The first texts, in order.
    pub(crate) first: Vec<(Score, DocAddress)>,
    pub(crate) matches: u64,
    /// Whether counting stopped at [`COUNTED`].
    pub(crate) is_lower_bound: bool,
}

/// A match, ordered by its value; ties are ordered by position in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Match {
    /// The time, or the bits of the score, which is never negative.
    worth: i64,
    address: Reverse<DocAddress>,
    score_bits: u32,
}

/// The terms and their weights.
struct Weights {
    terms: Vec<Term>,
    phrase: Bm25Weight,
    whole: Option<(Term, Bm25Weight)>,
}

/// The words within a segment.
struct SegmentWords {
    /// The postings, rarest word first, each with its distance from the last word of the phrase.
    words: Vec<(u32, SegmentPostings)>,
    whole: Option<SegmentPostings>,
    filter: Option<Box<dyn Scorer>>,
    filter_is_first: bool,
    norms: FieldNormReader,
    times: Option<Column<i64>>,
    positions: [Vec<u32>; 2],
}

impl PhraseSearch<'_> {
    /// The first `wanted` texts.
    pub(crate) fn first(&self, searcher: &Searcher, wanted: usize) -> Result<FoundPhrases, TantivyError> {
        let terms: Vec<_> = self.parts.iter().map(|part| Term::from_field_text(self.field, part)).collect();
        let whole = self.whole.map(|(whole, boost)| {
            let term = Term::from_field_text(self.field, whole);
            let weight = Bm25Weight::for_terms(searcher, std::slice::from_ref(&term))?.boost_by(boost);
            Ok::<_, TantivyError>((term, weight))
        });
        let weights = Weights { phrase: Bm25Weight::for_terms(searcher, &terms)?, terms, whole: whole.transpose()? };
        let mut best = BinaryHeap::with_capacity(wanted + 1);
        let mut found = FoundPhrases::default();
        for (ordinal, segment) in (0..).zip(searcher.segment_readers()) {
            if let Some(words) = self.open(searcher, segment, &weights)? {
                search_segment(words, ordinal, segment, &weights, wanted, &mut best, &mut found);
            }
        }
        if found.is_lower_bound {
            // Independent of the number of texts examined for this page.
            found.matches = COUNTED;
        }
        let matches = best.into_sorted_vec().into_iter();
        found.first = matches.map(|Reverse(found)| (Score::from_bits(found.score_bits), found.address.0)).collect();
        Ok(found)
    }

    /// `None` if a word does not occur in the segment.
    fn open(
        &self,
        searcher: &Searcher,
        segment: &SegmentReader,
        weights: &Weights,
    ) -> Result<Option<SegmentWords>, TantivyError> {
        let inverted = segment.inverted_index(self.field)?;
        let mut words = Vec::with_capacity(weights.terms.len());
        for (distance, term) in (0..).zip(weights.terms.iter().rev()) {
            match inverted.read_postings(term, IndexRecordOption::WithFreqsAndPositions)? {
                Some(postings) => words.push((distance, postings)),
                None => return Ok(None),
            }
        }
        words.sort_by_key(|(_, postings)| postings.doc_freq());
        let whole = weights.whole.as_ref().map(|(term, _)| inverted.read_postings(term, IndexRecordOption::WithFreqs));
        let filter = self
            .filter
            .as_ref()
            .map(|filter| filter.weight(EnableScoring::disabled_from_searcher(searcher))?.scorer(segment, 1.0));
        let filter = filter.transpose()?;
        let rarest = words.first().map_or(0, |(_, postings)| postings.doc_freq());
        Ok(Some(SegmentWords {
            filter_is_first: filter.as_ref().is_some_and(|filter| filter.size_hint() < rarest),
            words,
            whole: whole.transpose()?.flatten(),
            filter,
            norms: segment.get_fieldnorms_reader(self.field)?,
            times: if self.by_time { Some(segment.fast_fields().i64(TIME)?) } else { None },
            positions: Default::default(),
        }))
    }
}

fn search_segment(
    mut words: SegmentWords,
    ordinal: SegmentOrdinal,
    segment: &SegmentReader,
    weights: &Weights,
    wanted: usize,
    best: &mut BinaryHeap<Reverse<Match>>,
    found: &mut FoundPhrases,
) {
    let mut next = 0;
    loop {
        let document = words.common(next);
        if document == TERMINATED {
            return;
        }
        next = document + 1;
        if segment.is_deleted(document) {
            continue;
        }
        let spelled = words.spelled_score(document, weights);
        let worth = |score: Score, words: &SegmentWords| match &words.times {
            Some(times) => times.first(document).unwrap_or(i64::MIN),
            None => i64::from(score.to_bits()),
        };
        let norm = words.norms.fieldnorm_id(document);
        let most = weights.phrase.score(norm, words.most_occurrences()) + spelled;
        let is_full = best.len() >= wanted;
        let may_be_shown = !is_full || best.peek().is_some_and(|Reverse(last)| worth(most, &words) > last.worth);
        if !may_be_shown && found.matches >= COUNTED {
            found.is_lower_bound = true;
            continue;
        }
        let occurrences = words.occurrences();
        if occurrences == 0 {
            continue;
        }
        found.matches += 1;
        let score = weights.phrase.score(norm, occurrences) + spelled;
        let address = DocAddress::new(ordinal, document);
        let own = Match { worth: worth(score, &words), address: Reverse(address), score_bits: score.to_bits() };
        if !is_full {
            best.push(Reverse(own));
        } else if let Some(mut last) = best.peek_mut()
            && own > last.0
        {
            *last = Reverse(own);
        }
    }
}

impl SegmentWords {
    /// The first document at or after `document` that contains all words and passes the filter.
    fn common(&mut self, mut document: DocId) -> DocId {
        fn reach(documents: &mut (impl DocSet + ?Sized), document: DocId) -> DocId {
            if documents.doc() < document { documents.seek(document) } else { documents.doc() }
        }
        let Self { words, filter, filter_is_first, .. } = self;
        'document: loop {
            for of_filter in [true, false] {
                if of_filter == *filter_is_first {
                    let reached = filter.as_mut().map_or(document, |filter| reach(filter.as_mut(), document));
                    if reached > document {
                        document = reached;
                        continue 'document;
                    }
                } else {
                    for (_, postings) in &mut *words {
                        let reached = reach(postings, document);
                        if reached > document {
                            document = reached;
                            continue 'document;
                        }
                    }
                }
            }
            return document;
        }
    }

    /// The additional score if the document contains the phrase spelled as one word.
    fn spelled_score(&mut self, document: DocId, weights: &Weights) -> Score {
        let (Some(whole), Some((_, weight))) = (&mut self.whole, &weights.whole) else { return 0.0 };
        let at = if whole.doc() < document { whole.seek(document) } else { whole.doc() };
        if at == document { weight.score(self.norms.fieldnorm_id(document), whole.term_freq()) } else { 0.0 }
    }

    /// Upper bound on the occurrences of the phrase: the frequency of its rarest word in the document.
    fn most_occurrences(&self) -> u32 {
        self.words.iter().map(|(_, postings)| postings.term_freq()).min().unwrap_or_default()
    }

    /// Number of occurrences of the phrase in the current document.
    fn occurrences(&mut self) -> u32 {
        let [common, other] = &mut self.positions;
        let mut is_first = true;
        for (distance, postings) in &mut self.words {
            if is_first {
                postings.positions_with_offset(*distance, common);
                is_first = false;
                continue;
            }
            postings.positions_with_offset(*distance, other);
            let mut rest = other.iter().copied().peekable();
            common.retain(|position| {
                while rest.next_if(|other| other < position).is_some() {}
                rest.peek() == Some(position)
            });
            if common.is_empty() {
                return 0;
            }
        }
        u32::try_from(common.len()).unwrap_or(u32::MAX)
    }
}
