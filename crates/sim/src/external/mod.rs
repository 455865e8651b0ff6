//! Models of applications. (Stub of the API owner; the BUILTIN owner fills it.)
