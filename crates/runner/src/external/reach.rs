//! Whether an external dependency answers (reference/database.md section 2).
//!
//! Each attempt is bounded in time; redirects are not followed; a body is neither read nor shown,
//! since any tenant can write the address (fault catalogue PG-36, PG-37).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Empty;
use hyper_util::rt::TokioIo;
use phased::fact::Reach;
use phased::{Answer, Reply, Trouble};
use rustls::RootCertStore;
use rustls::pki_types::ServerName;

use super::dial::{Dialer, Stream};
use super::world;

/// Tries it once.
pub(crate) async fn attempt(dialer: &dyn Dialer, reach: &Reach) -> Answer {
    let (seconds, what) = match reach {
        Reach::Tcp { host, port, timeout_seconds } => (*timeout_seconds, format!("{host}:{port}")),
        Reach::Http { url, timeout_seconds } => (*timeout_seconds, shown(url)),
    };
    let bound = Duration::from_secs(u64::from(seconds.max(1)));
    let tried = async {
        match reach {
            Reach::Tcp { host, port, .. } => {
                dialer.dial(host, *port).await.map(|_| ()).map_err(|e| e.to_string())
            }
            Reach::Http { url, .. } => get(dialer, url).await,
        }
    };
    match tokio::time::timeout(bound, tried).await {
        Ok(Ok(())) => Ok(Reply::Reached),
        Ok(Err(why)) => Err(unavailable(&what, &why)),
        Err(_) => Err(unavailable(&what, &format!("no answer within {seconds} s"))),
    }
}

fn unavailable(what: &str, why: &str) -> Trouble {
    world("Unreachable", format!("{what}: {why}"))
}

/// The URL without user, password, query and fragment, which may hold secrets.
fn shown(url: &str) -> String {
    match url::Url::parse(url) {
        Ok(mut parsed) => {
            // An URL that can have neither refuses, and has none to show.
            let _ = parsed.set_username("");
            let _ = parsed.set_password(None);
            parsed.set_query(None);
            parsed.set_fragment(None);
            parsed.to_string()
        }
        Err(_) => "unreadable URL".to_owned(),
    }
}

async fn get(dialer: &dyn Dialer, url: &str) -> Result<(), String> {
    let parsed = url::Url::parse(url).map_err(|e| e.to_string())?;
    let host = parsed.host_str().ok_or("no host")?.to_owned();
    let port = parsed.port_or_known_default().ok_or("no port")?;
    let stream = dialer.dial(&host, port).await.map_err(|e| e.to_string())?;
    let status = if parsed.scheme() == "https" {
        request(secure(stream, &host, trusted().await?).await?, &parsed, &host).await?
    } else {
        request(stream, &parsed, &host).await?
    };
    if status.is_success() { Ok(()) } else { Err(format!("answered {}", status.as_u16())) }
}

/// The roots that this machine trusts. They are files, so they are read off the threads that passes
/// run on; anew each time, since a mounted bundle changes.
async fn trusted() -> Result<RootCertStore, String> {
    let read = tokio::task::spawn_blocking(|| {
        let mut roots = RootCertStore::empty();
        // A root that rustls cannot read verifies nothing; the others still do.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        roots
    });
    let roots = read.await.map_err(|_| "the trusted roots could not be read")?;
    if roots.is_empty() { Err("this machine trusts no root".to_owned()) } else { Ok(roots) }
}

async fn secure(
    stream: impl Stream,
    host: &str,
    roots: RootCertStore,
) -> Result<impl Stream, String> {
    let config = rustls::ClientConfig::builder_with_provider(Arc::new(
        rustls::crypto::ring::default_provider(),
    ))
    .with_safe_default_protocol_versions()
    .map_err(|e| e.to_string())?
    .with_root_certificates(roots)
    .with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).map_err(|e| e.to_string())?;
    tokio_rustls::TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .map_err(|e| e.to_string())
}

async fn request(
    stream: impl Stream,
    url: &url::Url,
    host: &str,
) -> Result<http::StatusCode, String> {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|e| e.to_string())?;
    let driver = tokio::spawn(async move {
        // Errors reach the sender; the connection ends with it.
        let _ = connection.await;
    });
    let path = url
        .query()
        .map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
    let request = http::Request::get(path)
        .header(http::header::HOST, authority(url, host))
        .header(http::header::USER_AGENT, "steadfast")
        .header(http::header::CONNECTION, "close")
        .body(Empty::<Bytes>::new())
        .map_err(|e| e.to_string())?;
    let answer = sender.send_request(request).await.map_err(|e| e.to_string());
    driver.abort();
    Ok(answer?.status())
}

/// Host and port as a server routes on them; the scheme's own port is left out.
fn authority(url: &url::Url, host: &str) -> String {
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_of_its_own_is_part_of_the_host_header() {
        let of = |text: &str| {
            let url = url::Url::parse(text).expect("a URL");
            authority(&url, "h.example")
        };
        assert_eq!(of("http://h.example:8080/a"), "h.example:8080");
        assert_eq!(of("https://h.example:443/a"), "h.example");
    }

    #[test]
    fn credentials_in_a_url_are_never_shown() {
        assert_eq!(shown("https://u:p@h.example/a?token=t#f"), "https://h.example/a");
    }
}
