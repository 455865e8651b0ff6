//! The only source of randomness: passwords and jitter, injected so that a simulation can repeat.

use std::sync::Mutex;

/// Draws random bytes.
pub trait Random: Send + Sync + 'static {
    /// Fills `bytes`.
    fn fill(&self, bytes: &mut [u8]);
}

/// The operating system's generator: the only one fit for passwords.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemRandom;

impl Random for SystemRandom {
    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the operating system provides randomness");
    }
}

/// A seeded generator for tests and simulations. Never for real passwords.
#[derive(Debug)]
pub struct SeededRandom(Mutex<fastrand::Rng>);

impl SeededRandom {
    /// A generator that repeats itself for the same seed.
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(fastrand::Rng::with_seed(seed)))
    }
}

impl Random for SeededRandom {
    fn fill(&self, bytes: &mut [u8]) {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).fill(bytes);
    }
}

const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// A password of `length` letters and digits, each equally likely.
pub fn password(random: &dyn Random, length: usize) -> String {
    let mut text = String::with_capacity(length);
    let mut byte = [0u8; 1];
    while text.len() < length {
        random.fill(&mut byte);
        // 248 is the largest multiple of 62 in a byte: above it the draw would be uneven.
        if byte[0] < 248 {
            text.push(char::from(LETTERS[usize::from(byte[0] % 62)]));
        }
    }
    text
}

/// A factor between `1 - spread` and `1 + spread`.
pub fn jitter(random: &dyn Random, spread: f64) -> f64 {
    let mut bytes = [0u8; 4];
    random.fill(&mut bytes);
    let unit = f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX);
    1.0 - spread + 2.0 * spread * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_have_the_asked_length_and_only_letters_and_digits() {
        let random = SeededRandom::new(7);
        let made = password(&random, 32);
        assert_eq!(made.len(), 32);
        assert!(made.bytes().all(|b| b.is_ascii_alphanumeric()));
        assert_ne!(made, password(&random, 32));
    }

    #[test]
    fn jitter_stays_within_its_spread() {
        let random = SeededRandom::new(7);
        for _ in 0..1000 {
            let factor = jitter(&random, 0.2);
            assert!((0.8..=1.2).contains(&factor), "{factor}");
        }
    }
}
