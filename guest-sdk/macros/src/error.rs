//! Errors that point at what is wrong.

use proc_macro2::Span;
use syn::Error;
use syn::spanned::Spanned;

/// All errors of a block, to be reported at once.
#[derive(Default)]
pub(crate) struct Errors(Option<Error>);

impl Errors {
    pub(crate) fn push(&mut self, place: impl quote::ToTokens, message: &str) {
        self.add(Error::new_spanned(place, message));
    }

    pub(crate) fn add(&mut self, error: Error) {
        match &mut self.0 {
            None => self.0 = Some(error),
            Some(errors) => errors.combine(error),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// `value`, unless there was an error.
    pub(crate) fn or<T>(self, value: T) -> Result<T, Error> {
        self.0.map_or(Ok(value), Err)
    }
}

pub(crate) fn fail<T>(place: impl quote::ToTokens, message: impl std::fmt::Display) -> Result<T, Error> {
    Err(Error::new_spanned(place, message))
}

/// Where the compiler complains about what the macro wrote because of `tokens`.
pub(crate) fn place(tokens: &impl Spanned) -> Span {
    Span::call_site().located_at(tokens.span())
}
