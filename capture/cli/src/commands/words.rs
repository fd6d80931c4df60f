//! Arguments whose value is one of a fixed set of words.

/// Parses one of a fixed set of words, which the help lists with their explanations. Self-explanatory words have none.
pub(super) fn one_of_explained<T: Copy + Send + Sync + std::str::FromStr + 'static>(
    all: &[T],
    word: fn(T) -> &'static str,
    meaning: fn(T) -> &'static str,
) -> impl clap::builder::TypedValueParser<Value = T> + use<T>
where
    T::Err: std::fmt::Display,
{
    use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
    let explained = |value: &T| match meaning(*value) {
        "" => PossibleValue::new(word(*value)),
        meaning => PossibleValue::new(word(*value)).help(meaning),
    };
    PossibleValuesParser::new(all.iter().map(explained))
        .try_map(|text| text.parse::<T>().map_err(|error| std::io::Error::other(error.to_string())))
}

/// Parses one of a fixed set of words, which the help lists.
pub(super) fn one_of<T: Copy + Send + Sync + std::str::FromStr + 'static>(
    all: &[T],
    word: fn(T) -> &'static str,
) -> impl clap::builder::TypedValueParser<Value = T> + use<T>
where
    T::Err: std::fmt::Display,
{
    one_of_explained(all, word, |_| "")
}
