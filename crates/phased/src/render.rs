//! A plan as stable text, without secrets.
