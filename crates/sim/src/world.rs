//! The whole simulated world. (Stub of the API owner; the BUILTIN owner fills it.)
