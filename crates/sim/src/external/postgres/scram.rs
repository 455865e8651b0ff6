//! The server's side of SCRAM-SHA-256, and verifiers as PostgreSQL stores them.
//!
//! Must not log or keep a password.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

/// Iterations of verifiers that the model makes itself; few, so that simulations are quick.
const ITERATIONS: u32 = 64;

/// A stored verifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verifier {
    iterations: u32,
    salt: Vec<u8>,
    stored: [u8; 32],
    server: [u8; 32],
}

fn hmac(key: &[u8], text: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of every length");
    mac.update(text);
    mac.finalize().into_bytes().into()
}

impl Verifier {
    /// Reads `SCRAM-SHA-256$iterations:salt$stored:server`.
    pub(super) fn parse(text: &str) -> Option<Verifier> {
        let rest = text.strip_prefix("SCRAM-SHA-256$")?;
        let (head, keys) = rest.split_once('$')?;
        let (iterations, salt) = head.split_once(':')?;
        let (stored, server) = keys.split_once(':')?;
        Some(Verifier {
            iterations: iterations.parse().ok()?,
            salt: STANDARD.decode(salt).ok()?,
            stored: STANDARD.decode(stored).ok()?.try_into().ok()?,
            server: STANDARD.decode(server).ok()?.try_into().ok()?,
        })
    }

    /// Makes a verifier from a password.
    pub(super) fn of(password: &str, salt: [u8; 16]) -> Verifier {
        Verifier::derived(password, &salt, ITERATIONS)
    }

    fn derived(password: &str, salt: &[u8], iterations: u32) -> Verifier {
        let mut salted = [0_u8; 32];
        pbkdf2::pbkdf2::<Hmac<Sha256>>(password.as_bytes(), salt, iterations, &mut salted)
            .expect("HMAC takes keys of every length");
        let client = hmac(&salted, b"Client Key");
        Verifier {
            iterations,
            salt: salt.to_vec(),
            stored: Sha256::digest(client).into(),
            server: hmac(&salted, b"Server Key"),
        }
    }

    /// Whether this is the verifier of a password.
    pub(super) fn fits(&self, password: &str) -> bool {
        *self == Verifier::derived(password, &self.salt, self.iterations)
    }

    /// The stored form.
    pub(super) fn text(&self) -> String {
        format!(
            "SCRAM-SHA-256${}:{}${}:{}",
            self.iterations,
            STANDARD.encode(&self.salt),
            STANDARD.encode(self.stored),
            STANDARD.encode(self.server)
        )
    }
}

/// An exchange after the client's first message.
pub(super) struct Exchange {
    verifier: Verifier,
    client_first: String,
    server_first: String,
}

impl Exchange {
    /// Answers the client's first message, `n,,n=…,r=…`.
    pub(super) fn begin(verifier: Verifier, client: &str, nonce: &str) -> Option<Exchange> {
        let bare = client.splitn(3, ',').nth(2)?.to_owned();
        let theirs = bare.split(',').find_map(|part| part.strip_prefix("r="))?;
        let server_first = format!(
            "r={theirs}{nonce},s={},i={}",
            STANDARD.encode(&verifier.salt),
            verifier.iterations
        );
        Some(Exchange { verifier, client_first: bare, server_first })
    }

    pub(super) fn server_first(&self) -> &str {
        &self.server_first
    }

    /// Checks the client's proof; answers the server's own, or none when the password is wrong.
    pub(super) fn finish(&self, client: &str) -> Option<String> {
        let (without_proof, proof) = client.rsplit_once(",p=")?;
        let nonce = without_proof.split(',').find_map(|part| part.strip_prefix("r="))?;
        if !self.server_first.starts_with(&format!("r={nonce},")) {
            return None;
        }
        let message = format!("{},{},{without_proof}", self.client_first, self.server_first);
        let signature = hmac(&self.verifier.stored, message.as_bytes());
        let proof: [u8; 32] = STANDARD.decode(proof).ok()?.try_into().ok()?;
        let key: Vec<u8> = proof.iter().zip(signature).map(|(one, other)| one ^ other).collect();
        let stored: [u8; 32] = Sha256::digest(&key).into();
        if stored != self.verifier.stored {
            return None;
        }
        let answer = hmac(&self.verifier.server, message.as_bytes());
        Some(format!("v={}", STANDARD.encode(answer)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verifier_survives_its_text() {
        let verifier = Verifier::of("secret", [7; 16]);
        assert!(verifier.fits("secret") && !verifier.fits("secret "));
        assert_eq!(Verifier::parse(&verifier.text()), Some(verifier));
        assert_eq!(Verifier::parse("md5abc"), None);
    }

    #[test]
    fn the_clients_own_verifier_is_understood() {
        let text = postgres_protocol::password::scram_sha_256(b"secret");
        assert!(Verifier::parse(&text).is_some());
    }
}
