//! Access control: programs on this machine, or any program with the token; and no page except our
//! own.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use hyper::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, HOST, HeaderMap, HeaderName, ORIGIN};
use hyper::{Method, StatusCode, Uri};

/// Minimum length of a token in bytes: a shorter one could be guessed.
const SHORTEST_TOKEN: usize = 16;
/// Name of the cookie that carries the token.
pub(crate) const COOKIE_NAME: &str = "consort";

/// The secret that a browser must present.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

/// Why a text is not a valid token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenError;

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a token has {SHORTEST_TOKEN} or more letters, digits, '-' and '_': make one with 'openssl rand -hex 16'"
        )
    }
}

impl std::error::Error for TokenError {}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// Parses the content of a token file, ignoring surrounding white space.
    ///
    /// # Errors
    /// The text is too short, or contains characters that must be quoted in a URL or a cookie.
    pub fn new(text: &str) -> Result<Self, TokenError> {
        let text = text.trim();
        let is_plain =
            text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        if text.len() < SHORTEST_TOKEN || !is_plain {
            return Err(TokenError);
        }
        Ok(Self(text.to_owned()))
    }

    /// Compares in constant time.
    fn is(&self, offered: &str) -> bool {
        let differences =
            self.0.bytes().zip(offered.bytes()).fold(0, |all, (own, other)| all | (own ^ other));
        self.0.len() == offered.len() && differences == 0
    }

    /// Returns the token as it appears in a cookie.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns whether a page may be served at this address: without a token, only on the loopback
/// interface.
pub fn is_allowed_at(address: SocketAddr, token: Option<&Token>) -> bool {
    // MUTATION: is_allowed_at.any_address
    token.is_some() || address.ip().is_loopback()
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) reason: &'static str,
}

fn refusal(status: StatusCode, reason: &'static str) -> Result<(), Refusal> {
    Err(Refusal { status, reason })
}

/// Returns the token in a URL.
pub(crate) fn offered_in(uri: &Uri) -> Option<&str> {
    uri.query()?.split('&').find_map(|part| part.strip_prefix("token="))
}

/// Returns a header that occurs exactly once and is text.
fn single(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// Checks the origin of a request before anything else of it is used.
pub(crate) fn check(
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    token: Option<&Token>,
) -> Result<(), Refusal> {
    let Some(host) = single(headers, HOST) else {
        return refusal(StatusCode::BAD_REQUEST, "one Host header is needed");
    };
    // DNS rebinding: a foreign page whose name resolves to this address sends that name.
    // MUTATION: check.any_host
    if token.is_none() && !is_local(host) {
        return refusal(
            StatusCode::MISDIRECTED_REQUEST,
            "this page is served as localhost or by its loopback address only",
        );
    }
    // MUTATION: check.other_sites
    if !is_own_page(headers, host, uri.path()) {
        return refusal(StatusCode::FORBIDDEN, "another site's page may not ask this server");
    }
    // MUTATION: check.any_form
    if *method == Method::POST && !is_json(headers) {
        return refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, "commands must be application/json");
    }
    match token {
        // MUTATION: check.without_token
        Some(token) if !offers(uri, headers, token) => {
            refusal(StatusCode::UNAUTHORIZED, "the token is needed: open this page with ?token=…")
        }
        _ => Ok(()),
    }
}

/// Returns whether this is `localhost` or a loopback address, with or without a port.
fn is_local(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

/// Returns whether the request may come from where it does. Browsers state the page that a request
/// comes from, other programs do not. Any page may link to ours.
fn is_own_page(headers: &HeaderMap, host: &str, path: &str) -> bool {
    let is_own_origin = match headers.get(ORIGIN) {
        None => true,
        Some(_) => {
            let origin = single(headers, ORIGIN).unwrap_or_default();
            origin
                .split_once("://")
                .is_some_and(|(_, authority)| authority.eq_ignore_ascii_case(host))
        }
    };
    let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
    is_own_origin && (path == "/" || matches!(site, None | Some(b"same-origin" | b"none")))
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = single(headers, CONTENT_TYPE).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

fn offers(uri: &Uri, headers: &HeaderMap, token: &Token) -> bool {
    let bearer = single(headers, AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut cookies = cookies
        .flat_map(|value| value.split(';'))
        .filter_map(|cookie| cookie.trim().split_once('='));
    // A token in the URL is accepted for the page only, where it is exchanged for a cookie.
    let in_url = (uri.path() == "/").then(|| offered_in(uri)).flatten();
    in_url.is_some_and(|offered| token.is(offered))
        || bearer.is_some_and(|offered| token.is(offered))
        || cookies.any(|(name, offered)| name == COOKIE_NAME && token.is(offered))
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    const SECRET: &str = "0123456789abcdef";

    fn asked(method: &Method, uri: &str, headers: &[(&str, &str)], token: Option<&Token>) -> u16 {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                HeaderValue::from_str(value).unwrap(),
            );
        }
        match check(method, &uri.parse().unwrap(), &map, token) {
            Ok(()) => 200,
            Err(refusal) => refusal.status.as_u16(),
        }
    }

    #[test]
    fn without_a_token_only_names_of_this_machine_are_answered() {
        for (host, expected) in [
            ("localhost:8080", 200),
            ("LOCALHOST", 200),
            ("127.0.0.1:8080", 200),
            ("127.0.0.2", 200),
            ("[::1]:8080", 200),
            ("evil.example:8080", 421),
            ("localhost.evil.example", 421),
            ("127.0.0.1.evil.example:8080", 421),
            ("192.168.1.2:8080", 421),
            ("", 421),
        ] {
            assert_eq!(asked(&Method::GET, "/events", &[("host", host)], None), expected, "{host}");
        }
        assert_eq!(asked(&Method::GET, "/", &[], None), 400);
        assert_eq!(
            asked(&Method::GET, "/", &[("host", "localhost"), ("host", "localhost")], None),
            400
        );
    }

    #[test]
    fn other_sites_may_only_link_to_the_page() {
        let host = ("host", "localhost:8080");
        let json = ("content-type", "application/json");
        for (method, path, header, expected) in [
            (Method::POST, "/connect", ("origin", "http://localhost:8080"), 200),
            (Method::POST, "/connect", ("origin", "http://localhost:8081"), 403),
            (Method::POST, "/connect", ("origin", "http://evil.example"), 403),
            (Method::POST, "/connect", ("origin", "null"), 403),
            (Method::POST, "/connect", ("sec-fetch-site", "same-site"), 403),
            (Method::POST, "/connect", ("sec-fetch-site", "cross-site"), 403),
            (Method::GET, "/events", ("sec-fetch-site", "cross-site"), 403),
            (Method::GET, "/events", ("origin", "http://evil.example"), 403),
            (Method::GET, "/", ("sec-fetch-site", "cross-site"), 200),
            (Method::POST, "/connect", ("user-agent", "curl"), 200),
        ] {
            assert_eq!(asked(&method, path, &[host, json, header], None), expected, "{header:?}");
        }
        for kind in ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", ""] {
            assert_eq!(
                asked(&Method::POST, "/connect", &[host, ("content-type", kind)], None),
                415,
                "{kind}"
            );
        }
        assert_eq!(
            asked(
                &Method::POST,
                "/connect",
                &[host, ("content-type", "application/json; charset=utf-8")],
                None
            ),
            200
        );
    }

    #[test]
    fn with_a_token_only_requests_that_present_it_are_answered() {
        let token = Token::new(SECRET).unwrap();
        let host = ("host", "studio.local:8080");
        let bearer = format!("Bearer {SECRET}");
        let (cookie, other) = (format!("a=b; consort={SECRET}"), format!("consort2={SECRET}"));
        let in_url = format!("/?token={SECRET}");
        for (uri, header, expected) in [
            ("/", ("accept", "*/*"), 401),
            ("/metrics", ("authorization", bearer.as_str()), 200),
            ("/metrics", ("authorization", "Bearer 0123456789abcdeg"), 401),
            ("/metrics", ("authorization", "Bearer 0123456789abcdef0"), 401),
            ("/metrics", ("authorization", "Bearer "), 401),
            ("/events", ("cookie", cookie.as_str()), 200),
            ("/events", ("cookie", other.as_str()), 401),
            (in_url.as_str(), ("accept", "*/*"), 200),
            ("/?token=", ("accept", "*/*"), 401),
        ] {
            assert_eq!(
                asked(&Method::GET, uri, &[host, header], Some(&token)),
                expected,
                "{uri} {header:?}"
            );
        }
        let elsewhere = format!("/events?token={SECRET}");
        assert_eq!(
            asked(&Method::GET, &elsewhere, &[host], Some(&token)),
            401,
            "a token in the URL is for the page only"
        );
    }

    #[test]
    fn a_token_is_long_and_plain() {
        assert_eq!(Token::new(" 0123456789abcdef\n"), Token::new(SECRET));
        for text in
            ["", "0123456789abcde", "0123456789abcdef;", "0123456789 abcdef", "0123456789abcdeé"]
        {
            assert_eq!(Token::new(text), Err(TokenError), "{text}");
        }
        assert!(!format!("{:?}", Token::new(SECRET)).contains(SECRET));
    }

    #[test]
    fn without_a_token_a_page_is_for_this_machine_only() {
        let token = Token::new(SECRET).ok();
        for (address, alone) in [
            ("127.0.0.1:1", true),
            ("[::1]:1", true),
            ("0.0.0.0:1", false),
            ("192.168.1.2:1", false),
            ("[::]:1", false),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(
                (is_allowed_at(address, None), is_allowed_at(address, token.as_ref())),
                (alone, true)
            );
        }
    }
}
