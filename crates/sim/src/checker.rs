//! Safety rules checked after every step. (Stub of the API owner; the BUILTIN owner fills it.)
