//! Tests of the whole: surroundings, marks, properties.
