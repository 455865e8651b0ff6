//! The text that SPDY/3 primes its header compression with (SPDY protocol, draft 3.1, 2.6.10.1).

/// Entries that stand in it with their lengths before them.
const COUNTED: &str = "options head post put delete trace accept accept-charset accept-encoding \
    accept-language accept-ranges age allow authorization cache-control connection content-base \
    content-encoding content-language content-length content-location content-md5 content-range \
    content-type date etag expect expires from host if-match if-modified-since if-none-match \
    if-range if-unmodified-since last-modified location max-forwards pragma proxy-authenticate \
    proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade \
    user-agent vary via warning www-authenticate method get status 200_OK version HTTP/1.1 url \
    public set-cookie keep-alive origin";

/// What follows them, bare.
const BARE: &str = "100101201202205206300302303304305306307402405406407408409410411412413414415416\
    417502504505203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad \
    Request401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not \
    Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 \
    Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,\
    application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,\
    deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";

/// The whole of it.
pub(super) fn dictionary() -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in COUNTED.split(' ') {
        let word = word.replace('_', " ");
        bytes.extend(u32::try_from(word.len()).unwrap_or(0).to_be_bytes());
        bytes.extend(word.as_bytes());
    }
    bytes.extend(BARE.as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::dictionary;

    #[test]
    fn it_is_the_dictionary_of_the_protocol() {
        let bytes = dictionary();
        let (mut low, mut high) = (1_u32, 0_u32);
        for byte in &bytes {
            low = (low + u32::from(*byte)) % 65521;
            high = (high + low) % 65521;
        }
        // The Adler-32 checksum that compressed headers name it by.
        assert_eq!((bytes.len(), high << 16 | low), (1423, 0xe3c6_a7c2));
    }
}
