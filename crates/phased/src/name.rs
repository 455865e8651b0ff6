//! Names and labels, checked against the limits of the API.
