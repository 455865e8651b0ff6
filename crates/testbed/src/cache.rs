//! Where things live that are costly to make and may be thrown away: outside the checkout, shared by all of
//! a user's checkouts.
//!
//! Reads three environment variables and nothing else; creates no folder.

use std::env;
use std::path::PathBuf;

use anyhow::{Context, Result};

/// The suite's cache folder: `$STEADFAST_CACHE`, else `$XDG_CACHE_HOME/steadfast`, else
/// `$HOME/.cache/steadfast`. The folder need not exist yet.
///
/// # Errors
/// None of the three variables is set.
pub fn folder() -> Result<PathBuf> {
    let named =
        |variable: &str| env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    named("STEADFAST_CACHE")
        .or_else(|| named("XDG_CACHE_HOME").map(|base| base.join("steadfast")))
        .or_else(|| named("HOME").map(|home| home.join(".cache/steadfast")))
        .context("no cache folder: set STEADFAST_CACHE, XDG_CACHE_HOME or HOME")
}
