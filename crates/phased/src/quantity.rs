//! Quantities: `1Gi`, `500m`, `1e3`, compared by value as the server does.
